"""An own site: homes whose loads and roofs were measured, on the days that were measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.worlds.energy_management.calendar import Calendar
from heron_env.worlds.energy_management.day import Site
from heron_env.worlds.energy_management.days_tables import QUARTERS

Array = NDArray[np.float64]

DAY_HOURS: Final = 24.0


@dataclass(frozen=True)
class Measured:
    """Powers of homes as they were measured, in the order of the neighbourhood's homes.

    Attributes:
        load, pv: `[days, slots, homes]` kW, means over a slot; as many slots as divide the day.
        filled: slots that no meter filled, by file and column.
    """

    load: Array
    pv: Array
    filled: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class OwnSite(Site):
    """A site whose series are what happens: nothing is drawn on them.

    Attributes:
        dates: which days were measured.
        measured: loads and roofs.
        names: of the homes, in the order of the neighbourhood.
    """

    dates: Calendar
    measured: Measured
    names: tuple[str, ...]

    @property
    def calendar(self) -> Calendar:
        """The days that were measured."""
        return self.dates

    @cached_property
    def energies(self) -> Array:
        """`[days, slots + 1, 2 * homes]` kWh since midnight: of loads, then of roofs."""
        powers = np.concatenate([self.measured.load, self.measured.pv], axis=2)
        days, slots, series = powers.shape
        sums = np.zeros((days, slots + 1, series))
        np.cumsum(powers * (DAY_HOURS / slots), axis=1, out=sums[:, 1:])
        return sums

    def base(self, day: int) -> tuple[Array, Array, Array]:
        """As in Site: what forecasts know, the quarter hours' means."""
        sums = self.energies[day]
        slots, quarters = np.linspace(0.0, 1.0, len(sums)), np.linspace(0.0, 1.0, QUARTERS + 1)
        means = np.stack([np.diff(np.interp(quarters, slots, series)) for series in sums.T]) * QUARTERS / DAY_HOURS
        homes = len(self.neighbourhood.homes)
        return means[:homes], means[homes:], np.zeros((self.neighbourhood.zones, QUARTERS))

    def _at_midnight(self) -> tuple[Array, Array, Array]:
        last, days = (self.measured.load[:, -1], self.measured.pv[:, -1]), self.calendar.before
        return last[0][days], last[1][days], np.zeros((len(days), self.neighbourhood.zones))
