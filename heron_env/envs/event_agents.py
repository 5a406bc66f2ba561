"""The agents' half of the event clock: tick, ask, decide, command, act, report (T7, T9 to T12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import DecideAt
from heron_env.envs.decisions import clock_of, shares
from heron_env.envs.event_context import EventContext
from heron_env.scheduling import events
from heron_env.scheduling.broker import Lane
from heron_env.scheduling.messages import (
    Command,
    Leg,
    ObservationReply,
    ObservationRequest,
    ReportReceived,
    StateReport,
)
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import Timing, to_seconds

NEVER = -1


class AgentLoop:
    """Everything agents do. Decisions are numbered by the tick that caused them, their own or their commander's."""

    def __init__(self, context: EventContext, deciders: Mapping[int, DecideAt]) -> None:
        self.context = context
        self.deciding = frozenset(deciders)
        self.policies = dict(deciders)
        simulation = context.simulation
        self.clock = [clock_of(simulation, rank) for rank in range(len(simulation.specs))]
        self.decided = [NEVER] * len(self.clock)
        self.last_effect = [0] * len(self.clock)
        self.cancelled = 0
        self.failsafe = [timing.config.on_missing == "noop" for timing in context.timings]
        self.followers: dict[int, list[int]] = {rank: [] for rank in range(len(self.clock))}
        for rank, commander in enumerate(self.clock):
            if commander != rank and (rank in self.deciding or self.failsafe[rank]):
                self.followers[commander].append(rank)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the policies."""
        return {**self.__dict__, "policies": {}}

    def start(self) -> None:
        """Schedule the first tick of every agent with a clock of its own and something to decide."""
        c = self.context
        for rank, spec in enumerate(c.simulation.specs):
            if spec.size and self.clock[rank] == rank:
                c.schedule(c.links[rank].tick_time(0, 0), Phase.AGENT_TICK, rank, events.AgentTick(rank, 0))

    def tick(self, event: events.AgentTick, now: int) -> None:
        """A new decision is due: ask the proxy; those commanded tick with their commander."""
        c, rank, number = self.context, event.agent, event.number
        if not c.simulation.alive[rank]:
            return
        timing = c.timings[self.clock[rank]]
        if self.clock[rank] == rank:
            later = c.links[rank].tick_time(number + 1, now)
            c.schedule(later, Phase.AGENT_TICK, rank, events.AgentTick(rank, number + 1))
            for follower in self.followers[rank]:
                self._tick_follower(follower, number, now, timing)
            if self.failsafe[rank]:
                self._replace_missing(rank, number - 1, now)
        if rank in self.deciding:
            request = ObservationRequest(rank, number, c.next_id(), now, turn_of(timing, number, c.dt_ns))
            c.broker.send(request, Phase.REQUEST, Lane.UP, c.timings[rank].msg, "tick")

    def _tick_follower(self, rank: int, number: int, now: int, commander: Timing) -> None:
        c = self.context
        if rank in self.deciding:
            c.schedule(now, Phase.AGENT_TICK, rank, events.AgentTick(rank, number))
        if self.failsafe[rank]:
            due = max(now, commander.nominal(number + 1))
            c.schedule(due, Phase.AGENT_TICK, rank, events.Deadline(rank, number))

    def deadline(self, event: events.Deadline, now: int) -> None:
        """A commanded agent has waited for its command until its commander's next nominal tick (T11)."""
        if self._awaits(event.agent):
            self._replace_missing(event.agent, event.number, now)

    def _awaits(self, rank: int) -> bool:
        """Will there be decisions for this agent: do all live through whom they come, and who gives the ticks?"""
        simulation = self.context.simulation
        giver = rank
        while giver not in self.deciding:
            giver = simulation.hierarchy.parent[giver]
            if not simulation.alive[giver]:
                return False
        return simulation.alive[self.clock[rank]]

    def _replace_missing(self, rank: int, number: int, now: int) -> None:
        """The no-op counts as decision `number` if nothing else does."""
        c = self.context
        if number >= 0 and self.decided[rank] < number and c.simulation.alive[rank]:
            self._decide(rank, number, c.simulation.specs[rank].noop.copy(), now, 0)

    def gather(self, request: ObservationRequest, now: int) -> None:
        """At the proxy: what the cache holds now; the reply leaves after obs_delay."""
        c, rank = self.context, request.agent
        view = c.simulation.plan.views[rank]
        vector = view.read(c.proxy.cache, c.moment(request.turn)).astype(np.float32)
        timing = c.timings[rank]
        leaves = now + c.links[rank].delay(timing.obs, "tick", Leg.GATHERING, request.number)
        asked = c.timings[self.clock[rank]].nominal(request.number)
        reply = ObservationReply(
            rank,
            request.number,
            c.next_id(),
            leaves,
            request.turn,
            asked,
            now,
            vector,
            c.proxy.as_of[view.sources],
            view,
        )
        c.broker.send(reply, Phase.REPLY, Lane.DOWN, timing.msg, "tick")

    def decide(self, reply: ObservationReply, now: int) -> None:
        """At the agent: its policy decides, unless a newer observation was used or a no-op took the place."""
        c, rank = self.context, reply.agent
        if not c.simulation.alive[rank] or reply.number <= self.decided[rank]:
            return
        ages = c.ages(reply.as_of, now)
        c.staleness[rank].extend(ages.tolist())
        vector = reply.vector
        if c.simulation.plan.observe_age:
            vector = np.concatenate([vector, ages.astype(np.float32)])
        agent = c.env.hierarchy.ids[rank]
        if "observations" in c.record:
            c.result.observations[agent].append((to_seconds(reply.asked), vector))
        c.proxy.time = to_seconds(now)  # for policies that ask the proxy more
        action = self.policies[rank](vector.copy(), step_of(reply.turn))  # it may work in place; the record stays
        values = c.simulation.specs[rank].parse(action, agent)
        delay = c.links[rank].delay(c.timings[rank].act, "tick", Leg.ACTION, reply.number)
        self._decide(rank, reply.number, values, now, delay)

    def obey(self, command: Command, now: int) -> None:
        """At a commanded agent: the command is its decision, unless it came too late."""
        c, rank = self.context, command.agent
        if c.simulation.alive[rank] and command.number > self.decided[rank]:
            delay = c.links[rank].delay(c.timings[rank].act, "command", Leg.ACTION, command.number)
            self._decide(rank, command.number, command.values, now, delay)

    def _decide(self, rank: int, number: int, values: NDArray[np.float64], now: int, delay: int) -> None:
        """Commands leave at once; the agent's own effect follows, never before an earlier one."""
        c = self.context
        self.decided[rank] = number
        for child, part in shares(c.simulation, rank, values).items():
            if child not in self.deciding:
                command = Command(child, number, c.next_id(), now, part)
                c.broker.send(command, Phase.COMMAND, Lane.COMMAND, c.timings[child].msg, "command")
        due = self.last_effect[rank] = max(now + delay, self.last_effect[rank])
        c.schedule(due, Phase.ACTION_EFFECT, rank, events.ActionEffect(rank, number, values.copy()))

    def act(self, event: events.ActionEffect, now: int) -> None:
        """The effect falls on the truth; its report goes to the proxy."""
        c, rank = self.context, event.agent
        if not c.simulation.alive[rank]:
            self.cancelled += 1
            return
        c.simulation.apply(rank, event.values)
        if "actions" in c.record:
            c.result.actions[c.env.hierarchy.ids[rank]].append((to_seconds(now), event.values))
        c.latency[rank].append(to_seconds(now - c.timings[self.clock[rank]].nominal(event.number)))
        reported = c.simulation.layout.rows[rank].reported
        if c.simulation.acts_itself(rank) and len(reported.columns):
            values = c.simulation.truth[reported.columns]
            report = StateReport(
                rank, event.number, c.next_id(), now, rank, c.next_version(), now, values, True, reported
            )
            c.broker.send(report, Phase.REPORT, Lane.UP, c.timings[rank].msg, "effect")

    def receive_report(self, report: StateReport, now: int) -> None:
        """At the proxy: newer facts enter the cache, the report of an effect is acknowledged."""
        c = self.context
        c.proxy.receive(report.row, report.version, report.as_of, report.values)
        if report.effect:
            receipt = ReportReceived(report.agent, report.number, c.next_id(), now)
            c.broker.send(receipt, Phase.REPORT, Lane.ACKNOWLEDGEMENT, c.timings[report.agent].msg, "effect")

    def pending_cancelled(self) -> int:
        """Effects on the heap that belong to ended agents."""
        alive = self.context.simulation.alive
        return sum(isinstance(e, events.ActionEffect) and not alive[e.agent] for e in self.context.scheduler)


def turn_of(timing: Timing, number: int, dt_ns: int) -> int:
    """T9: the control step of the nominal tick; the n-th further request within one step adds n * 2**32."""
    turn = timing.nominal(number) // dt_ns
    first = max(0, -((timing.phase - turn * dt_ns) // timing.tick))
    return turn + ((number - first) << 32)


def step_of(turn: int) -> int:
    """The control step of a turn, whichever request of that step it was."""
    return turn & (2**32 - 1)
