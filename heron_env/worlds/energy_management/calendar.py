"""The days that episodes run: whole days of a clock without daylight saving, and what the local clock says on it.

A day has 86,400 s, always: it starts at midnight of standard time, so in summer it runs from 01:00 to 01:00 local time.
Local days of 23 and 25 h are a matter of the local clock alone, which prices and observed hours follow.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.given import require_one_of
from heron_env.worlds.energy_management.profiles import DAYS
from heron_env.worlds.energy_management.tariff import LONGEST, YEAR, hours_ahead, zone_of

SPLITS: Final = ("train", "validation", "test")
EVERY_FIFTH: Final = {"test": (2,), "validation": (4,), "train": (0, 1, 3)}

Array = NDArray[np.float64]


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
