"""Statistics for few runs: interquartile means, stratified bootstrap intervals, probability of improvement.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 2021), whose
package rliable builds on arch. The draws are those of `arch.bootstrap.IndependentSamplesBootstrap` with the same numpy
generator, one argument for each stratum, and so are the intervals (tests/golden/bootstrap_arch.json).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.seeding import stream

LEVEL: Final = 0.95
REPETITIONS: Final = 5000
Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""From values `[..., n]` to one number for each row, `[...]`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure of `n` values with its interval; low and high are nan where n < 2 says nothing about spread."""

    value: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Does the whole interval lie on one side of 0? False where there is none."""
        return self.low > 0.0 or self.high < 0.0

    def __str__(self) -> str:
        """`2.31 [1.90, 2.75]`, or `2.31` where there is no interval; three digits of what is below 0.1."""
        return self.beside(max(abs(x) for x in (self.value, self.low, self.high) if not math.isnan(x)))

    def beside(self, larger: float) -> str:
        """The same with the decimals that a number as large as `larger` has, next to which it stands."""
        places = 2 if larger >= 0.1 or larger < 1e-9 else 2 - math.floor(math.log10(larger))
        numbers = (self.value, self.low, self.high)
        value, low, high = (f"{round(x, places) + 0.0:.{places}f}" for x in numbers)  # + 0.0: no -0.00
        return value if math.isnan(self.low) else f"{value} [{low}, {high}]"

    def to_dict(self) -> dict[str, float]:
        """`{value, low, high}`."""
        return {"value": self.value, "low": self.low, "high": self.high}


def mean(values: Floats) -> Floats:
    """Of `[..., n]` along the last axis."""
    return np.asarray(values.mean(axis=-1))


def interquartile_mean(values: Floats) -> Floats:
    """Mean of `[..., n]` without its floor(n/4) lowest and highest values, as scipy.stats.trim_mean(x, 0.25)."""
    cut = values.shape[-1] // 4
    return mean(np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut])


class Bootstrap:
    """Resamples of n paired cases, drawn once: every figure of a sweep is resampled alike, so differences stay paired.

    Args:
        strata: label of each case; cases are drawn anew within their stratum, `[n]` in all. Where a stratum has one
            case alone there is nothing to draw from, and all cases count as one stratum.
        repetitions: number of resamples.
        level: of the intervals, between percentiles.
        seed: of the draws, for `seeding.stream`; or a generator.

    Raises ConfigError.
    """

    def __init__(
        self,
        strata: Sequence[object],
        *,
        repetitions: int = REPETITIONS,
        level: float = LEVEL,
        seed: int | np.random.Generator = 0,
    ) -> None:
        if not strata or repetitions < 1 or not 0.0 < level < 1.0:
            raise ConfigError(
                f"Bootstrap({len(strata)} cases, repetitions={repetitions!r}, level={level!r}): "
                "one case and repetition at least, and a level between 0 and 1"
            )
        self.n, self.level = len(strata), level
        labels = [repr(label) for label in strata]
        members = [np.flatnonzero(np.array(labels) == label) for label in dict.fromkeys(labels)]
        if min(map(len, members)) < 2:
            members = [np.arange(self.n)]
        generator = seed if isinstance(seed, np.random.Generator) else stream(seed, "bootstrap")
        draws = [
            np.concatenate([own[generator.integers(len(own), size=len(own))] for own in members])
            for _ in range(repetitions)
        ]
        self.draws = np.array(draws, dtype=np.int64)
        """Numbers of cases, `[repetitions, n]`."""

    def estimate(self, values: Sequence[float] | Floats, statistic: Statistic = mean) -> Estimate:
        """A figure of the values `[n]`, with its percentile interval. Raises ConfigError for nan or another n."""
        x = self.checked(values)
        if self.n == 1:
            return Estimate(float(statistic(x)), math.nan, math.nan, 1)
        tail = 50.0 * (1.0 - self.level)
        low, high = np.percentile(statistic(x[self.draws]), [tail, 100.0 - tail])
        return Estimate(float(statistic(x)), float(low), float(high), self.n)

    def improvement(self, ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
        """Probability that `ours` is higher than `theirs` in the same case; ties count half."""
        a, b = self.checked(ours), self.checked(theirs)
        return self.estimate((a > b) + 0.5 * (a == b))

    def checked(self, values: Sequence[float] | Floats) -> Floats:
        """float64 `[n]`. Raises ConfigError."""
        x = np.asarray(values, dtype=np.float64)
        if x.shape != (self.n,) or not np.isfinite(x).all():
            raise ConfigError(f"bootstrap of {x.tolist()}: must be {self.n} finite values, one for each case")
        return x


def probability_of_improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Probability that one of `ours` is higher than one of `theirs`, over all pairs; ties count half.

    For runs that are not paired: Mann-Whitney's U / (n m). Raises ConfigError for nan or no values.
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if not a.size or not b.size or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ConfigError(f"probability_of_improvement({a.tolist()}, {b.tolist()}): finite values on both sides")
    difference = a[:, None] - b[None, :]
    return float(((difference > 0.0) + 0.5 * (difference == 0.0)).mean())
