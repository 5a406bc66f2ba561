"""Measurements in the event clock: what reports and local reads tell of the truth, and as of when (T18, T19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import span_of

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation
    from heron_env.scheduling.timing import Timing

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Measuring:
    """Reads rows of the truth. A `per_step` quantity is told as the sum of the last step that has ended.

    Attributes:
        local: by rank: does the agent see its own rows as they are when it decides?
        ended: the truth at the last boundary, float64 `[layout.width]`, which nobody writes.
        physics: the nominal time that physics has come to, ns.
        acted: by rank: when the agent's last effect took place, ns.
    """

    def __init__(self, simulation: Simulation, timings: Sequence[Timing]) -> None:
        self.local = [timing.local for timing in timings]
        self.ended: Floats = simulation.facts.copy()
        self.physics = 0
        self.acted = [0] * len(self.local)
        self.bind(simulation)

    def bind(self, simulation: Simulation) -> None:
        """Look up what belongs to the simulation; again when that has been rebuilt."""
        self.simulation, layout = simulation, simulation.model.layout
        summing = np.unique(layout.owner_of[layout.per_step]).tolist()
        sums = {row: np.flatnonzero(np.isin(layout.rows[row].reported.columns, layout.per_step)) for row in summing}
        self._sums = {row: places for row, places in sums.items() if len(places)}
        self._own = {rank: _Own(simulation, rank) for rank, local in enumerate(self.local) if local}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("simulation", "_sums", "_own")}

    def row(self, row: int) -> Floats:
        """The reported columns of a row as they are measured now, float64 `[n]`, fresh."""
        reported, simulation = self.simulation.model.layout.rows[row].reported, self.simulation
        simulation.look(row)
        values: Floats = simulation.facts[reported.where].copy()
        if row in self._sums:
            places = self._sums[row]
            values[places] = self.ended[reported.columns[places]]
        return values

    def measure_all(self) -> Floats:
        """All columns as they are measured now, float64 `[layout.width]`, fresh."""
        self.simulation.look()
        values, sums = self.simulation.facts.copy(), self.simulation.model.layout.per_step
        values[sums] = self.ended[sums]
        return values

    def reported(self, row: int, values: Floats) -> Floats | None:
        """What a report of a row says where `values` were measured; None: its sensor has failed, it does not leave."""
        course = self.simulation.course
        return values if course is None else course.reported(row, values)

    def as_of(self, rank: int) -> int:
        """Since when an agent's own row may have been as it is: the last substep, or its own last effect, ns."""
        return max(self.physics, self.acted[rank])

    def read_own(self, rank: int, vector: NDArray[Any], as_of: Ints) -> None:
        """Put what a local agent reads of itself now into its observation, and how old that is (T19), in place.

        `vector` `[columns]`, `as_of` of its sources, ns: so that whatever keeps the observation keeps what was shown.
        """
        own, simulation = self._own[rank], self.simulation
        if not own.width:
            return
        vector[: own.width] = simulation.truth[own.where]
        vector[own.sums] = self.ended[own.summed]
        as_of[0] = self.as_of(rank)
        failed = None if simulation.course is None else simulation.course.muted.get(rank)
        if failed is not None:
            vector[own.places] = failed.values[own.reported]
            if failed.mode == "vanish":
                as_of[0] = failed.since


class _Own:
    """Where an agent's own columns lie: in the truth, and at the beginning of its observation."""

    def __init__(self, simulation: Simulation, rank: int) -> None:
        layout, view = simulation.model.layout, simulation.model.plan.views[rank]
        self.width = view.own
        columns = view.columns[: self.width]
        self.where = span_of(columns)
        self.sums = np.flatnonzero(np.isin(columns, layout.per_step))
        self.summed = columns[self.sums]
        reported = layout.rows[rank].reported.columns
        self.places, self.reported = np.flatnonzero(np.isin(columns, reported)), np.isin(reported, columns)
