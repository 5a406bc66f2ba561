"""Virtual time is whole nanoseconds inside, and seconds outside."""

from typing import Final

SECOND: Final = 1_000_000_000
"""Nanoseconds in a second."""


def to_seconds(ns: int) -> float:
    """Seconds of a time in nanoseconds, rounded to float64 before the division, as compiled code and numpy do it."""
    return float(ns) / SECOND
