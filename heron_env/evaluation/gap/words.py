"""What a sweep says, in sentences: computed, whichever way it comes out."""

from __future__ import annotations

import math

import numpy as np

from heron_env.evaluation.gap.conditions import IDEAL, SYNC, Condition
from heron_env.evaluation.gap.decomposition import Decomposition
from heron_env.evaluation.gap.interaction import Interaction
from heron_env.evaluation.gap.results import Point, SweepResult
from heron_env.evaluation.robust_stats import Estimate


def finding(result: SweepResult) -> list[str]:
    """A few sentences: the level of each policy, and its gap or that there is none; parity, order, and causes."""
    told = []
    for number, policy in enumerate(result.policies):
        beside = [] if number else _against(result, policy)
        told.append(" ".join([_level(result, policy), *beside, _gap(result, policy)]))
    return [*told, *_parity(result), *_order(result, *result.policies), *reasons(result)]


def reasons(result: SweepResult) -> list[str]:
    """What a sweep says of causes: of each policy by the best method there is, and of faults with the network."""
    by_policy = {decomposition.policy: decomposition for decomposition in result.decompositions}  # Shapley comes last
    told = [_shares(decomposition, _unit(result)) for decomposition in by_policy.values()]
    return told + [_together(interaction, _unit(result)) for interaction in result.interactions]


NEGLIGIBLE = 0.02
"""Share of what a policy gains over doing nothing (or else of its return) below which a gap is none to speak of."""


def shows_gap(point: Point) -> bool:
    """Does the condition cost (or bring) anything to speak of, that these cases can tell from nothing?"""
    synchronous = point.mean.value + point.gap.value
    share = point.gap.value / synchronous if math.isnan(point.lost) and synchronous else point.lost
    told = point.gap.excludes_zero if len(point.values) > 1 else point.gap.value != 0.0
    return told and not abs(share) < NEGLIGIBLE


def _level(result: SweepResult, policy: str) -> str:
    n, sync = len(result.sweep.cases), result.point(policy)
    cases = "one held-out case" if n == 1 else f"{n} held-out cases"
    what = "of what perfect foresight would gain over doing nothing"
    share = "" if math.isnan(sync.score) else f", {100 * sync.score:.0f} % {what}"
    return f"On {cases} {policy!r} earns {sync.iqm}{_unit(result)} on the synchronous clock{share}."


def _against(result: SweepResult, policy: str) -> list[str]:
    """The policy against all others, on the synchronous clock."""
    others = [name for name in result.sweep.policies if name != policy]
    told = [f"{_difference(result, policy, other, SYNC)} to {other!r}" for other in others]
    return [f"Its mean difference is {', '.join(told)}."] if told else []


def _order(result: SweepResult, policy: str, *others: str) -> list[str]:
    """Does the condition that costs the policy most reverse its order with another one, or show one? For certain."""
    worst = costliest(result, policy)
    if worst is None:
        return []
    told = []
    for other in others:
        before, after = (_difference(result, policy, other, condition) for condition in (SYNC, worst.condition))
        if not after.excludes_zero or (before.excludes_zero and before.value * after.value > 0.0):
            continue
        what = (
            "the order is reversed" if before.excludes_zero else "there is an order, which did not show synchronously"
        )
        told.append(
            f"Under {worst.condition.words} {what}: the difference of {policy!r} to {other!r} is {after}, "
            f"synchronous {before}."
        )
    return told


def _difference(result: SweepResult, policy: str, other: str, condition: Condition) -> Estimate:
    """Of the returns in the same case; more than 0: the policy earns more than the other."""
    ours, theirs = (np.array(result.point(name, condition).values) for name in (policy, other))
    return result.draws.estimate(ours - theirs)


def _parity(result: SweepResult) -> list[str]:
    differing = [p.policy for p in result.points if p.identical is False]
    if differing:
        return [
            f"Event-driven with nothing wrong, runs of {', '.join(map(repr, differing))} differ from their synchronous "
            "twins: parity is broken (or the environment's own schedule says more than ticks), so no gap below is the "
            "conditions' alone."
        ]
    if IDEAL not in result.sweep.conditions:
        return []
    return ["Event-driven with nothing wrong, every run equals its synchronous twin bit for bit."]


def _gap(result: SweepResult, policy: str) -> str:
    points = _disturbed(result, policy)
    shown = [point for point in points if shows_gap(point)]
    worst = costliest(result, policy)
    if worst is None:
        return "No condition was asked for."
    what = f"preset {result.sweep.preset!r}" if result.sweep.preset else "sweep"
    if not shown:
        return (
            f"No gap: under none of the {len(points)} conditions of this {what} does the return of {policy!r} change "
            f"by {100 * NEGLIGIBLE:g} % of its gain or more, by an amount that these cases can tell from none; the "
            f"largest mean change is {_cost(worst, result)}."
        )
    if worst.gap.value < 0.0:
        return f"None of the {len(points)} conditions of this {what} costs {policy!r} anything; some bring more."
    share = "" if math.isnan(worst.lost) else f", {100 * worst.lost:.0f} % of its gain over doing nothing"
    return f"The costliest condition for {policy!r} is {worst.condition.words}: {_cost(worst, result)}{share}."


def costliest(result: SweepResult, policy: str) -> Point | None:
    """Of the conditions that show a gap, or else of all; None where nothing was wrong in any."""
    points = _disturbed(result, policy)
    return max([p for p in points if shows_gap(p)] or points, key=lambda point: point.gap.value, default=None)


def _disturbed(result: SweepResult, policy: str) -> list[Point]:
    return [point for point in result.of(policy) if point.condition not in (SYNC, IDEAL)]


def _shares(decomposition: Decomposition, unit: str) -> str:
    *texts, total = decomposition.texts()
    told = [f"{part.words} {text}" for part, text in zip(decomposition.parts, texts, strict=True)]
    how = "Shapley values" if decomposition.method == "shapley" else "each cause alone, and the rest as interaction"
    whose = f"{decomposition.policy!r} under {decomposition.condition.words}"
    return f"By cause ({how}), the gap of {whose}, {total}{unit}, is made of {'; '.join(told)}."


def _together(found: Interaction, unit: str) -> str:
    network, faults, both = found.network, found.faults, found.both
    told = (
        f"The network changes the return of {found.policy!r} by {network}{unit}, the faults in synchronous steps by "
        f"{faults}, both by {both}: interaction {found.interaction}"
    )
    if not found.interaction.excludes_zero:
        return f"{told}, not to be told from none by these cases."
    return f"{told}: they make each other {'worse' if found.interaction.value < 0.0 else 'milder'}."


def _cost(point: Point, result: SweepResult) -> str:
    return f"{point.gap}{_unit(result)} less than synchronous"


def _unit(result: SweepResult) -> str:
    return f" {result.sweep.unit}" if result.sweep.unit else ""
