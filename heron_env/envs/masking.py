"""Masks of an environment's agents: offered on what an agent is shown, enforced on what is true when an effect falls.

Both ask the same rule about the same numbers, the agent's own observed columns as its vector has them (float32): where
nothing is late, what was offered is what is enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.masking import Flags, noop_alone, shaped

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.simulation import Simulation


class Masks:
    """Whom a mask may bind, and what each agent is offered.

    ranks: of the agents with a mask of their own.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.ranks = frozenset(rank for rank, bound in enumerate(simulation.rules.bound) if bound.mask is not None)
        self._own = [view.own for view in simulation.plan.views]

    def offered(self, rank: int, vector: NDArray[np.float32]) -> Flags:
        """The flat mask of an agent of `ranks` on a vector `[n]` that it is shown."""
        return self._simulation.lane.offer(rank, vector[: self._own[rank]])

    def offer(self, rank: int) -> Callable[[NDArray[np.float32]], Any] | None:
        """vector -> mask as the agent's space takes it; None where everything is always allowed."""
        if rank not in self.ranks:
            return None
        spec = self._simulation.specs[rank]
        return lambda vector: shaped(spec, self.offered(rank, vector))


class Offers:
    """The masks in infos, for the deciding agents of an environment.

    An agent whose turn it is not is offered its no-op alone. Where nothing can be forbidden no mask is told, but all of
    a group have one if any has. always: is everyone active in every step?
    """

    def __init__(self, env: HeronEnv, always: bool) -> None:
        self._simulation = env.simulation
        self.masks = env.simulation.masks
        self._all = [(a, r) for a, r in self._choosing(env, env.group_map)]
        bound = {g: members for g, members in env.group_map.items() if not always or self._ruled(env, members)}
        self._usual = list(self._choosing(env, bound))
        self.groups = frozenset(group for group, members in bound.items() if [*self._choosing(env, {group: members})])

    def _ruled(self, env: HeronEnv, members: Sequence[str]) -> bool:
        return any(env.hierarchy.index[agent] in self.masks.ranks for agent in members)

    @staticmethod
    def _choosing(env: HeronEnv, groups: dict[str, list[str]]) -> Iterator[tuple[str, int]]:
        """Agents of these groups that choose, and their ranks."""
        for members in groups.values():
            for agent in members:
                if env.simulation.specs[rank := env.hierarchy.index[agent]].dim_d:
                    yield agent, rank

    def add_to(self, infos: dict[str, dict[str, Any]], seen: dict[str, NDArray[np.float32]]) -> None:
        """Add them to the infos of the agents in `seen`, by what these see; disturbances may make anyone inactive."""
        for agent, rank in self._usual if self._simulation.course is None else self._all:
            if agent in seen:
                spec = self._simulation.specs[rank]
                flags = noop_alone(spec)
                if infos[agent]["is_active"]:
                    flags = self.masks.offered(rank, seen[agent]) if rank in self.masks.ranks else flags * 0 + 1
                infos[agent]["action_mask"] = shaped(spec, flags)
