"""Values that are drawn once an episode: a range, a lognormal one, a choice; as objects and as text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from heron_env.errors import ScheduleError
from heron_env.given import is_finite
from heron_env.scheduling.sources import as_source
from heron_env.seeding import standard_normal

FORMS: Final = "'0-10' (uniform), 'lognormal(3, 0.5)' (mean, standard deviation / mean), [1, 2, 5] (one of them)"
"""How a drawn value is written."""
_NUMBER: Final = r"(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
_RANGE: Final = re.compile(rf"\s*{_NUMBER}\s*-\s*{_NUMBER}\s*")
_LOGNORMAL: Final = re.compile(r"\s*lognormal\s*\((.*),(.*)\)\s*", re.IGNORECASE)
LAST: Final = 1.0 - 2.0**-53
"""The greatest u there is."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """`low + (high - low) * u`: all values from low to high alike. Raises ScheduleError."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse what is no range."""
        if not (_number(self.low) and _number(self.high) and self.low <= self.high):
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
        """Refuse what is no such law."""
        if not (_number(self.mean) and _number(self.ratio) and self.mean > 0 and self.ratio >= 0):
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


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, all alike: number `floor(u * n)`. Raises ScheduleError for none at all."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Refuse nothing to choose from."""
        if not self.values:
            raise ScheduleError("[]: nothing to choose from; give one value or more")
        if any(isinstance(value, Uniform | Lognormal | Choice) for value in self.values):
            raise ScheduleError(f"{self.plain()!r:.200}: a choice is among fixed values; write them out")

    def at(self, u: float) -> Any:
        """The value of a uniform u in [0, 1)."""
        return self.values[int(u * len(self.values))]

    @property
    def extremes(self) -> tuple[Any, ...]:
        """All values."""
        return self.values

    @property
    def nominal(self) -> Any:
        """The mean of numbers; of others the first."""
        if all(_number(value) for value in self.values):
            return sum(self.values) / len(self.values)
        return self.values[0]

    def plain(self) -> list[Any]:
        """As it is written."""
        return [value.to_dict() if hasattr(value, "to_dict") else value for value in self.values]


Drawn = Uniform | Lognormal | Choice


def as_drawn(value: Any, folder: Path | None = None) -> Any:
    """What is drawn if this is one of FORMS, a source if it tells of one, otherwise the value itself.

    Files of sources lie below `folder`. Raises ScheduleError, DataError.
    """
    if isinstance(value, list | tuple):
        return Choice(tuple(as_source(one, folder) for one in value))
    if isinstance(value, Mapping):
        return as_source(value, folder)
    if not isinstance(value, str):
        return value
    if found := _RANGE.fullmatch(value):
        return Uniform(float(found[1]), float(found[2]))
    if found := _LOGNORMAL.fullmatch(value):
        try:
            return Lognormal(float(found[1]), float(found[2]))
        except ValueError as error:
            if isinstance(error, ScheduleError):
                raise
            raise ScheduleError(f"{value!r}: must be two numbers, as lognormal(3, 0.5)") from error
    if value.strip().startswith("["):
        return Choice(tuple(as_source(one, folder) for one in _listed(value)))
    return value


def _listed(text: str) -> Sequence[Any]:
    """The values of `[1, 2]` and of `[hold, noop]`."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        inside = text.strip()
        if not inside.endswith("]"):
            raise ScheduleError(f"{text!r:.200}: the list has no end; close it with ]") from None
        return [_word(part.strip()) for part in inside[1:-1].split(",") if part.strip()]
    return list(found)


def _word(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
