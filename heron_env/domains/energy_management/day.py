"""One day's exogenous series: loads and generation in bins; forecasts, prices and the clock at any control step.

The fast layer lives on its own fine grid and is averaged into the bins, so a coarse environment (bins of 900 s) runs in
the mean of the very world that a fine one (bins of 10 s) with the same seed runs in.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.domains.energy_management.fast import BIN, BINS, Draw, household_load, spread, sunlight
from heron_env.domains.energy_management.neighbourhood import Neighbourhood
from heron_env.domains.energy_management.profiles import DAYS, Profiles
from heron_env.domains.energy_management.tariff import TimeOfUse, local_hours, summer_time, tariff_series
from heron_env.seeding import standard_normal

DAY: Final = 86_400.0  # s
QUARTER: Final = 900.0
HORIZONS: Final = {"net_1h": 3600.0, "net_3h": 10_800.0, "net_6h": 21_600.0, "net_12h": 43_200.0}  # s
FORECAST_ERROR: Final = 0.15
WORST_ERROR: Final = 3.0  # standard deviations at which a forecast's error is cut

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
    """What all days have in common: who lives there, the year's base series, the tariff, the zones' limits (kW)."""

    neighbourhood: Neighbourhood
    profiles: Profiles
    tariff: TimeOfUse
    limits: tuple[float, ...]
    forecast_error: float = FORECAST_ERROR

    def base(self, day: int) -> tuple[Array, Array, Array]:
        """Load and generation `[homes, 96]` and the businesses' load `[zones, 96]` of a day, kW in quarter hours."""
        homes, day = self.neighbourhood, day % DAYS
        load = homes.energy[:, None] * (self.profiles.household[day] / 1000.0)
        roofs = self.profiles.roofs[homes.roof, day]
        business = np.array(homes.business)[:, None] * (self.profiles.business[day] / 1000.0)
        return load, homes.peak[:, None] * roofs, business

    def before(self, day: int) -> Before:
        """What the meters had shown when the day began."""
        load, pv, business = (quarters[:, -1] for quarters in self.base(day - 1))
        homes, batteries = self.neighbourhood, self.neighbourhood.batteries
        net = load - pv
        background = homes.membership[:, batteries:] @ net[batteries:] + business
        return Before(load[:batteries], pv[:batteries], background, homes.membership @ net + business)


def build_day(site: Site, day: int, dt: float, draw: Draw, bins: int = 1) -> DaySeries:
    """The series of `day` (0 to 364) at steps of `dt` seconds, which must divide 86,400 s, of so many bins.

    Args:
        site: neighbourhood, profiles and tariff.
        day: 0 is January 1.
        dt: control step, s.
        draw: `draw(name, shape)` gives uniforms in [0, 1); the same draws give the same day at every `dt`.
        bins: of a step.
    """
    times = np.arange(round(DAY / dt), dtype=np.float64) * dt
    homes, batteries = site.neighbourhood, site.neighbourhood.batteries
    load, pv = _fast_homes(site, day, draw)
    business = spread(site.base(day)[2])
    background = homes.membership[:, batteries:] @ (load - pv)[batteries:] + business
    rows = np.concatenate([load[:batteries], pv[:batteries], background])
    means = _means(rows, dt / bins).T
    tariff, clock = _calendar(site.tariff, day, dt)
    return DaySeries(
        load=means[:, :batteries],
        pv=means[:, batteries : 2 * batteries],
        background=means[:, 2 * batteries :],
        tariff=tariff,
        clock=clock,
        **_forecasts(site, day, times, draw),
    )


@lru_cache(maxsize=DAYS)
def _calendar(tariff: TimeOfUse, day: int, dt: float) -> tuple[Array, Array]:
    """What all episodes of a day have in common: tariff `[steps, 3]` and clock `[steps, 4]`."""
    times = np.arange(round(DAY / dt), dtype=np.float64) * dt
    return np.stack(tariff_series(tariff, day, times), axis=1), _clock(day, times)


