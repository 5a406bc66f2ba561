"""The time-of-use tariff: constructed within the legal structure of section 14a EnWG, module 3; no supplier offers it.

Its windows lie on the Europe/Berlin clock. The environment's days start at midnight UTC+1, so in summer a day runs from
01:00 to 01:00 local time.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, checked_keywords

YEAR: Final = 2025
HOURS: Final = 8760
LONGEST: Final = 24  # hours shown at most until the next change

Array = NDArray[np.float64]


@checked_keywords
@dataclass(frozen=True)
class TimeOfUse:
    """Prices in EUR/kWh; windows are whole hours [from, to) of local time. Outside of both windows: standard.

    Raises:
        ConfigError: a window is no pair of increasing hours in 0 to 24, the windows overlap, or a price is negative.
    """

    low: float = 0.256
    standard: float = 0.338
    high: float = 0.430
    low_hours: tuple[int, int] = (1, 5)
    high_hours: tuple[int, int] = (17, 20)

    def __post_init__(self) -> None:
        for name in ("low_hours", "high_hours"):
            hours = getattr(self, name)
            if not (isinstance(hours, tuple | list) and len(hours) == 2 and _increasing(*hours)):
                raise ConfigError(f"tariff: {name}={hours!r} must be whole hours with 0 <= from < to <= 24")
        if self.low_hours[0] < self.high_hours[1] and self.high_hours[0] < self.low_hours[1]:
            raise ConfigError(f"tariff: low_hours={self.low_hours} and high_hours={self.high_hours} overlap; move one")
        for name in ("low", "standard", "high"):
            price = getattr(self, name)
            if not (isinstance(price, (int, float)) and 0.0 <= price < 10.0):
                raise ConfigError(f"tariff: {name}={price!r} EUR/kWh must be a number >= 0 and below 10")

    @property
    def lowest(self) -> float:
        """The smallest of the three prices, EUR/kWh."""
        return min(self.low, self.standard, self.high)

    def prices(self, hours: Array) -> Array:
        """EUR/kWh at local hours of day in [0, 24)."""
        price = np.full(np.shape(hours), self.standard)
        for (first, last), value in ((self.low_hours, self.low), (self.high_hours, self.high)):
            price[(hours >= first) & (hours < last)] = value
        return price


def _increasing(first: object, last: object) -> bool:
    """Whole hours of a day, the first before the last?"""
    return all(isinstance(hour, int) for hour in (first, last)) and 0 <= first < last <= 24  # type: ignore[operator]


@lru_cache(maxsize=1)
def summer_time() -> Array:
    """`[8760]` 1.0 in the hours (UTC+1) in which the Europe/Berlin clock is one ahead of UTC+1, else 0.0.

    Raises:
        ConfigError: this machine has no time zone data (on Windows: pip install tzdata).
    """
    start = datetime(YEAR, 1, 1, tzinfo=UTC) - timedelta(hours=1)
    return hours_ahead(zone_of("Europe/Berlin"), start, 3600, HOURS)


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name. Raises ConfigError for one that this machine does not know."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if name == "Europe/Berlin":
            raise ConfigError("no time zone data for Europe/Berlin on this machine: pip install tzdata") from error
        raise ConfigError(
            f"no time zone {name!r:.60} on this machine: write one such as 'Europe/Berlin', or pip install tzdata"
        ) from error


def hours_ahead(zone: ZoneInfo, start: datetime, standard: int, hours: int) -> Array:
    """`[hours]` hours that the clock of a zone is ahead of one that is `standard` s ahead of UTC, from `start` on.

    Raises ConfigError where that is no whole number: prices hold for whole local hours.
    """
    offsets = ((start + timedelta(hours=hour)).astimezone(zone).utcoffset() for hour in range(hours))
    ahead = np.array([((offset or timedelta()).total_seconds() - standard) / 3600.0 for offset in offsets])
    if (ahead != np.rint(ahead)).any():
        raise ConfigError(f"time zone {zone.key}: its clock changes by parts of an hour, which tariffs can't follow")
    return ahead


def local_hours(day: int, times: Array) -> Array:
    """Europe/Berlin hour of day in [0, 24) at `times` (s after midnight UTC+1, within the day)."""
    hours = times / 3600.0
    shift = summer_time()[(24 * day + hours.astype(np.int64)) % HOURS]
    return np.asarray((hours + shift) % 24.0)


@lru_cache(maxsize=8)
def year_of(tariff: TimeOfUse) -> tuple[Array, Array, Array]:
    """Per hour of the year (UTC+1): price, the next different price, and the hours from its start until then."""
    return hourly(tariff, np.concatenate([summer_time(), summer_time()[:LONGEST]]))


def hourly(tariff: TimeOfUse, ahead: Array) -> tuple[Array, Array, Array]:
    """The same for hours of a clock that the local one is `ahead` of; of the last 24 of them nothing is told."""
    prices, hours = tariff.prices((np.arange(len(ahead)) + ahead) % 24), len(ahead) - LONGEST
    price = prices[:hours]
    next_price, until = price.copy(), np.full(hours, float(LONGEST))
    for later in range(LONGEST, 0, -1):
        other = prices[later : later + hours]
        next_price, until = np.where(other != price, other, next_price), np.where(other != price, later, until)
    return price, next_price, until


def tariff_series(tariff: TimeOfUse, day: int, times: Array) -> tuple[Array, Array, Array]:
    """Price and next price (EUR/kWh) and the hours until it at `times` (s after midnight UTC+1), shape of `times`."""
    hour = times / 3600.0
    whole = hour.astype(np.int64)
    price, next_price, until = (column[(24 * day + whole) % HOURS] for column in year_of(tariff))
    return price, next_price, until - (hour - whole)
