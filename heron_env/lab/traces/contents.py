"""Values as JSON has them, exactly: what is read back is what was written, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from heron_env.errors import TraceError

SAID_ELSEWHERE = frozenset({"agent", "number", "id", "sent", "view"})
"""Fields that have a place of their own in a record; a view only knows names."""


def content(record: Any) -> dict[str, Any]:
    """The fields of a message or event, by name. Raises TraceError for a value that has no exact form."""
    names = [field.name for field in fields(record) if field.name not in SAID_ELSEWHERE]
    return {name: plain(getattr(record, name), f"{type(record).__name__}.{name}") for name in names}


def plain(value: Any, where: str) -> Any:
    """`value` in JSON's types: Python writes a float so that it is read back exactly; nan and infinities are words.

    Raises TraceError naming `where` for an object that can't be written so.
    """
    match value:
        case Enum():
            return value.name
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else repr(float(value))
        case np.ndarray() | np.generic():
            return plain(value.tolist(), where)
        case Mapping():
            return {str(key): plain(item, f"{where}[{key!r}]") for key, item in value.items()}
        case list() | tuple() if not is_dataclass(value):
            return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), f"{where}.{field.name}") for field in fields(value)}
    raise TraceError(
        f"{where} is a {type(value).__name__}, which a recorded episode can't hold; "
        "use numbers, words, lists, dictionaries or dataclasses"
    )
