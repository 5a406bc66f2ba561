"""How results are printed: strict JSON, Markdown, and a terminal's lines; names are shown as they are."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console
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
