"""The days of all lanes as rows ready to be written into the truth: what a step puts in force is one gather.

A single environment is lane 0. Memory: 8 bytes for each column and step.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.world import drawn
from heron_env.domains.energy_management.agents import Battery, TransformerZone
from heron_env.domains.energy_management.counterfactual import paid_without
from heron_env.domains.energy_management.day import DAY, HORIZONS, Before, DaySeries, Site, build_day
from heron_env.domains.energy_management.features import Constants

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Keys = NDArray[np.integer[Any]]

OF_HOMES = {name: f"Forecast.{name}" for name in ("surplus_rest", "deficit_12h", *HORIZONS)}
OF_ALL = {
    "tariff": ("Tariff.price", "Tariff.next_price", "Tariff.hours_to_change"),
    "clock": ("Clock.hour_sin", "Clock.hour_cos", "Clock.season_sin", "Clock.season_cos"),
}
WITHOUT = ("homes_without", "zones_without")


class DayTables:
    """What a day is, for each lane: begun once an episode, then asked for the columns of a step.

    Args:
        site, constants: of the environment.
        hierarchy, layout: whose columns are written.
        dt: control step, s.
        bins: of a step.

    Attributes:
        columns: i64 `[width]`, where a row goes in the truth.
        days: i64 `[lanes]`, the day that each lane runs; -1: none yet.
    """

    def __init__(
        self, site: Site, constants: Constants, hierarchy: Hierarchy, layout: Layout, *, dt: float, bins: int
    ) -> None:
        self.site, self.constants, self.dt, self.bins = site, constants, dt, bins
        self.steps = round(DAY / dt)
        homes = site.neighbourhood
        self._membership, self._limits = homes.membership[:, : homes.batteries], np.array(site.limits)
        places, self._parts, width = _places(hierarchy, layout, bins), dict[str, slice](), 0
        for name, columns in places.items():
            self._parts[name] = slice(width, width + len(columns))
            width += len(columns)
        self.columns = np.array([column for columns in places.values() for column in columns])
        self.days = np.zeros(0, dtype=np.int64)
        self._rows = np.zeros((0, self.steps + 1, width))
        self._gathered = np.zeros((0, width))

    def begin(self, lanes: Indices, seeds: Keys, episodes: Keys, days: Indices) -> None:
        """A day begins in each of `lanes`; all `[b]`. Draws are keyed by seed and episode."""
        self._reserve(int(lanes.max()) + 1)
        for lane, seed, episode, day in zip(lanes.tolist(), seeds, episodes, days.tolist(), strict=True):
            series = build_day(self.site, day, self.dt, partial(drawn, int(seed), int(episode), 0), self.bins)
            start = self.site.before(day).power
            without = paid_without(series, self._membership, self._limits, start, self.constants, self.dt)
            self.days[lane] = day
            self._fill(self._rows[lane], series, without)

    def at(self, lanes: int | Indices, step: int | Indices) -> Array:
        """What goes into `columns` when so many steps are done, 0 at the day's begin: `[width]`, `[b, width]` of many.

        The latter are valid until the next call: fresh memory for each would cost more than filling it.
        """
        if isinstance(step, int):
            return np.asarray(self._rows[lanes, min(step, self.steps)])
        if len(self._gathered) < len(step):
            self._gathered = np.empty((len(step), len(self.columns)))
        every, gathered = self._rows.reshape(-1, len(self.columns)), self._gathered[: len(step)]
        done = np.minimum(step, self.steps).reshape(-1)
        return every.take(lanes * (self.steps + 1) + done, axis=0, out=gathered, mode="clip")

    def before(self, days: Indices) -> Before:
        """What was metered before each of `days` `[b]`: arrays `[b, n]`."""
        found = [self.site.before(day) for day in days.tolist()]
        load, pv, background, power = (
            np.stack([getattr(one, name) for one in found]) for name in ("load", "pv", "background", "power")
        )
        return Before(load, pv, background, power)

    def series(self, lane: int) -> DaySeries:
        """A copy of a lane's day."""
        rows, batteries, zones = self._rows[lane, :-1], self._membership.shape[1], len(self._limits)
        widths = {"load": batteries, "pv": batteries, "background": zones}
        found = {name: rows[:, part].copy() for name, part in self._parts.items() if name not in WITHOUT}
        for name, width in widths.items():
            found[name] = found[name].reshape(-1, width)
        return DaySeries(**found)

    def _reserve(self, lanes: int) -> None:
        """Room for so many lanes; what is there stays."""
        missing = lanes - len(self._rows)
        if missing > 0:
            self._rows = np.concatenate([self._rows, np.zeros((missing, *self._rows.shape[1:]))])
            self.days = np.concatenate([self.days, np.full(missing, -1)])

    def _fill(self, rows: Array, series: DaySeries, without: tuple[Array, Array]) -> None:
        """One lane's rows `[steps + 1, width]`; after the last step its values stay in force.

        What a step cost without batteries is told one row later than what the step runs with.
        """
        for name, part in self._parts.items():
            if name not in WITHOUT:
                values = getattr(series, name).reshape(self.steps, -1)
                rows[:-1, part], rows[-1, part] = values, values[-1]
        for name, paid in zip(WITHOUT, without, strict=True):
            rows[1:, self._parts[name]] = paid


def _places(hierarchy: Hierarchy, layout: Layout, bins: int) -> dict[str, list[int]]:
    """Columns of the truth by what is written there."""
    place = {name: column for column, name in enumerate(layout.full_names)}
    batteries, zones = (
        [agent.agent_id for agent in hierarchy.agents if isinstance(agent, kind)] for kind in (Battery, TransformerZone)
    )

    def of(owners: Sequence[str], field: str) -> list[int]:
        return [place[f"{owner}.{field}"] for owner in owners]

    def in_bins(owners: Sequence[str], field: str) -> list[int]:
        return [place[f"{owner}.{field}[{number}]"] for number in range(bins) for owner in owners]

    return {
        "load": in_bins(batteries, "HomeSeries.load"),
        "pv": in_bins(batteries, "HomeSeries.pv"),
        "background": in_bins(zones, "ZoneSeries.power"),
        **{name: of(batteries, field) for name, field in OF_HOMES.items()},
        "excess_rest": of(zones, "Zone.excess_rest"),
        "homes_without": of(batteries, "Ledger.without"),
        "zones_without": of(zones, "Ledger.without"),
        **{name: [place[f"{GLOBAL}.{field}"] for field in fields] for name, fields in OF_ALL.items()},
    }
