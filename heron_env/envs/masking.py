"""Masks of an environment's agents: offered on what an agent is shown, enforced on what is true when an effect falls.

Both ask the same rule about the same numbers, the agent's own observed columns as its vector has them (float32): where
nothing is late, what was offered is what is enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import span_of
from heron_env.core.masking import Flags, everything, noop_alone, shaped

if TYPE_CHECKING:
    from heron_env.engine.lanes import Lanes
    from heron_env.envs.simulation import Simulation


class GroupMasks:
    """What agents with equal actions (`ranks`) are offered in some lanes; who is not active, the no-op alone."""

    def __init__(self, simulation: Simulation, ranks: Sequence[int]) -> None:
        specs, views, lanes = simulation.model.specs, simulation.model.plan.views, simulation.lane.lanes
        self.ranks = tuple(ranks)
        self._alone, self._all = (np.stack([of(specs[rank]) for rank in ranks]) for of in (noop_alone, everything))
        self._ruled = [place for place, rank in enumerate(ranks) if rank in simulation.masks.ranks]
        ruled, width = [ranks[place] for place in self._ruled], simulation.model.plan.size(ranks[0])
        self._positions = [lanes.position[rank] for rank in ruled]
        self._choices = [lanes.choices_of(rank) for rank in ruled]
        nothing, own = [np.zeros(0, dtype=np.int64)], [views[rank].own for rank in ruled]
        shown = [place * width + np.arange(size) for place, size in zip(self._ruled, own, strict=True)]
        self._shown = span_of(np.concatenate(nothing + shown))
        self._columns = np.concatenate(nothing + [views[r].columns[:size] for r, size in zip(ruled, own, strict=True)])

    @property
    def rules(self) -> bool:
        """May a rule forbid any of them anything?"""
        return bool(self._ruled)

    def offered(
        self, lanes: Lanes, observations: NDArray[np.float32], active: NDArray[np.bool_], which: range | None = None
    ) -> NDArray[np.int8]:
        """Flat masks `[n, agents, choices]` of n lanes, all or `which`.

        By their `observations` `[n, agents, floats]`; `active` `[n, agents]`: whose turn is it?
        """
        flags = np.where(active[:, :, None], self._all, self._alone)
        if self._ruled:
            arrays, rows = lanes.arrays, slice(None) if which is None else slice(which.start, which.stop)
            arrays.visible[rows, self._columns] = observations.reshape(len(observations), -1)[:, self._shown]
            arrays.acting[rows] = 0
            arrays.acting[rows, self._positions] = active[:, self._ruled]
            lanes.offer(which)
            for place, span in zip(self._ruled, self._choices, strict=True):
                np.copyto(flags[:, place], arrays.allowed[rows, span].view(np.int8), where=active[:, place, None])
        return flags


class Masks:
    """Say which agents have masks, and which choices each agent has now.

    ranks: of the agents with a mask of their own.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation, self._of_one = simulation, dict[int, GroupMasks]()
        self.ranks: frozenset[int] = frozenset(
            rank for rank, bound in enumerate(simulation.rules.bound) if bound.mask is not None
        )

    def offered(self, rank: int, vector: NDArray[np.float32]) -> Flags:
        """The flat mask of an agent of `ranks` on a vector `[n]` that it is shown."""
        if rank not in self._of_one:
            self._of_one[rank] = GroupMasks(self._simulation, (rank,))
        lane, active = self._simulation.lane, np.ones((1, 1), dtype=bool)
        flags: Flags = self._of_one[rank].offered(lane.lanes, vector[None, None], active, lane.range)[0, 0]
        return flags

    def offer(self, rank: int) -> Callable[[NDArray[np.float32]], Any] | None:
        """vector -> mask as the agent's space takes it; None where everything is always allowed."""
        if rank not in self.ranks:
            return None
        spec = self._simulation.model.specs[rank]
        return lambda vector: shaped(spec, self.offered(rank, vector))


class Offers:
    """The masks in infos, for the deciding agents of a single environment.

    Where nothing can be forbidden no mask is told, but all of a group have one if any has. always: is everyone active
    in every step?
    """

    def __init__(self, simulation: Simulation, always: bool) -> None:
        self._simulation, index = simulation, simulation.model.hierarchy.index
        ranks = {name: [index[agent] for agent in agents] for name, agents in simulation.group_map.items()}
        choosing = {name: of for name, of in ranks.items() if simulation.model.specs[of[0]].dim_d}
        self._masks = {name: GroupMasks(simulation, of) for name, of in choosing.items()}
        self.groups = tuple(name for name, masks in self._masks.items() if masks.rules or not always)

    def add_to(self, infos: dict[str, dict[str, Any]], observations: dict[str, NDArray[np.float32]]) -> None:
        """Add those of the agents in `observations`, by what these see; disturbances may make anyone inactive."""
        simulation, lane = self._simulation, self._simulation.lane
        for name in self.groups if simulation.course is None else self._masks:
            masks, ids = self._masks[name], simulation.group_map[name]
            vectors = np.zeros((1, len(ids), simulation.model.plan.size(masks.ranks[0])), dtype=np.float32)
            active = np.zeros((1, len(ids)), dtype=bool)
            for place, agent in enumerate(ids):
                if agent in observations:
                    vectors[0, place], active[0, place] = observations[agent], infos[agent]["is_active"]
            flags = masks.offered(lane.lanes, vectors, active, lane.range)[0]
            for rank, agent, mask in zip(masks.ranks, ids, flags, strict=True):
                if agent in observations:
                    infos[agent]["action_mask"] = shaped(simulation.model.specs[rank], mask)
