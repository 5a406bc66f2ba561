"""Groups: agents of one name stem and equal spaces, which can share a policy (D9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.core.hierarchy import name_stem
from heron_env.envs.simulation import Simulation


def group_agents(simulation: Simulation) -> dict[str, list[str]]:
    """All agents by name stem and equal spaces: `battery`; unequal ones become `zone` and `zone:1`."""
    kinds: dict[str, dict[Any, int]] = {}
    groups: dict[str, list[str]] = {}
    for rank, agent_id in enumerate(simulation.hierarchy.ids):
        stem = name_stem(agent_id)
        known = kinds.setdefault(stem, {})
        number = known.setdefault(_kind(simulation, rank), len(known))
        groups.setdefault(stem if number == 0 else f"{stem}:{number}", []).append(agent_id)
    return groups


def _kind(simulation: Simulation, rank: int) -> tuple[Any, ...]:
    """Equal for agents with equal spaces."""
    spec = simulation.specs[rank]
    parts = (*simulation.plan.bounds(rank), spec.low, spec.high, spec.ncats)
    return tuple(np.asarray(part).tobytes() for part in parts)
