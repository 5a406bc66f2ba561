"""Virtual time is whole nanoseconds inside, and seconds outside."""

from typing import Final

SECOND: Final = 1_000_000_000
"""Nanoseconds in a second."""
