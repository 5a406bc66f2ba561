"""One agent's side of the network around a black box: what it has, what is in force, what it knows of that (P7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from heron_env.adapters.network.forms import Copy, ObservationForm
from heron_env.adapters.network.noops import copied
from heron_env.core.plans import NONE, PlanInForce, Running, SentPlan, course, held, mixed
from heron_env.envs.event.notes import Note, least_delays, outlasting
from heron_env.envs.plan_counts import PlanTally
from heron_env.scheduling.timing import Timing, to_seconds
from heron_env.scheduling.trace import NOBODY

MASK = "action_mask"
UNMASKED: tuple[Mapping[str, Any], Any] = {}, None
NOOP = NONE


class AgentSide:
    """One agent's side of the network: what has arrived there, and which command is in force.

    Attributes:
        born, ended: when it joined and ended, ns; messages sent before it was born belong to an earlier life.
        copies: the newest that arrived, its own and one for each part; before, the observation of reset.
        arrived, fresh: has a copy of its own arrived; has any since the last step?
        place: of the newest arrival in the trace.
        informed: when it last decided on an observation of that very instant, ns.
        force: number and action, or PlanInForce, of the command in force; NOOP: none.
        applied: number of the decision of the last step; `index`: the place of its action in a plan.
        thinks_until: when it can be asked again, ns.
        past: what was in force at boundaries of which it may still have the observation, by time, ns.
        under_way: plans, as far as it knows: (number, when they should arrive, plan).
        plans: what became of them; None before the first, and where nothing is measured.
        truth, mask: the environment's own, of the last boundary.
        failsafe: does the no-op take the place of a missing command (T11)?
        lags: can the environment be elsewhere by the time that a command is applied? thinks: do decisions take time?
        masks: what came with each copy under way or arrived, by its boundary, ns: (its entry in the info, the mask).
    """

    copies: list[Copy]
    truth: Any
    mask: Any
    masks: dict[int, tuple[Mapping[str, Any], Any]]

    def __init__(self, rank: int, name: str, timing: Timing, form: ObservationForm, dt_ns: int) -> None:
        self.rank, self.name, self.timing, self.form = rank, name, timing, form
        self.alive, self.ended, self.fresh, self.applied = False, NOBODY, False, NOOP
        self.ages, self.latency, self.masks = list[float](), list[float](), {}
        self.thinks_until, self.index = 0, 0
        self.past, self.under_way = dict[int, tuple[int, PlanInForce]](), tuple[tuple[int, int, SentPlan], ...]()
        self.lags, self.thinks = not timing.instant or timing.tick > dt_ns, timing.thinks
        self.plans: PlanTally | None = None
        self.failsafe = timing.config.on_missing == "noop"

    def standing(self) -> dict[str, Any]:
        """What `go_back` takes, of an episode that is not measured."""
        standing = vars(self).copy()
        standing["masks"] = self.masks.copy()
        if self.alive:
            standing["copies"] = self.copies.copy()
        return standing

    def go_back(self, standing: dict[str, Any]) -> None:
        """Restore what `standing` returned."""
        vars(self).update(standing)

    def keep_mask(self, now: int, mask: Any, own: Mapping[str, Any]) -> None:
        """The environment's mask of now, ns, and its entry in the info, which travel with the observation of now."""
        self.mask = mask
        entry = {MASK: copied(own[MASK])} if MASK in own else {}
        if entry or mask is not None:
            self.masks[now] = entry, mask

    def join(self, now: int) -> None:
        """As at reset: nothing has arrived, and no command is in force."""
        self.alive, self.born, self.ended, self.informed = True, now, NOBODY, NOBODY
        self.copies, self.arrived, self.place, self.applied = self.form.copies(now, self.truth), False, NOBODY, NOOP
        self.force: tuple[int, Any] = (NOOP, None)
        self.thinks_until, self.past, self.under_way = now, {}, ()

    @property
    def plan(self) -> PlanInForce | None:
        """The plan in force; None: none is."""
        return self.force[1] if type(self.force[1]) is PlanInForce else None

    def before(self, now: int, period: int) -> PlanInForce | None:
        """What a plan meets that arrives now, ns: a plan, or a single action that holds."""
        return self.plan if self.plan or self.force[0] == NOOP else held(self.force[1], now, period)

    def due(self, now: int) -> Any:
        """The action in force at `now`, ns; None where it is the no-op."""
        action = self.force[1]
        return action.at(now) if type(action) is PlanInForce else action

    def note_force(self, now: int) -> None:
        """The plan in force at this boundary travels with its observation (P7)."""
        known = self.copies[0][0]
        self.past = {time: force for time, force in self.past.items() if time >= known} | {now: self.force}

    def note_sent(self, number: int, due: int, plan: SentPlan) -> None:
        """A plan left that should arrive when it is `due`, ns; those due before its observation need no memory."""
        known = self.copies[0][0]
        self.under_way = *(one for one in self.under_way if one[1] >= known), (number, due, plan)

    def running(self, now: int, dt_ns: int, noop: Callable[[], Any]) -> Running:
        """What its actuator is doing, as far as it can know (P7)."""
        known = self.copies[0][0]
        number, force = self.past.get(known, (NOOP, None))
        self.under_way = tuple(one for one in self.under_way if one[0] > number and one[1] >= known)
        step = force.period if force else self.under_way[0][2].period if self.under_way else dt_ns
        answered = (now + self.way + self.timing.thinking) // dt_ns * dt_ns
        prefix = max((answered - known) // step, 0)
        coming = [(due, plan) for _, due, plan in self.under_way]
        rows, said = course(force, coming, known, step, prefix, mixed)
        age = (now - known) // step
        index, delay = (force.index(known), force.delay) if force else (0, None)
        actions = tuple(noop() if row is None else copied(row) for row in rows)
        return Running(number, index, actions, age, prefix, max(said - age, 0), delay)

    @property
    def way(self) -> int:
        """From a decision to its effect, on average, ns."""
        return max(self.timing.msg + self.timing.act, self.timing.min_delay)

    def offer(self, observation: Any) -> Any:
        """The mask that came with the agent's observation, a copy; None without one."""
        return copied(self.came_with()[1])

    def came_with(self) -> tuple[Mapping[str, Any], Any]:
        """Of the observation that the agent has: its mask's entry in the info, and the mask."""
        return self.masks.get(self.copies[0][0], UNMASKED)

    def is_missed(self, number: int, action: Any, ticks: int, now: int) -> bool:
        """With on_missing="noop": were there already so many ticks after that of a decision before `now`, ns (T11)?

        A plan stands for the decisions of all ticks up to its last action's (P9).
        """
        if not self.failsafe:
            return False
        last = self.timing.number(action.last) if isinstance(action, PlanInForce | SentPlan) else number
        return self.timing.nominal(max(number, last) + ticks) < now

    def is_thinking(self, now: int) -> bool:
        """Does it tick now, ns, and look at nothing, as it thinks (T23)?"""
        return now < self.thinks_until and self.alive and self.arrived and self.timing.ticks_at(now)

    def decides_at(self, now: int) -> bool:
        """Will an action of now, ns, be used?"""
        return self.alive and self.arrived and self.timing.ticks_at(now) and now >= self.thinks_until

    def notes(self, step: int, end: int) -> Iterator[Note]:
        """Delays below one `step`, ns, which are easily misread (W1), and above all steps until the `end`, ns."""
        timing = self.timing
        decided = timing.act + timing.thinking
        message, *ways = (max(delay, timing.min_delay) for delay in (timing.msg, timing.obs, decided))
        effects = ("observations", "are seen a step later"), ("commands", "count as if undelayed")
        for way, (what, effect) in zip(ways, effects, strict=True):
            if 0 < message + way < step:
                delay = f"{to_seconds(message + way)} s, less than a step of {to_seconds(step)} s"
                yield f"{what} take {delay}: they {effect}", timing.agent
        message, gathering, acting = least_delays(timing)
        trips = ("observation arrived", message + gathering), ("decision took effect", message + acting)
        yield from outlasting(timing.agent, trips, end)
