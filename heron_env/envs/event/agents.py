"""The agents' half of the event clock: tick, ask, decide, command, act, report (T7, T9 to T12)."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.core.plans import Plan, SentPlan
from heron_env.envs.decisions import Deciders
from heron_env.envs.event.context import EventContext
from heron_env.envs.event.plan_loop import PlanLoop
from heron_env.envs.planning import Values, read, shares
from heron_env.scheduling import events
from heron_env.scheduling.broker import Queue
from heron_env.scheduling.messages import (
    Command,
    Leg,
    ObservationPush,
    ObservationReply,
    ObservationRequest,
    PushedCommand,
    ReportReceived,
    StateReport,
)
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.ticks import step_of, turn_of
from heron_env.scheduling.timing import END_OF_TIME, Timing, to_seconds

NEVER = -1
AGENT_TICK, REQUEST, REPLY = int(Phase.AGENT_TICK), int(Phase.REQUEST), int(Phase.REPLY)
COMMAND, ACTION_EFFECT, REPORT = int(Phase.COMMAND), int(Phase.ACTION_EFFECT), int(Phase.REPORT)
UP, DOWN, ACKNOWLEDGEMENT = int(Queue.UP), int(Queue.DOWN), int(Queue.ACKNOWLEDGEMENT)
COMING = (events.ActionEffect, events.Answered)
"""What is under way between a decision's question and its effect."""


