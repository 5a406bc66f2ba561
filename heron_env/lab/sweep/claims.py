"""Claims of what a sweep says of one policy: sentences, and the intervals that they stand on.

A word such as "costs", "brings more", "costliest" or "reversed" claims a sign or an order. It is made where the
interval of that very difference lies on one side of 0, each interval by itself; otherwise the sentence gives the figure
and says that these cases can't tell. `SweepClaim.carried` is that condition, asserted when a claim is made.

A share is said of nothing but a gain (over doing nothing) whose interval lies above 0: elsewhere `Intervals.share` is
nan, the sentence says that nothing is gained, and a change counts if its interval excludes 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from heron_env.lab.benchmark import NOTHING
from heron_env.lab.output import with_unit
from heron_env.lab.robust_stats import Estimate

NEGLIGIBLE: Final = 0.02
"""Share of what a policy gains over doing nothing below which a gap is none to speak of."""
ROUNDING: Final = 1e-9
"""Share of a return below which a gap may be one of rounding."""
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
        return f"{self.condition} ({self.change})"

    @property
    def change(self) -> str:
        """What stands in the brackets; `more than synchronous` where it is."""
        size, lost, side = (
            (self.gap, self.lost, "less") if self.gap.value >= 0.0 else (self.gap.negative, self.lost.negative, "more")
        )
        share = f", {lost.percent()} of its gain over doing nothing" if lost.known else ""
        return f"{size} {side} than synchronous{share}"


@dataclass(frozen=True)
class Level(SweepClaim):
    """What a policy earns on the synchronous clock, and its differences to others: figures alone.

    Attributes:
        return_of: whose return it is; `sync` is its mean.
        gain: over doing nothing; None: it is doing nothing.
    """

    policy: str
    seeds: int
    cases: int
    return_of: str
    sync: Estimate
    unit: str
    score: float
    gain: Estimate | None
    against: tuple[tuple[str, Estimate], ...]

    @property
    def foresight(self) -> str:
        """`74 % of what perfect foresight would gain over doing nothing`; "" where that, or a gain, is not known."""
        if self.gain is None or not self.gain.above_zero or not self.score > 0.0:
            return ""
        return f"{100 * self.score:.0f} % of what perfect foresight would gain over doing nothing"

    @property
    def no_gain(self) -> str:
        """`gains nothing over doing nothing: ...`, or that it is not clear; "" where a gain, or no interval, is."""
        if self.gain is None or not self.gain.known or self.gain.above_zero:
            return ""
        nothing = f"gains nothing over doing nothing: the mean difference is {self.gain}."
        if self.gain.high <= 0.0:
            return f"{self.policy!r} {nothing}"
        return f"It is not clear from these cases whether {self.policy!r} gains something or {nothing}"

    def __str__(self) -> str:
        """`On 20 held-out cases 'trained' (5 training seeds) earns a return of ...`."""
        cases = "one held-out case" if self.cases == 1 else f"{self.cases} held-out cases"
        seeds = f" ({self.seeds} training seeds)" if self.seeds > 1 else ""
        earned = f"{self.policy!r}{seeds} earns {self.return_of} a return of {with_unit(self.sync, self.unit)}"
        share = f", {self.foresight}" if self.foresight else ""
        told = self.no_gain and NOTHING
        others = ", ".join(f"{more} to {other!r}" for other, more in self.against if other != told)
        return " ".join([
            f"On {cases} {earned} on the synchronous clock{share}.",
            *([f"Its mean difference is {others}."] if others else []),
            *([self.no_gain] if self.no_gain else []),
        ])  # fmt: skip


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
        by = f" by {100 * NEGLIGIBLE:g} % of its gain or more, over the whole interval" if self.of_gain else ""
        return f"No gap: {none} the return of {self.policy!r}{by}. The largest mean change is under {self.farthest}."

    @property
    def of_gain(self) -> bool:
        """Is a gain shown, of which a share can be said?"""
        return all(cost.lost.known for cost in self.costs)


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
    def raised(self) -> Cost | None:
        """The condition with the largest measured improvement, where none lowers the return; else None."""
        significant = [cost for cost in self.costs if cost.significant]
        lowered = any(cost.gap.value > 0.0 for cost in significant)
        return None if lowered else min(significant, key=lambda cost: cost.gap.value)

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
        """The costliest condition, or that there is none for certain; where nothing is lowered, the best one."""
        if not (self.largest.significant and self.largest.gap.low > 0.0):
            return "" if self.raised is None else f". The largest measured improvement is that under {self.raised}"
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
