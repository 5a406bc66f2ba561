"""Distributions of what is drawn once an episode: a function of one uniform number each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from heron_env.errors import ScheduleError
from heron_env.given import is_finite
from heron_env.seeding import standard_normal

LAST: Final = 1.0 - 2.0**-53
"""The greatest u there is."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """`low + (high - low) * u`: all values from low to high alike. Raises ScheduleError."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (is_plain_number(self.low) and is_plain_number(self.high) and self.low <= self.high):
            raise ScheduleError(f"'{self.low}-{self.high}': must be two finite numbers, the smaller one first")

    def at(self, u: float) -> float:
        """The value of a uniform u in [0, 1)."""
        return self.low + (self.high - self.low) * u

    @property
    def extremes(self) -> tuple[float, float]:
        """The least and the greatest value."""
        return self.low, self.high

    @property
    def nominal(self) -> float:
        """The mean."""
        return 0.5 * (self.low + self.high)

    def plain(self) -> str:
        """As it is written: `0-10`."""
        return f"{self.low!r}-{self.high!r}"


@dataclass(frozen=True, slots=True)
class Lognormal:
    """`mean * exp(s n - s**2 / 2)`, n the normal quantile of u, s**2 = ln(1 + ratio**2). Raises ScheduleError.

    Attributes:
        mean: above 0.
        ratio: standard deviation / mean, as `jitter_ratio` is.
    """

    mean: float
    ratio: float

    def __post_init__(self) -> None:
        if not (is_plain_number(self.mean) and is_plain_number(self.ratio) and self.mean > 0 and self.ratio >= 0):
            raise ScheduleError(
                f"'{self.plain()}': must be the mean, above 0, and standard deviation / mean, 0 or more, both finite"
            )

    def at(self, u: float) -> float:
        """The value of a uniform u in [0, 1)."""
        variance = math.log1p(self.ratio * self.ratio)
        return self.mean * math.exp(math.sqrt(variance) * standard_normal(u) - 0.5 * variance)

    @property
    def extremes(self) -> tuple[float, float]:
        """The least and the greatest value that a float u can give."""
        return self.at(0.0), self.at(LAST)

    @property
    def nominal(self) -> float:
        """The mean."""
        return self.mean

    def plain(self) -> str:
        """As it is written: `lognormal(3, 0.5)`."""
        return f"lognormal({self.mean!r}, {self.ratio!r})"


def is_plain_number(value: object) -> bool:
    """Is it one of Python's finite numbers, and no bool?"""
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
