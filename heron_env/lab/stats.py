"""Means with Student's t intervals, of single values and of paired differences: for seeds and validation episodes.

Sweeps have interquartile means, shares and pooled training seeds, too (`robust_stats`, which takes its t from here).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.given import is_finite, several

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of `n` values and the interval around it; low and high are nan where n < 2 says nothing about spread."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Does the whole interval lie on one side of 0? False where there is no interval."""
        return self.low > 0.0 or self.high < 0.0

    def __str__(self) -> str:
        """`-1.23 [-1.50, -0.96]`, or `-1.23 (n = 1, no interval)`."""
        if math.isnan(self.low):
            return f"{self.mean:.2f} (n = {self.n}, no interval)"
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def mean_interval(values: Sequence[float] | NDArray[np.float64], level: float = LEVEL) -> Interval:
    """Mean with its two-sided t interval; nan ends for one value, which says nothing about the spread.

    Raises ConfigError for no values and for a level outside (0, 1).
    """
    if not is_finite(level) or not 0.0 < level < 1.0:
        raise ConfigError(f"level={level!r}: must lie between 0 and 1, as 0.95 does")
    x = _numbers(values, "mean_interval(values)")
    if x.ndim != 1 or not len(x):
        raise ConfigError(f"mean_interval() of an array of shape {x.shape}: give a sequence of one value or more")
    mean = float(x.mean())
    if len(x) == 1:
        return Interval(mean, math.nan, math.nan, 1)
    half = t_quantile(level, len(x) - 1) * float(x.std(ddof=1)) / math.sqrt(len(x))
    return Interval(mean, mean - half, mean + half, len(x))


def paired_difference(values: Sequence[float], reference: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean of `values - reference` with its t interval; both in the same order of the same cases.

    Raises ConfigError where the lengths differ.
    """
    x, y = _numbers(values, "paired_difference(values)"), _numbers(reference, "paired_difference(reference)")
    if len(x) != len(y) or x.shape != y.shape:
        raise ConfigError(
            f"paired_difference() of {len(x)} and {len(y)} values: pairs need the same cases on both sides"
        )
    return mean_interval(x - y, level)


def _numbers(values: Any, what: str) -> NDArray[np.float64]:
    """float64 `[n]`, or of another shape. Raises ConfigError for what is no sequence of numbers."""
    try:
        return np.asarray(several(values, what), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"{what}={values!r:.200}: must be a sequence of numbers") from error


def t_quantile(level: float, df: float) -> float:
    """The t with P(|T| < t) = level for `df` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1.0 + level) / 2.0))
