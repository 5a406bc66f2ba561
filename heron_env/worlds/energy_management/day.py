"""A site and its days: what all of them have in common, and the exogenous series that one of them turns out to be."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.worlds.energy_management.calendar import SHIPPED, Calendar, TimeOfUse
from heron_env.worlds.energy_management.days_tables import DAY as DAY
from heron_env.worlds.energy_management.days_tables import QUARTERS
from heron_env.worlds.energy_management.neighbourhood import Neighbourhood, Profiles

FORECAST_ERROR: Final = 0.15

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Before:
    """What was metered in the bin before midnight: the base series' last quarter hour of the day before, kW.

    Attributes:
        load, pv: `[batteries]`.
        background: `[zones]`.
        power: `[zones]`, of the transformers with all batteries at rest.
    """

    load: Array
    pv: Array
    background: Array
    power: Array

    def of(self, days: "int | NDArray[np.int64]") -> "Before":
        """Those of `days` `[b]` out of one for each day of the year."""
        return Before(*(getattr(self, column.name)[days] for column in fields(self)))


@dataclass(frozen=True)
class DaySeries:
    """Powers in kW (means over a bin), energies in kWh, prices in EUR/kWh; row k holds in bin, or from step, k on.

    Attributes:
        load, pv: `[bins of the day, batteries]`.
        background: `[bins of the day, zones]`.
        surplus_rest, deficit_12h, net_1h, net_3h, net_6h, net_12h: `[steps, batteries]`.
        excess_rest: `[steps, zones]`.
        tariff: `[steps, 3]` price, next_price, hours_to_change.
        clock: `[steps, 4]` sine and cosine of the local hour, sine and cosine of the season.
    """

    load: Array
    pv: Array
    background: Array
    surplus_rest: Array
    deficit_12h: Array
    net_1h: Array
    net_3h: Array
    net_6h: Array
    net_12h: Array
    excess_rest: Array
    tariff: Array
    clock: Array

    @property
    def steps(self) -> int:
        """Number of control steps in the day."""
        return len(self.clock)

    @property
    def bins(self) -> int:
        """Number of bins in a step."""
        return len(self.load) // len(self.clock)


@dataclass(frozen=True)
class Site:
    """What all days have in common: who lives there, the year's base series, the tariff, the zones' limits (kW).

    files: SHA-256 by name of each file that it was read from.
    """

    neighbourhood: Neighbourhood
    profiles: Profiles
    tariff: TimeOfUse
    limits: tuple[float, ...]
    forecast_error: float = FORECAST_ERROR
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def calendar(self) -> Calendar:
        """Which days there are."""
        return SHIPPED

    def base(self, day: int) -> tuple[Array, Array, Array]:
        """Load and generation `[homes, 96]` and the businesses' load `[zones, 96]` of a day, kW in quarter hours."""
        homes = self.neighbourhood
        load = homes.energy[:, None] * (self.profiles.household[day] / 1000.0)
        roofs = self.profiles.roofs[homes.roof, day]
        business = np.array(homes.business)[:, None] * (self.profiles.business[day] / 1000.0)
        return load, homes.peak[:, None] * roofs, business

    def before(self, day: int | NDArray[np.int64]) -> Before:
        """What the meters had shown when the day began; of `days` `[b]`: `[b, n]`."""
        return self._before.of(day)

    @cached_property
    def _before(self) -> Before:
        """Of each day, `[days, n]`."""
        homes, batteries = self.neighbourhood, self.neighbourhood.batteries
        load, pv, shops = self._at_midnight()
        background = (load - pv)[:, batteries:] @ homes.membership[:, batteries:].T + shops
        power = background + (load - pv)[:, :batteries] @ homes.membership[:, :batteries].T
        return Before(load[:, :batteries], pv[:, :batteries], background, power)

    def _at_midnight(self) -> tuple[Array, Array, Array]:
        """Load and generation `[days, homes]` and the businesses' load `[days, zones]` before each day, kW."""
        homes = self.neighbourhood
        household, shops = (
            np.roll(power[:, -1], 1)[:, None] / 1000.0 for power in (self.profiles.household, self.profiles.business)
        )
        roofs = np.roll(self.profiles.roofs[:, :, -1], 1, axis=1)
        return household * homes.energy, roofs[homes.roof].T * homes.peak, shops * np.array(homes.business)


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
