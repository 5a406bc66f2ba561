"""What a sweep says, in sentences: computed, whichever way it comes out, and no more than its intervals carry.

Each claim is a sentence and the intervals that it stands on. A word such as "costs", "brings more", "costliest" or
"reversed" claims a sign or an order. It is made where the interval of that very difference lies on one side of 0, each
interval by itself; otherwise the sentence gives the figure and says that these cases can't tell. `Claim.carried` is
that condition, asserted when a claim is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from heron_env.lab.robust_stats import Estimate
from heron_env.lab.sweep.comparison import comparisons
from heron_env.lab.sweep.conditions import IDEAL, SYNC
from heron_env.lab.sweep.decomposition import Decomposition, Interaction
from heron_env.lab.sweep.results import Measurements, SweepPoint

NEGLIGIBLE: Final = 0.02
"""Share of what a policy gains over doing nothing (or else of its return) below which a gap is none to speak of."""
UNCLEAR: Final = "not distinguishable from zero"
NAMED: Final = 3
"""Conditions that are named one by one."""


@dataclass(frozen=True)
class SweepClaim:
    """One sentence."""

    def __post_init__(self) -> None:
        """A sentence that its intervals do not carry is our own bug."""
        assert self.carried, f"not carried: {self}"

    @property
    def carried(self) -> bool:
        """Do the intervals say what the sentence says? Figures with their intervals say no more than themselves."""
        return True


@dataclass(frozen=True)
class Cost:
    """What a condition takes from a policy; > 0: less than synchronous.

    Attributes:
        lost: the same as a share of the policy's gain over doing nothing.
        level: mean return on the synchronous clock, the measure of what is negligible where there is no gain.
    """

    condition: str
    gap: Estimate
    lost: Estimate
    level: float
    unit: str

    @property
    def negligible(self) -> bool:
        """Does the whole interval lie below `NEGLIGIBLE`, or did nothing change in any of several cases?"""
        if self.gap.known and self.gap.low == self.gap.high == 0.0:
            return True
        return self.lost.within(NEGLIGIBLE) if self.lost.known else self.gap.within(NEGLIGIBLE * abs(self.level))

    @property
    def significant(self) -> bool:
        """Can these cases tell it from none, and is it not negligible?"""
        return self.gap.excludes_zero and not self.negligible

    def __str__(self) -> str:
        """`action delay 60 s (5.20 [4.10, 6.30] less than synchronous, 40.9 % [35.1, 46.8] of its gain)`."""
        share = f", {self.lost.percent()} of its gain over doing nothing" if self.lost.known else ""
        return f"{self.condition} ({self.gap}{self.unit} less than synchronous{share})"


@dataclass(frozen=True)
class Level(SweepClaim):
    """What a policy earns on the synchronous clock, and its differences to others: figures alone.

    Attributes:
        return_of: whose return it is; `sync` is its mean.
    """

    policy: str
    seeds: int
    cases: int
    return_of: str
    sync: Estimate
    unit: str
    score: float
    against: tuple[tuple[str, Estimate], ...]

    def __str__(self) -> str:
        """`On 20 held-out cases 'trained' (5 training seeds) earns system_agent ...`."""
        cases = "one held-out case" if self.cases == 1 else f"{self.cases} held-out cases"
        seeds = f" ({self.seeds} training seeds)" if self.seeds > 1 else ""
        what = "of what perfect foresight would gain over doing nothing"
        share = "" if self.score != self.score else f", {100 * self.score:.0f} % {what}"
        earned = f"{self.policy!r}{seeds} earns {self.return_of} {self.sync}{self.unit}"
        text = f"On {cases} {earned} on the synchronous clock{share}."
        others = ", ".join(f"{more} to {other!r}" for other, more in self.against)
        return f"{text} Its mean difference is {others}." if others else text


@dataclass(frozen=True)
class NotAsked(SweepClaim):
    """The sweep has no condition in which anything is wrong."""

    def __str__(self) -> str:
        """A sentence."""
        return "The sweep has no conditions."


@dataclass(frozen=True)
class Conditions(SweepClaim):
    """What the conditions of a sweep take from one policy. `what` is "preset 'quick'" or "sweep"."""

    policy: str
    what: str
    costs: tuple[Cost, ...]

    @property
    def largest(self) -> Cost:
        """The largest measured cost, whatever its interval."""
        return max(self.costs, key=lambda cost: cost.gap.value)

    @property
    def farthest(self) -> Cost:
        """The largest measured change, up or down."""
        return max(self.costs, key=lambda cost: abs(cost.gap.value))

    @property
    def whole(self) -> str:
        """`the 8 conditions of this sweep`."""
        return (
            f"{f'the {len(self.costs)} conditions' if len(self.costs) > 1 else 'the one condition'} of this {self.what}"
        )


class NoInterval(Conditions):
    """One case: figures, and no claim."""

    @property
    def carried(self) -> bool:
        """Is there none?"""
        return not any(cost.gap.known for cost in self.costs)

    def __str__(self) -> str:
        """A sentence."""
        return (
            f"One case has no interval, so there is no claim about {self.whole}. The largest measured change for "
            f"{self.policy!r} is under {self.farthest}."
        )


class NoGap(Conditions):
    """All intervals lie within what is negligible."""

    @property
    def carried(self) -> bool:
        """Do they?"""
        return all(cost.negligible for cost in self.costs)

    def __str__(self) -> str:
        """A sentence."""
        none = f"none of {self.whole} changes" if len(self.costs) > 1 else f"{self.whole} does not change"
        return (
            f"No gap: {none} the return of {self.policy!r} by {100 * NEGLIGIBLE:g} % of its gain or more, over the "
            f"whole interval. The largest mean change is under {self.farthest}."
        )


class Undecided(Conditions):
    """Each interval reaches 0 or is negligible, and some reach beyond what is negligible."""

    @property
    def carried(self) -> bool:
        """Is none told?"""
        return not any(cost.significant for cost in self.costs)

    def __str__(self) -> str:
        """A sentence."""
        which = f"any of {self.whole}" if len(self.costs) > 1 else self.whole
        return (
            f"It is not clear from these cases whether {which} changes the return of {self.policy!r}. The largest "
            f"measured change is under {self.farthest}."
        )


@dataclass(frozen=True)
class SignedGaps(Conditions):
    """Some intervals exclude 0: how many on which side, and the costliest if there is one for certain.

    Attributes:
        ahead: how much more the largest takes than each other condition, by name of that condition.
    """

    ahead: tuple[tuple[str, Estimate], ...]

    @property
    def carried(self) -> bool:
        """Is one told at least?"""
        return any(cost.significant for cost in self.costs)

    @property
    def rivals(self) -> list[str]:
        """Conditions that may cost as much as the largest, or more."""
        return [name for name, more in self.ahead if not more.low > 0.0]

    def __str__(self) -> str:
        """How many, then which."""
        if len(self.costs) == 1:
            does = "lowers" if self.largest.gap.low > 0.0 else "raises"
            return f"T{self.whole[1:]} {does} the return of {self.policy!r}: {self.largest}."
        significant = [cost for cost in self.costs if cost.significant]
        more, less = (sum(cost.gap.value * sign > 0.0 for cost in significant) for sign in (1.0, -1.0))
        rest = len(self.costs) - len(significant)
        what = f"the return of {self.policy!r}"
        counted = ([f"{more} lower{'s' * (more == 1)} {what}"] if more else []) + (
            [f"{less} raise{'s' * (less == 1)} {'it' if more else what}"] if less else []
        )
        if rest:
            counted.append(f"{rest} {'has' if rest == 1 else 'have'} no clear effect, or a negligible one")
        return f"Of {self.whole}, {', '.join(counted)}{self._first()}."

    def _first(self) -> str:
        """The costliest condition, or that there is none for certain."""
        if not (self.largest.significant and self.largest.gap.low > 0.0):
            return ""
        if not self.rivals:
            return f". The costliest is {self.largest}"
        return (
            f". The largest measured cost is that of {self.largest}. Not distinguishable from it: {_few(self.rivals)}"
        )


@dataclass(frozen=True)
class Parity(SweepClaim):
    """Whether runs with nothing wrong equal their synchronous twins: compared bit for bit, not estimated."""

    differing: tuple[str, ...]
    live: bool = False
    """Are there others, which ask endpoints and are not compared?"""

    def __str__(self) -> str:
        """A sentence."""
        if self.differing:
            return (
                f"Event-driven with nothing wrong, runs of {', '.join(map(repr, self.differing))} differ from their "
                "synchronous twins: parity is broken (or the environment's own schedule says more than ticks), so no "
                "gap below is the conditions' alone."
            )
        which = "every run that asks no endpoint" if self.live else "every run"
        return f"Event-driven with nothing wrong, {which} equals its synchronous twin bit for bit."


@dataclass(frozen=True)
class Order(SweepClaim):
    """Under a condition two policies have another order than on the synchronous clock, or one where none showed."""

    policy: str
    other: str
    condition: str
    before: Estimate
    after: Estimate

    @property
    def carried(self) -> bool:
        """Is there an order under the condition, and not the same one before?"""
        return order_differs(self.before, self.after)

    def __str__(self) -> str:
        """A sentence."""
        new = "there is an order, which was not detected synchronously"
        what = "the order is reversed" if self.before.excludes_zero else new
        return (
            f"Under {self.condition} {what}: the difference of {self.policy!r} to {self.other!r} is {self.after}, "
            f"synchronous {self.before}."
        )


def order_differs(before: Estimate, after: Estimate) -> bool:
    """Do the cases tell an order after, and not the same one before?"""
    return after.excludes_zero and not (before.excludes_zero and before.value * after.value > 0.0)


def _few(names: Sequence[str]) -> str:
    """`a; b; c; and 4 more`: names have commas of their own."""
    return "; ".join([*names[:NAMED], *([f"and {len(names) - NAMED} more"] if len(names) > NAMED else [])])


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
        cases, unit = len(result.sweep.cases), _unit(result)
        level = Level(
            policy, len(sync.by_run), cases, result.sweep.return_of, sync.mean, unit, sync.score, against
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
    texts = [_shares(decomposition, _unit(result)) for decomposition in by_policy.values()]
    return texts + [_together(interaction, _unit(result)) for interaction in result.interactions]


def shows_gap(result: Measurements, point: SweepPoint) -> bool:
    """Does the condition cost (or bring) anything to speak of, that these cases can tell from nothing?"""
    return cost_of(result, point).significant


def cost_of(result: Measurements, point: SweepPoint) -> Cost:
    """A point as a claim has it."""
    level = result.point(point.policy).mean.value
    return Cost(point.condition.words, point.gap, point.lost, level, _unit(result))


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
    open_ = f" ({UNCLEAR})" if gap.known and not gap.excludes_zero else ""
    return f"By cause ({how}): the gap of {subject} is {total}{unit}{open_}. It is the sum of: {'; '.join(lines)}."


def _together(effects: Interaction, unit: str) -> str:
    network, faults, both = effects.network, effects.faults, effects.both
    text = (
        f"The network changes the return of {effects.policy!r} by {network}{unit}, the faults on the synchronous clock "
        f"by {faults}, both together by {both}: interaction {effects.interaction}"
    )
    if not effects.interaction.excludes_zero:
        return f"{text} ({UNCLEAR})."
    return f"{text}: they make each other {'worse' if effects.interaction.value < 0.0 else 'milder'}."


def _unit(result: Measurements) -> str:
    return f" {result.sweep.unit}" if result.sweep.unit else ""
