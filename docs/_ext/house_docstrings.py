"""Docstrings as they are written in heron_env, in reStructuredText: headings such as `Args:`, terms, examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

TERM = re.compile(r"^(?:(?P<alone>[^\s>#=][^=#]*):|(?P<term>[^\s>#=][^=#]*?): +(?P<said>.*))$")
"""`charge: Charge:`, alone on a line, or `low, high: bounds, both included.`"""
SPECIAL = re.compile(r"([\\*|]|_(?=\W|$))")


def in_rst(lines: Iterable[str], types: Mapping[str, str] | None = None) -> list[str]:
    """The lines of a docstring; indented blocks become terms or examples, single backticks code.

    `types`: of arguments and fields, by name; they are shown beside the terms that name them.
    """
    done: list[str] = []
    heading = ""
    for block in _blocks(lines):
        done += [*_block(block, heading == "Returns:", types or {}), ""]
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


def _block(block: list[str], prose: bool, types: Mapping[str, str]) -> list[str]:
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
    return list(_terms(inner, types))


def _terms(lines: list[str], types: Mapping[str, str]) -> Iterator[str]:
    """Definitions: a term, its type where all names in it have the same one, then what is said of it."""
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        found = TERM.match(line)
        if found and not line.startswith(" "):
            entries.append((found["alone"] or found["term"], [found["said"]] if found["said"] else []))
        elif line.strip():
            entries[-1][1].append(line.strip())
    for term, said in entries:
        known = {types.get(name.strip(), "") for name in term.split(",")}
        yield f"``{term}``" + (f" : ``{known.pop()}``" if len(known) == 1 and known != {""} else "")
        yield from (f"    {line}" for line in text("\n".join(said) or "see above").split("\n"))
        yield ""


def types_of(obj: Any) -> dict[str, str]:
    """The annotations of a function's parameters, or of a class's parameters and fields, as they are written."""
    if isinstance(obj, property):
        return {}
    written: dict[str, Any] = {}
    for base in reversed(getattr(obj, "__mro__", ())):
        written |= getattr(base, "__dict__", {}).get("__annotations__", {})
    try:
        parameters = inspect.signature(obj).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    written |= {one.name: one.annotation for one in parameters if one.annotation is not one.empty}
    return {name: _written(annotation) for name, annotation in written.items()}


def _written(annotation: Any) -> str:
    """Without the modules of its parts."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text).replace("`", "")


def convert(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Of autodoc: in place."""
    lines[:] = in_rst(lines, types_of(obj))


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.connect("autodoc-process-docstring", convert)
    return {"parallel_read_safe": True}
