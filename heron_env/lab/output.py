"""How results are shown: strict JSON, tables, Markdown, a terminal's lines with names as they are, progress bars."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


def dumps(value: Any) -> str:
    """The value as indented text that every reader of JSON takes."""
    return json.dumps(finite(value), indent=1, allow_nan=False)


def finite(value: Any) -> Any:
    """The value with null for every number that is none."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
    return value


SPECIAL: Final = re.compile(r"[\\`*|$<&~]|(?<=\])\(|(?<!\w)_|_(?!\w)")
"""What would begin code, emphasis, a column, a formula, HTML, a deletion or the address of a link."""


def as_markdown(words: str) -> str:
    """The words as Markdown of GitHub, on one line.

    >>> as_markdown("$x^$ | [a](b) of my_name")
    '\\\\$x^\\\\$ \\\\| [a]\\\\(b) of my_name'
    """
    return " ".join(SPECIAL.sub(r"\\\g<0>", words).splitlines())


def terminal(**options: Any) -> Console:
    """The console that everything which holds a name is printed on; options as of rich's Console."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, **options)


def styled(*parts: str | tuple[str, str]) -> Text:
    """Plain words, and words with a style: `styled(("battery", "bold"), ": 3 agents")`."""
    from rich.text import Text

    return Text.assemble(*parts)


@dataclass(frozen=True)
class TextTable:
    """A table.

    Attributes:
        caption: what it tells, read out before it.
        head: of the columns; the first `words` columns hold words, the others numbers.
        note: below it.
        folded: is it shown only when asked for?
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    note: str = ""
    folded: bool = False

    def to_markdown(self) -> str:
        """The lines, without caption and note."""
        rule = ["---"] * self.words + ["---:"] * (len(self.head) - self.words)
        head, *rows = ([as_markdown(cell) for cell in line] for line in (self.head, *self.rows))
        return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))

    def to_rich(self) -> list[Table | Text]:
        """With its note, for a terminal."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(self.caption), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False,
            padding=(0, 1, 0, 0),
        )  # fmt: skip
        for number, name in enumerate(self.head):
            words = number < self.words
            table.add_column(name, justify="left" if words else "right", overflow="fold", no_wrap=not words)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return [Text(""), table, Text(self.note)]


def with_unit(figure: object, unit: str) -> str:
    """`5.20 [4.10, 6.30] (EUR a day)`: a unit of any words leaves the grammar of the sentence around it alone."""
    return f"{figure} ({unit})" if unit else f"{figure}"


EARNS: Final = "It earns"
"""Label of the first tile of most reports."""


class Tile(NamedTuple):
    """One figure of a verdict: what it is, the figure with its unit, and what it was measured on."""

    label: str
    value: str
    note: str


class Progress(NamedTuple):
    """How far a sweep is; `seconds_left` is estimated from the episodes of this run, None before there are enough."""

    done: int
    total: int
    seconds_left: float | None


def watched() -> bool:
    """Does somebody look: is stderr a terminal that can draw, or this the kernel of a notebook?"""
    return os.environ.get("TERM") != "dumb" and (sys.stderr.isatty() or _in_notebook())


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


@contextmanager
def bar(name: str, enabled: bool = True) -> Iterator[Callable[[float, str], None]]:
    """A function to tell how far `name` is: (share done in [0, 1], words beside the bar).

    Drawn by rich if it is wanted and somebody looks; the environment variable TERM=dumb switches it off.
    """
    if not (enabled and watched()):
        yield lambda share, words: None
        return
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}: {task.percentage:3.0f} %", markup=False),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[words]}", markup=False),
    )
    with progress.Progress(*columns, console=terminal(stderr=True), auto_refresh=False) as display:  # no thread to fork
        task = display.add_task(name, total=1.0, words="")

        def tell(share: float, words: str) -> None:
            done = max(display.tasks[0].completed, min(share, 1.0))
            display.update(task, completed=done, words=words, refresh=True)

        yield tell


@contextmanager
def sweep_bar(enabled: bool = True) -> Iterator[Callable[[Progress], None]]:
    """What `Sweep.run(progress=...)` may call."""
    with bar("episodes", enabled) as tell:
        yield lambda p: tell(p.done / max(p.total, 1), f"{p.done} of {p.total}{left(p, ', ')}")


def left(progress: Progress, before: str = "") -> str:
    """`about 3 min left`, "" as long as nobody knows."""
    if progress.seconds_left is None or progress.done == progress.total:
        return ""
    seconds = math.ceil(progress.seconds_left)
    return f"{before}about {seconds} s left" if seconds < 120 else f"{before}about {math.ceil(seconds / 60)} min left"
