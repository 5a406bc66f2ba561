"""What a sweep found: each policy under each condition, its gap to the synchronous clock, and the gap by cause."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env._version import __version__
from heron_env.errors import ConfigError, did_you_mean
from heron_env.injection.tally import ExternalAgentMetrics, metrics
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.episodes import Earned, means
from heron_env.lab.robust_stats import Estimate, Intervals
from heron_env.lab.sweep.conditions import IDEAL, SYNC, Condition, coalitions, one_at_a_time
from heron_env.lab.sweep.decomposition import (
    MOST_CAUSES,
    Costs,
    Decomposition,
    Interaction,
    decomposed,
    interaction,
    shapley,
)
from heron_env.lab.sweep.decomposition import one_at_a_time as alone
from heron_env.lab.sweep.records import Key, Record
from heron_env.lab.sweep.study import SweepPlan
from heron_env.scheduling.sources import mean_s

ELO_START: Final = 1000.0
ELO_K: Final = 32.0
ELO_SCALE: Final = 400.0
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SweepPoint:
    """One policy under one condition, over all cases, and over all training seeds where they are pooled.

    Attributes:
        values: returns of `sweep.return_of` by case, means over the runs.
        by_run: the same `[runs][cases]`; one run where nothing is pooled.
        iqm, mean: interquartile mean and mean of the values; tables for people have the mean, whose differences are
            the gaps.
        by_group: what the agents of each group earned in sum, mean over runs and cases; empty where that was not kept.
        score: share of what perfect foresight would gain over doing nothing; nan where no case has a known optimum.
        gaps, gap: return on the synchronous clock minus this one, by case, and its mean; > 0: less than synchronous.
        worse, equal: shares of the cases that yield less than on the synchronous clock, and exactly as much.
        lost: the gap as a share of what the policy gains over doing nothing; nan where it gains nothing, without an
            interval where these cases can't tell that it gains anything.
        identical: do all runs equal the synchronous ones bit for bit? Asked where nothing is wrong and all could be
            repeated, else None.
        kpis, staleness_p95, latency_p95: means over the cases; ages and latencies in s.
        tokens: of an episode's answers, mean over the cases.
        notes: what the clock says about delays that can't show.
        seconds: of computation, all cases together; not part of the result.
        external: how agents of other programs answered, all cases together; None where there are none.
        deterministic: would every run come out the same again? Not where an endpoint is asked.
    """

    policy: str
    condition: Condition
    values: tuple[float, ...]
    by_run: tuple[tuple[float, ...], ...]
    iqm: Estimate
    mean: Estimate
    score: float
    gaps: tuple[float, ...]
    gap: Estimate
    worse: Estimate
    equal: Estimate
    lost: Estimate
    identical: bool | None
    kpis: dict[str, float]
    by_group: dict[str, float]
    staleness_p95: float
    latency_p95: float
    notes: tuple[str, ...]
    seconds: float
    tokens: float
    external: ExternalAgentMetrics | None = None
    deterministic: bool = True

    @property
    def earned(self) -> Earned:
        """In the mean."""
        return Earned(self.mean.value, self.by_group)


class Measurements:
    """The episodes of a finished sweep in figures.

    Attributes:
        sweep: its settings.
        points: one for each policy and condition, in the order of the sweep.
        made_by: the version of heron_env that ran it.
        intervals: statistics over these cases.
    """

    def __init__(self, sweep: SweepPlan, records: Mapping[Key, Record], made_by: str = __version__) -> None:
        self.sweep, self.made_by = sweep, made_by
        self._records = records
        self.intervals = Intervals([sorted(case.options.items()) for case in sweep.cases])
        self._nothing = self.table(NOTHING)[0]
        self.points = tuple(self._points())

    def point(self, policy: str, condition: Condition = SYNC) -> SweepPoint:
        """Return the point of a policy and a condition. Raises ConfigError."""
        for point in self.points:
            if point.policy == policy and point.condition == condition:
                return point
        raise self._unknown(policy, condition)

    def _unknown(self, policy: str, condition: Condition) -> ConfigError:
        names = self.sweep.shown
        return ConfigError(
            f"the sweep has no policy {policy!r} under {condition.name!r}; its policies are {names}, "
            f"its conditions {[c.name for c in self.sweep.conditions]}.{did_you_mean(policy, names)}"
        )

    def of(self, policy: str) -> list[SweepPoint]:
        """Return all points of a policy."""
        return [point for point in self.points if point.policy == policy]

    def along(self, policy: str, cause: str) -> list[tuple[float, SweepPoint]]:
        """Return amount and point of every condition with this cause alone or none, by amount.

        Infinite rates are left out.
        """
        result = []
        for point in self.of(policy):
            causes = point.condition.causes
            if point.condition != SYNC and set(causes) <= {cause} and not isinstance(causes.get(cause), tuple):
                result.append((mean_s(getattr(point.condition, cause)), point))
        return sorted((pair for pair in result if math.isfinite(pair[0])), key=lambda pair: pair[0])

    def improvement(self, policy: str, rival: str, condition: Condition = SYNC) -> Estimate:
        """Return the probability that `policy` earns more than `rival` in the same case under the same condition."""
        return self.intervals.improvement(self.table(policy, condition), self.table(rival, condition))

    def difference(self, policy: str, rival: str, condition: Condition = SYNC) -> Estimate:
        """Return the mean of `policy` minus `rival` in the same case under the same condition."""
        return self.intervals.difference(self.table(policy, condition), self.table(rival, condition))

    def step(self, policy: str, before: Condition, after: Condition) -> Estimate:
        """Return how much less a policy earns under `after` than under `before`, mean over the same runs and cases."""
        return self.intervals.mean(self.table(policy, before) - self.table(policy, after))

    def lost_step(self, policy: str, before: Condition, after: Condition) -> Estimate:
        """Return `step` as a share of the policy's gain over doing nothing on the synchronous clock."""
        return self.intervals.share(self.table(policy, before) - self.table(policy, after), self.gain(policy))

    def gain(self, policy: str) -> Floats:
        """Return the gain of a policy over doing nothing on the synchronous clock, `[runs, cases]`."""
        return np.asarray(self.table(policy) - self._nothing)

    def table(self, policy: str, condition: Condition = SYNC) -> Floats:
        """Return the returns of a policy by run and case, `[runs, cases]`; synchronous by default."""
        return np.array([[r.outcome.value for r in self._of(name, condition)] for name in self.sweep.members(policy)])

    def elo(self, condition: Condition = SYNC) -> dict[str, float]:
        """Return Elo ratings after all cases in order (start 1000, K 32), of pools by means; empty for one policy.

        The preference of one policy to another, P(better) + P(equal) / 2, is `improvement`.
        """
        names = self.policies
        return elo({name: self.point(name, condition).values for name in names}) if len(names) > 1 else {}

    def preference(self, policy: str, condition: Condition = SYNC) -> float | None:
        """Return the mean preference to all other policies in the same case; None: there are none."""
        rivals = [name for name in self.policies if name != policy]
        if not rivals or policy not in self.policies:
            return None
        return float(np.mean([self.improvement(policy, rival, condition).value for rival in rivals]))

    @property
    def external(self) -> bool:
        """Does an endpoint play any agent?"""
        return any(point.external is not None for point in self.points)

    @property
    def policies(self) -> list[str]:
        """Names of the policies that ran under all conditions."""
        return [name for name in self.sweep.shown if not self._sync_only(name)]

    @cached_property
    def decompositions(self) -> tuple[Decomposition, ...]:
        """Of each policy, by each method for which all conditions are there; of the widest condition that has them."""
        result = []
        for policy in self.policies:
            for method, needed, solve in (("one at a time", one_at_a_time, alone), ("shapley", coalitions, shapley)):
                whole = self._widest(needed)
                if whole is not None:
                    causes, costs = tuple(whole.causes), self._costs(policy, whole)
                    gap = costs[frozenset(causes)]
                    parts = solve(costs, causes)
                    if solve is alone:
                        parts.pop("jitter", None)  # 0 by construction
                    result.append(decomposed(policy, whole, method, parts, gap, self.intervals))
        return tuple(result)

    @cached_property
    def interactions(self) -> tuple[Interaction, ...]:
        """Of faults with the network, of each policy for each condition with faults whose other three were run."""
        played, result = set(self.sweep.conditions), []
        for policy in self.policies:
            for condition in self.sweep.conditions:
                network = condition.but(disturbances=())
                faults = Condition(synchronous=True, disturbances=condition.disturbances)
                if condition.disturbances and network != SYNC and {network, faults} <= played:
                    arms = (self.table(policy, arm) for arm in (SYNC, network, faults, condition))
                    result.append(interaction(policy, condition, arms, self.intervals))
        return tuple(result)

    def _widest(self, needed: Callable[[Condition], list[Condition]]) -> Condition | None:
        """The condition with most causes, more than one, for which all of `needed(condition)` was run.

        Of several the last one, which as a rule has the greatest amounts.
        """
        played = {*self.sweep.conditions, IDEAL}  # whose cost is 0, run or not
        fitting = [
            whole
            for whole in self.sweep.conditions
            if 2 <= len(whole.causes) <= MOST_CAUSES and played.issuperset(needed(whole))
        ]
        return max(reversed(fitting), key=lambda whole: len(whole.causes), default=None)

    def _costs(self, policy: str, whole: Condition) -> Costs:
        """Of every subset of the causes that was run. Nothing wrong costs nothing: that is the synchronous clock."""
        sync, played = self.table(policy), set(self.sweep.conditions)
        costs = {frozenset[str](): np.zeros(sync.shape), frozenset({"jitter"}): np.zeros(sync.shape)}
        for part in coalitions(whole):
            if part.causes and part in played:
                costs[frozenset(part.causes)] = sync - self.table(policy, part)
        return costs

    def _sync_only(self, name: str) -> bool:
        return self.sweep.members(name)[0] in self.sweep.sync_only

    def _of(self, policy: str, condition: Condition) -> list[Record]:
        """The records by case. Raises ConfigError where there are none."""
        keys = [Key(policy, case, condition.name) for case in range(len(self.sweep.cases))]
        if keys[0] not in self._records:
            raise self._unknown(policy, condition)
        return [self._records[key] for key in keys]

    def _points(self) -> Iterator[SweepPoint]:
        for policy in self.sweep.shown:
            for condition in self.sweep.conditions:
                if condition == SYNC or not self._sync_only(policy):
                    yield self._point(policy, condition)

    def _point(self, policy: str, condition: Condition) -> SweepPoint:
        members, make = self.sweep.members(policy), self.intervals
        records = [record for name in members for record in self._of(name, condition)]
        reference = [record for name in members for record in self._of(name, SYNC)]
        runs, values, sync = [record.outcome for record in records], self.table(policy, condition), self.table(policy)
        gaps = sync - values
        same = all(a.course == b.outcome.course for a, b in zip(runs, reference, strict=True))
        answers = [record.answers for record in records if record.answers is not None]
        repeatable = all(record.answers is None or record.answers.deterministic for record in [*records, *reference])
        return SweepPoint(
            policy=policy,
            condition=condition,
            values=tuple(values.mean(axis=0).tolist()),
            by_run=tuple(map(tuple, values.tolist())),
            iqm=make.interquartile_mean(values),
            mean=make.mean(values),
            score=self._score(values.mean(axis=0).tolist()),
            gaps=tuple(gaps.mean(axis=0).tolist()),
            gap=make.mean(gaps),
            worse=make.proportion(gaps > 0.0),
            equal=make.proportion(gaps == 0.0),
            lost=make.share(gaps, self.gain(policy)),
            identical=same if condition == IDEAL and repeatable else None,
            kpis=means([run.kpis for run in runs]),
            by_group=means([run.by_group for run in runs]),
            staleness_p95=_mean([run.staleness_p95 for run in runs]),
            latency_p95=_mean([run.latency_p95 for run in runs]),
            notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
            seconds=round(sum(record.seconds for record in records), 3),
            tokens=_mean([run.tokens for run in runs]),
            external=metrics(answers),
            deterministic=repeatable,
        )

    def _score(self, values: list[float]) -> float:
        """Sums over the cases with an optimum, so that those with little to gain do not outweigh the others."""
        gains = [
            (value - idle, case.optimum - idle)
            for value, idle, case in zip(values, self._nothing.tolist(), self.sweep.cases, strict=True)
            if case.optimum is not None
        ]
        possible = sum(best for _, best in gains)
        return sum(gained for gained, _ in gains) / possible if possible > 0.0 else math.nan


def _mean(values: Sequence[float]) -> float:
    numbers = [value for value in values if value == value]
    return float(np.mean(numbers)) if numbers else math.nan


def elo(returns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Elo's (1978) ratings after all cases, by policy; cases count in their order, a tie for half.

    In each case everybody meets everybody at the ratings from before it, so the order of the policies does not matter.
    """
    rating = dict.fromkeys(returns, ELO_START)
    for values in zip(*returns.values(), strict=True):
        now, value = dict(rating), dict(zip(returns, values, strict=True))
        for ours in now:
            for theirs in [name for name in now if name != ours]:
                expected = 1.0 / (1.0 + 10.0 ** ((now[theirs] - now[ours]) / ELO_SCALE))
                won = 0.5 * ((value[ours] > value[theirs]) + (value[ours] >= value[theirs]))
                rating[ours] += ELO_K * (won - expected)
    return rating
