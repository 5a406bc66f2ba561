"""What a sweep found: each policy under each condition, its gap to the synchronous clock, and the gap by cause."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, did_you_mean
from heron_env.evaluation.benchmark import NOTHING
from heron_env.evaluation.gap.axes import coalitions, one_at_a_time
from heron_env.evaluation.gap.conditions import IDEAL, SYNC, Condition
from heron_env.evaluation.gap.decomposition import MOST_CAUSES, Costs, Decomposition, decomposed, shapley
from heron_env.evaluation.gap.decomposition import one_at_a_time as alone
from heron_env.evaluation.gap.interaction import Interaction, interactions
from heron_env.evaluation.gap.records import Key, Record
from heron_env.evaluation.robust_stats import Bootstrap, Estimate, interquartile_mean

if TYPE_CHECKING:
    from heron_env.evaluation.gap.sweep import Sweep

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """One policy under one condition, over all cases.

    Attributes:
        values: team returns by case.
        iqm, mean: interquartile mean and mean of the values.
        score: share of what perfect foresight would gain over doing nothing; nan where no case has a known optimum.
        gaps, gap: return on the synchronous clock minus this one, by case, and its mean; > 0: the condition costs.
        worse: probability that the same case yields less than on the synchronous clock; ties count half.
        lost: the gap as a share of what the policy gains over doing nothing; nan where it gains nothing.
        identical: do all runs equal the synchronous ones bit for bit? Asked where nothing is wrong, else None.
        kpis, staleness_p95, latency_p95: means over the cases; ages and latencies in s.
        notes: what the clock says about delays that can't show.
        seconds: of computation, all cases together; not part of the result.
    """

    policy: str
    condition: Condition
    values: tuple[float, ...]
    iqm: Estimate
    mean: Estimate
    score: float
    gaps: tuple[float, ...]
    gap: Estimate
    worse: Estimate
    lost: float
    identical: bool | None
    kpis: dict[str, float]
    staleness_p95: float
    latency_p95: float
    notes: tuple[str, ...]
    seconds: float


class SweepResult:
    """A finished sweep.

    Attributes:
        sweep: what was asked.
        points: one for each policy and condition, in the order of the sweep.
        draws: the resamples of the cases, by which all intervals were made.
    """

    def __init__(self, sweep: Sweep, records: Mapping[Key, Record]) -> None:
        self.sweep = sweep
        self._records = records
        self.draws = Bootstrap([sorted(case.options.items()) for case in sweep.cases])
        self._nothing = self._values(NOTHING, SYNC)
        self.points = tuple(self._points())

    def point(self, policy: str, condition: Condition = SYNC) -> Point:
        """The point of a policy and a condition. Raises ConfigError."""
        for point in self.points:
            if point.policy == policy and point.condition == condition:
                return point
        known = list(dict.fromkeys(p.policy for p in self.points))
        raise ConfigError(
            f"the sweep has no policy {policy!r} under {condition.name!r}; its policies are {known}, "
            f"its conditions {[c.name for c in self.sweep.conditions]}.{did_you_mean(policy, known)}"
        )

    def of(self, policy: str) -> list[Point]:
        """All points of a policy."""
        return [point for point in self.points if point.policy == policy]

    def along(self, policy: str, cause: str) -> list[tuple[float, Point]]:
        """Amount and point of every condition with this cause alone, and without any, by amount: for a figure."""
        found = []
        for point in self.of(policy):
            causes = point.condition.causes
            if point.condition != SYNC and set(causes) <= {cause} and not isinstance(causes.get(cause), tuple):
                found.append((float(getattr(point.condition, cause)), point))
        return sorted(found, key=lambda pair: pair[0])

    def improvement(self, policy: str, rival: str, condition: Condition = SYNC) -> Estimate:
        """Probability that `policy` yields more than `rival` in the same case under the same condition."""
        return self.draws.improvement(self.point(policy, condition).values, self.point(rival, condition).values)

    @property
    def policies(self) -> list[str]:
        """Those that ran under all conditions."""
        return [name for name in self.sweep.policies if name not in self.sweep.sync_only]

    @cached_property
    def decompositions(self) -> tuple[Decomposition, ...]:
        """Of each policy, by each method for which all conditions are there; of the widest condition that has them."""
        found = []
        for policy in self.policies:
            for method, needed, solve in (("one at a time", one_at_a_time, alone), ("shapley", coalitions, shapley)):
                whole = self._widest(needed)
                if whole is not None:
                    causes, costs = tuple(whole.causes), self._costs(policy, whole)
                    gap = costs[frozenset(causes)]
                    found.append(decomposed(policy, whole, method, solve(costs, causes), gap, self.draws))
        return tuple(found)

    @cached_property
    def interactions(self) -> tuple[Interaction, ...]:
        """Of faults with the network, wherever the four conditions of the clock x fault ablation are there."""
        return tuple(interactions(self))

    def write(self, folder: Path) -> None:
        """Write table.json, table.csv and table.md into the folder."""
        from heron_env.evaluation.gap.tables import write_tables

        write_tables(self, folder)

    def _widest(self, needed: Callable[[Condition], list[Condition]]) -> Condition | None:
        """The condition with most causes, more than one, for which all of `needed(condition)` was run.

        Of several the last one, which as a rule has the greatest amounts.
        """
        there = {*self.sweep.conditions, IDEAL}  # whose cost is 0, run or not
        fitting = [
            whole
            for whole in self.sweep.conditions
            if 2 <= len(whole.causes) <= MOST_CAUSES and there.issuperset(needed(whole))
        ]
        return max(reversed(fitting), key=lambda whole: len(whole.causes), default=None)

    def _costs(self, policy: str, whole: Condition) -> Costs:
        """Of every subset of the causes that was run. Nothing wrong costs nothing: that is the synchronous clock."""
        sync = np.array(self._values(policy, SYNC))
        there = set(self.sweep.conditions)
        costs = {frozenset[str](): np.zeros(len(sync))}
        for part in coalitions(whole):
            if part.causes and part in there:
                costs[frozenset(part.causes)] = sync - np.array(self._values(policy, part))
        return costs

    def _values(self, policy: str, condition: Condition) -> list[float]:
        return [record.outcome.value for record in self._of(policy, condition)]

    def _of(self, policy: str, condition: Condition) -> list[Record]:
        """The records by case."""
        return [self._records[Key(policy, case, condition.name)] for case in range(len(self.sweep.cases))]

    def _points(self) -> Iterator[Point]:
        for policy in self.sweep.policies:
            for condition in self.sweep.conditions:
                if condition == SYNC or policy not in self.sweep.sync_only:
                    yield self._point(policy, condition)

    def _point(self, policy: str, condition: Condition) -> Point:
        records, reference = self._of(policy, condition), self._of(policy, SYNC)
        runs, values = [record.outcome for record in records], self._values(policy, condition)
        sync = self._values(policy, SYNC)
        gaps = [before - now for before, now in zip(sync, values, strict=True)]
        gain = float(np.mean(sync)) - float(np.mean(self._nothing))
        same = all(a.course == b.outcome.course for a, b in zip(runs, reference, strict=True))
        return Point(
            policy=policy,
            condition=condition,
            values=tuple(values),
            iqm=self.draws.estimate(values, interquartile_mean),
            mean=self.draws.estimate(values),
            score=self._score(values),
            gaps=tuple(gaps),
            gap=self.draws.estimate(gaps),
            worse=self.draws.improvement(sync, values),
            lost=float(np.mean(gaps)) / gain if gain > 0.0 else math.nan,
            identical=same if condition == IDEAL else None,
            kpis={name: float(np.mean([run.kpis[name] for run in runs])) for name in runs[0].kpis},
            staleness_p95=_mean([run.staleness_p95 for run in runs]),
            latency_p95=_mean([run.latency_p95 for run in runs]),
            notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
            seconds=round(sum(record.seconds for record in records), 3),
        )

    def _score(self, values: list[float]) -> float:
        """Sums over the cases with an optimum, so that those with little to gain do not outweigh the others."""
        known = [
            (value - idle, case.optimum - idle)
            for value, idle, case in zip(values, self._nothing, self.sweep.cases, strict=True)
            if case.optimum is not None
        ]
        possible = sum(best for _, best in known)
        return sum(gained for gained, _ in known) / possible if possible > 0.0 else math.nan


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else math.nan
