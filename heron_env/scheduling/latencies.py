"""Files of measured latencies: CSV with the columns `time,delay`, both in s; mistakes are told with their line."""

from __future__ import annotations

import csv
import math
from io import StringIO
from pathlib import Path
from typing import Final

from heron_env.errors import DataError
from heron_env.files.reading import read
from heron_env.scheduling.seconds import SECOND

COLUMNS: Final = ("time", "delay")


def read_latencies(path: Path) -> tuple[list[float], list[float]]:
    """Times, increasing, and delays, >= 0, both s. Raises DataError naming file, line and column."""
    try:
        text = read(path).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        told = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise DataError(f"{path}: can't be read: {told}; give a CSV file with the columns time,delay in s") from error
    times: list[float] = []
    delays: list[float] = []
    rows = csv.reader(StringIO(text, newline=""))
    try:
        _require_header(path, [cell.strip() for cell in next(rows, [])])
        for row in rows:
            if not row:
                continue
            where = f"{path}:{rows.line_num}"
            if len(row) != len(COLUMNS):
                raise DataError(f"{where}: expected 2 cells, time,delay, got {len(row)}; write decimals with a point")
            time, delay = (_cell(where, name, cell) for name, cell in zip(COLUMNS, row, strict=True))
            if delay < 0:
                raise DataError(f"{where}: delay={delay!r}: must be 0 or more, in s; nothing arrives before it leaves")
            if times and round((time - times[0]) * SECOND) <= round((times[-1] - times[0]) * SECOND):
                raise DataError(
                    f"{where}: time={time!r}: must come a nanosecond or more after the row before, {times[-1]!r}; sort "
                    "the rows, and keep one of several"
                )
            times.append(time)
            delays.append(delay)
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: is no CSV ({error}); save it as one, with commas") from error
    if not times:
        raise DataError(f"{path}:2: there is no row; give one or more")
    return times, delays


def _require_header(path: Path, header: list[str]) -> None:
    if tuple(header) != COLUMNS:
        remedy = "separate them by commas" if ";" in "".join(header) else "name them in the first line, in this order"
        raise DataError(f"{path}:1: expected the columns time,delay (s), got {','.join(header) or 'none'}; {remedy}")


def _cell(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where}: {name}={text!r:.60}: is no number; correct or remove the row") from error
    if not math.isfinite(value) or not abs(value) * SECOND < 2**63:
        raise DataError(f"{where}: {name}={text.strip()!r:.60}: must be finite and below 9.2e9 s; remove the row")
    return value
