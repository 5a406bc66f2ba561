"""What a sweep says, in sentences: computed, whichever way it comes out, and no more than its intervals carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from heron_env.lab.benchmark import NOTHING
from heron_env.lab.output import with_unit
from heron_env.lab.sweep.claims import (
    Conditions,
    Cost,
    Level,
    NoGap,
    NoInterval,
    NotAsked,
    Order,
    Parity,
    SignedGaps,
    SweepClaim,
    Undecided,
    order_differs,
)
from heron_env.lab.sweep.comparison import comparisons
from heron_env.lab.sweep.conditions import IDEAL, SYNC
from heron_env.lab.sweep.decomposition import Decomposition, Interaction
from heron_env.lab.sweep.results import Measurements, SweepPoint

UNCLEAR: Final = "not distinguishable from zero"


def finding(result: Measurements) -> list[str]:
    """What a sweep says, in a few sentences that its intervals carry.

    Args:
        result: of a finished sweep.

    Returns:
        The level of each policy, with its gap or that there is none; then algorithms against each other, parity,
        order, and causes.

    Example: `print(*finding(read_sweep("runs/sweep")), sep="\\n")`.
    """
    texts = [f"{level} {gap}" for level, gap in policy_claims(result)]
    others = map(str, [*comparisons(result), *other_claims(result)])
    return [*texts, *others, *reasons(result), *answer_sentences(result)]


def policy_claims(result: Measurements) -> Iterator[tuple[Level, SweepClaim]]:
    """Of each policy its level, the first one's against all others, and what the conditions take from it."""
    for number, policy in enumerate(result.policies):
        sync = result.point(policy)
        others = [] if number else [name for name in result.sweep.shown if name != policy]
        against = tuple((other, result.difference(policy, other)) for other in others)
        gain = None if policy == NOTHING else result.intervals.mean(result.gain(policy))
        level = Level(
            policy, len(sync.by_run), len(result.sweep.cases), result.sweep.return_of, sync.mean, result.sweep.unit,
            sync.score, gain, against,
        )  # fmt: skip
        yield level, gap_claim(result, policy)


def gap_claim(result: Measurements, policy: str) -> SweepClaim:
    """What the conditions take from a policy, as far as the cases can tell."""
    points = _disturbed(result, policy)
    if not points:
        return NotAsked()
    what = f"preset {result.sweep.preset!r}" if result.sweep.preset else "sweep"
    costs = tuple(cost_of(result, point) for point in points)
    if not any(cost.gap.known for cost in costs):
        return NoInterval(policy, what, costs)
    if any(cost.significant for cost in costs):
        largest = max(points, key=lambda point: point.gap.value)
        others = [point for point in points if point is not largest]
        ahead = ((p.condition.words, result.step(policy, p.condition, largest.condition)) for p in others)
        return SignedGaps(policy, what, costs, tuple(ahead))
    kind: type[Conditions] = NoGap if all(cost.negligible for cost in costs) else Undecided
    return kind(policy, what, costs)


def other_claims(result: Measurements) -> list[SweepClaim]:
    """Whether nothing wrong changes nothing, and whether the order of the first policy and another one changes."""
    differing = tuple(p.policy for p in result.points if p.identical is False)
    asked = any(p.identical is not None for p in result.points)  # not of endpoints, which may answer otherwise
    claims: list[SweepClaim] = [Parity(differing, any(not p.deterministic for p in result.points))] if asked else []
    policy, *others = result.policies
    worst = costliest(result, policy)
    if worst is None:
        return claims
    for other in others:
        before, after = (result.difference(policy, other, condition) for condition in (SYNC, worst.condition))
        if order_differs(before, after):
            claims.append(Order(policy, other, worst.condition.words, before, after))
    return claims


def answer_sentences(result: Measurements) -> Iterator[str]:
    """What external agents answered, all conditions together, and whether it can be repeated."""
    for policy in result.sweep.shown:
        answers = [(point, point.external) for point in result.of(policy) if point.external is not None]
        if not answers:
            continue
        counts = sum((Counter(each.counts) for _, each in answers), Counter[str]())
        marked = sum(bool(each.fallback_rate) for _, each in answers)
        text = ", ".join(f"{origin} {count}" for origin, count in sorted(counts.items()))
        rows = f" In {marked} of its rows (*) a fallback made some of the decisions." if marked else ""
        live = (
            ""
            if all(point.deterministic for point, _ in answers)
            else " Its answers were live: runs can't be repeated."
        )
        yield f"{policy!r} received {counts.total():,} requests: {text}.{rows}{live}"


def reasons(result: Measurements) -> list[str]:
    """What a sweep says of causes: of each policy by the last method there is, and of faults with the network."""
    by_policy = {decomposition.policy: decomposition for decomposition in result.decompositions}  # Shapley comes last
    texts = [_shares(decomposition, result.sweep.unit) for decomposition in by_policy.values()]
    return texts + [_together(interaction, result.sweep.unit) for interaction in result.interactions]


def shows_gap(result: Measurements, point: SweepPoint) -> bool:
    """Does the condition cost (or bring) anything to speak of, that these cases can tell from nothing?"""
    return cost_of(result, point).significant


def cost_of(result: Measurements, point: SweepPoint) -> Cost:
    """A point as a claim has it."""
    level = result.point(point.policy).mean.value
    return Cost(point.condition.words, point.gap, point.lost, level)


def costliest(result: Measurements, policy: str) -> SweepPoint | None:
    """The condition with the largest mean gap, of those that show one or else of all; None where nothing was wrong.

    It is the one to look at, and need not be the costliest for certain.
    """
    points = _disturbed(result, policy)
    showing = [point for point in points if shows_gap(result, point)]
    return max(showing or points, key=lambda point: point.gap.value, default=None)


def _disturbed(result: Measurements, policy: str) -> list[SweepPoint]:
    return [point for point in result.of(policy) if point.condition not in (SYNC, IDEAL)]


def _shares(decomposition: Decomposition, unit: str) -> str:
    *texts, total = decomposition.texts()
    lines = [f"{part.words} {text}" for part, text in zip(decomposition.parts, texts, strict=True)]
    how = "Shapley values" if decomposition.method == "shapley" else "each cause alone, and the rest as interaction"
    subject = f"{decomposition.policy!r} under {decomposition.condition.words}"
    gap = decomposition.gap.mean
    open_ = f", {UNCLEAR}" if gap.known and not gap.excludes_zero else ""
    risen = ", so the return is higher than synchronous" if gap.high < 0.0 else ""
    text = f"By cause ({how}): the gap of {subject} is {with_unit(total, unit)}{open_}{risen}."
    return f"{text} It is the sum of: {'; '.join(lines)}."


def _together(effects: Interaction, unit: str) -> str:
    network, faults, both = effects.network, effects.faults, effects.both
    text = (
        f"The network changes the return of {effects.policy!r} by {with_unit(network, unit)}, the faults on the "
        f"synchronous clock by {faults}, both together by {both}: interaction {effects.interaction}"
    )
    if not effects.interaction.excludes_zero:
        return f"{text} ({UNCLEAR})."
    return f"{text}: they make each other {'worse' if effects.interaction.value < 0.0 else 'milder'}."
