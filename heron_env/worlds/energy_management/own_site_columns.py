"""Columns of a CSV or parquet file: how they are declared, and their rows, with the place of each row for errors."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from heron_env.errors import ConfigError, DataError, did_you_mean
from heron_env.files.models import ConfigModel, Text, formatted, non_negative
from heron_env.files.reading import read
from heron_env.worlds.energy_management.calendar import zone_of
from heron_env.worlds.energy_management.plausible import power, register

NEVER: Final = -(2**62)
FARTHEST: Final = (1971, 2199)
"""Years that are times."""


Unit = Literal["kW", "W", "kWh", "Wh"]


def _zone_name(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be the name of a time zone, such as 'Europe/Berlin', got {formatted(value)}")
    zone_of(value)
    return value


def _minutes(value: object) -> float:
    converted = non_negative(value)
    if not 0.0 < converted <= 1440.0:
        raise ValueError(f"must be above 0 and at most 1440 minutes, a day, got {value!r}")
    return converted


TimeZone = Annotated[str, BeforeValidator(_zone_name)]


class Series(ConfigModel):
    """A column of a CSV or parquet file. Of kWh and Wh each value is the energy of its slot."""

    file: Text
    column: Text
    unit: Unit = "kW"


class Gaps(ConfigModel):
    """What to do where values are missing: refuse, hold the last one, or interpolate, for `longest` minutes at most."""

    fill: Literal["refuse", "hold", "interpolate"] = "refuse"
    longest: Annotated[float, BeforeValidator(_minutes)] = 60.0

    @classmethod
    def written_out(cls, given: object) -> object:
        """`gaps: hold` is short for `gaps: {fill: hold}`."""
        return {"fill": given} if isinstance(given, str) else given


class Times(ConfigModel):
    """How files tell time: column, which end of a slot it names, and the clock of times without an offset."""

    column: Text = "time"
    stamps: Literal["start", "end"] = "start"
    clock: TimeZone | None = None


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


PARQUET: Final = (".parquet", ".pq")
EMPTY: Final = ("", "nan", "na", "null")
"""Words of a cell without a value."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """What a file says.

    Attributes:
        name: of the file, as errors tell it.
        places: of the rows: "home.csv:12" or "home.parquet, row 11".
        times: `[rows]` s since 1970, UTC, as they stand in the file.
        cells: by column, `[rows]`; NaN where nothing stands.
        digest: SHA-256 of the file.
    """

    name: str
    places: Sequence[str]
    times: NDArray[np.int64]
    cells: dict[str, Array]
    digest: str


def read_table(path: Path, name: str, columns: Sequence[str], times: Times, clock: tzinfo) -> Table:
    """The columns of a file. Raises DataError naming file, line and column; ConfigError where pyarrow is missing."""
    try:
        raw = read(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: can't be read: {error}; give a CSV or parquet file") from error
    wanted = list(dict.fromkeys(columns))
    rows = _parquet_rows(raw, name, times.column, wanted) if path.suffix.lower() in PARQUET else None
    stamps, places, read_times = Stamps(clock, times.column), [], []
    cells: list[list[float]] = []
    for where, stamp, row in rows if rows is not None else _csv_rows(raw, name, times.column, wanted):
        places.append(where)
        read_times.append(stamps.utc(stamp, where))
        cells.append([_cell(where, column, cell) for column, cell in zip(wanted, row, strict=True)])
    if len(places) < 2:
        raise DataError(f"{name}: has {len(places)} rows; two or more are needed to know how far they are apart")
    table = np.array(cells, dtype=np.float64).T
    by_name = dict(zip(wanted, table, strict=True))
    return Table(name, places, np.array(read_times, dtype=np.int64), by_name, hashlib.sha256(raw).hexdigest())


def _cell(where: str, column: str, cell: str | float | None) -> float:
    """A value, NaN where there is none; one law for all files: `power`."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return math.nan
    if isinstance(cell, str) and cell.strip().lower() in EMPTY:
        return math.nan
    return power(where, column, str(cell))


