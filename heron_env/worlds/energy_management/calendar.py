"""The days that episodes run: whole days of a clock without daylight saving, and what the local clock says on it.

A day has 86,400 s, always: it starts at midnight of standard time, so in summer it runs from 01:00 to 01:00 local time.
Local days of 23 and 25 h are a matter of the local clock alone, which prices and observed hours follow.

The time-of-use tariff: constructed within the legal structure of section 14a EnWG, module 3; no supplier offers it.

Its windows lie on the Europe/Berlin clock. The environment's days start at midnight UTC+1, so in summer a day runs from
01:00 to 01:00 local time.

Which days are held out, which of them are evaluated, and the best returns that are known for them.

Load shapes nearly repeat across days: what the split holds out is weather and seeds. Tune on validation days only.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, FiniteFloat, ValidationError

from heron_env.errors import ConfigError, DataError, checked_keywords
from heron_env.files.reading import first_fault, read_json
from heron_env.given import require_one_of

YEAR: Final = 2025
DAYS: Final = 365
HOURS: Final = 24 * DAYS
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


def hourly(tariff: TimeOfUse, ahead: Array) -> tuple[Array, Array, Array]:
    """Per hour of a clock that the local one is `ahead` of: price, the next different one, and the hours until then.

    Of the last 24 of them nothing is told.
    """
    prices, hours = tariff.prices((np.arange(len(ahead)) + ahead) % 24), len(ahead) - LONGEST
    price = prices[:hours]
    next_price, until = price.copy(), np.full(hours, float(LONGEST))
    for later in range(LONGEST, 0, -1):
        other = prices[later : later + hours]
        next_price, until = np.where(other != price, other, next_price), np.where(other != price, later, until)
    return price, next_price, until


SPLITS: Final = ("train", "validation", "test")
EVERY_FIFTH: Final = {"test": (2,), "validation": (4,), "train": (0, 1, 3)}


@dataclass(frozen=True)
class Calendar:
    """Which days there are.

    Attributes:
        first: date of day 0.
        days: how many there are; they follow each other.
        zone: time zone of the local clock.
        standard: s that the clock of the days is ahead of UTC.
        held_out: day numbers of "validation" and "test"; None: day % 5 == 4 and day % 5 == 2.
        wraps: does day 0 follow the last one, as in a year without a date?
    """

    first: date
    days: int
    zone: str
    standard: int
    held_out: dict[str, frozenset[int]] | None = None
    wraps: bool = False

    def split(self, name: str) -> tuple[int, ...]:
        """Days of a split. Raises ConfigError for an unknown one, or one without days."""
        require_one_of(f"split={name!r:.60}", name, SPLITS)
        if self.held_out is None:
            found = tuple(day for day in range(self.days) if day % 5 in EVERY_FIFTH[name])
        else:
            away = frozenset().union(*self.held_out.values())
            wanted = set(range(self.days)) - away if name == "train" else self.held_out[name]
            found = tuple(sorted(wanted))
        if not found:
            raise ConfigError(
                f"split={name!r}: none of the {self.days} days is in it; bring more days, or name some with `held_out:`"
            )
        return found

    def checked(self, day: object) -> int:
        """The number of a day. Raises ConfigError."""
        if isinstance(day, bool) or not isinstance(day, int | np.integer) or not 0 <= day < self.days:
            begin = "January 1" if self.wraps else self.first.isoformat()
            raise ConfigError(f"day={day!r} must be a whole number from 0 ({begin}) to {self.days - 1}")
        return int(day)

    def number(self, when: date) -> int:
        """The number of the day of a date. Raises ConfigError where there is none."""
        number = (when - self.first).days
        if not 0 <= number < self.days:
            raise ConfigError(
                f"{when.isoformat()}: is none of the days from {self.first} to {self.date(self.days - 1)}; choose one"
            )
        return number

    def date(self, day: int) -> date:
        """The date of a day."""
        return self.first + timedelta(days=day)

    def local(self, day: int, time: float) -> datetime:
        """Local time, with its offset from UTC, `time` s after the day began."""
        return (self._start + timedelta(days=day, seconds=time)).astimezone(zone_of(self.zone))

    @property
    def _start(self) -> datetime:
        return datetime.combine(self.first, datetime.min.time(), UTC) - timedelta(seconds=self.standard)

    @cached_property
    def ahead(self) -> Array:
        """`[24 * (days + 1)]` hours by which the local clock is ahead of that of the days. Raises ConfigError."""
        return hours_ahead(zone_of(self.zone), self._start, self.standard, 24 * self.days + LONGEST)

    @cached_property
    def following(self) -> NDArray[np.int64]:
        """`[days]` the day that forecasts see behind midnight; of the last one without a next one, itself."""
        last = 0 if self.wraps else self.days - 1
        return np.append(np.arange(1, self.days), last).astype(np.int64)

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """`[days]` the day whose end meters show when a day begins; of the first without one before, itself."""
        return np.append(self.days - 1 if self.wraps else 0, np.arange(self.days - 1)).astype(np.int64)

    @cached_property
    def season(self) -> Array:
        """`[days]` days since January 1."""
        return np.array([float(self.date(day).timetuple().tm_yday - 1) for day in range(self.days)])


SHIPPED: Final = Calendar(date(YEAR, 1, 1), DAYS, "Europe/Berlin", 3600, wraps=True)
"""Of the shipped year, and of a year from a user's CSV file."""


