"""Plans: answers of several actions, each with its time, and what an actuator makes of them (laws P1 to P9).

Nothing here knows a clock; times are ns. A `Plan` is what a policy answers, a `SentPlan` travels as one message, a
`PlanInForce` is at the actuator. `Running` tells the policy what its actuator is doing (P7).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any, Literal, NamedTuple

import numpy as np

from heron_env.errors import ConfigError
from heron_env.given import is_number, require_one_of

Merge = Literal["drop", "restart", "append", "blend", "ensemble"]
End = Literal["hold", "noop"]
MERGES, ENDS = ("drop", "restart", "append", "blend", "ensemble"), ("hold", "noop")
WEIGHTS = {"blend": 0.7, "ensemble": 0.01}
"""Of LeRobot's policy server, and of ACT."""
NONE = -1
"""The number of a decision that nobody made."""
SECOND, MOST = 10**9, 2.0**53
"""Nanoseconds: times of a plan are whole ones, and none is longer than 104 days."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Several actions in one answer, with the rules to carry them out: the actuator needs no configuration.

    Attributes:
        actions: `[k, ...]`, an array or a sequence of actions of the agent's space, of which there is at least one.
        period: s from one action to the next; None: the control step.
        start: s from the time of the observation to that of the first action.
        merge: how this plan joins the plan in force. "drop": it replaces it; actions whose time has passed are left
            out. "restart": the new one begins with its first action. "append": it follows the
            last action of the old one. "blend": for times that both have, (1 - weight) old + weight new. "ensemble":
            the mean of all plans for a time, with weights exp(-weight i), i = 0 the oldest (ACT).
        end: what holds after the last action: "hold", that action, or "noop".
        weight: of the new plan in "blend" (0.7), the decay in "ensemble" (0.01).

    Raises ConfigError naming the argument and its value.

    >>> Plan([[0.1], [0.2], [0.3]], merge="blend").end
    'hold'
    """

    actions: Any
    period: float | None = None
    start: float = 0.0
    merge: Merge = "drop"
    end: End = "hold"
    weight: float | None = None

    def __post_init__(self) -> None:
        require_one_of(f"Plan(merge={self.merge!r:.60})", self.merge, MERGES)
        require_one_of(f"Plan(end={self.end!r:.60})", self.end, ENDS)
        if isinstance(self.actions, Mapping | str) or not hasattr(self.actions, "__len__") or not len(self.actions):
            raise ConfigError(f"Plan(actions={self.actions!r:.60}): must be a sequence of one action or more")
        if self.period is not None and not (is_number(self.period) and 1.0 <= self.period * SECOND < MOST):
            raise ConfigError(f"Plan(period={self.period!r:.60}): must be a number of seconds above 0, or None")
        if not (is_number(self.start) and abs(self.start) * SECOND < MOST):
            raise ConfigError(f"Plan(start={self.start!r:.60}): must be a number of seconds")
        most = {"blend": 1.0}.get(self.merge, np.inf)
        if self.weight is not None and not (is_number(self.weight) and 0.0 <= self.weight <= most):
            raise ConfigError(f"Plan(weight={self.weight!r:.60}): must be a number >= 0, of 'blend' at most 1, or None")

    def sent(self, observed: int, dt_ns: int, rows: Sequence[Any]) -> SentPlan:
        """Return it as sent: `rows` of actions for the actuator, decided on an observation of `observed`, ns."""
        period = dt_ns if self.period is None else round(self.period * SECOND)
        weight = WEIGHTS.get(self.merge, 0.0) if self.weight is None else float(self.weight)
        return SentPlan(tuple(rows), observed + round(self.start * SECOND), period, self.merge, self.end, weight)


class SentPlan(NamedTuple):
    """The message: rows, the time of the first, ns, and how it is merged."""

    rows: tuple[Any, ...]
    origin: int
    period: int
    merge: Merge
    end: End
    weight: float

    @property
    def last(self) -> int:
        """The time of its last action, ns."""
        return self.origin + (len(self.rows) - 1) * self.period

    def copy(self) -> SentPlan:
        """Itself: nobody writes into it."""
        return self

    def tolist(self) -> dict[str, Any]:
        """As traces and records have it: what people read comes first; `origin` is in ns. `of` reads it."""
        about = {"actions": len(self.rows), "period_s": self.period / SECOND, "merge": self.merge, "end": self.end}
        rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in self.rows]
        return {**about, "weight": self.weight, "origin": self.origin, "rows": rows}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> SentPlan:
        """What `tolist` has written, with rows of float64."""
        rows = tuple(np.array(row, np.float64) for row in plain["rows"])
        period = round(plain["period_s"] * SECOND)
        return cls(rows, plain["origin"], period, plain["merge"], plain["end"], plain["weight"])


NOTHING_NEW = SentPlan((), 0, 1, "drop", "hold", 0.0)
"""A decision that leaves in force what is."""


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """An agent's knowledge of its actuator: from its newest observation, and its own plans since.

    Attributes:
        number: the decision in force at the time of that observation; -1: none, or a single action.
        index: the place in its plan of the action of that time.
        remaining: the actions from that time on, one a period, if the plans under way arrive as the schedule says on
            average and nothing else comes; the no-op where nothing is in force. At least `prefix` of them.
        age: how many of them are of times before now.
        prefix: how many are carried out before an answer of now can be, thinking included: the frozen prefix.
        left: how many of them, from now on, plans say; all others repeat the last action or are the no-op.
        delay: periods from the time of the first action of the plan in force to its arrival; None: no plan.
    """

    number: int = NONE
    index: int = 0
    remaining: tuple[Any, ...] = ()
    age: int = 0
    prefix: int = 0
    left: int = 0
    delay: int | None = None


