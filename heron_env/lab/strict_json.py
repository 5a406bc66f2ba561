"""Strict JSON: nan and infinities, which it does not know, become null."""

from __future__ import annotations

import json
import math
from typing import Any


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
