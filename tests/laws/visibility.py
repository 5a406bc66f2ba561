"""Who sees what and how clearly, asked pair by pair from what is written (V1 to V3): slow, simple, independent."""

from typing import Any

import numpy as np
from laws.plain_noise import Look, plain_noisy, plain_uniform
from small_worlds import LawEnv

EXACT = (0.0, "multiplicative")
Clarity = tuple[float, str]
"""The noise on a column: factor and law."""
Sight = tuple[int, Clarity, Look, Any]
"""A column that is seen: its number, its clarity, the key of its noise, and its declaration."""


def sees(env: LawEnv, observer: int, owner: int, feature: Any, declared: Any) -> Clarity | None:
    """How `observer` sees this quantity of `owner` (ranks; the one after the last is the world), if at all."""
    if not declared.observed:
        return None
    config = env.observability
    if observer == owner:
        shown = config is not None or _shown_to_itself(env, owner, _tags(feature, declared))
        return EXACT if declared.to_owner and shown else None
    if not feature.reported:
        return None  # an inbox is its owner's memory of what others told, even to an insider
    common = config.common_noise if config is not None else 0.0
    noisy = declared.noisy and declared.kind in ("float", "int")
    if config is not None and not config.enabled:
        return (common if noisy else 0.0, "multiplicative")
    if config is not None:
        ids = (*env.hierarchy.ids, "global")
        rows = [row for row in config.matrix if (row.observer, row.target) == (ids[observer], ids[owner])]
        says = rows[0] if rows else config.default
        shown = says.level == "insider" or (says.level == "external" and _is_external(config, feature, declared))
        return (((says.noise or 0.0) + common if noisy else 0.0), says.law) if shown else None
    by_tags = (common if noisy else 0.0, "multiplicative")
    return by_tags if _shown_by_tags(env, observer, owner, _tags(feature, declared)) else None


def _tags(feature: Any, declared: Any) -> Any:
    return feature.visibility if declared.visibility is None else declared.visibility


def _shown_to_itself(env: LawEnv, agent: int, tags: Any) -> bool:
    """Nobody is its own parent, sibling or child."""
    return "owner" in tags or "public" in tags or ("system" in tags and env.hierarchy.level[agent] >= 3)


def _is_external(config: Any, feature: Any, declared: Any) -> bool:
    names = {declared.name, f"{feature.__name__}.{declared.name}"}
    lists = config.variable_visibility
    if names & set(lists.external):
        return True
    return not names & set(lists.internal) and "public" in _tags(feature, declared)


def _shown_by_tags(env: LawEnv, observer: int, owner: int, tags: Any) -> bool:
    parent, levels = env.hierarchy.parent, env.hierarchy.level
    if "public" in tags or ("system" in tags and levels[observer] >= 3):
        return True
    if owner == len(env.hierarchy):
        return False
    return (
        ("upper_level" in tags and parent[owner] == observer)
        or ("siblings" in tags and parent[owner] == parent[observer])
        or ("subordinates" in tags and parent[observer] == owner)
    )


def sights(env: LawEnv, observer: int) -> list[Sight]:
    """What `observer` sees: its own, then others by rank, then the world's; of others what is relative comes first."""
    rows = env.simulation.model.layout.rows
    order = [observer, *(rank for rank in range(len(rows)) if rank != observer)]
    found = []
    for owner in order:
        for column, feature, declared in rows[owner].columns():
            clarity = sees(env, observer, owner, feature, declared)
            if clarity is not None:
                look = Look(rows[observer].owner_id, rows[owner].owner_id, f"{feature.__name__}.{declared.name}")
                found += [(column + e, clarity, look._replace(element=e), declared) for e in range(declared.size)]
    own = [sight for sight in found if sight[2].observer == sight[2].target]
    first = [sight for sight in found if less(found, sight) is not None]
    return own + first + [sight for sight in found if sight not in own and sight not in first]


def less(found: list[Sight], sight: Sight) -> int | None:
    """The observer's own column that is subtracted from a column, if any."""
    look, declared = sight[2:]
    if not declared.relative or look.target in (look.observer, "global"):
        return None
    own = look._replace(target=look.observer)
    return next((other[0] for other in found if other[2] == own), None)


def visible(env: LawEnv, observer: int) -> list[int]:
    """The columns that are shown to `observer`, in that order."""
    return [column for column, *_ in sights(env, observer)]


def hidden(env: LawEnv, observer: int) -> Any:
    """All other columns."""
    return np.setdiff1d(np.arange(env.simulation.model.layout.size), visible(env, observer))


def noisy(env: LawEnv, observer: int) -> list[int]:
    """The columns that `observer` sees with noise."""
    return [column for column, (factor, _), _, _ in sights(env, observer) if factor]


def as_seen(found: list[Sight], array: Any, moment: tuple[int, int, int]) -> Any:
    """The numbers of `array` as they are seen at a moment (seed, episode, turn), by the plain law of noise: float32."""
    seed, episode, turn = moment
    shown = []
    for column, (factor, law), look, declared in found:
        value = float(array[column])
        if factor:
            u = plain_uniform(look._replace(seed=seed, episode=episode, turn=turn))
            number = int(value) if declared.kind == "int" else value
            value = float(plain_noisy(number, u, factor, law, declared.low, declared.high))
        own = less(found, (column, (factor, law), look, declared))
        shown.append(value if own is None else value - float(array[own]))
    return np.array(shown, dtype=np.float64).astype(np.float32)


STILL = ("Order.secret", "Panel.cells[0]", "Panel.cells[1]", "Panel.serial")
"""Numbers that nothing in these worlds reads or writes after the begin hook, whoever has them."""


def inert(env: LawEnv) -> list[int]:
    """Columns that nothing reads, so that whoever sees them sees them only."""
    layout, agents = env.simulation.model.layout, env.hierarchy.agents
    found = []
    for column, name in enumerate(layout.names):
        owner = int(layout.owner_of[column])
        kind = type(agents[owner]).__name__ if owner < len(agents) else "world"
        unread = (*STILL, "Hidden.luck", "Tally.effects")
        if name in unread or (name == "Setpoint.mode" and kind == "Unit"):
            found.append(column)
    return found


def still(env: LawEnv) -> list[int]:
    """Columns that keep their value for a whole episode."""
    return [column for column, name in enumerate(env.simulation.model.layout.names) if name in STILL]
