"""The year's base series: loads per MWh/a and roofs per kWp in quarter hours, shipped or from a user's CSV file."""

import csv
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import DataError, did_you_mean
from heron_env.files.reading import is_file, is_folder

DAYS: Final = 365
QUARTERS_PER_DAY: Final = 96
QUARTERS: Final = DAYS * QUARTERS_PER_DAY
COLUMNS: Final = ("household", "business", "pv_south", "pv_east", "pv_west")
ROOFS: Final = ("south", "east", "west")
SOUTH_YIELD: Final = 1000.0  # kWh per kWp and year
ENVELOPE_DAYS: Final = 15

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Profiles:
    """Base series of one year on a UTC+1 clock.

    Attributes:
        household, business: `[365, 96]`, kW per MWh/a; each holds exactly 1 MWh in the year.
        roofs: `[3, 365, 96]`, kW per kWp of the south, east and west roof.
    """

    household: Array
    business: Array
    roofs: Array

    @cached_property
    def clear_sky(self) -> Array:
        """`[3, 365, 96]` kW per kWp: the best power at that quarter hour within 15 days, on either side."""
        shifts = range(-ENVELOPE_DAYS, ENVELOPE_DAYS + 1)
        best = self.roofs.copy()
        for shift in shifts:
            np.maximum(best, np.roll(self.roofs, shift, axis=1), out=best)
        return best


def normalised(power: Array, energy: float = 1000.0) -> Array:
    """`power` (kW in quarter hours) scaled to `energy` kWh in the year."""
    return np.asarray(power * (energy / (power.sum() * 0.25)))


def load_profiles(path: str | Path | None = None) -> Profiles:
    """The shipped series (None) or those of a user's CSV file; its columns are documented in data/SOURCES.md.

    Raises:
        DataError: the file is missing, or one of its rows is wrong; the message has the line number.
    """
    return _shipped() if path is None else read_csv(Path(path))


@lru_cache(maxsize=1)
def _shipped() -> Profiles:
    with np.load(Path(__file__).parent / "data" / "profiles.npz") as file:
        table = np.stack([file[name].astype(np.float64) for name in COLUMNS])
    table[2:] *= SOUTH_YIELD / (table[2].sum() * 0.25)  # what float16 rounded away
    return _profiles(table)


def _profiles(table: Array) -> Profiles:
    household, business = (normalised(table[row]).reshape(DAYS, QUARTERS_PER_DAY) for row in (0, 1))
    return Profiles(household, business, table[2:].reshape(3, DAYS, QUARTERS_PER_DAY))


def read_csv(path: Path) -> Profiles:
    """Read a user's profiles: the header of COLUMNS, then 35,040 rows of numbers >= 0.

    Raises:
        DataError: naming file, line and column of the first wrong cell.
    """
    if not is_file(path):
        fault = "is a folder" if is_folder(path) else "no such file"
        raise DataError(f"profiles={str(path)!r}: {fault}; give a CSV file with the columns {','.join(COLUMNS)}")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            _require_columns(path.name, tuple(cell.strip() for cell in next(rows, [])))
            cells = [_row(path.name, rows.line_num, row) for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path.name}: is no CSV file in UTF-8 ({error}); save it as one") from error
    if len(cells) != QUARTERS:
        raise DataError(
            f"{path.name}: expected {QUARTERS} rows (quarter hours of 365 days), got {len(cells)}; "
            "hourly values must be repeated four times, and February 29 left out"
        )
    table = np.array(cells).T
    for name, column in zip(COLUMNS[:2], table[:2], strict=True):
        if not column.any():
            raise DataError(f"{path.name}: column {name} is 0 in every row; a load can't be normalised to 1 MWh/a then")
    return _profiles(table)


def _require_columns(name: str, header: tuple[str, ...]) -> None:
    if header == COLUMNS:
        return
    words = f"{name}:1: expected the columns {','.join(COLUMNS)}, got {','.join(header) or 'none'}"
    unknown = next((column for column in header if column not in COLUMNS), "")
    if ";" in "".join(header):
        raise DataError(f"{words}; separate them by commas, and write decimals with a point")
    if set(header) == set(COLUMNS):
        raise DataError(f"{words}; put them into that order, each once")
    missing = [column for column in COLUMNS if column not in header]
    remedy = f"add {','.join(missing)}" if missing else f"remove {unknown}"
    raise DataError(f"{words}; {remedy}.{did_you_mean(unknown, COLUMNS)}")


def _row(name: str, line: int, row: list[str]) -> list[float]:
    if len(row) != len(COLUMNS):
        raise DataError(
            f"{name}:{line}: expected {len(COLUMNS)} cells, got {len(row)}; give one a column, decimals with a point"
        )
    return [power(f"{name}:{line}", column, text) for column, text in zip(COLUMNS, row, strict=True)]


def power(where: str, column: str, text: str) -> float:
    """The legal value of a cell: finite, and not below 0. Raises DataError that begins with `where`."""
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where}: {column}={text!r:.60} is not a number; correct or fill in the cell") from error
    if not math.isfinite(value):
        raise DataError(f"{where}: {column}={text.strip()} must be finite; fill in the cell")
    if value < 0.0:
        raise DataError(f"{where}: {column}={text.strip()} must be >= 0 (generation is positive, too)")
    return value
