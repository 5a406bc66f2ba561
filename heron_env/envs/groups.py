"""Groups: agents of one name stem and equal spaces, which can share a policy (D9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.action import ActionSpec
from heron_env.core.hierarchy import name_stem

if TYPE_CHECKING:
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


def kinds_of(ids: Sequence[str], specs: Sequence[ActionSpec]) -> list[tuple[Any, ...]]:
    """Equal for agents of one name stem with equal action spaces."""
    return [(name_stem(agent_id), *_acts(spec)) for agent_id, spec in zip(ids, specs, strict=True)]


def _kind(simulation: Simulation, rank: int) -> tuple[Any, ...]:
    """Equal for agents with equal spaces."""
    return (*(bound.tobytes() for bound in simulation.plan.bounds(rank)), *_acts(simulation.specs[rank]))


def _acts(spec: ActionSpec) -> tuple[bytes, ...]:
    return tuple(np.asarray(part).tobytes() for part in (spec.low, spec.high, spec.ncats))
