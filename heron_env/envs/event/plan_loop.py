"""Plans in the event clock: what is in force at each agent, when its next action falls due, and what is under way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heron_env.core.plans import NONE, PlanInForce, Running, SentPlan
from heron_env.envs.event.context import EventContext
from heron_env.envs.plan_counts import PlanCounts, PlanTally
from heron_env.envs.planning import Values, arrive, running, tally_of
from heron_env.scheduling.events import ActionEffect, PlanStep
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import SECOND

ACTION_EFFECT = int(Phase.ACTION_EFFECT)


class PlanLoop:
    """Stands behind `AgentLoop.take_effect` for agents with plans (P2 to P5, P7).

    `clock`: by rank, whose ticks are its own.

    Attributes:
        force: by rank, decision and plan in force; `due`: when its next action is, ns.
        past: by rank, what was in force: (since, ns; decision; plan), as far as an observation may still tell it.
        under_way: by rank, (decision, when it should take effect, ns; plan).
        stands: by rank, the last tick for which a plan stands that was decided (P9).
        tallies: by rank, what became of the plans of those that decide; `counted`: up to when they know, ns.
    """

    def __init__(self, context: EventContext, clock: list[int]) -> None:
        self.context, self.clock = context, clock
        self.tallies, self.counted = dict[int, PlanTally](), dict[int, int]()
        self.force, self.due = dict[int, tuple[int, PlanInForce]](), dict[int, int]()
        self.past = dict[int, list[tuple[int, int, PlanInForce | None]]]()
        self.under_way = dict[int, list[tuple[int, int, SentPlan]]]()
        self.stands = dict[int, int]()

    def decide(self, rank: int, number: int, values: Values, due: int, *, commanded: bool) -> None:
        """A decision was made, or commanded; it should take effect when it is `due`, ns."""
        if type(values) is SentPlan:
            if not commanded:
                spec = self.context.simulation.model.specs[rank]
                self.tallies.setdefault(rank, tally_of(spec)).sent()
            self.under_way.setdefault(rank, []).append((number, due, values))
            self.stands[rank] = int(self.context.timings[self.clock[rank]].number(values.last))
        else:
            self.stands.pop(rank, None)

    def running(self, rank: int, observed: int) -> Running:
        """What the agent knows of its actuator now, by an observation of `observed`, ns (P7)."""
        c, past = self.context, self.past.get(rank, [])
        while len(past) > 1 and past[1][0] <= observed:
            del past[0]
        number, plan = past[0][1:] if past and past[0][0] <= observed else (NONE, None)
        coming = [one for one in self.under_way.get(rank, ()) if one[0] > number and one[1] >= observed]
        if rank in self.under_way:
            self.under_way[rank] = coming
        timing, simulation = c.timings[rank], c.simulation
        return running(
            simulation.model.specs[rank], (number, plan), [one[1:] for one in coming], observed, c.scheduler.now,
            timing.act + timing.thinking, c.dt_ns,
        )  # fmt: skip

    def take_up(self, event: ActionEffect, now: int) -> NDArray[np.float64] | None:
        """A decision takes effect: the action of now. None: it was a plan of times that are past (P5)."""
        c, rank, values = self.context, event.agent, event.values
        self.count(rank, now)
        if not isinstance(values, SentPlan):
            del self.force[rank]
            self.due.pop(rank, None)
            self.past[rank].append((now, event.number, None))
            return values
        grid = min(c.dt_ns, values.period)  # or two clocks would round the beginning of "restart" differently
        old = self.force.get(rank, (NONE, None))[1]
        plan = arrive(c.simulation, rank, values, old, now // grid * grid, self.tallies.get(rank))
        if plan is None:
            if self.due.get(rank) == now:  # the action that waited for it, after all
                self.context.scheduler.schedule(now, ACTION_EFFECT, rank, make(PlanStep, (rank, self.force[rank][0])))
            return None
        self.force[rank] = (event.number, plan)
        self.past.setdefault(rank, []).append((now, event.number, plan))
        return self.action(rank, now)

    def action(self, rank: int, now: int) -> NDArray[np.float64]:
        """What the plan in force says now; its next action is scheduled."""
        number, plan = self.force[rank]
        self.due.pop(rank, None)
        if (later := plan.changes_after(now)) is not None:
            self.due[rank] = later
            self.context.scheduler.schedule(later, ACTION_EFFECT, rank, make(PlanStep, (rank, number)))
        action = plan.at(now)
        return self.context.simulation.model.specs[rank].noop.copy() if action is None else action.copy()

    def executed(self, rank: int, now: int, action: NDArray[np.float64]) -> None:
        """An action of a plan acts; its tally counts it."""
        if rank in self.force:
            self.counted[rank] = now // self.context.dt_ns * self.context.dt_ns
            self.tallies[rank].executed(self.force[rank][1], now, action)

    def count(self, rank: int, now: int) -> None:
        """Tell its tally the control steps before `now`, ns, in which its action went on."""
        while rank in self.tallies and rank in self.force and self.counted[rank] + self.context.dt_ns < now:
            self.counted[rank] += self.context.dt_ns
            action = self.context.simulation.lane.actions()[rank]
            self.tallies[rank].executed(self.force[rank][1], self.counted[rank], action)

    def counts(self, now: int) -> dict[int, PlanCounts]:
        """By rank, what became of plans by `now`, ns, or until their agent ended."""
        simulation, rewards, counts = self.context.simulation, self.context.result.rewards, dict[int, PlanCounts]()
        for rank, tally in sorted(self.tallies.items()):
            lived = rewards[simulation.model.hierarchy.ids[rank]]
            end = now if simulation.alive[rank] or not lived else min(now, round(lived[-1][0] * SECOND))
            self.count(rank, end)
            counts[rank] = tally.counts(self.force.get(rank, (NONE, None))[1], end)
        return counts

    def is_due(self, rank: int, now: int) -> bool:
        """Does the next action of the plan in force fall due now, and does no decision take effect at this instant?"""
        return self.due.get(rank) == now and not any(
            entry[:3] == (now, ACTION_EFFECT, rank) and isinstance(entry[4], ActionEffect)
            for entry in self.context.scheduler.heap
        )

    def cause(self, rank: int, now: int) -> str:
        """Of the report of an effect: the draws of a plan's actions are apart (T8)."""
        place = self.force[rank][1].place(now)
        return f"effect {place}" if place else "effect"
