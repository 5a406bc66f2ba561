"""How far a sweep is: on stderr, a bar in a terminal, else a line for each tenth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from heron_env.evaluation.gap.sweep import Progress


@contextmanager
def told() -> Iterator[Callable[[Progress], None]]:
    """What `Sweep.run(progress=...)` may call."""
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
