"""Running a sweep from the command line: how far it is, and what is kept where it does not come to its end."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from heron_env.errors import HeronWarning, WorkerLost
from heron_env.files.reading import is_file
from heron_env.lab.progress import left, watched

if TYPE_CHECKING:
    from heron_env.lab.gap.results import SweepResult
    from heron_env.lab.gap.sweep import Progress, Sweep

INTERRUPTED: Final = 130


def finished(sweep: Sweep, folder: Path | None, processes: int, ray: str | None = None) -> SweepResult:
    """Run it. Stopped by the user, it exits with 130; what a disk or a lost worker ends tells what is kept, too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", HeronWarning)
            warnings.showwarning = lambda message, *_: typer.echo(f"warning: {message}", err=True)
            return sweep.run(folder, processes=processes, ray=ray, progress=True if watched() else _Lines())
    except KeyboardInterrupt as error:
        typer.echo("; ".join(["stopped", *_kept(folder)]), err=True)
        raise typer.Exit(INTERRUPTED) from error
    except (OSError, WorkerLost) as error:
        for note in _kept(folder):
            error.add_note(note)
        raise


def _kept(folder: Path | None) -> list[str]:
    """What to say of a sweep that did not come to its end."""
    from heron_env.lab.gap.journal import RESULTS

    if folder is None or not is_file(folder / RESULTS):
        return []
    return [f"the episodes that are done are kept in {folder}: the same command goes on with them"]


class _Lines:
    """A line on stderr for every tenth of the episodes."""

    def __init__(self) -> None:
        self.tenth = -1

    def __call__(self, progress: Progress) -> None:
        tenth = 10 * progress.done // max(progress.total, 1)
        if tenth > self.tenth:
            self.tenth = tenth
            typer.echo(f"{progress.done} of {progress.total} episodes{left(progress, ', ')}", err=True)
