"""Intervals for few cases: means, interquartile means and shares, over cases alone or over training seeds and cases.

All are Student's t intervals; nothing is drawn. A figure is linearised to what each value adds to its error: by the
winsorised values for an interquartile mean (Tukey and McLaughlin 1963; Yuen 1974), by the delta method for a share.
Values `[runs, n]` are crossed, every training seed in every case: the variance of a pooled figure is that of its means
by case plus that of its means by seed, their degrees of freedom by Satterthwaite (1946). What seeds and cases do
together counts twice, which errs to the wide side.

How often 95 % intervals hold the truth, in % (`tests/lab/test_coverage.py`, a slow test, measures it again):

    values                                                    5 cases   8   20
    mean, normal                                                   95  95   95
    mean, skewed (skewness 1.4; days of EnergyManagement < 1.4)    92  92   93
    mean, very skewed (lognormal, skewness 2.3)                    91  91   92
    mean, one case in seven far out                                85  82   90
    interquartile mean, any of these                               91  92   93
    share of two skewed means                                      92  92   94
    5 seeds x cases: mean, skewed                                  95  95   95
    5 seeds x cases: interquartile mean, skewed                    98  97   96

The percentile bootstrap covers 79 to 82 % of means at 5 cases and 85 to 88 % at 8. Bootstrap-t was measured beside
t: at two levels it covers 91 to 97 % (t: 93 to 97 %) with intervals as wide; interquartile means of 5 get intervals
without ends, those of 8 three times as wide, because resamples with equal values in the middle have no spread.

Of seeds and validation episodes `mean_interval` and `paired_difference` give plain means with t intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.given import is_number, several

LEVEL = 0.95
MOST_SEEDS: Final = 200
"""Training seeds that `Intervals.seeds_for` looks as far as."""


LARGEST: Final = 1e150
"""The largest value, in size, of which there are statistics: squares of larger ones are beyond float64."""
ENOUGH: Final = 20
"""Cases from which on intervals of means cover 90 % whatever the cases' distribution was in the trials above."""
Floats = NDArray[np.float64]


def mean_interval(values: Sequence[float] | Floats, level: float = LEVEL) -> Estimate:
    """Return the mean with its two-sided t interval.

    Args:
        values: `[n]`, such as returns by seed.
        level: the share of intervals that shall hold the truth.

    Returns:
        In the unit of the values; nan ends for one value, which says nothing about the spread.

    Raises:
        ConfigError: no values, or a level outside (0, 1).

    >>> print(mean_interval([1.0, 2.0, 3.0]))
    2.00 [-0.48, 4.48]
    """
    x = _numbers(values, "mean_interval(values)")
    if x.ndim != 1 or not len(x):
        raise ConfigError(f"mean_interval() of an array of shape {x.shape}: give a sequence of one value or more")
    if np.isnan(x).any():
        return Estimate(math.nan, math.nan, math.nan, len(x))
    return Intervals(range(len(x)), level=level).mean(x)


def paired_difference(values: Sequence[float], reference: Sequence[float], level: float = LEVEL) -> Estimate:
    """Return the mean of `values - reference` with its t interval.

    Args:
        values, reference: `[n]` each, of the same cases in the same order.
        level: as of `mean_interval`.

    Returns:
        In their unit; above 0: the values are larger.

    Raises:
        ConfigError: the lengths differ, or as of `mean_interval`.

    >>> print(paired_difference([3.0, 5.0], [2.0, 4.0]))
    1.00 [1.00, 1.00]
    """
    x, y = _numbers(values, "paired_difference(values)"), _numbers(reference, "paired_difference(reference)")
    if len(x) != len(y) or x.shape != y.shape:
        raise ConfigError(
            f"paired_difference() of {len(x)} and {len(y)} values: pairs need the same cases on both sides"
        )
    return mean_interval(x - y, level)


def _numbers(values: Any, what: str) -> Floats:
    """float64 `[n]`, or of another shape. Raises ConfigError for what is no sequence of numbers."""
    try:
        numbers = np.asarray(several(values, what), dtype=np.float64)
        if (np.abs(numbers) > LARGEST).any():
            raise OverflowError
        return numbers
    except (TypeError, ValueError, OverflowError) as error:
        words = f"must be a sequence of numbers of at most {LARGEST:g} in size"
        raise ConfigError(f"{what}={values!r:.200}: {words}") from error


