"""Which cause eats how much of the gap, one at a time and by Shapley values, and what faults cost beside the network.

A cost is what a set of causes takes from the return, by case: `cost[S] = return without any - return with S`, float64
`[cases]`, or `[runs, cases]` of pooled training seeds. Parts are worked out for each case and then averaged: means add
up, interquartile means would not.

Do faults cost more in real time than in synchronous steps? The clock x fault ablation, out of four conditions.

    A  synchronous, no fault     B  event-driven, no fault
    C  synchronous, faults       D  event-driven, faults

All four share cases and seeds, C and D the faults too, so the interaction D - (B + C - A) is one of paired values:
below 0, faults and network make each other worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.lab.robust_stats import Estimate, Intervals
from heron_env.lab.sweep.conditions import CAUSES, Condition

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CAUSES = 6
Floats = NDArray[np.float64]
Costs = Mapping[frozenset[str], Floats]
INTERACTION = "interaction"
"""What the causes do together beyond the sum of what each does alone."""


@dataclass(frozen=True)
class CauseShare:
    """The share of one cause in the gap."""

    cause: str
    by_case: tuple[float, ...]
    mean: Estimate

    @property
    def words(self) -> str:
        """The cause for people."""
        return CAUSES[self.cause].words if self.cause in CAUSES else self.cause


@dataclass(frozen=True)
class Decomposition:
    """The gap of one policy under one condition, by cause; the parts add up to the gap, case by case.

    Attributes:
        condition: all the causes together.
        method: "one at a time" (its last part is the interaction) or "shapley".
    """

    policy: str
    condition: Condition
    method: str
    parts: tuple[CauseShare, ...]
    gap: CauseShare

    def texts(self) -> list[str]:
        """Means and intervals of the parts, then of the gap, all with the decimals of the largest."""
        means = [part.mean for part in (*self.parts, self.gap)]
        return [mean.beside(max(abs(each.value) for each in means)) for mean in means]

    def plot(self, unit: str = "") -> Figure:
        """What each cause takes: each bar begins where the one before ended; thin lines are the parts' intervals.

        Args:
            unit: of returns, for the axis, as `result.sweep.unit`.

        Returns:
            A figure of matplotlib. Raises ConfigError where it is missing (extra `plots`).
        """
        from heron_env.lab.show.figures import waterfall_figure

        return waterfall_figure(self, unit)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        parts = [{"cause": p.cause, **p.mean.to_dict(), "by_case": list(p.by_case)} for p in (*self.parts, self.gap)]
        named = {"policy": self.policy, "condition": self.condition.name, "method": self.method}
        return {**named, "parts": parts[:-1], "gap": parts[-1]}


def one_at_a_time(costs: Costs, causes: Sequence[str]) -> dict[str, Floats]:
    """What each cause costs alone, and the interaction: what is left to the cost of all. Raises ConfigError."""
    alone = {cause: _cost(costs, frozenset({cause})) for cause in causes}
    return {**alone, INTERACTION: _cost(costs, frozenset(causes)) - sum(alone.values(), start=np.zeros(1))}


def shapley(costs: Costs, causes: Sequence[str]) -> dict[str, Floats]:
    """The mean of what each cause adds, over all orders in which the causes can come (Shapley 1953). Exact.

    Raises ConfigError where a subset is missing, or for more than 6 causes, whose subsets nobody would run.
    """
    if len(causes) > MOST_CAUSES or not causes:
        raise ConfigError(f"shapley() of {len(causes)} causes: 1 to {MOST_CAUSES}, which have 2^k subsets")
    k = len(causes)
    values: dict[str, Floats] = {}
    for cause in causes:
        others = [other for other in causes if other != cause]
        value = np.zeros(1)
        for size in range(k):
            weight = factorial(size) * factorial(k - size - 1) / factorial(k)
            for subset in combinations(others, size):
                without = frozenset(subset)
                value = value + weight * (_cost(costs, without | {cause}) - _cost(costs, without))
        values[cause] = value
    return values


def decomposed(
    policy: str, condition: Condition, method: str, parts: Mapping[str, Floats], gap: Floats, intervals: Intervals
) -> Decomposition:
    """The parts with their intervals; `by_case` is the mean over the runs."""

    def part(cause: str, values: Floats) -> CauseShare:
        by_case = np.atleast_2d(values).mean(axis=0)
        return CauseShare(cause, tuple(by_case.tolist()), intervals.mean(values))

    return Decomposition(policy, condition, method, tuple(part(c, v) for c, v in parts.items()), part("gap", gap))


def _cost(costs: Costs, subset: frozenset[str]) -> Floats:
    if subset not in costs:
        raise ConfigError(f"the cost of {sorted(subset) or 'no cause'} is not known; run the sweep with it")
    return costs[subset]


@dataclass(frozen=True)
class Interaction:
    """Effects on what one policy earns: means over the cases, and the interaction by case.

    Attributes:
        network, faults: B - A and C - A.
        both: D - A.
        interaction: D - (B + C - A).
    """

    policy: str
    condition: Condition
    """D."""
    network: Estimate
    faults: Estimate
    both: Estimate
    interaction: Estimate
    by_case: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        effects = {name: getattr(self, name).to_dict() for name in ("network", "faults", "both", "interaction")}
        return {"policy": self.policy, "condition": self.condition.name, **effects, "by_case": list(self.by_case)}


def interaction(policy: str, condition: Condition, arms: Iterable[Floats], intervals: Intervals) -> Interaction:
    """Of the returns `[runs, cases]` in the four conditions A, B, C and D; `condition` is D."""
    a, b, c, d = arms
    mean, joint = intervals.mean, d - (b + c - a)
    by_case = tuple(joint.mean(axis=0).tolist())
    return Interaction(policy, condition, mean(b - a), mean(c - a), mean(d - a), mean(joint), by_case)
