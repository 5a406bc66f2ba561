"""MPC, each battery for itself: it plans the rest of its day from what it sees and begins with the plan's first power.

The forecast's sums become a profile (plan_kernel.py): an even demand and the sun's height, fitted to the sums of the
next 1, 3, 6, 12 h, each of which is kept; behind 12 h what of the surplus until midnight is left. What the zone expects
above its limit lies where the sun is high, an equal share for each battery. The plan is exact for that day. Its first
power also answers what the transformer measures, as though all batteries of the zone did the same; the older that is,
the less its fluctuation counts. Nothing is remembered between decisions, so it is the same policy in every clock.
"""

import functools
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.cache import cached_file
from heron_env.errors import ConfigError
from heron_env.worlds.energy_management.features import MAX_POWER, Constants
from heron_env.worlds.energy_management.profiles import DAYS
from heron_env.worlds.energy_management.rules import BatteryRule, Columns
from heron_env.worlds.energy_management.tariff import TimeOfUse

Array = NDArray[np.float64]

KERNEL: Final = Path(__file__).with_name("plan_kernel.py")
SEEN: Final = (
    "Charge.soc", "Charge.capacity", "Meter.load", "Meter.pv", "Setpoint.power", "Forecast.surplus_rest",
    "Forecast.deficit_12h", "Forecast.net_1h", "Forecast.net_3h", "Forecast.net_6h", "Forecast.net_12h",
    "Zone.power", "Zone.mean_power", "Zone.limit", "Zone.excess_rest",
)  # fmt: skip
"""In the order of plan_kernel.py."""
CLOCK: Final = ("Clock.hour_sin", "Clock.hour_cos", "Clock.season_sin", "Clock.season_cos")
DAY: Final = 86_400.0  # s
ROUNDED: Final = 2.0  # s by which a clock in float32 may be behind midnight


@dataclass(frozen=True)
class Foresight:
    """Free constants of the MPC, tuned on validation days without a network.

    Attributes:
        follow: share of the fluctuation's price that counts; the rest is movement that will have to come anyway.
        window: kWh of stored energy over whose value the first power looks, so that it does not jump; above 0.
        excess: factor on the zone's expected feed-in above its limit: clouds make more of it than the forecast's mean.
        shoulder: sine of the sun's height below which none of it is expected.
        fading: s of age after which the zone's distance from its mean counts only 1/e; only where ages are observed. An
            overload always counts: at a lower price than the coming ones it would be left for later, and later again.
            Above 0.

    Raises ConfigError.
    """

    follow: float = 0.4
    window: float = 2.5
    excess: float = 1.5
    shoulder: float = 0.1
    fading: float = 60.0

    def __post_init__(self) -> None:
        for name in ("window", "fading"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"Foresight({name}={getattr(self, name)!r}): must be above 0")


class ModelPredictive(BatteryRule):
    """Plans with every decision anew.

    Args:
        names: as for BatteryRule; with `observe_age=True` the zone's age is among them.
        tariff: known for the whole day, as to the rules.
        constants: prices and efficiency.
        zone_size: batteries behind the transformer.
        foresight: constants.
    """

    def __init__(
        self,
        names: Sequence[str],
        tariff: TimeOfUse,
        constants: Constants,
        zone_size: int,
        foresight: Foresight | None = None,
    ) -> None:
        super().__init__(names)
        self.foresight = foresight or Foresight()
        zone = next((name.split(".")[0] for name in names if name.endswith("Zone.power")), "")
        self.age = f"age.{zone}" if f"age.{zone}" in self.column else None
        self.prices = tariff.prices(np.arange(24.0))
        c = constants
        prices = (c.feed_in_price, c.wear_price, c.stored_value, c.overload_price, c.fluctuation_price)
        self.law = np.array([c.efficiency, *prices, MAX_POWER, zone_size, *astuple(self.foresight)])

    @staticmethod
    def fits(names: Sequence[str]) -> bool:
        """Is all that it needs among these columns?"""
        return {*SEEN, *CLOCK} <= {".".join(name.split(".")[-2:]) for name in names}

    def power(self, see: Columns) -> Array:
        """kW `[n]`."""
        time, day, ahead = _instant(see)
        age = np.zeros_like(time) if self.age is None else see[self.age]
        known = np.column_stack([*(see[name] for name in SEEN), age, time, day, ahead])
        powers = np.empty(len(known))
        kernel().decide(known, self.prices, self.law, powers)
        return powers


def _instant(see: Columns) -> tuple[Array, Array, Array]:
    """Time of day (s, UTC+1), day of the year, hours that the local clock is ahead: each `[n]`, off the Clock."""
    hour_sin, hour_cos, season_sin, season_cos = (see[name] for name in CLOCK)
    season = np.arctan2(season_sin, season_cos) / (2.0 * np.pi) % 1.0 * DAYS * DAY + ROUNDED
    day = np.floor(season / DAY)
    time = np.maximum(season - day * DAY - ROUNDED, 0.0)
    local = np.arctan2(hour_sin, hour_cos) / (2.0 * np.pi) * 24.0
    return time, day % DAYS, np.rint(local - time / 3600.0) % 24.0


@functools.cache
def kernel() -> Any:
    """plan_kernel.py, compiled once for an installation."""
    return cached_file(KERNEL)
