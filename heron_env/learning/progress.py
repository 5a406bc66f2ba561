"""The learning curve as a file, and a progress bar on a terminal."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

COLUMNS = ("group", "transitions", "seconds", "training_signal", "validation_return")


class Curve:
    """progress.csv: a row per measurement, written at once, so that a run can be watched.

    Columns: group; its transitions; seconds since the start of the training; mean training signal per transition since
    the last row; mean team return of the deterministic policy on the validation episodes.
    """

    def __init__(self, file: Path, started: float) -> None:
        self.started = started
        self._stream = file.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._stream)
        self._writer.writerow(COLUMNS)

    def row(self, group: str, transitions: int, signal: float, validation: float) -> None:
        """Add a measurement."""
        seconds = time.monotonic() - self.started
        self._writer.writerow([group, transitions, f"{seconds:.1f}", f"{signal:.6g}", f"{validation:.6g}"])
        self._stream.flush()

    def __enter__(self) -> Curve:
        """Close the file at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._stream.close()


Show = Callable[[int, float], None]
"""(transitions, share done in [0, 1]) -> nothing."""


class Bars(Protocol):
    """Something that shows how far each group is."""

    def task(self, group: str, total: int) -> Show:
        """A function to report progress of `group` to."""
        ...


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Bars]:
    """A bar per group if wanted and stderr is a terminal, else nothing."""
    from rich.console import Console

    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield _Silent()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    words = TextColumn("{task.description}: {task.fields[transitions]:,} transitions")
    with Progress(words, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        yield _Rich(progress)


class _Silent:
    def task(self, group: str, total: int) -> Show:
        """Nothing to show."""
        return lambda transitions, share: None


class _Rich:
    def __init__(self, progress: object) -> None:
        self._progress = progress

    def task(self, group: str, total: int) -> Show:
        """A bar."""
        from rich.progress import Progress

        progress = self._progress
        assert isinstance(progress, Progress)
        task = progress.add_task(group, total=1.0, transitions=0)
        return lambda transitions, share: progress.update(task, completed=min(share, 1.0), transitions=transitions)