def standard_of(zone: ZoneInfo, first: datetime, last: datetime) -> int:
    """s that a zone is ahead of UTC without daylight saving: the least in the years from `first` to `last`."""
    days = ((date(last.year, 12, 31) - date(first.year, 1, 1)).days) + 1
    begin = datetime(first.year, 1, 1, tzinfo=UTC)
    offsets = ((begin + timedelta(days=day)).astimezone(zone).utcoffset() or timedelta() for day in range(days))
    return int(min(offset.total_seconds() for offset in offsets))


RETURN_UNIT: Final = "EUR a day"
OPTIMA: Final = Path(__file__).parent / "data" / "optima.json"
OPTIMA_DT: Final = 60.0
"""s; how often they decide, in a world of bins of 10 s. Substeps move a day by cents: where a full battery stops."""
FIRST_SEED: Final = 2_000_000_000
"""Evaluations are seeded from here on: far from where training seeds its lanes, and within 31 bits."""


def split_days(split: str) -> tuple[int, ...]:
    """Days of a split of the year: test day % 5 == 2, validation day % 5 == 4, the rest train. Raises ConfigError."""
    return SHIPPED.split(split)


def evaluation_seed(day: int, repeat: int) -> int:
    """The seed of repeat r of day d: 2,000,000,000 + 1000 r + d."""
    return FIRST_SEED + 1000 * repeat + day


def evaluation_cases(
    split: str, num_days: int, repeats: int = 1, *, calendar: Calendar = SHIPPED
) -> list[tuple[dict[str, int], int]]:
    """`(reset options, seed)` of each evaluation: `num_days` days spread evenly over all, each `repeats` times.

    Of an own site that has fewer validation days than asked for, days come again with other seeds: they choose, and
    no interval is made of them.

    Raises:
        ConfigError: more days than the split has, or less than one.
    """
    days = calendar.split(split)
    if split == "validation" and not calendar.wraps and num_days > len(days):
        rounds = -(-num_days // len(days)) * repeats
        again = evaluation_cases(split, len(days), rounds, calendar=calendar)
        return again[: num_days * repeats]
    if not 1 <= num_days <= len(days):
        raise ConfigError(f"num_days={num_days!r}: the split {split!r} has {len(days)} days; choose 1 to {len(days)}")
    if repeats < 1:
        raise ConfigError(f"repeats={repeats!r} must be >= 1")
    chosen = [days[int((number + 0.5) * len(days) / num_days)] for number in range(num_days)]
    return [({"day": day}, evaluation_seed(day, repeat)) for repeat in range(repeats) for day in chosen]


def shipped_optima() -> list[tuple[dict[str, int], int, float]]:
    """`(reset options, seed, EUR of the team)` of held-out days, with the default constants and dt = `OPTIMA_DT`."""
    if not OPTIMA.is_file():
        return []
    return [({"day": day}, evaluation_seed(day, 0), known["value"]) for day, known in read_optima(OPTIMA).items()]


def read_optima(path: Path) -> dict[int, dict[str, float]]:
    """Value, bound, gap and fingerprint by day. Raises DataError for a damaged file."""
    try:
        kept = _Optima.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path}: {first_fault(error)}; install heron_env anew, or compute the optima again") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: can't be read ({error}); install heron_env anew") from error
    return {day: found.model_dump() for day, found in kept.days.items()}


class _Optimum(BaseModel):
    value: FiniteFloat
    bound: FiniteFloat
    gap: FiniteFloat
    fingerprint: FiniteFloat


class _Optima(BaseModel):
    what: str
    days: dict[int, _Optimum]