NOTHING = Running()


@dataclass(frozen=True, slots=True, eq=False)
class PlanInForce:
    """Rows from `origin` on; before it, what was in force before. `counts`: how many plans each row is the mean of."""

    rows: tuple[Any, ...]
    origin: int
    period: int
    end: End
    delay: int
    counts: tuple[int, ...]
    before: PlanInForce | None = None

    def index(self, now: int) -> int:
        """The place of the action of `now`, ns; below 0: not begun."""
        return (now - self.origin) // self.period

    def place(self, now: int) -> int:
        """The same; the last one's for ever after, or, where the no-op takes over, the next."""
        return min(self.index(now), len(self.rows) - (self.end == "hold"))

    def at(self, now: int) -> Any:
        """The action of `now`; None: the no-op (P2, P5)."""
        i = self.index(now)
        if i < 0:
            return None if self.before is None else self.before.at(now)
        if i < len(self.rows):
            return self.rows[i]
        return self.rows[-1] if self.end == "hold" else None

    def planned(self, time: int) -> tuple[Any, int] | None:
        """The action that a plan has for this time, and how many plans it is the mean of; None: there is none."""
        i = self.index(time)
        if i < 0:
            return None if self.before is None else self.before.planned(time)
        return (self.rows[i], self.counts[i]) if i < len(self.rows) else None

    @property
    def last(self) -> int:
        """The time of the last action, ns."""
        return self.origin + (len(self.rows) - 1) * self.period

    def changes_after(self, now: int) -> int | None:
        """When another action falls due, ns; None: never."""
        i = self.index(now)
        if i < 0:
            earlier = None if self.before is None else self.before.changes_after(now)
            return self.origin if earlier is None else min(self.origin, earlier)
        return self.origin + (i + 1) * self.period if i + 1 < len(self.rows) + (self.end == "noop") else None

    def since(self, now: int) -> PlanInForce:
        """The same without what can't be asked for any more from `now` on."""
        return replace(self, before=None) if self.before is not None and self.index(now) >= 0 else self


def held(action: Any, now: int, period: int) -> PlanInForce:
    """A single action that was in force until now, ns: it holds, and no plan says anything about now."""
    return PlanInForce((action,), now - 2 * period, period, "hold", 0, (1,))


Mix = Callable[[Any, Any, float], Any]
"""(old action, new one, weight of the new one) -> one action (P8)."""


def merged(new: SentPlan, old: PlanInForce | None, now: int, mix: Mix) -> PlanInForce | None:
    """What is in force after `new` has arrived in the step that began at `now`, ns (P4); None: it is refused (P5)."""
    rows, origin, period = new.rows, new.origin, new.period
    first = (now - origin) // period
    late, ones = max(first, 0), (1,) * len(rows)
    if new.merge == "append" and old is not None and old.planned(now) is not None:
        i = max(old.index(now), 0)
        begun, more = old.origin + i * old.period, old.counts[i:] + ones
        return PlanInForce(old.rows[i:] + rows, begun, period, new.end, late, more, old.before)
    if new.merge in ("restart", "append"):
        return PlanInForce(rows, now, period, new.end, late, ones)
    if first >= len(rows) and new.end == "noop":
        return None
    before = old.since(now) if old is not None and first < 0 else None
    if old is None or new.merge == "drop":
        return PlanInForce(rows, origin, period, new.end, late, ones, before)
    both, counts = list(rows), list(ones)
    for i in range(late, len(rows)):
        if (other := old.planned(origin + i * period)) is not None:
            counts[i] = other[1] + 1
            both[i] = mix(other[0], rows[i], _weight(new, other[1]))
    return PlanInForce(tuple(both), origin, period, new.end, late, tuple(counts), before)


def _weight(plan: SentPlan, plans: int) -> float:
    """Of its action beside one that is the mean of so many `plans`."""
    if plan.merge == "blend":
        return plan.weight
    weights = [exp(-plan.weight * i) for i in range(plans + 1)]
    return weights[plans] / sum(weights)


def mixed(old: Any, new: Any, weight: float) -> Any:
    """Numbers by weight, choices never: the newer one from a weight of 0.5 on (P8). Of actions in any nest."""
    if isinstance(new, Mapping):
        return {name: mixed(old[name], part, weight) for name, part in new.items()}
    if isinstance(new, tuple | list):
        return type(new)(mixed(*pair, weight) for pair in zip(old, new, strict=True))
    if isinstance(new, np.ndarray | np.generic | float) and np.asarray(new).dtype.kind == "f":
        value = (1.0 - weight) * np.asarray(old) + weight * np.asarray(new)
        return value.astype(new.dtype) if isinstance(new, np.ndarray) else type(new)(value)
    return new if weight >= 0.5 else old


def course(
    force: PlanInForce | None, coming: Sequence[tuple[int, SentPlan]], now: int, step: int, least: int, mix: Mix
) -> tuple[list[Any], int]:
    """The actions from `now` on, one a `step` ns, and how many of them plans say, if plans arrive when `coming` says.

    There are at least `least`; None stands for the no-op.
    """
    rows, said, waiting = list[Any](), 0, list(coming)
    while True:
        while waiting and waiting[0][0] < now + step:
            force = merged(waiting.pop(0)[1], force, now, mix) or force
        covered = force is not None and force.planned(now) is not None
        if not covered and not waiting and len(rows) >= least:
            return rows, said
        rows.append(None if force is None else force.at(now))
        said = len(rows) if covered or waiting else said
        now += step
