"""Values on an even grid of slots: the resolution of a file, and its gaps, refused or filled as asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import DataError
from heron_env.worlds.energy_management.site_file.columns import Table
from heron_env.worlds.energy_management.site_file.declared import Gaps, Series

MINUTE: Final = 60
HOUR: Final = 60
"""Minutes."""
MOST: Final = 100.0
"""kW of a home, that its meter can show."""
IN_KW: Final = {"kW": 1.0, "W": 1e-3, "kWh": 1.0, "Wh": 1e-3}

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Slots:
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


def slots_of(table: Table, series: Series, gaps: Gaps, stamps: str, standard: int) -> Slots:
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
    return Slots(start, minutes, filled, int(np.isnan(found).sum()))


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
    high = np.flatnonzero(powers > MOST)
    if len(high):
        row = int(high[0])
        raise DataError(
            f"{table.places[row]}: {series.column} is {powers[row]:g} kW, more than the {MOST:g} kW of a home; "
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