class AgentLoop:
    """Everything agents do. Decisions are numbered by the tick that caused them, their own or their commander's."""

    def __init__(self, context: EventContext, deciders: Deciders) -> None:
        self.context = context
        self.deciding = frozenset(deciders)
        self.policies: dict[int, Any] = dict(deciders)
        simulation = context.simulation
        ranks = range(len(simulation.model.specs))
        self.clock = [simulation.model.clocks[rank] for rank in ranks]
        self.decided = [NEVER] * len(self.clock)
        self.last_effect = [0] * len(self.clock)
        self.cancelled = 0
        self.failsafe = [timing.config.on_missing == "noop" for timing in context.timings]
        self.followers: dict[int, list[int]] = {rank: [] for rank in ranks}
        for rank, commander in enumerate(self.clock):
            if commander != rank and (rank in self.deciding or self.failsafe[rank]):
                self.followers[commander].append(rank)
        self.commanding = [agent.protocol is not None for agent in simulation.model.hierarchy.agents]
        rows = simulation.model.layout.rows
        self.reporting = [simulation.acts_itself(rank) and len(rows[rank].reported.columns) > 0 for rank in ranks]
        self.plans = PlanLoop(context, self.clock)
        self.keeps_vectors = context.trace is not None or "observations" in context.record
        self.bind()

    def bind(self) -> None:
        """Look up what the clock asks for at every event; again when the environment has been rebuilt."""
        c = self.context
        ids = c.simulation.model.hierarchy.ids
        self.parse = [
            partial(spec.parse, agent=agent) for spec, agent in zip(c.simulation.model.specs, ids, strict=True)
        ]
        self._columns = [view.span for view in c.simulation.model.plan.views]
        self._sources = [view.sources_span for view in c.simulation.model.plan.views]
        self._exact = [view.noise is None and not view.asked for view in c.simulation.model.plan.views]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the policies and what `bind` looks up."""
        looked_up = ("parse", "_columns", "_sources", "_exact")
        return {name: value for name, value in self.__dict__.items() if name not in looked_up} | {"policies": {}}

    def start(self) -> None:
        """Schedule the first tick of every agent with a clock of its own and something to decide."""
        c = self.context
        for rank, spec in enumerate(c.simulation.model.specs):
            if spec.size and self.clock[rank] == rank:
                first = c.links[rank].tick_time(0, 0)
                c.scheduler.schedule(first, AGENT_TICK, rank, events.AgentTick(rank, 0))

    def tick(self, event: events.AgentTick, now: int) -> None:
        """A new decision is due: ask the proxy; those commanded tick with their commander."""
        c, rank, number = self.context, event.agent, event.number
        if not c.simulation.alive[rank]:
            c.mark_cancelled()
            return
        timing = c.timings[self.clock[rank]]
        if self.clock[rank] == rank:
            self.tick_on(rank, number, now)
            if self.failsafe[rank]:
                self.replace_missing(rank, number - 1, now)
        if rank in self.deciding:
            turn = turn_of(number, timing.tick, timing.phase, c.dt_ns)
            request = make(ObservationRequest, (rank, number, c.broker.next_id(), now, turn))
            c.broker.send(request, REQUEST, UP, c.timings[rank].msg, "tick")

    def tick_on(self, rank: int, number: int, now: int) -> None:
        """The next tick of an agent with a clock of its own; those that follow it tick now."""
        c = self.context
        later = c.links[rank].tick_time(number + 1, now)
        c.scheduler.schedule(later, AGENT_TICK, rank, make(events.AgentTick, (rank, number + 1)))
        for follower in self.followers[rank]:
            self._tick_follower(follower, number, now, c.timings[rank])

    def _tick_follower(self, rank: int, number: int, now: int, commander: Timing) -> None:
        schedule = self.context.scheduler.schedule
        if rank in self.deciding:
            schedule(now, AGENT_TICK, rank, events.AgentTick(rank, number))
        if self.failsafe[rank]:
            due = max(now, commander.nominal(number + 1))
            schedule(due, AGENT_TICK, rank, events.Deadline(rank, number))

    def deadline(self, event: events.Deadline, now: int) -> None:
        """A commanded agent has waited for its command until its commander's next nominal tick (T11)."""
        if self.awaits_command(event.agent):
            self.replace_missing(event.agent, event.number, now)

    def awaits_command(self, rank: int) -> bool:
        """Will there be decisions for this agent: do all live through whom they come, and who gives the ticks?"""
        simulation = self.context.simulation
        giver = rank
        while giver not in self.deciding:
            giver = simulation.model.hierarchy.parent[giver]
            if not simulation.alive[giver]:
                return False
        return simulation.alive[self.clock[rank]]

    def replace_missing(self, rank: int, number: int, now: int) -> None:
        """The no-op counts as decision `number` if nothing else does."""
        c = self.context
        newest = self.plans.stands.get(rank, self.decided[rank])
        if number >= 0 and newest < number and c.simulation.alive[rank]:
            self.commit(rank, number, c.simulation.model.specs[rank].noop.copy(), now, None)

    def answer_request(self, request: ObservationRequest, now: int) -> None:
        """At the proxy: what the cache holds now; the reply leaves after obs_delay."""
        c, rank, number, turn = self.context, request.agent, request.number, request.turn
        timing, proxy, view = c.timings[rank], c.proxy, c.simulation.model.plan.views[rank]
        exact = self._exact[rank]
        values = proxy.cache[self._columns[rank]] if exact else view.receive(proxy.cache, c.moment(turn))
        delay = c.links[rank].delay(timing.obs, "tick", Leg.GATHERING, number, now)
        leaves = min(now + delay, END_OF_TIME - 1)  # what is drawn for it is drawn of a time that there is
        due = c.timings[self.clock[rank]].nominal(number)
        as_of = proxy.as_of[self._sources[rank]].copy()
        reply = make(
            ObservationReply,
            (rank, number, c.broker.next_id(), leaves, turn, due, now, values.astype(view.carried), as_of, view),
        )
        c.broker.send(reply, REPLY, DOWN, timing.msg, "tick")

    def receive_reply(self, reply: ObservationReply, now: int) -> None:
        """At the agent: its policy decides, unless a newer observation was used or a no-op took the place."""
        c, rank, number = self.context, reply.agent, reply.number
        if not c.simulation.alive[rank] or number <= self.decided[rank]:
            return
        vector = self.complete_observation(reply, now)
        shown = vector.copy() if self.keeps_vectors else vector  # a policy may work in place; records stay
        self.commit(rank, number, self.ask(rank, shown, number, reply.turn, now, reply.asked), now, "tick")

    def complete_observation(self, message: ObservationReply | ObservationPush, now: int) -> NDArray[np.float32]:
        """What an observation shows its agent, who will decide on it now; it is noted."""
        c, rank, vector, as_of = self.context, message.agent, message.vector, message.as_of
        if c.timings[rank].local:
            c.measuring.read_own(rank, vector, as_of)
        c.received[rank].append((as_of, now))
        plan = c.simulation.model.plan
        vector = plan.complete(rank, vector, c.shown_ages(rank, as_of, now) if plan.adds else None)
        if "observations" in c.record:
            c.result.observations[c.simulation.model.hierarchy.ids[rank]].append((to_seconds(message.asked), vector))
        c.proxy.time = to_seconds(now)  # for policies that ask the proxy more
        return vector

    def ask(
        self, rank: int, vector: NDArray[np.float32], number: int, turn: int, now: int, observed: int
    ) -> Values:  # fmt: skip
        """What the agent's policy answers to an observation of `observed`, ns; its draws depend on `number`.

        Raises InvalidAction, RunInterrupted.
        """
        c = self.context
        action = self.policies[rank](vector, step_of(turn), partial(c.draw_of, rank, number))
        c.ownership.require(c.mark, c.simulation.model.hierarchy.ids[rank], to_seconds(now))
        if type(action) is Plan or (action is None and rank in self.plans.under_way):  # else a forgotten return
            return read(c.simulation, rank, action, min(observed, now))  # a tick may come before its nominal time
        return self.parse[rank](action)

    def receive_command(self, command: Command, now: int) -> None:
        """At a commanded agent: the command is its decision, unless it came too late."""
        rank = command.agent
        if self.context.simulation.alive[rank] and command.number > self.decided[rank]:
            self.commit(rank, command.number, command.values.copy(), now, "command")

    def commit(
        self,
        rank: int,
        number: int,
        values: Values,
        now: int,
        cause: str | None,
        pushed: tuple[int, ...] = (),
    ) -> None:
        """A decision is made: commands leave at once; the own effect follows, never before an earlier one.

        It keeps `values`. cause: of its delay; None: a no-op, which takes no time. pushed: when its observation was
        pushed, ns, if it was.
        """
        c = self.context
        planned = type(values) is SentPlan
        if planned and not cast(SentPlan, values).rows:  # nothing new
            self.plans.stands.setdefault(rank, self.decided[rank])
            self.decided[rank] = number
            return
        self.decided[rank] = number
        if planned or rank in self.plans.stands:
            commanded = rank not in self.deciding
            self.plans.decide(rank, number, values, now + c.timings[rank].act, commanded=commanded)
        if self.commanding[rank]:
            kind, more = (PushedCommand, (cause, *pushed)) if pushed else (Command, ())
            why = cause if pushed and cause else "command"
            for child, part in shares(c.simulation, rank, values).items():
                if child not in self.deciding:
                    command = make(kind, (child, number, c.broker.next_id(), now, part, *more))
                    c.broker.send(command, COMMAND, Queue.COMMAND, c.timings[child].msg, why)
        delay = 0 if cause is None else c.links[rank].delay(c.timings[rank].act, cause, Leg.ACTION, number, now)
        due = self.last_effect[rank] = max(now + delay, self.last_effect[rank])
        effect = events.PushedEffect if pushed else events.ActionEffect
        c.scheduler.schedule(due, ACTION_EFFECT, rank, make(effect, (rank, number, values, *pushed)))

    def take_effect(self, event: events.ActionEffect, now: int) -> None:
        """A decision takes effect, if its agent lives and its times are not past."""
        values: Any = event.values
        c, rank = self.context, event.agent
        living = c.simulation.alive[rank]
        if living and (type(values) is SentPlan or rank in self.plans.force):
            values = self.plans.take_up(event, now)
        if not living or values is None:
            self.cancelled += 1
            c.mark_cancelled()
            return
        self._carry_out(rank, event.number, values, now)
        since = c.timings[self.clock[rank]].nominal(event.number)
        if isinstance(event, events.PushedEffect):
            since = event.fired
        c.latency[rank].append(to_seconds(now - since))

    def play_on(self, event: events.PlanStep, now: int) -> None:
        """The next action of a plan; not of one that is down, and its set-point holds."""
        c, rank = self.context, event.agent
        if not c.simulation.alive[rank] or not self.plans.is_due(rank, now):
            c.mark_cancelled()
            return
        values = self.plans.action(rank, now)
        if rank not in c.simulation.down:
            self._carry_out(rank, event.number, values, now)

    def _carry_out(self, rank: int, number: int, values: NDArray[np.float64], now: int) -> None:
        """An action acts; its report goes to the proxy."""
        c = self.context
        values = c.simulation.apply(rank, values)
        if rank in c.simulation.masks.ranks and c.simulation.lane.masked[rank]:
            c.mark_masked(rank)
        c.measuring.acted[rank] = now
        if rank in self.plans.tallies:
            self.plans.executed(rank, now, values)
        if "actions" in c.record:
            c.result.actions[c.simulation.model.hierarchy.ids[rank]].append((to_seconds(now), values))
        if self.reporting[rank]:
            version, row = c.next_version(), c.measuring.row(rank)
            cause = self.plans.cause(rank, now) if rank in self.plans.force else "effect"
            c.send_report(rank, row, number, now, now, version, REPORT, cause, effect=True)

    def receive_report(self, report: StateReport, now: int) -> None:
        """At the proxy: newer facts enter the cache, the report of an effect is acknowledged."""
        c, rank = self.context, report.agent
        c.proxy.receive(report.row, report.version, report.as_of, report.values)
        if report.effect:
            receipt = make(ReportReceived, (rank, report.number, c.broker.next_id(), now))
            c.broker.send(receipt, REPORT, ACKNOWLEDGEMENT, c.timings[rank].msg, "effect")

    def pending(self) -> list[int]:
        """The agents of the effects and thoughts under way, by rank, one for each."""
        return [event.agent for event in self.context.scheduler if isinstance(event, COMING)]
