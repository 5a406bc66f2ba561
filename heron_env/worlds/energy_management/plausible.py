"""What a number in a user's file can be: the power of a home, the light of the sun, and no counter of a meter."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import DataError
from heron_env.files.reading import decimal

LEAST_RISES: Final = 20
"""Of a column that is taken for a counter: so many, and so many for each fall."""
MOST_POWER: Final = 1.5
"""kW per kWp in a quarter hour: above that of any roof, also where clouds at the sun's side reflect its light."""

Array = NDArray[np.float64]


def power(where: str, column: str, text: str) -> float:
    """The legal value of a cell: finite, and not below 0. Raises DataError that begins with `where`."""
    try:
        value = decimal(text)
    except ValueError as error:
        raise DataError(f"{where}: {column}={text!r:.60} is not a number; correct or fill in the cell") from error
    if not math.isfinite(value):
        raise DataError(f"{where}: {column}={text.strip()} must be finite; fill in the cell")
    if value < 0.0:
        raise DataError(f"{where}: {column}={text.strip()} must be >= 0 (generation is positive, too)")
    return value


def register(values: Array) -> str | None:
    """What is wrong with values that all but never fall, as a meter's counter does; None of powers and energies."""
    steps = np.diff(values)
    rises, falls = int((steps > 0.0).sum()), int((steps < 0.0).sum())
    if rises < LEAST_RISES or LEAST_RISES * falls > rises:
        return None
    return (
        f"rises {rises} times and falls {falls} times, from {values[0]:g} on: it looks like a meter's counter, and is "
        "read as what each row has for itself; write the differences of neighbouring rows (in kWh)"
    )


def require_sunlight(file: str, name: str, column: Array, lines: list[int]) -> None:
    """Raise DataError for more kW per kWp than any roof gives; `lines`: of the rows in the file."""
    if column.max() > MOST_POWER:
        row = int(np.flatnonzero(column > MOST_POWER)[0])
        raise DataError(
            f"{file}:{lines[row]}: {name}={column[row]:g} kW per kWp, and no roof gives more than {MOST_POWER:g}: is "
            "this W, or the kW of a whole roof? Divide by 1000, or by its kWp"
        )
