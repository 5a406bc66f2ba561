"""Masked arrays are refused wherever actions are read: reading on would take what the mask hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heron_env.errors import InvalidAction


def unmasked(value: Any, what: str) -> Any:
    """An action as it is. Raises InvalidAction if it is a masked array, or a part of it; `what` begins the sentence."""
    if _masked(value):
        raise InvalidAction(f"{what} is a masked array; fill it: values.filled(0.0)")
    return value


def _masked(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray)
    if isinstance(value, Mapping):
        return any(map(_masked, value.values()))
    return isinstance(value, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in value)
