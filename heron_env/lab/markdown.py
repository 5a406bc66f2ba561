"""Words in Markdown: names are shown as they are, whatever is in them."""

from __future__ import annotations

import re
from typing import Final

SPECIAL: Final = re.compile(r"[\\`*|$<&~]|(?<=\])\(|(?<!\w)_|_(?!\w)")
"""What would begin code, emphasis, a column, a formula, HTML, a deletion or the address of a link."""


def as_markdown(words: str) -> str:
    """The words as Markdown of GitHub, on one line.

    >>> as_markdown("$x^$ | [a](b) of my_name")
    '\\\\$x^\\\\$ \\\\| [a]\\\\(b) of my_name'
    """
    return " ".join(SPECIAL.sub(r"\\\g<0>", words).splitlines())
