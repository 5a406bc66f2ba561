"""Stores: what a world rule may not do, compiled or in plain Python: replace a column instead of writing into it."""

from __future__ import annotations

import dis
import functools
import linecache
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from heron_env.engine.digest import code_blocks, line_of
from heron_env.engine.linking import Linker
from heron_env.errors import RuleError


def require_no_stores(rules: Mapping[str, Callable[..., Any]], owner: str) -> None:
    """Raise RuleError for `columns.soc = values` in one of these world rules, or in what it calls."""
    for name, rule in rules.items():
        found = _store(rule)
        if found:
            raise RuleError(f"{owner}.{name}: {found}")


@functools.lru_cache(maxsize=256)
def _store(rule: Any) -> str:
    """The place of the first such line and what to write there; empty if there is none."""
    linker = Linker(lambda function: function)
    assert isinstance(rule, FunctionType)
    linker.link(rule)
    for block in (block for code in linker.codes for block in code_blocks(code)):
        for at in dis.get_instructions(block):
            if at.opname == "STORE_ATTR":
                line = line_of(block, lambda other, at=at: other.offset == at.offset)  # type: ignore[misc]
                shown = linecache.getline(block.co_filename, line or 0).strip()
                place = f"{block.co_filename}:{line}: `{shown}`"
                return f"{place}: a rule can't replace a column; write .{at.argval}[:] = ..."
    return ""
