"""The days of all lanes as rows ready to be written into the truth: what a step puts in force is one gather.

A single environment is lane 0. Memory: 8 bytes for each column and step, 1.4 MB a lane with 20 batteries in 7 zones at
dt = 60 s, 0.1 MB at 900 s.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.domains.energy_management.agents import Battery, TransformerZone
from heron_env.domains.energy_management.day import DaySeries

Array = NDArray[np.float64]

OF_BATTERIES = {
    "load": "Meter.load",
    "pv": "Meter.pv",
    "surplus_rest": "Forecast.surplus_rest",
    "deficit_12h": "Forecast.deficit_12h",
    "homes_without": "Ledger.without",
}
OF_ZONES = {"background": "Background.power", "excess_rest": "Zone.excess_rest", "zones_without": "Ledger.without"}
OF_ALL = {
    "tariff": ("Tariff.price", "Tariff.next_price", "Tariff.hours_to_change"),
    "clock": ("Clock.hour_sin", "Clock.hour_cos", "Clock.season_sin", "Clock.season_cos"),
}
WITHOUT = ("homes_without", "zones_without")


class DayTables:
    """Row k of a lane is what `finish` writes when k steps are done, row 0 what `begin` writes.

    Attributes:
        columns: i64 `[width]`, where a row goes in the truth.
        rows: `[lanes, steps + 1, width]`. What the step cost without batteries is told one step later than the rest.
        days: i64 `[lanes]`, the day that each lane runs; -1: none yet.
    """

    def __init__(self, hierarchy: Hierarchy, layout: Layout, steps: int) -> None:
        self.steps = steps
        places, self.parts, start = _places(hierarchy, layout), {}, 0
        for name, columns in places.items():
            self.parts[name] = slice(start, start + len(columns))
            start += len(columns)
        self.columns = np.array([column for columns in places.values() for column in columns])
        self.rows = np.zeros((0, steps + 1, start))
        self.days = np.zeros(0, dtype=np.int64)
        self._gathered = np.zeros((0, start))

    def reserve(self, lanes: int) -> None:
        """Room for so many lanes; what is there stays."""
        missing = lanes - len(self.rows)
        if missing > 0:
            self.rows = np.concatenate([self.rows, np.zeros((missing, *self.rows.shape[1:]))])
            self.days = np.concatenate([self.days, np.full(missing, -1)])

    def fill(self, lane: int, day: int, series: DaySeries, without: tuple[Array, Array]) -> None:
        """One lane's day; after its last step that step's values stay in force."""
        self.days[lane] = day
        rows, last = self.rows[lane], self.steps - 1
        for name, part in self.parts.items():
            if name not in WITHOUT:
                values = getattr(series, name)
                rows[:-1, part], rows[-1, part] = values, values[last]
        for name, paid in zip(WITHOUT, without, strict=True):
            rows[1:, self.parts[name]] = paid

    def at(self, lanes: int | NDArray[np.int64], step: int | NDArray[np.int64]) -> Array:
        """Rows `[width]` of one lane, `[b, width]` of `lanes` `[b]`, each after its own number of steps.

        The latter are valid until the next call: fresh memory for each would cost more than filling it.
        """
        if isinstance(step, int):
            return np.asarray(self.rows[lanes, min(step, self.steps)])
        if len(self._gathered) < len(step):
            self._gathered = np.empty((len(step), len(self.columns)))
        every, gathered = self.rows.reshape(-1, len(self.columns)), self._gathered[: len(step)]
        done = np.minimum(step, self.steps).reshape(-1)
        return every.take(lanes * (self.steps + 1) + done, axis=0, out=gathered, mode="clip")

    def series(self, lane: int) -> DaySeries:
        """A copy of a lane's day."""
        rows = self.rows[lane, :-1]
        return DaySeries(**{name: rows[:, part].copy() for name, part in self.parts.items() if name not in WITHOUT})


def _places(hierarchy: Hierarchy, layout: Layout) -> dict[str, list[int]]:
    """Columns of the truth by what is written there."""
    place = {name: column for column, name in enumerate(layout.full_names)}

    def of(owners: Sequence[str], fields: Mapping[str, str]) -> dict[str, list[int]]:
        return {name: [place[f"{owner}.{field}"] for owner in owners] for name, field in fields.items()}

    agents = hierarchy.agents
    batteries, zones = ([a.agent_id for a in agents if isinstance(a, kind)] for kind in (Battery, TransformerZone))
    shared = {name: [place[f"{GLOBAL}.{field}"] for field in fields] for name, fields in OF_ALL.items()}
    return {**of(batteries, OF_BATTERIES), **of(zones, OF_ZONES), **shared}
