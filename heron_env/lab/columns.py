"""Which columns of observations are no longer those that a file was made with, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heron_env.errors import changed_names, listed_names

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


def columns_misfit(recorded: Sequence[str], now: Sequence[str], env: HeronEnv, agent: str) -> str:
    """What an agent of `env` observes otherwise than a file says; empty where all is the same."""
    if not (differs := changed_names(recorded, now)):
        return ""
    own = [sight for sight in env.visibility_matrix().row(agent, hidden=True) if sight.owner == agent]
    untagged = {sight.column.removeprefix(f"{agent}.") for sight in own if sight.reason == "no tag"}
    hidden = [name for name in recorded if name in untagged]
    if hidden:
        differs += (
            f" (agents see of their own what is tagged 'owner' or 'public'; tag {listed_names(hidden)} 'owner', too)"
        )
    return differs


def recording_misfit(recorded: Mapping[str, Sequence[str]], env: HeronEnv) -> str:
    """The same of the first agent of `env` for which a recording has other columns, as they travel (V9)."""
    for agent, names in recorded.items():
        if agent in env.hierarchy.index:
            now = env.simulation.model.plan.views[env.hierarchy.index[agent]].received_names
            if differs := columns_misfit(names, now, env, agent):
                return f"{agent!r} observes other columns: {differs}"
    return ""
