"""The learning curve as a file."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from math import nan
from pathlib import Path

from heron_env.files.writing import write
from heron_env.lab.episodes import Earned

COLUMNS = ("group", "transitions", "seconds", "training_signal", "validation_return", "group_return")
UNDER = "return_under_schedule"


class Curve:
    """progress.csv: a row per measurement, written at once, so that a run can be watched.

    Columns: group; its transitions; seconds since the start of the training; mean training signal per transition since
    the last row; mean return of the root under the deterministic policy on the validation episodes, and what the
    agents of the row's group earned there in sum; the root's under the schedule, if it is trained under one.
    """

    def __init__(self, file: Path, started: float, *, scheduled: bool = False) -> None:
        self.file, self.started = file, started
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._add([*COLUMNS, UNDER] if scheduled else COLUMNS)

    def row(self, group: str, transitions: int, signal: float, earned: Earned, *under: Earned) -> None:
        """Add a measurement; the file is whole at any time. Raises OSError naming it."""
        seconds = time.monotonic() - self.started
        figures = (signal, earned.value, earned.by_group.get(group, nan), *(each.value for each in under))
        self._add([group, transitions, f"{seconds:.1f}", *(f"{value:.6g}" for value in figures)])

    def _add(self, row: Sequence[object]) -> None:
        self._writer.writerow(row)
        write(self.file, self._text.getvalue())


def unfinished(folder: Path) -> str:
    """What a training that was stopped leaves in its run folder."""
    course = f"its course so far is in {folder}" if any(folder.glob("progress*.csv")) else "nothing of it is kept"
    return f"Training was not finished; {course}"
