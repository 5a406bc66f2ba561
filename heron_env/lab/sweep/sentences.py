"""What a sweep says, in sentences: computed, whichever way it comes out, and no more than its intervals carry.

A word such as "costs", "brings more", "costliest" or "reversed" claims a sign or an order. It is said where the
interval of that very difference lies on one side of 0, each interval by itself; otherwise the sentence gives the figure
and says that these cases can't tell.

A share is said of nothing but a gain (over doing nothing) whose interval lies above 0: elsewhere `Intervals.share` is
nan, the sentence says that nothing is gained, and a change counts if its interval excludes 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, Literal

import numpy as np

from heron_env.lab.benchmark import NOTHING
from heron_env.lab.robust_stats import MOST_SEEDS, Estimate
from heron_env.lab.sweep.conditions import IDEAL, SYNC, Condition
from heron_env.lab.sweep.decomposition import Decomposition, Interaction
from heron_env.lab.sweep.results import Measurements, SweepPoint

NEGLIGIBLE: Final = 0.02
"""Share of what a policy gains over doing nothing below which a gap is none to speak of."""
ROUNDING: Final = 1e-9
"""Share of a return below which a gap may be one of rounding."""
NAMED: Final = 3
"""Conditions that are named one by one."""
UNCLEAR: Final = "not distinguishable from zero"


def finding(result: Measurements) -> list[str]:
    """Say in sentences what a sweep shows; claims only where intervals support them.

    Args:
        result: of a finished sweep.

    Returns:
        The level of each policy, with its gap or that there is none; then algorithms against each other, parity,
        order, and causes.

    Example: `print(*finding(read_sweep("runs/sweep")), sep="\\n")`.
    """
    texts = [f"{Level(result, policy)} {Changes(result, policy)}".strip() for policy in result.policies]
    others = [*map(str, comparisons(result)), *parity(result), *orders(result)]
    return [*texts, *others, *reasons(result), *answer_sentences(result)]


@dataclass(frozen=True)
class Level:
    """What a policy earns on the synchronous clock; of the first one its differences to all others: figures alone."""

    result: Measurements
    policy: str

    @cached_property
    def sync(self) -> Estimate:
        """The mean."""
        return self.result.point(self.policy).mean

    @cached_property
    def gain(self) -> Estimate | None:
        """Over doing nothing; None: it is doing nothing."""
        return None if self.policy == NOTHING else self.result.intervals.mean(self.result.gain(self.policy))

    @cached_property
    def against(self) -> list[tuple[str, Estimate]]:
        """How much more it earns than each other policy; of the first policy alone."""
        if self.policy != self.result.policies[0]:
            return []
        others = [name for name in self.result.sweep.shown if name != self.policy]
        return [(other, self.result.difference(self.policy, other)) for other in others]

    @property
    def cases(self) -> str:
        """`20 held-out cases`."""
        count = len(self.result.sweep.cases)
        return "one held-out case" if count == 1 else f"{count} held-out cases"

    @property
    def foresight(self) -> str:
        """`74 % of what perfect foresight would gain over doing nothing`; "" where that, or a gain, is not known."""
        score = self.result.point(self.policy).score
        if self.gain is None or not self.gain.above_zero or not score > 0.0:
            return ""
        return f"{100 * score:.0f} % of what perfect foresight would gain over doing nothing"

    @property
    def no_gain(self) -> str:
        """`gains nothing over doing nothing: ...`, or that it is not clear; "" where a gain, or no interval, is."""
        if self.gain is None or not self.gain.known or self.gain.above_zero:
            return ""
        nothing = f"gains nothing over doing nothing: the mean difference is {self.gain}."
        if self.gain.high <= 0.0:
            return f"{self.policy!r} {nothing}"
        return f"It is not clear from these cases whether {self.policy!r} gains something or {nothing}"

    @property
    def earned(self) -> str:
        """`On 20 held-out cases 'trained' (5 training seeds) earns ... on the synchronous clock`, without a full stop.

        What is summed, and its unit, are named once: of the first policy.
        """
        sweep, runs = self.result.sweep, len(self.result.sweep.members(self.policy))
        seeds = f" ({runs} training seeds)" if runs > 1 else ""
        what = f"return of {sweep.return_of}, {sweep.unit}".removesuffix(", ")
        first = f" ({what})" * (self.policy == self.result.policies[0])
        share = f", {self.foresight}" if self.foresight else ""
        return f"On {self.cases} {self.policy!r}{seeds} earns {self.sync} on the synchronous clock{first}{share}"

    def __str__(self) -> str:
        """Then its differences to the others, and whether it gains anything."""
        covered = self.no_gain and NOTHING
        others = "; to ".join(f"{other!r}: {more}" for other, more in self.against if other != covered)
        difference = f"Mean difference to {others}." if others else ""
        return " ".join(filter(None, (f"{self.earned}.", difference, self.no_gain)))


@dataclass(frozen=True)
class Cost:
    """What a condition takes from a policy; > 0: less than synchronous.

    Attributes:
        lost: the same as a share of the policy's gain over doing nothing; unknown where no gain is shown.
        level: mean return on the synchronous clock.
    """

    condition: str
    gap: Estimate
    lost: Estimate
    level: float

    @property
    def negligible(self) -> bool:
        """Does the whole interval lie below `NEGLIGIBLE`, or did nothing change in any of several cases?"""
        if self.gap.known and self.gap.low == self.gap.high == 0.0:
            return True
        return self.lost.within(NEGLIGIBLE) if self.lost.known else self.gap.within(ROUNDING * abs(self.level))

    @property
    def significant(self) -> bool:
        """Can these cases tell it from none, and is it not negligible?"""
        return self.gap.excludes_zero and not self.negligible

    def __str__(self) -> str:
        """`action delay 60 s (5.20 [4.10, 6.30] less than synchronous, 40.9 % [35.1, 46.8] of its gain)`."""
        size, lost, side = (
            (self.gap, self.lost, "less") if self.gap.value >= 0.0 else (self.gap.negative, self.lost.negative, "more")
        )
        share = f", {lost.percent()} of its gain over doing nothing" if lost.known else ""
        return f"{self.condition} ({size} {side} than synchronous{share})"


def cost_of(result: Measurements, point: SweepPoint) -> Cost:
    """A point as a claim has it."""
    return Cost(point.condition.words, point.gap, point.lost, result.point(point.policy).mean.value)


def shows_gap(result: Measurements, point: SweepPoint) -> bool:
    """Does the condition cost (or bring) anything to speak of, that these cases can tell from nothing?"""
    return cost_of(result, point).significant


def _disturbed(result: Measurements, policy: str) -> list[SweepPoint]:
    return [point for point in result.of(policy) if point.condition not in (SYNC, IDEAL)]


def costliest(result: Measurements, policy: str) -> SweepPoint | None:
    """The condition with the largest mean gap, of those that show one or else of all; None where nothing was wrong.

    It is the one to look at, and need not be the costliest for certain.
    """
    points = _disturbed(result, policy)
    showing = [point for point in points if shows_gap(result, point)]
    return max(showing or points, key=lambda point: point.gap.value, default=None)


@dataclass(frozen=True)
class Changes:
    """What the conditions of a sweep take from one policy, as far as the cases can tell."""

    result: Measurements
    policy: str

    @cached_property
    def costs(self) -> list[Cost]:
        """Of each condition in which something is wrong."""
        return [cost_of(self.result, point) for point in _disturbed(self.result, self.policy)]

    @cached_property
    def significant(self) -> list[Cost]:
        """Those that these cases can tell from none."""
        return [cost for cost in self.costs if cost.significant]

    @property
    def kind(self) -> Literal["not asked", "no interval", "signed", "no gap", "undecided"]:
        """What can be said of them; signed: some intervals exclude 0."""
        if not self.costs:
            return "not asked"
        if not any(cost.gap.known for cost in self.costs):
            return "no interval"
        if self.significant:
            return "signed"
        return "no gap" if all(cost.negligible for cost in self.costs) else "undecided"

    @property
    def largest(self) -> Cost:
        """The largest measured cost, whatever its interval."""
        return max(self.costs, key=lambda cost: cost.gap.value)

    @property
    def lowers(self) -> bool:
        """Can these cases tell that the largest cost is one?"""
        return self.largest.significant and self.largest.gap.low > 0.0

    @property
    def raised(self) -> Cost | None:
        """The condition with the largest measured improvement, where none lowers the return; else None."""
        lowered = any(cost.gap.value > 0.0 for cost in self.significant)
        return None if lowered else min(self.significant, key=lambda cost: cost.gap.value, default=None)

    @cached_property
    def rivals(self) -> list[str]:
        """Conditions that may cost as much as the largest, or more."""
        points = _disturbed(self.result, self.policy)
        largest = max(points, key=lambda point: point.gap.value)
        others = [point.condition for point in points if point is not largest]
        step = self.result.step
        return [other.words for other in others if not step(self.policy, other, largest.condition).low > 0.0]

    @property
    def of_gain(self) -> bool:
        """Is a gain shown, of which a share can be said?"""
        return all(cost.lost.known for cost in self.costs)

    @property
    def conditions(self) -> str:
        """`the 8 conditions of this sweep`."""
        preset, count = self.result.sweep.preset, len(self.costs)
        many = f"the {count} conditions" if count > 1 else "the one condition"
        return f"{many} of this {f'preset {preset!r}' if preset else 'sweep'}"

    def __str__(self) -> str:
        """A sentence or two."""
        kind, several = self.kind, len(self.costs) > 1
        if kind == "not asked":
            return "The sweep has no conditions."
        if kind == "signed":
            return self._counted() if several else self._single()
        what, farthest = f"the return of {self.policy!r}", max(self.costs, key=lambda cost: abs(cost.gap.value))
        if kind == "no interval":
            text = (
                f"One case has no interval, so there is no claim about {self.conditions}. The largest measured change"
            )
            return f"{text} for {self.policy!r} is under {farthest}."
        if kind == "no gap":
            none = f"none of {self.conditions} changes" if several else f"{self.conditions} does not change"
            by = f" by {100 * NEGLIGIBLE:g} % of its gain or more, over the whole interval" if self.of_gain else ""
            return f"No gap: {none} {what}{by}. The largest mean change is under {farthest}."
        which = f"any of {self.conditions}" if several else self.conditions
        text = f"It is not clear from these cases whether {which} changes {what}"
        return f"{text}. The largest measured change is under {farthest}."

    def _single(self) -> str:
        does = "lowers" if self.largest.gap.low > 0.0 else "raises"
        return f"T{self.conditions[1:]} {does} the return of {self.policy!r}: {self.largest}."

    def _counted(self) -> str:
        """How many lower and raise the return; then the largest cost, or that there is none for certain."""
        more, less = (sum(cost.gap.value * sign > 0.0 for cost in self.significant) for sign in (1.0, -1.0))
        rest, what = len(self.costs) - len(self.significant), f"the return of {self.policy!r}"
        counted = [f"{more} lower{'s' * (more == 1)} {what}"] if more else []
        counted += [f"{less} raise{'s' * (less == 1)} {'it' if more else what}"] if less else []
        counted += [f"{rest} {'has' if rest == 1 else 'have'} no clear effect, or a negligible one"] if rest else []
        text = f"Of {self.conditions}, {', '.join(counted)}"
        if not self.lowers:
            return (
                f"{text}."
                if self.raised is None
                else f"{text}. The largest measured improvement is that under {self.raised}."
            )
        if not self.rivals:
            return f"{text}. The largest cost is that of {self.largest}."
        rivals = _few(self.rivals)
        return f"{text}. The largest measured cost is that of {self.largest}. Not distinguishable from it: {rivals}."


def _few(names: Sequence[str]) -> str:
    """`a; b; c; and 4 more`: names have commas of their own."""
    return "; ".join([*names[:NAMED], *([f"and {len(names) - NAMED} more"] if len(names) > NAMED else [])])


def parity(result: Measurements) -> Iterator[str]:
    """Say whether runs under an ideal network equal the synchronous runs: compared bit for bit, not estimated."""
    if all(point.identical is None for point in result.points):  # endpoints may answer otherwise
        return
    if differing := [repr(point.policy) for point in result.points if point.identical is False]:
        yield (
            f"Under an ideal network, runs of {', '.join(differing)} differ from the synchronous runs: parity is "
            "broken, or the environment's own schedule has more than ticks. So no gap below is due to the conditions "
            "alone."
        )
        return
    live = " that asks no endpoint" * any(not point.deterministic for point in result.points)
    yield f"Under an ideal network, every run{live} equals the synchronous run bit for bit."


def orders(result: Measurements) -> Iterator[str]:
    """Where the first policy and another have another order under the costliest condition, or one that did not show."""
    policy, *others = result.policies
    if (worst := costliest(result, policy)) is None:
        return
    for other in others:
        before, after = (result.difference(policy, other, condition) for condition in (SYNC, worst.condition))
        if order_differs(before, after):
            new = "there is an order, which was not detected synchronously"
            yield (
                f"Under {worst.condition.words} {'the order is reversed' if before.excludes_zero else new}: the "
                f"difference of {policy!r} to {other!r} is {after}, synchronous {before}."
            )


def order_differs(before: Estimate, after: Estimate) -> bool:
    """Do the cases tell an order after, and not the same one before?"""
    return after.excludes_zero and not (before.excludes_zero and before.value * after.value > 0.0)


@dataclass(frozen=True)
class AlgorithmComparison:
    """One algorithm against another, each pooled over training seeds, in the same cases."""

    result: Measurements
    first: str
    second: str
    condition: Condition = SYNC

    @cached_property
    def difference(self) -> Estimate:
        """Mean return of the first minus that of the second. Raises ConfigError for an unknown policy or condition."""
        return self.result.difference(self.first, self.second, self.condition)

    @cached_property
    def improvement(self) -> Estimate:
        """Probability that a run of the first earns more than one of the second in the same case; ties count half.

        See Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice".
        """
        return self.result.improvement(self.first, self.second, self.condition)

    @cached_property
    def enough(self) -> int | None:
        """Training seeds of each from which on the interval of a difference of this size excludes 0.

        If seeds and cases spread as they do here; None: more than `MOST_SEEDS`, or there is no difference.
        """
        ours, theirs = (np.array(self.result.point(name, self.condition).by_run) for name in (self.first, self.second))
        return self.result.intervals.seeds_for(ours, theirs, abs(self.difference.value))

    def __str__(self) -> str:
        """Who earns more where the interval says it, else that it is open; then how many seeds are enough."""
        gap, cases = self.difference, len(self.result.sweep.cases)
        where = "on the synchronous clock" if self.condition == SYNC else f"under {self.condition.words}"
        seeds = " and ".join(str(len(self.result.sweep.members(name))) for name in (self.first, self.second))
        chance = f"the probability that a run of the first earns more in the same case is {self.improvement.percent()}"
        if not gap.excludes_zero:
            text = f"it is not clear whether {self.first!r} earns more than {self.second!r}: the difference is "
            text += str(gap)
        else:
            size, more = (gap, "more") if gap.value > 0.0 else (gap.negative, "less")
            text = f"{self.first!r} earns {size} {more} than {self.second!r}"
        return f"Over {seeds} training seeds and {cases} held-out cases, {where}, {text}; {chance}. {self._enough()}"

    def _enough(self) -> str:
        if self.difference.value == 0.0:
            return "The difference is zero: no number of seeds would show one."
        if self.enough is None:
            return f"Even {MOST_SEEDS} seeds of each would not show a difference of this size: use more cases."
        return (
            f"About {self.enough} training seeds of each would show a difference of this size, if seeds and cases vary "
            "as they do here."
        )


def comparisons(result: Measurements) -> list[AlgorithmComparison]:
    """Of each two algorithms: on the synchronous clock, and under the last condition where they ran under it."""
    pools = [name for name in result.policies if len(result.sweep.members(name)) > 1]
    conditions = dict.fromkeys((SYNC, result.sweep.conditions[-1]))
    return [
        AlgorithmComparison(result, *pair, condition) for pair in combinations(pools, 2) for condition in conditions
    ]


def reasons(result: Measurements) -> list[str]:
    """What a sweep says of causes: of each policy by the last method there is, and of faults with the network."""
    by_policy = {decomposition.policy: decomposition for decomposition in result.decompositions}  # Shapley comes last
    return [*map(_shares, by_policy.values()), *map(_together, result.interactions)]


def _shares(decomposition: Decomposition) -> str:
    *texts, total = decomposition.texts()
    lines = [f"{part.words} {text}" for part, text in zip(decomposition.parts, texts, strict=True)]
    how = "Shapley values" if decomposition.method == "shapley" else "each cause alone, and the rest as interaction"
    subject = f"{decomposition.policy!r} under {decomposition.condition.words}"
    gap = decomposition.gap.mean
    open_ = f", {UNCLEAR}" if gap.known and not gap.excludes_zero else ""
    risen = ", so the return is higher than synchronous" if gap.high < 0.0 else ""
    text = f"By cause ({how}): the gap of {subject} is {total}{open_}{risen}."
    return f"{text} It is the sum of: {'; '.join(lines)}."


def _together(effects: Interaction) -> str:
    network, faults, both = effects.network, effects.faults, effects.both
    text = (
        f"The network changes the return of {effects.policy!r} by {network}, the faults on the "
        f"synchronous clock by {faults}, both together by {both}: interaction {effects.interaction}"
    )
    if not effects.interaction.excludes_zero:
        return f"{text} ({UNCLEAR})."
    return f"{text}: they make each other {'worse' if effects.interaction.value < 0.0 else 'milder'}."


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
        repeatable = all(point.deterministic for point, _ in answers)
        live = "" if repeatable else " Its answers were live: runs can't be repeated."
        yield f"{policy!r} received {counts.total():,} requests: {text}.{rows}{live}"