@lru_cache
def t_quantile(level: float, df: float) -> float:
    """The t with P(|T| < t) = level for `df` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1.0 + level) / 2.0))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Figure of `n` cases with its interval; low and high are nan where n < 2.

    Attributes:
        runs: training seeds pooled in it; 1: the interval is over the cases alone.
    """

    value: float
    low: float
    high: float
    n: int
    runs: int = 1

    @property
    def mean(self) -> float:
        """The figure itself."""
        return self.value

    @property
    def known(self) -> bool:
        """Does it have an interval?"""
        return not math.isnan(self.low)

    @property
    def excludes_zero(self) -> bool:
        """Does the whole interval lie on one side of 0? False where there is none."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def above_zero(self) -> bool:
        """Does the whole interval lie above 0?"""
        return self.low > 0.0

    @property
    def negative(self) -> Estimate:
        """Return the negative figure, with its interval."""
        return Estimate(-self.value, -self.high, -self.low, self.n, self.runs)

    def within(self, bound: float) -> bool:
        """Does the whole interval lie between -bound and bound? False where there is none."""
        return -bound < self.low and self.high < bound

    def __str__(self) -> str:
        """`2.31 [1.90, 2.75]`, or `2.31` where there is no interval; three digits of what is below 0.1."""
        return self.beside(max(abs(x) for x in (self.value, self.low, self.high) if not math.isnan(x)))

    def beside(self, larger: float) -> str:
        """Return the text with the decimals of a number as large as `larger`."""
        places = 2 if larger >= 0.1 or larger < 1e-9 else 2 - math.floor(math.log10(larger))
        numbers = (self.value, self.low, self.high)
        value, low, high = (f"{round(x, places) + 0.0:.{places}f}" for x in numbers)  # + 0.0: no -0.00
        return value if math.isnan(self.low) else f"{value} [{low}, {high}]"

    def percent(self) -> str:
        """Return a share as text, `40.9 % [35.1, 46.8]`; `-` for nan."""
        if math.isnan(self.value):
            return "-"
        value, low, high = (f"{round(100.0 * x, 1) + 0.0:.1f}" for x in (self.value, self.low, self.high))
        return f"{value} % [{low}, {high}]" if self.known else f"{value} %"

    def to_dict(self) -> dict[str, float]:
        """`{value, low, high}`."""
        return {"value": self.value, "low": self.low, "high": self.high}


class Intervals:
    """Statistics of n paired cases. Values are `[n]`, or `[runs, n]` of several training seeds in the same cases.

    Args:
        labels: n labels of the cases, such as the day. Cases with the same label are repeats: they are averaged and
            count as one. If all have the same label, each counts.
        level: of the intervals.

    Every method raises ConfigError for nan, infinity, values beyond `LARGEST`, no runs, or another number of cases.
    """

    def __init__(self, labels: Sequence[object], *, level: float = LEVEL) -> None:
        labels = several(labels, "Intervals(labels)")
        if not labels or not is_number(level) or not 0.0 < level < 1.0:
            raise ConfigError(
                f"Intervals({len(labels)} cases, level={level!r}): one case at least, and a level between 0 and 1"
            )
        names = {label: number for number, label in enumerate(dict.fromkeys(map(repr, labels)))}
        self.n, self.level = len(labels), level
        self.unit = np.array([names[repr(label)] for label in labels] if len(names) > 1 else range(self.n))
        """Which case that counts each one is, `[n]`: repeats have one number."""
        self.units = int(self.unit.max()) + 1
        """Cases that count: n without repeats."""

    def mean(self, values: Sequence[float] | Floats) -> Estimate:
        """Return the mean of all values."""
        x = self.checked(values)
        return self._estimate(float(x.mean()), [x - x.mean()])

    def interquartile_mean(self, values: Sequence[float] | Floats) -> Estimate:
        """Return the mean without the floor(N/4) lowest and highest of N values, as scipy.stats.trim_mean(x, 0.25)."""
        x = self.checked(values)
        ordered, cut = np.sort(x, axis=None), x.size // 4
        middle = ordered[cut : x.size - cut]
        clipped = np.clip(x, middle[0], middle[-1])
        return self._estimate(
            float(middle.mean()), [(clipped - clipped.mean()) * x.size / len(middle)], lost=2 * (self.units // 4)
        )

    def difference(self, ours: Sequence[float] | Floats, theirs: Sequence[float] | Floats) -> Estimate:
        """Return the mean of ours minus the mean of theirs in the same cases; training seeds are not paired."""
        a, b = self.checked(ours), self.checked(theirs)
        return self._estimate(float(a.mean() - b.mean()), [a - a.mean(), b.mean() - b])

    def seeds_for(self, ours: Sequence[float] | Floats, theirs: Sequence[float] | Floats, within: float) -> int | None:
        """Return how many training seeds of each bring the half width of the interval of `difference` to `within`.

        Spreads over seeds and cases are assumed to stay the same. None: more than `MOST_SEEDS`, or a single seed.
        """
        a, b = self.checked(ours), self.checked(theirs)
        if self.units < 2 or min(len(a), len(b)) < 2 or not within > 0.0:
            return None
        cases, *seeds = self._variances([a - a.mean(), b.mean() - b])
        spreads = [variance * (df + 1) for variance, df in seeds]
        reach = (self._half([cases, *((spread / n, n - 1) for spread in spreads)]) for n in range(2, MOST_SEEDS + 1))
        return next((n for n, half in enumerate(reach, 2) if half <= within), None)

    def share(self, parts: Sequence[float] | Floats, wholes: Sequence[float] | Floats) -> Estimate:
        """Return the mean of the parts over the mean of the wholes, of the same runs and cases.

        nan where the interval of the wholes' mean does not lie above 0.
        """
        part, whole = self.checked(parts), self.checked(wholes)
        if not self.mean(whole).above_zero:
            return Estimate(math.nan, math.nan, math.nan, self.n, len(part))
        total = float(whole.mean())
        share = float(part.mean()) / total
        return self._estimate(share, [(part - share * whole) / total])

    def closed(
        self, ours: Sequence[float] | Floats, theirs: Sequence[float] | Floats, without: Sequence[float] | Floats
    ) -> Estimate:
        """Return the share of a gap that is closed: (ours - theirs) / (without - theirs), a ratio of means.

        `theirs` and `without` are the same runs with and without the cause of the gap; training seeds of ours and
        theirs have no pairs. nan as in `share`.
        """
        own, late, whole = self.checked(ours), self.checked(theirs), self.checked(without)
        if not self.mean(whole - late).above_zero:
            return Estimate(math.nan, math.nan, math.nan, self.n, max(len(own), len(late)))
        gap = float((whole - late).mean())
        share = float(own.mean() - late.mean()) / gap
        mixed = (1.0 - share) * late + share * whole
        return self._estimate(share, [(own - own.mean()) / gap, (mixed.mean() - mixed) / gap])

    def improvement(self, ours: Sequence[float] | Floats, theirs: Sequence[float] | Floats) -> Estimate:
        """Return the probability that one of `ours` is higher than one of `theirs` in a case; ties count half."""
        a, b = self.checked(ours)[:, None], self.checked(theirs)[None, :]
        wins = ((a > b) + 0.5 * (a == b)).reshape(-1, self.n)
        return replace(self.proportion(wins), runs=max(len(a), b.shape[1]))

    def proportion(self, values: Sequence[float] | Floats | NDArray[np.bool_]) -> Estimate:
        """Return the mean of values between 0 and 1, such as successes, with an interval in [0, 1].

        The interval is Wilson's (1927), wider where training seeds spread more. Raises ConfigError for other values.
        """
        x = self.checked(np.asarray(values, dtype=np.float64))
        if x.min() < 0.0 or x.max() > 1.0:
            raise ConfigError(f"a proportion of {x.tolist()}: its values must lie between 0 and 1")
        p = float(x.mean())
        spread = self._estimate(p, [x - p])
        if not spread.known:
            return Estimate(p, math.nan, math.nan, self.n, len(x))
        z = t_quantile(self.level, 10_000)
        error = ((spread.high - spread.low) / 2.0 / z) ** 2
        n = min(self.units, p * (1.0 - p) / error) if error > 0.0 else self.units
        return Estimate(p, *wilson(p, n, z), self.n, len(x))

    def checked(self, values: Sequence[float] | Floats) -> Floats:
        """Return values as float64 `[runs, n]`. Raises ConfigError."""
        x = np.atleast_2d(np.asarray(values, dtype=np.float64))
        if x.ndim != 2 or not len(x) or x.shape[1] != self.n or not (np.abs(x) <= LARGEST).all():
            words = f"must be {self.n} finite values, one for each case, of at most {LARGEST:g} in size"
            raise ConfigError(f"an interval of {x.tolist()!s:.400}: {words}")
        return x

    def _estimate(self, value: float, errors: Sequence[Floats], lost: int = 0) -> Estimate:
        """A figure with its interval.

        Args:
            errors: what each value adds to the error of the figure, `[runs, n]` with mean 0; the figure's error is the
                sum of their means.
            lost: degrees of freedom that trimming takes.
        """
        runs = max(map(len, errors))
        if self.units < 2:
            return Estimate(value, math.nan, math.nan, self.n, runs)
        half = self._half(self._variances(errors, lost))
        return Estimate(value, value - half, value + half, self.n, runs)

    def _variances(self, errors: Sequence[Floats], lost: int = 0) -> list[tuple[float, int]]:
        """Of the figure over cases, then over the training seeds of each part that has several: (variance, freedom)."""
        by_case = np.bincount(self.unit, weights=np.sum([error.mean(axis=0) for error in errors], axis=0))
        parts = [(self.units / (self.units - 1) * float((by_case**2).sum()) / self.n**2, self.units - lost - 1)]
        return parts + [(float(e.mean(axis=1).var(ddof=1)) / len(e), len(e) - 1) for e in errors if len(e) > 1]

    def _half(self, parts: Sequence[tuple[float, int]]) -> float:
        """Half the width of the interval."""
        variance = sum(part for part, _ in parts)
        if variance == 0.0:
            return 0.0
        freedom = 1.0 / sum((part / variance) ** 2 / df for part, df in parts)
        return t_quantile(self.level, max(1, math.floor(freedom + 1e-9))) * math.sqrt(variance)


def wilson(share: float, n: float, z: float = t_quantile(LEVEL, 10_000)) -> tuple[float, float]:
    """Wilson's (1927) interval of a share of n cases: within 0 and 1, and of some width even where all or none did."""
    middle, half = share + z * z / (2.0 * n), z * math.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n))
    low, high = ((middle + side * half) / (1.0 + z * z / n) for side in (-1.0, 1.0))
    return max(low, 0.0), min(high, 1.0)
