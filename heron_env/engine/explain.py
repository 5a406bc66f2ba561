"""Explaining: an error of numba's as a RuleError with the user's file, line, source line, reason and remedy."""

from __future__ import annotations

import dis
import linecache
import os
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heron_env.engine.digest import code_blocks, line_of
from heron_env.errors import RuleError, did_you_mean

OTHERWISE = "or build the environment with compile=False"
REMEDIES = {
    "readonly array": "return the value, and name it in rule(writes=...)",
    "Can't unify return type": f"return numbers of one type on every path, {OTHERWISE}",
    "Cannot unify": f"let a variable keep one type, {OTHERWISE}",
    "IMPORT_NAME": f"move the import to the top of the module, {OTHERWISE}",
    "IMPORT_FROM": f"move the import to the top of the module, {OTHERWISE}",
    "'with": f"leave the `with` out: a rule reads and writes no files, {OTHERWISE}",
    "context manager": f"leave the `with` out: a rule reads and writes no files, {OTHERWISE}",
    "exception_match": f"test for the case beforehand instead of catching it, {OTHERWISE}",
}
REASONS = {
    "readonly array": "it writes into what it reads",
    "IMPORT_NAME": "a compiled rule can't import",
    "IMPORT_FROM": "a compiled rule can't import",
    "'with": "a compiled rule can't use `with`",
    "context manager": "a compiled rule can't use `with`",
    "exception_match": "a compiled rule can't catch exceptions by class",
}
DEFAULT = f"write it with numbers, arrays, math and numpy functions that numba knows, {OTHERWISE}"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACES = re.compile(r'File "([^"]+)", line (\d+)|(?:at|from) (\S+\.py|<[^>]+>) \((\d+)\)')
_RETURNS = re.compile(r"Return of: IR name '[^']*', type '(.*)', location:\s+File \"[^\"]+\", line (\d+)")
_NOISE = ("Failed in", "During:", "There are", "- Of which", "File ", "raised from", ">>>", "^", "Return of")


def explained(
    error: Exception, where: str, function: Any, codes: Sequence[types.CodeType], fields: Mapping[str, Sequence[str]],
    known: str | None = None,
) -> RuleError:  # fmt: skip
    """Why the rule `where` can't be compiled, as an error to raise from numba's.

    codes: of the rule and its helpers, where lines are looked for; fields: quantities by feature, for near-misses.
    known: the reason, where the caller knows better.
    """
    text = _COLOUR.sub("", str(error))
    file, line = _place(text, function.__code__, [function.__code__, *codes])
    source = linecache.getline(file, line).strip()
    key = next((words for words in REMEDIES if words in text), "")
    reason, remedy = known or _reason(text, key, fields), DEFAULT if known else REMEDIES.get(key, DEFAULT)
    shown = f"{file}:{line}: `{source}`" if source else f"{file}:{line}"
    return RuleError(f"{where} can't be compiled: {shown}: {reason}; {remedy}")


def _reason(text: str, key: str, fields: Mapping[str, Sequence[str]]) -> str:
    if key in REASONS:
        return REASONS[key]
    unknown = re.search(r"Unknown attribute '(\w+)' of type (\w+)\(", text)
    if unknown is not None and unknown[2] in fields:
        known = list(fields[unknown[2]])
        return f"{unknown[2]} has no quantity {unknown[1]!r}; there are {known}.{did_you_mean(unknown[1], known)}"
    if key == "Can't unify return type":
        found = sorted((int(line), kind) for kind, line in _RETURNS.findall(text))
        return "it returns " + " and ".join(f"{kind} (line {line})" for line, kind in found)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(_NOISE)), lines[0] if lines else "numba refuses it")
    if reason.endswith("found for signature:"):
        call = next((line for line in lines if line.startswith(">>>")), "")
        name = re.search(r"Function\(<\S+(?: \S+)? (\S+?)>\)", reason)
        return f"there is no {name[1] if name else 'such operation'} for {call.removeprefix('>>>').strip()}"
    return reason.rstrip(".")


def _place(text: str, code: types.CodeType, codes: Sequence[types.CodeType]) -> tuple[str, int]:
    """The first place in the message that lies in the user's code; else the offending instruction, else the rule."""
    files = {os.path.basename(known.co_filename): known.co_filename for known in codes}
    places = [
        (files[name], int(match[2] or match[4]))
        for match in _PLACES.finditer(text)
        if (name := os.path.basename(match[1] or match[3])) in files
    ]
    if places:  # numba lists the returns of a function in no fixed order
        return min(places) if _RETURNS.search(text) else places[0]
    for known in codes:
        line = line_of(known, lambda instruction: instruction.opname in ("BEFORE_WITH", "BEFORE_ASYNC_WITH"))
        if "'with" in text and line is not None:
            return known.co_filename, line
    attribute = re.search(r"has no attribute '(\w+)'", text)
    for known in codes:
        line = line_of(known, _named(attribute[1])) if attribute else None
        if line is not None:
            return known.co_filename, line
    return code.co_filename, code.co_firstlineno


def _named(name: str) -> Callable[[Any], bool]:
    return lambda instruction: bool(instruction.argval == name)


def require_no_stores(codes: Sequence[types.CodeType], title: str) -> None:
    """Raise RuleError for `columns.soc = values`, which plain Python takes as a write into the column."""
    for code in codes:
        for block in code_blocks(code):
            for at in dis.get_instructions(block):
                if at.opname == "STORE_ATTR":
                    line = line_of(block, lambda other, at=at: other.offset == at.offset)  # type: ignore[misc]
                    shown = linecache.getline(block.co_filename, line or 0).strip()
                    raise RuleError(
                        f"{title} can't be compiled: {block.co_filename}:{line}: `{shown}`: a column can't be "
                        f"replaced; write .{at.argval}[:] = ..., {OTHERWISE}"
                    )
