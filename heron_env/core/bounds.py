"""Within bounds: a number, in plain and in compiled code, and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def within(value: Any, low: Any, high: Any) -> Any:
    """A number, as a float, within its bounds; nan stays nan."""
    number = value * 1.0  # compiled, `float` takes no bool
    return low if number < low else high if number > high else number


def clip(
    values: Floats, low: Any, high: Any, *, whole: NDArray[np.bool_] | None = None, out: Floats | None = None
) -> Floats:
    """Numbers within their bounds; nan stays nan.

    Args:
        values: float64 `[..., n]`.
        low, high: numbers, or `[n]`.
        whole: bool `[n]`, where they are rounded; None: nowhere.
        out: where they are written; None: into a fresh array.
    """
    clipped: Floats = values.clip(low, high, out=out)
    return clipped if whole is None else np.rint(clipped, out=clipped, where=whole)