def _fast_homes(site: Site, day: int, draw: Draw) -> tuple[Array, Array]:
    """Load and generation `[homes, 8640]` in kW with the fast layer."""
    homes = site.neighbourhood
    base, _, _ = site.base(day)
    load = household_load(draw, base, homes.wallbox, float(summer_time()[24 * day + 12]))
    pv = sunlight(draw, site.profiles.roofs[:, day], site.profiles.clear_sky[:, day], homes.roof, homes.lag)
    pv *= homes.peak[:, None]
    return load, pv


def _means(rows: Array, dt: float) -> Array:
    """Means `[rows, bins]` over bins of `dt` of series `[rows, 8640]`."""
    if dt == BIN:
        return rows
    if dt % BIN == 0.0:
        return np.asarray(rows.reshape(len(rows), -1, round(dt / BIN)).mean(axis=-1))
    cumulated = np.zeros((len(rows), BINS + 1))
    np.cumsum(rows, axis=1, out=cumulated[:, 1:])
    edges = np.arange(round(DAY / dt) + 1, dtype=np.float64) * (dt / BIN)
    return np.asarray(np.diff(_at(cumulated, edges), axis=1) * (BIN / dt))


def _at(cumulated: Array, position: Array) -> Array:
    """Rows of `cumulated` at fractional column positions, linear in between."""
    whole = np.minimum(position.astype(np.int64), cumulated.shape[1] - 2)
    share = position - whole
    return np.asarray(cumulated[:, whole] * (1.0 - share) + cumulated[:, whole + 1] * share)


def _forecasts(site: Site, day: int, times: Array, draw: Draw) -> dict[str, Array]:
    """Per battery: surplus until midnight, deficit of 12 h, net energies; per zone: feed-in above the limit so long.

    Forecasts know the base series, not the fast layer; their generation is off by a factor 1 + 0.15 z, one z a home.
    """
    homes, batteries = site.neighbourhood, site.neighbourhood.batteries
    uniform = draw("forecast", (len(homes.homes),))
    z = np.clip([standard_normal(float(u)) for u in uniform], -WORST_ERROR, WORST_ERROR)
    factor = np.maximum(1.0 + site.forecast_error * z, 0.0)[:, None]
    (load, pv, business), (next_load, next_pv, _) = site.base(day), site.base(day + 1)
    net = load - factor * pv
    both_days = np.concatenate([net, next_load - factor * next_pv], axis=1)[:batteries]
    zone_net = homes.membership @ net + business
    feed_in = np.maximum(-zone_net - np.array(site.limits)[:, None], 0.0)

    def until(power: Array, later: Array) -> Array:
        energy = _energy(power)
        return (_at(energy, later / QUARTER) - _at(energy, times / QUARTER)).T

    midnight = np.full_like(times, DAY)
    return {
        "surplus_rest": until(np.maximum(-net[:batteries], 0.0), midnight),
        "deficit_12h": until(np.maximum(both_days, 0.0), times + HORIZONS["net_12h"]),
        "excess_rest": until(feed_in, midnight),
        **{name: until(both_days, times + horizon) for name, horizon in HORIZONS.items()},
    }


def _energy(power: Array) -> Array:
    """Cumulated kWh `[rows, quarters + 1]` of quarter-hour powers `[rows, quarters]`."""
    energy = np.zeros((len(power), power.shape[1] + 1))
    np.cumsum(power * 0.25, axis=1, out=energy[:, 1:])
    return energy


def _clock(day: int, times: Array) -> Array:
    """Sine and cosine of the local hour and of the season, `[steps, 4]`."""
    hour = local_hours(day, times) * (2.0 * np.pi / 24.0)
    season = (day + times / DAY) * (2.0 * np.pi / DAYS)
    return np.stack([np.sin(hour), np.cos(hour), np.sin(season), np.cos(season)], axis=1)
