"""Who sees what, asked pair by pair from the tags as written (V1, V3): slow, simple, and independent of the plan."""

from typing import Any

import numpy as np
from worlds import LawEnv


def sees(env: LawEnv, observer: int, owner: int, feature: Any, declared: Any) -> bool:
    """Does `observer` see this quantity of `owner` (both by rank; the rank after the last is the world)?"""
    if not declared.observed:
        return False
    if observer == owner:
        return True
    parent, levels = env.hierarchy.parent, env.hierarchy.level
    tags = feature.visibility if declared.visibility is None else declared.visibility
    if "public" in tags or ("system" in tags and levels[observer] >= 3):
        return True
    if owner == len(env.hierarchy):
        return False
    return (
        ("upper_level" in tags and parent[owner] == observer)
        or ("siblings" in tags and parent[owner] == parent[observer])
        or ("subordinates" in tags and parent[observer] == owner)
    )


def visible(env: LawEnv, observer: int) -> list[int]:
    """The columns that the tags show to `observer`: its own, then others by rank, then the world's."""
    rows = env.simulation.layout.rows
    order = [observer, *(rank for rank in range(len(rows)) if rank != observer)]
    return [
        column + element
        for owner in order
        for column, feature, declared in rows[owner].columns()
        if sees(env, observer, owner, feature, declared)
        for element in range(declared.size)
    ]


def hidden(env: LawEnv, observer: int) -> Any:
    """All other columns."""
    return np.setdiff1d(np.arange(env.simulation.layout.size), visible(env, observer))


def inert(env: LawEnv) -> list[int]:
    """Columns that nothing in these worlds reads or writes after the begin hook: whoever sees them sees them only."""
    layout, agents = env.simulation.layout, env.hierarchy.agents
    found = []
    for column, name in enumerate(layout.names):
        owner = int(layout.owner_of[column])
        kind = type(agents[owner]).__name__ if owner < len(agents) else "world"
        if name in ("Order.secret", "Hidden.luck", "Tally.effects") or (name == "Setpoint.mode" and kind == "Unit"):
            found.append(column)
    return found
