"""What a sweep says, in sentences: computed, whichever way it comes out, and no more than its intervals carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from heron_env.lab.gap.claims import (
    Claim,
    Conditions,
    Cost,
    Level,
    NoGap,
    NoInterval,
    NotAsked,
    Order,
    Parity,
    Told,
    Untold,
    order_differs,
)
from heron_env.lab.gap.conditions import IDEAL, SYNC
from heron_env.lab.gap.decomposition import Decomposition
from heron_env.lab.gap.interaction import Interaction
from heron_env.lab.gap.results import Point, SweepResult


def finding(result: SweepResult) -> list[str]:
    """A few sentences: the level of each policy, and its gap or that there is none; parity, order, and causes."""
    told = [f"{level} {gap}" for level, gap in policy_claims(result)]
    return [*told, *map(str, other_claims(result)), *reasons(result), *answered(result)]


def policy_claims(result: SweepResult) -> Iterator[tuple[Level, Claim]]:
    """Of each policy its level, the first one's against all others, and what the conditions take from it."""
    for number, policy in enumerate(result.policies):
        sync = result.point(policy)
        others = [] if number else [name for name in result.sweep.shown if name != policy]
        against = tuple((other, result.difference(policy, other)) for other in others)
        cases, unit = len(result.sweep.cases), _unit(result)
        level = Level(
            policy, len(sync.by_run), cases, result.sweep.return_of, sync.mean, unit, sync.score, against
        )  # fmt: skip
        yield level, gap_claim(result, policy)


def gap_claim(result: SweepResult, policy: str) -> Claim:
    """What the conditions take from a policy, as far as the cases can tell."""
    points = _disturbed(result, policy)
    if not points:
        return NotAsked()
    what = f"preset {result.sweep.preset!r}" if result.sweep.preset else "sweep"
    costs = tuple(cost_of(result, point) for point in points)
    if not any(cost.gap.known for cost in costs):
        return NoInterval(policy, what, costs)
    if any(cost.told for cost in costs):
        largest = max(points, key=lambda point: point.gap.value)
        others = [point for point in points if point is not largest]
        ahead = ((p.condition.words, result.step(policy, p.condition, largest.condition)) for p in others)
        return Told(policy, what, costs, tuple(ahead))
    kind: type[Conditions] = NoGap if all(cost.negligible for cost in costs) else Untold
    return kind(policy, what, costs)


def other_claims(result: SweepResult) -> list[Claim]:
    """Whether nothing wrong changes nothing, and whether the order of the first policy and another one changes."""
    differing = tuple(p.policy for p in result.points if p.identical is False)
    asked = any(p.identical is not None for p in result.points)  # not of endpoints, which may answer otherwise
    told: list[Claim] = [Parity(differing, any(not p.deterministic for p in result.points))] if asked else []
    policy, *others = result.policies
    worst = costliest(result, policy)
    if worst is None:
        return told
    for other in others:
        before, after = (result.difference(policy, other, condition) for condition in (SYNC, worst.condition))
        if order_differs(before, after):
            told.append(Order(policy, other, worst.condition.words, before, after))
    return told


def answered(result: SweepResult) -> Iterator[str]:
    """What external agents answered, all conditions together, and whether it can be repeated."""
    for policy in result.sweep.shown:
        found = [(point, point.external) for point in result.of(policy) if point.external is not None]
        if not found:
            continue
        counts = sum((Counter(each.counts) for _, each in found), Counter[str]())
        marked = sum(bool(each.fallback_rate) for _, each in found)
        told = ", ".join(f"{origin} {count}" for origin, count in sorted(counts.items()))
        rows = f" Something stood in in {marked} of its rows (*): they are not its own alone." if marked else ""
        live = "" if all(point.deterministic for point, _ in found) else " It was asked live: no run can be repeated."
        yield f"{policy!r} was asked {counts.total():,} times: {told}.{rows}{live}"


def reasons(result: SweepResult) -> list[str]:
    """What a sweep says of causes: of each policy by the last method there is, and of faults with the network."""
    by_policy = {decomposition.policy: decomposition for decomposition in result.decompositions}  # Shapley comes last
    told = [_shares(decomposition, _unit(result)) for decomposition in by_policy.values()]
    return told + [_together(interaction, _unit(result)) for interaction in result.interactions]


def shows_gap(result: SweepResult, point: Point) -> bool:
    """Does the condition cost (or bring) anything to speak of, that these cases can tell from nothing?"""
    return cost_of(result, point).told


def cost_of(result: SweepResult, point: Point) -> Cost:
    """A point as a claim has it."""
    level = result.point(point.policy).mean.value
    return Cost(point.condition.words, point.gap, point.lost, level, _unit(result))


def costliest(result: SweepResult, policy: str) -> Point | None:
    """The condition with the largest mean gap, of those that show one or else of all; None where nothing was wrong.

    It is the one to look at, and need not be the costliest for certain.
    """
    points = _disturbed(result, policy)
    showing = [point for point in points if shows_gap(result, point)]
    return max(showing or points, key=lambda point: point.gap.value, default=None)


def _disturbed(result: SweepResult, policy: str) -> list[Point]:
    return [point for point in result.of(policy) if point.condition not in (SYNC, IDEAL)]


def _shares(decomposition: Decomposition, unit: str) -> str:
    *texts, total = decomposition.texts()
    told = [f"{part.words} {text}" for part, text in zip(decomposition.parts, texts, strict=True)]
    how = "Shapley values" if decomposition.method == "shapley" else "each cause alone, and the rest as interaction"
    whose = f"{decomposition.policy!r} under {decomposition.condition.words}"
    gap = decomposition.gap.mean
    open_ = ", not to be told from none by these cases" if gap.known and not gap.excludes_zero else ""
    return f"By cause ({how}), the gap of {whose}, {total}{unit}{open_}, adds up from {'; '.join(told)}."


def _together(found: Interaction, unit: str) -> str:
    network, faults, both = found.network, found.faults, found.both
    told = (
        f"The network changes what {found.policy!r} earns by {network}{unit}, the faults in synchronous steps by "
        f"{faults}, both by {both}: interaction {found.interaction}"
    )
    if not found.interaction.excludes_zero:
        return f"{told}, not to be told from none by these cases."
    return f"{told}: they make each other {'worse' if found.interaction.value < 0.0 else 'milder'}."


def _unit(result: SweepResult) -> str:
    return f" {result.sweep.unit}" if result.sweep.unit else ""
