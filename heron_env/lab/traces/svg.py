"""Pieces of SVG as text."""

from __future__ import annotations

import math
from html import escape


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element; `class_` stands for class, an underscore elsewhere for a hyphen, and a float is cut to 0.1."""
    told = "".join(f' {_name(key)}="{_value(value)}"' for key, value in attributes.items() if value is not None)
    return f"<{name}{told}>{''.join(inside)}</{name}>" if inside else f"<{name}{told}/>"


def words(text: str) -> str:
    """Text that may hold any character."""
    return escape(text)


def title(text: str) -> str:
    """What is shown on hovering, and read to those who can't see."""
    return tag("title", words(text))


def label(x: float, y: float, text: str, **attributes: object) -> str:
    """A line of text with its baseline at (x, y)."""
    return tag("text", words(text), x=x, y=y, **attributes)


def diamond(x: float, y: float, size: float) -> str:
    """A path: a square on its corner."""
    return f"M{x:.1f} {y - size:.1f}l{size} {size} {-size} {size} {-size} {-size}z"


def triangle(x: float, y: float, size: float) -> str:
    """A path: a triangle that points down."""
    return f"M{x - size:.1f} {y - size:.1f}h{2 * size}l{-size} {1.8 * size:.1f}z"


def cross(x: float, y: float, size: float) -> str:
    """A path: two strokes."""
    return f"M{x - size:.1f} {y - size:.1f}l{2 * size} {2 * size}m0 {-2 * size}l{-2 * size} {2 * size}"


def nice_step(length: float, most: int = 10) -> float:
    """1, 2 or 5 times a power of ten, so that `length` has no more than `most` of it."""
    rough = length / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough * 0.999999)


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-") if key not in ("viewBox",) else key


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(str(value))
