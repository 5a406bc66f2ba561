"""Printing for people: names are shown as they are, whatever is in them; a terminal's own markup is not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def terminal(**options: Any) -> Console:
    """The console that everything which holds a name is printed on; options as of rich's Console."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, **options)


def styled(*parts: str | tuple[str, str]) -> Text:
    """Plain words, and words with a style: `styled(("battery", "bold"), ": 3 agents")`."""
    from rich.text import Text

    return Text.assemble(*parts)
