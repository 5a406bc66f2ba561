"""Do faults cost more in real time than in synchronous steps? The clock x fault ablation, out of four conditions.

    A  synchronous, no fault     B  event-driven, no fault
    C  synchronous, faults       D  event-driven, faults

All four share cases and seeds, C and D the faults too, so the interaction D - (B + C - A) is one of paired values:
below 0, faults and network make each other worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heron_env.lab.gap.conditions import SYNC, Condition
from heron_env.lab.robust_stats import Estimate

if TYPE_CHECKING:
    from heron_env.lab.gap.results import SweepResult


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


def interactions(result: SweepResult) -> Iterator[Interaction]:
    """Of each policy, for each condition with faults for which the other three were run."""
    there = set(result.sweep.conditions)
    for policy in result.policies:
        for condition in result.sweep.conditions:
            network = condition.but(disturbances=())
            faults = Condition(synchronous=True, disturbances=condition.disturbances)
            if condition.disturbances and network != SYNC and {network, faults} <= there:
                yield _interaction(result, policy, (SYNC, network, faults, condition))


def _interaction(result: SweepResult, policy: str, arms: tuple[Condition, ...]) -> Interaction:
    a, b, c, d = (result.table(policy, arm) for arm in arms)
    mean, joint = result.intervals.mean, d - (b + c - a)
    by_case = tuple(joint.mean(axis=0).tolist())
    return Interaction(policy, arms[-1], mean(b - a), mean(c - a), mean(d - a), mean(joint), by_case)
