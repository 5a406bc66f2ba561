"""What became of an agent's plans: counts that any clock keeps by four calls, and only for agents that plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from heron_env.core.plans import PlanInForce, SentPlan
from heron_env.envs.percentiles import Percentiles
from heron_env.scheduling.timing import END_OF_TIME, to_seconds


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """The plans of one agent in an episode. Those that were sent and are in no other count are lost or under way.

    Attributes:
        sent, in_force: plans, and those of them that took effect.
        overtaken: that arrived when a newer decision was in force, or the no-op in their place (T11).
        too_late: wholly in the past with end="noop", or arrived after their agent had ended.
        starved: control steps in which the end rule acted: the last action held on, or the no-op.
        skipped: actions of plans in force that were never executed, as their time had passed or a newer plan had
            replaced them. Those that were mixed into a newer plan are replaced, too.
        delay: s from the time of the first action to the arrival of a plan in force, in whole periods.
        seam: mean jump of the executed action where a newer plan begins to act, as a share of the range of a Box; nan
            for choices, without bounds, and where nothing changed.
    """

    sent: int
    in_force: int
    overtaken: int
    too_late: int
    starved: int
    skipped: int
    delay: Percentiles
    seam: float

    def __str__(self) -> str:
        """`30 sent, 28 in force, 4 starved steps, 112 skipped actions, delay 0.1 s, seam 3 %`."""
        counts = f"{self.sent} sent, {self.in_force} in force, {self.starved} starved steps, {self.skipped} skipped"
        return f"{counts} actions, delay {self.delay.mean:.3g} s, seam {100.0 * self.seam:.3g} %"


class PlanTally:
    """Counts the plans of one agent; a clock makes it when the agent sends its first plan, and reports what happens.

    Args:
        low, high: bounds of an action, of any shape; None: it is no Box.
    """

    def __init__(self, low: Any = None, high: Any = None) -> None:
        span = None if low is None else np.subtract(high, low, dtype=np.float64).reshape(-1)
        self._span = None if span is None or not np.isfinite(span).all() or not span.all() else span
        self._counts, self._unused = Counter[str](), 0
        self._delays, self._jumps, self._begins = list[float](), list[float](), list[int]()
        self._slot, self._action = END_OF_TIME, cast(Any, None)

    def sent(self) -> None:
        """A plan leaves."""
        self._counts["sent"] += 1

    def refused(self, *, overtaken: bool) -> None:
        """A plan has arrived and takes no effect, as something newer is in force, or it is too late."""
        self._counts["overtaken" if overtaken else "too_late"] += 1

    def arrived(self, plan: SentPlan, old: PlanInForce | None, force: PlanInForce, now: int) -> None:
        """`plan` has taken effect in the control step that began at `now`, ns: `force` takes the place of `old`."""
        self._counts["in_force"] += 1
        self._unused += len(plan.rows)
        self._delays.append(to_seconds(force.delay * force.period))
        ahead = len(force.rows) - len(plan.rows)  # actions that it is appended to
        begins = max(now, force.origin + ahead * force.period)
        self._begins = [*(time for time in self._begins if time < begins), begins]
        self._action = None if old is None else self._action

    def executed(self, force: PlanInForce, now: int, action: Any) -> None:
        """The plan in force says what is done in the control step that begins at `now`, ns, and that is `action`."""
        acting = force
        while acting.index(now) < 0 and acting.before is not None:
            acting = acting.before
        place = acting.place(now)
        if place < 0:
            return
        later = [time for time in self._begins if time > now]
        begins, self._begins = len(later) < len(self._begins), later
        self._counts["starved"] += acting.index(now) >= len(acting.rows)
        slot = acting.origin + place * acting.period
        if place < len(acting.rows) and (begins or slot != self._slot):
            self._unused, self._slot = self._unused - 1, slot
        if self._span is not None:
            values = np.array(action, np.float64).reshape(-1)
            if begins and self._action is not None:
                self._jumps.append(float(np.mean(np.abs(values - self._action) / self._span)))
            self._action = values

    def counts(self, force: PlanInForce | None, now: int) -> PlanCounts:
        """So far; `force`: the plan in force at `now`, ns, in which nothing has been executed yet."""
        skipped, until = self._unused, END_OF_TIME
        while force is not None:
            first = max(-((force.origin - now) // force.period), 0)
            stop = min(-((force.origin - until) // force.period), len(force.rows))
            skipped -= max(stop - first, 0)
            until, force = min(until, force.origin), force.before
        seam = float(np.mean(self._jumps)) if self._jumps else float("nan")
        plans: Any = {what: self._counts[what] for what in ("sent", "in_force", "overtaken", "too_late", "starved")}
        return PlanCounts(**plans, skipped=skipped, delay=Percentiles.of(self._delays), seam=seam)
