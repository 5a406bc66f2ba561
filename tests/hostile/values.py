"""A grammar of bad values: what no parameter takes, or what looks nearly right."""

import decimal
import fractions
from pathlib import Path
from typing import Any

import numpy as np


class Odd:
    """An object whose every answer is an error."""

    def __repr__(self) -> str:
        return "<odd>"

    def __len__(self) -> int:
        return -1

    def __float__(self) -> float:
        raise TypeError("no number")


ATOMS: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 10**6, -(10**6), 2**53, 2**63, 2**64, 10**18, 10**400, -(10**400),
    0.0, -0.0, 0.5, 1.5, -1.5, 1e-320, 1e308, -1e308, 1e20, 1e30, 5e-324, float("nan"), float("inf"), float("-inf"),
    "", "x", "1", "nan", "battery_1", "*", "system_agent", "heron/BatteryGrid-v0", "nowhere:nothing", "os:sep", "a:",
    ":", "$x^$", "[a]", "../..", "\0", "\ud800", "x" * 300, "x" * 5000, "<script>alert(1)</script>", "[red]", b"x",
    1j, decimal.Decimal("0.1"), fractions.Fraction(1, 3), ..., Odd(), object(), int, str, len, print, lambda: None,
    lambda *values: values[0], range(3), Path("nowhere"), Path("."), slice(1), np.float32(0.5), np.int64(3),
    np.uint8(255), np.bool_(True), np.nan, np.datetime64("2025-01-01"),
]  # fmt: skip


def arrays(draw: np.random.Generator) -> Any:
    shape = [(), (0,), (1,), (2,), (3, 1), (1, 1, 1)][draw.integers(6)]
    kind = ["f8", "f4", "i8", "u1", "?", "U3", "O", "c16"][draw.integers(8)]
    array = np.zeros(shape, dtype=kind)
    if kind in ("f8", "f4") and draw.random() < 0.5:
        array = array + [np.nan, np.inf, 1e30, 0.3][draw.integers(4)]
    return array


def value(draw: np.random.Generator, depth: int = 0) -> Any:
    """Any value."""
    kind = draw.random()
    if kind < 0.7 or depth > 2:
        return ATOMS[draw.integers(len(ATOMS))]
    if kind < 0.78:
        return arrays(draw)
    parts = [value(draw, depth + 1) for _ in range(draw.integers(4))]
    if kind < 0.84:
        return parts
    if kind < 0.89:
        return tuple(parts)
    if kind < 0.97:
        keys = ["battery_1", "battery_2", "*", "", 3, None, "x", "seed", "zone", "system_agent"]
        return {keys[draw.integers(len(keys))]: part for part in parts}
    return deep(draw)


def deep(draw: np.random.Generator) -> Any:
    """Lists within lists."""
    nested: Any = []
    for _ in range(int(draw.integers(3, 100))):
        nested = [nested]
    return nested
