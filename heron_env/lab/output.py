"""How results are printed: strict JSON, tables, Markdown, a terminal's lines; names are shown as they are."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


def dumps(value: Any) -> str:
    """The value as indented text that every reader of JSON takes."""
    return json.dumps(_finite(value), indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
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
