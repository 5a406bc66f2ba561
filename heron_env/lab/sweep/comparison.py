"""Two algorithms, several training seeds of each: their difference in the same cases, and how many seeds tell it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from heron_env.lab.output import with_unit
from heron_env.lab.robust_stats import MOST_SEEDS, Estimate
from heron_env.lab.sweep.conditions import SYNC, Condition
from heron_env.lab.sweep.results import Measurements


@dataclass(frozen=True)
class AlgorithmComparison:
    """One algorithm against another, over training seeds and cases.

    Attributes:
        first, second: their names.
        seeds: how many of each.
        difference: mean return of the first minus that of the second, in the same cases.
        improvement: probability that a run of the first earns more than one of the second in the same case; ties count
            half (Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice").
        enough: training seeds of each from which on the interval of a difference of this size excludes 0, if seeds and
            cases spread as they do here; None: more than `MOST_SEEDS`, or there is no difference.
    """

    first: str
    second: str
    seeds: tuple[int, int]
    cases: int
    unit: str
    condition: Condition
    difference: Estimate
    improvement: Estimate
    enough: int | None

    def __str__(self) -> str:
        """Who earns more where the interval says it, else that it is open; then how many seeds are enough."""
        where = "on the synchronous clock" if self.condition == SYNC else f"under {self.condition.words}"
        over = f"Over {self.seeds[0]} and {self.seeds[1]} training seeds and {self.cases} held-out cases, {where}"
        gap, unit = self.difference, self.unit
        chance = f"the probability that a run of the first earns more in the same case is {self.improvement.percent()}"
        if not gap.excludes_zero:
            told = (
                f"it is not clear whether {self.first!r} earns more than {self.second!r}: the difference is "
                f"{with_unit(gap, unit)}"
            )
        else:
            more = "more" if gap.value > 0.0 else "less"
            size = gap if gap.value > 0.0 else gap.negative
            told = f"{self.first!r} earns {with_unit(size, unit)} {more} than {self.second!r}"
        return f"{over}, {told}; {chance}. {self._enough()}"

    def _enough(self) -> str:
        if self.difference.value == 0.0:
            return "The difference is zero: no number of seeds would show one."
        if self.enough is None:
            return f"Even {MOST_SEEDS} seeds of each would not show a difference of this size: use more cases."
        return (
            f"About {self.enough} training seeds of each would show a difference of this size, if seeds and cases vary "
            "as they do here."
        )


def compared(result: Measurements, first: str, second: str, condition: Condition = SYNC) -> AlgorithmComparison:
    """Compare two policies of a sweep, each pooled over two training seeds or more.

    Raises ConfigError for an unknown policy or condition.
    """
    ours, theirs = (np.array(result.point(name, condition).by_run) for name in (first, second))
    difference = result.difference(first, second, condition)
    return AlgorithmComparison(
        first,
        second,
        (len(ours), len(theirs)),
        len(result.sweep.cases),
        result.sweep.unit,
        condition,
        difference,
        result.improvement(first, second, condition),
        result.intervals.seeds_for(ours, theirs, abs(difference.value)),
    )


def comparisons(result: Measurements) -> Iterator[AlgorithmComparison]:
    """Of each two algorithms: on the synchronous clock, and under the last condition where they ran under it."""
    pools = [name for name in result.policies if len(result.table(name)) > 1]
    for first, second in combinations(pools, 2):
        for condition in dict.fromkeys((SYNC, result.sweep.conditions[-1])):
            yield compared(result, first, second, condition)