def _csv_rows(raw: bytes, name: str, time: str, columns: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: is no CSV file in UTF-8 ({error}); save it as one") from error
    rows = csv.reader(StringIO(text, newline=""))
    try:
        header = [cell.strip() for cell in next(rows, [])]
        places = _places(f"{name}:1", header, [time, *columns])
        for row in rows:
            if not row:
                continue
            where = f"{name}:{rows.line_num}"
            if len(row) != len(header):
                raise DataError(
                    f"{where}: expected {len(header)} cells, got {len(row)}; give one a column, decimals with a point"
                )
            found = [row[place] for place in places]
            yield where, found[0], found[1:]
    except csv.Error as error:
        raise DataError(f"{name}:{rows.line_num}: is no CSV ({error}); save it as one, with commas") from error


def _places(where: str, header: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where the wanted columns stand. Raises DataError for one that is not there, or twice."""
    for column in wanted:
        if column not in header:
            remedy = " Separate columns by commas" if ";" in "".join(header) else did_you_mean(column, header)
            raise DataError(
                f"{where}: there is no column {column!r}; there are {','.join(header) or 'none':.200}.{remedy}"
            )
        if list(header).count(column) > 1:
            raise DataError(f"{where}: the column {column!r} is there twice; rename one")
    return [header.index(column) for column in wanted]


def _parquet_rows(raw: bytes, name: str, time: str, columns: Sequence[str]) -> Iterator[tuple[str, Any, list[Any]]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError(
            f"{name}: reading parquet needs pyarrow: pip install pyarrow, or save the file as CSV"
        ) from error
    try:
        table = parquet.read_table(pyarrow.BufferReader(raw))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name}: is no parquet file ({error}); save it as one, or as CSV") from error
    _places(name, table.column_names, [time, *columns])
    stamps = table.column(time)
    if pyarrow.types.is_timestamp(stamps.type):
        stamps = stamps.cast(pyarrow.timestamp("us", stamps.type.tz))
    cells = [table.column(column).to_pylist() for column in columns]
    for number, stamp in enumerate(stamps.to_pylist()):
        if not isinstance(stamp, str) and not hasattr(stamp, "tzinfo"):
            raise DataError(f"{name}, row {number}: {time}={stamp!r:.60} is no time; write a time stamp or text")
        yield f"{name}, row {number}", stamp, [column[number] for column in cells]


MINUTE: Final = 60
HOUR: Final = 60
"""Minutes."""
MOST_KW: Final = 100.0
"""kW of a home, that its meter can show."""
STANDBY: Final = 0.02
"""kW that a home takes in the mean: a column that rises by less is no meter's counter."""
IN_KW: Final = {"kW": 1.0, "W": 1e-3, "kWh": 1.0, "Wh": 1e-3}

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class EvenSlots:
    """A series of mean powers.

    Attributes:
        start: s since 1970, UTC, of the first slot.
        minutes: length of a slot.
        power: `[slots]` kW.
        filled: how many of them were missing.
    """

    start: int
    minutes: int
    power: Array
    filled: int

    @property
    def end(self) -> int:
        """s since 1970, UTC, at which the last slot ends."""
        return self.start + len(self.power) * self.minutes * MINUTE


def slots_of(table: Table, series: Series, gaps: Gaps, stamps: str, standard: int) -> EvenSlots:
    """The column of a file. Raises DataError: an uneven grid, a gap that is refused or too long, too high a power."""
    minutes = resolution(table)
    places = _grid(table, minutes, stamps, standard)
    found = np.full(int(places[-1]) + 1, np.nan)
    found[places] = table.cells[series.column] * IN_KW[series.unit]
    if series.unit.endswith("h"):
        found *= HOUR / minutes
    _require_likely(table, series, found[places])
    filled = _filled(table, series.column, found, places, minutes, gaps)
    start = int(table.times[0]) - (minutes * MINUTE if stamps == "end" else 0)
    return EvenSlots(start, minutes, filled, int(np.isnan(found).sum()))


def resolution(table: Table) -> int:
    """Minutes from most rows to the next. Raises DataError where they don't divide an hour."""
    steps, counts = np.unique(np.diff(table.times), return_counts=True)
    minutes = int(steps[counts.argmax()]) // MINUTE
    if not 1 <= minutes <= HOUR or HOUR % minutes:
        raise DataError(
            f"{table.name}: most rows are {minutes} min apart; 1 to 60 minutes that divide an hour are read: "
            "1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60"
        )
    return minutes


def _grid(table: Table, minutes: int, stamps: str, standard: int) -> Ints:
    """The slot of each row, from 0 on."""
    step = minutes * MINUTE
    for row in (0, *np.flatnonzero((table.times - table.times[0]) % step)[:1].tolist()):
        if (int(table.times[row]) + standard) % step:
            raise DataError(
                f"{table.places[row]}: its time is on no whole multiple of {minutes} min, as far as most rows are "
                "apart; correct it, or bring the rows to an even grid"
            )
    return np.asarray((table.times - table.times[0]) // step)


def _require_likely(table: Table, series: Series, powers: Array) -> None:
    there = np.flatnonzero(~np.isnan(table.cells[series.column]))
    written, hours = table.cells[series.column][there], np.ptp(table.times[there]) / 3600.0 if len(there) else 0.0
    words = register(written)
    if words is not None and (written[-1] - written[0]) * IN_KW[series.unit] >= STANDBY * hours:
        where = f"{table.places[int(there[-1])]}: {series.column}={written[-1]:g} {series.unit}"
        raise DataError(f"{where}: the column {words}")
    high = np.flatnonzero(powers > MOST_KW)
    if len(high):
        row = int(high[0])
        raise DataError(
            f"{table.places[row]}: {series.column} is {powers[row]:g} kW, more than the {MOST_KW:g} kW of a home; "
            f"is its unit {series.unit}? Write unit: kW, W, kWh or Wh"
        )


def _filled(table: Table, column: str, found: Array, places: Ints, minutes: int, gaps: Gaps) -> Array:
    """`found` without its gaps. Raises DataError for the first that may not be filled."""
    missing = np.isnan(found)
    if not missing.any():
        return found
    edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]])))
    for begin, end in edges.reshape(-1, 2).tolist():
        _require_fillable(table, column, (begin, end, len(found)), places, minutes, gaps)
    known = np.flatnonzero(~missing)
    if gaps.fill == "interpolate":
        return np.asarray(np.interp(np.arange(len(found)), known, found[known]))
    return np.asarray(found[known[np.searchsorted(known, np.arange(len(found)), side="right") - 1]])


def _require_fillable(
    table: Table, column: str, gap: tuple[int, int, int], places: Ints, minutes: int, gaps: Gaps
) -> None:
    begin, end, slots = gap
    row = int(np.searchsorted(places, begin))
    told = "in this row" if row < len(places) and places[row] == begin else "before this row"
    where = f"{table.places[min(row, len(places) - 1)]}: {column}: {(end - begin) * minutes} min are missing {told}"
    if begin == 0 or end == slots:
        raise DataError(
            f"{where}, at an end of the file, where nothing can be filled; leave these rows out of the file"
        )
    if gaps.fill == "refuse":
        raise DataError(
            f"{where}; fill them in, or have it done: gaps: {{fill: hold}} or {{fill: interpolate}} in the site's file"
        )
    if (end - begin) * minutes > gaps.longest:
        raise DataError(
            f"{where}, more than the {gaps.longest:g} min of gaps that are filled; fill them in, or raise gaps: longest"
        )
