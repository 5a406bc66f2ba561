"""Columns of a CSV or parquet file, row by row, with the place of each row for errors."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, DataError, did_you_mean
from heron_env.files.reading import read
from heron_env.worlds.energy_management.profiles import power
from heron_env.worlds.energy_management.site_file.declared import Times
from heron_env.worlds.energy_management.site_file.stamps import Stamps

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
            f'{name}: reading parquet needs pyarrow: pip install "heron_env[parquet]", or save the file as CSV'
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
