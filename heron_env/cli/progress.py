"""Running a sweep from the command line: how far it is, and what is kept where it does not come to its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from heron_env.errors import WorkerLost

if TYPE_CHECKING:
    from heron_env.evaluation.gap.results import SweepResult
    from heron_env.evaluation.gap.sweep import Progress, Sweep

INTERRUPTED: Final = 130


def finished(sweep: Sweep, folder: Path | None, processes: int) -> SweepResult:
    """Run it. Stopped by the user, it exits with 130; what a disk or a lost worker ends tells what is kept, too."""
    try:
        with _told() as tell:
            return sweep.run(folder, processes=processes, progress=tell)
    except KeyboardInterrupt as error:
        typer.echo("; ".join(["stopped", *_kept(folder)]), err=True)
        raise typer.Exit(INTERRUPTED) from error
    except (OSError, WorkerLost) as error:
        for note in _kept(folder):
            error.add_note(note)
        raise


def _kept(folder: Path | None) -> list[str]:
    """What to say of a sweep that did not come to its end."""
    from heron_env.evaluation.gap.journal import RESULTS

    if folder is None or not (folder / RESULTS).is_file():
        return []
    return [f"the episodes that are done are kept in {folder}: the same command goes on with them"]


@contextmanager
def _told() -> Iterator[Callable[[Progress], None]]:
    """What `Sweep.run(progress=...)` may call: a bar in a terminal, else a line for each tenth."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        yield _Lines()
        return
    with Bar(
        TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"),
        console=stderr, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("")
        yield lambda p: bar.update(task, completed=p.done, total=p.total, description=_left(p))


class _Lines:
    """A line on stderr for every tenth of the episodes."""

    def __init__(self) -> None:
        self.tenth = -1

    def __call__(self, progress: Progress) -> None:
        tenth = 10 * progress.done // max(progress.total, 1)
        if tenth > self.tenth:
            self.tenth = tenth
            typer.echo(f"{progress.done} of {progress.total} episodes{_left(progress, ', ')}", err=True)


def _left(progress: Progress, before: str = "") -> str:
    """`about 3 min left`, "" as long as nobody knows."""
    if progress.seconds_left is None or progress.done == progress.total:
        return ""
    seconds = math.ceil(progress.seconds_left)
    return f"{before}about {seconds} s left" if seconds < 120 else f"{before}about {math.ceil(seconds / 60)} min left"
