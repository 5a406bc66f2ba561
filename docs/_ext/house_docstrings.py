"""Docstrings as they are written in heron_env, in reStructuredText: headings such as `Args:`, terms, examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

TERM = re.compile(r"^(?:(?P<alone>[^\s>#=][^=#]*):|(?P<term>[^\s>#=][^=#]*?): +(?P<said>.*))$")
"""`charge: Charge:`, alone on a line, or `low, high: bounds, both included.`"""
SPECIAL = re.compile(r"([\\*|]|_(?=\W|$))")


def in_rst(lines: Iterable[str]) -> list[str]:
    """The lines of a docstring; indented blocks become terms or examples, single backticks code."""
    done: list[str] = []
    heading = ""
    for block in _blocks(lines):
        done += [*_block(block, heading == "Returns:"), ""]
        heading = block[-1]
    return done


def text(said: str) -> str:
    """One line or more of prose: what stands in backticks is code, and nothing else is markup."""
    parts = re.split(r"`+", said)
    return "".join(f"``{part}``" if i % 2 else SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Runs of lines that are all indented, or all not; blank lines end paragraphs, not indented blocks."""
    block: list[str] = []
    for line in lines:
        inside = bool(block) and block[0].startswith(" ")
        if block and ((not line.strip() and not inside) or (line.strip() and inside != line.startswith(" "))):
            yield block
            block = []
        if line.strip() or block:
            block.append(line.rstrip())
    if block:
        yield block


def _block(block: list[str], prose: bool) -> list[str]:
    """Of one block; `prose`: what is indented, and no list of terms, is no code."""
    if block[0].startswith(">>>"):
        return block
    if not block[0].startswith(" "):
        return text("\n".join(block)).split("\n")
    width = len(block[0]) - len(block[0].lstrip())
    inner = [line[width:] for line in block]
    if not TERM.match(inner[0]):
        if prose:
            return [f"    {line}" for line in text("\n".join(inner)).split("\n")]
        return [".. code-block:: python", "", *(f"    {line}" if line else "" for line in inner)]
    return list(_terms(inner))


def _terms(lines: list[str]) -> Iterator[str]:
    """Definitions: a term, then what is said of it."""
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        found = TERM.match(line)
        if found and not line.startswith(" "):
            entries.append((found["alone"] or found["term"], [found["said"]] if found["said"] else []))
        elif line.strip():
            entries[-1][1].append(line.strip())
    for term, said in entries:
        yield f"``{term}``"
        yield from (f"    {line}" for line in text("\n".join(said) or "see above").split("\n"))
        yield ""


def convert(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Of autodoc: in place."""
    lines[:] = in_rst(lines)


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.connect("autodoc-process-docstring", convert)
    return {"parallel_read_safe": True}
