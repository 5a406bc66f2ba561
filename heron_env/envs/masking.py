"""Masks of an environment's agents: offered on what an agent is shown, enforced on what is true when an effect falls.

Both ask the same rule about the same numbers, the agent's own observed columns as its vector has them (float32): where
nothing is late, what was offered is what is enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import span_of
from heron_env.core.masking import Flags, everything, noop_alone, shaped

if TYPE_CHECKING:
    from heron_env.engine.lanes import Lanes
    from heron_env.envs.simulation import Simulation


class Masks:
    """Whom a mask may bind, and what each agent is offered.

    ranks: of the agents with a mask of their own.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.ranks = frozenset(rank for rank, bound in enumerate(simulation.plain.bound) if bound.mask is not None)
        self._own = [view.own for view in simulation.plan.views]

    def offered(self, rank: int, vector: NDArray[np.float32]) -> Flags:
        """The flat mask of an agent of `ranks` on a vector `[n]` that it is shown."""
        return self._simulation.mechanics.offer(rank, vector[: self._own[rank]])

    def offer(self, rank: int) -> Callable[[NDArray[np.float32]], Any] | None:
        """vector -> mask as the agent's space takes it; None where everything is always allowed."""
        if rank not in self.ranks:
            return None
        spec = self._simulation.specs[rank]
        return lambda vector: shaped(spec, self.offered(rank, vector))


class Offers:
    """The masks in infos, for the deciding agents.

    An agent whose turn it is not is offered its no-op alone. Where nothing can be forbidden no mask is told, but all of
    a group have one if any has. always: is everyone active in every step?
    """

    def __init__(self, simulation: Simulation, always: bool) -> None:
        self._simulation, self.masks, groups = simulation, simulation.masks, simulation.group_map
        self._all = [(a, r) for a, r in self._choosing(groups)]
        bound = {g: members for g, members in groups.items() if not always or self._ruled(members)}
        self._usual = list(self._choosing(bound))
        self.groups = frozenset(group for group, members in bound.items() if [*self._choosing({group: members})])

    def _ruled(self, members: Sequence[str]) -> bool:
        return any(self._simulation.hierarchy.index[agent] in self.masks.ranks for agent in members)

    def _choosing(self, groups: dict[str, list[str]]) -> Iterator[tuple[str, int]]:
        """Agents of these groups that choose, and their ranks."""
        for members in groups.values():
            for agent in members:
                if self._simulation.specs[rank := self._simulation.hierarchy.index[agent]].dim_d:
                    yield agent, rank

    def add_to(self, infos: dict[str, dict[str, Any]], seen: dict[str, NDArray[np.float32]]) -> None:
        """Add them to the infos of the agents in `seen`, by what these see; disturbances may make anyone inactive."""
        for agent, rank in self._usual if self._simulation.course is None else self._all:
            if agent in seen:
                spec = self._simulation.specs[rank]
                flags = noop_alone(spec)
                if infos[agent]["is_active"]:
                    ruled = rank in self.masks.ranks
                    flags = self.masks.offered(rank, seen[agent]) if ruled else everything(spec)
                infos[agent]["action_mask"] = shaped(spec, flags)


class GroupMasks:
    """What agents with equal actions are offered in the lanes of a batch, on what was published last.

    `columns`: where their observations lie in what is published.
    """

    def __init__(self, simulation: Simulation, ranks: Sequence[int], columns: slice, lanes: Lanes) -> None:
        masks, views, spec = simulation.masks, simulation.plan.views, simulation.specs[ranks[0]]
        self._lanes, self._alone, self._all = lanes, noop_alone(spec), everything(spec)
        self._ruled = [place for place, rank in enumerate(ranks) if rank in masks.ranks]
        ruled = [ranks[place] for place in self._ruled]
        self._positions = [lanes.position[rank] for rank in ruled]
        self._choices = [lanes.choices_of(rank) for rank in ruled]
        width = (columns.stop - columns.start) // len(ranks)
        first = [columns.start + place * width for place in self._ruled]
        nothing = [np.zeros(0, dtype=np.int64)]
        shown = [at + np.arange(views[rank].own) for at, rank in zip(first, ruled, strict=True)]
        self._shown = span_of(np.concatenate(nothing + shown))
        self._seen = np.concatenate(nothing + [views[rank].columns[: views[rank].own] for rank in ruled])

    def offered(self, active: NDArray[np.bool_]) -> NDArray[np.int8]:
        """Flat masks `[lanes, agents, choices]`; the no-op alone where `active` `[lanes, agents]` is not."""
        flags = np.where(active[:, :, None], self._all, self._alone)
        if self._ruled:
            arrays = self._lanes.arrays
            arrays.seen[:, self._seen] = self._lanes.published.observations[:, self._shown]
            arrays.acting[:] = 0
            arrays.acting[:, self._positions] = active[:, self._ruled]
            self._lanes.offer()
            for place, span in zip(self._ruled, self._choices, strict=True):
                flags[:, place] = np.where(active[:, place, None], arrays.allowed[:, span], flags[:, place])
        return flags
