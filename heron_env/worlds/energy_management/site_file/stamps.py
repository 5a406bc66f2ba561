"""Time stamps: UTC from what a file says, across changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Final

from heron_env.errors import DataError

NEVER: Final = -(2**62)
FARTHEST: Final = (1971, 2199)
"""Years that are times."""


class Stamps:
    """Reads the stamps of one file in the order of its rows.

    A time with an offset is what it says. One without is of the local clock: in the hour that the clock shows twice,
    the first of equal times is the first hour's, and what does not rise is the second hour's.

    Args:
        clock: of times without an offset.
        column: whose name errors tell.
    """

    def __init__(self, clock: tzinfo, column: str) -> None:
        self.clock, self.column = clock, column
        self.last = NEVER

    def utc(self, given: str | datetime, where: str) -> int:
        """s since 1970, UTC. Raises DataError: no time, parts of a minute, not after the last one, or never shown."""
        told = f"{where}: {self.column}={str(given)!r:.60}"
        time = self._parsed(given, told)
        if time.second or time.microsecond:
            raise DataError(f"{told}: must be a whole minute; round the times")
        if not FARTHEST[0] <= time.year <= FARTHEST[1]:
            raise DataError(f"{told}: must be in the years {FARTHEST[0]} to {FARTHEST[1]}; correct it")
        seconds = self._local(time, told) if time.tzinfo is None else int(time.timestamp())
        if seconds <= self.last:
            before = datetime.fromtimestamp(self.last, UTC).astimezone(self.clock)
            raise DataError(
                f"{told}: must come after the row before, {before.isoformat(' ', 'minutes')}; sort the rows, and keep "
                "one of several"
            )
        self.last = seconds
        return seconds

    def _parsed(self, given: str | datetime, told: str) -> datetime:
        if isinstance(given, datetime):
            return given
        try:
            return datetime.fromisoformat(given.strip())
        except ValueError as error:
            raise DataError(
                f"{told}: is no time; write 2025-10-26 02:15, or with an offset 2025-10-26T02:15+01:00"
            ) from error

    def _local(self, time: datetime, told: str) -> int:
        early, late = (time.replace(tzinfo=self.clock, fold=fold) for fold in (0, 1))
        first, second = int(early.timestamp()), int(late.timestamp())
        if first == second:
            return first
        if first > second:
            raise DataError(
                f"{told}: {self.clock} never shows that time, the clock goes forward then; if it was measured on a "
                "clock without daylight saving, say which: times: {clock: Etc/GMT-1}"
            )
        return first if first > self.last else second
