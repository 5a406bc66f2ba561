"""The world's half of the event clock: physics at its own pace, and the seven legs of its news (T1, T3, T4).

Legs 4 to 7 bring each agent its score, which counts from the boundary on, and change nothing: they are messages where a
trace is kept, and counted (`score_legs`) where none is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.event.context import EventContext
from heron_env.envs.lane import StepOutcome
from heron_env.scheduling import events
from heron_env.scheduling.broker import Queue
from heron_env.scheduling.messages import (
    CycleCompletion,
    CycleToken,
    Leg,
    LocalStateReply,
    LocalStateRequest,
    SharedState,
    TickResult,
    TickResultReport,
)
from heron_env.scheduling.records import MessageCounts, make
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import Timing, require_before_the_end

PHYSICS, REWARD = int(Phase.PHYSICS), int(Phase.REWARD)


@dataclass(slots=True)
class Cycle:
    """News of one step boundary under way: the truth as it was, and the scores of those who were in it."""

    as_of: int
    version: int
    truth: NDArray[np.float64]
    outcome: StepOutcome
    members: list[int]
    unanswered: int


# order of a step: on the event clock, part by part
class PhysicsCycle:
    """Advances the truth and asks nobody; then reports, completion and scores go their ways."""

    def __init__(self, context: EventContext) -> None:
        self.context = context
        self.cycles: dict[int, Cycle] = {}
        self.members: list[int] = []  # of the last step
        self.lived = [0] * len(context.timings)  # by rank: the steps it was in
        self._every = context.simulation.model.substeps // context.reports

    def start(self) -> None:
        """Schedule the first substep."""
        self.schedule_substep(0, 0)

    def schedule_substep(self, step: int, substep: int) -> None:
        c = self.context
        ns = step * c.dt_ns + c.wait_ns * (substep + 1) // c.simulation.model.substeps
        c.scheduler.schedule(ns, PHYSICS, 0, events.Simulation(step, substep))

    def simulate(self, event: events.Simulation, now: int) -> None:
        """One substep; the last of a step closes it, scores it from the truth and sends leg 1."""
        c, done = self.context, event.substep + 1
        c.simulation.substep(event.substep)
        c.measuring.physics = event.step * c.dt_ns + c.dt_ns * done // c.simulation.model.substeps
        if done < c.simulation.model.substeps:
            self.schedule_substep(event.step, done)
            if not done % self._every:
                self.telemeter(event.step, done, c.next_version(), c.measuring.measure_all(), now)
            return
        require_before_the_end((event.step + 1) * c.dt_ns, f"the end of step {event.step}")
        members = self.members = [rank for rank, alive in enumerate(c.simulation.alive) if alive]
        for rank in members:
            self.lived[rank] += 1
        outcome = c.simulation.close_step()
        self.score(members, outcome)
        if c.simulation.exchange.edges:
            self.send_shares(members, event.step, now)
        if c.simulation.over:
            c.scheduler.schedule(now, int(Phase.CLOSE), 0, events.CloseEpisode(event.step))
        else:
            self.schedule_substep(event.step + 1, 0)
        c.simulation.look()
        truth, version = c.simulation.facts.copy(), c.next_version()
        c.measuring.ended = truth
        self.cycles[event.step] = Cycle((event.step + 1) * c.dt_ns, version, truth, outcome, members, len(members))
        if self.telemetry:
            self.telemeter(event.step, done, version, truth, now)
        token = CycleToken(0, event.step, c.broker.next_id(), now, Leg.TOKEN_TO_PROXY)
        c.broker.send_reliable(token, PHYSICS, c.timings[0].msg)

    @property
    def telemetry(self) -> bool:
        """Do rows report more often than the cycle comes round, at times of their own (T18)?"""
        return self.context.reports > 1

    def telemeter(self, step: int, substeps: int, version: int, truth: NDArray[np.float64], now: int) -> None:
        """Every row's report of this instant leaves, in place of leg 3. They are numbered by intervals."""
        reports = self.context.reports
        number = step * reports + substeps * reports // self.context.simulation.model.substeps
        self.report_all(number, version, now, truth, now, "telemetry")

    def score(self, members: list[int], outcome: StepOutcome) -> None:
        """T4: what counts is the truth at the boundary, whatever the network does with the news of it."""
        result, ids = self.context.result, self.context.simulation.model.hierarchy.ids
        time, rewards, terminated, truncated = outcome.time, outcome.rewards, outcome.terminated, outcome.truncated
        earned = result.rewards
        for rank in members:
            earned[ids[rank]].append((time, rewards[rank]))
        if True in terminated or True in truncated:
            for rank in members:
                result.terminated[ids[rank]] = terminated[rank]
                result.truncated[ids[rank]] = truncated[rank]

    def send_shares(self, members: list[int], step: int, now: int) -> None:
        """V8, V10: what agents tell their neighbours leaves at the boundary, over the sender's link."""
        c = self.context
        for rank in members:
            for edge in c.simulation.exchange.leaving(rank, c.simulation.truth):
                values = c.simulation.truth[edge.source].copy()
                share = SharedState(rank, step, c.broker.next_id(), now, edge.index, values, edge.route)
                c.broker.send(share, PHYSICS, Queue.SHARE, c.timings[rank].msg, edge.route.cause)

    def receive_share(self, share: SharedState, now: int) -> None:
        """A share has come to its receiver.

        An inbox is no fact about the world but its owner's memory, so this one message writes the truth (which the
        owner's rules read), and the cache without a report (T12).
        """
        c = self.context
        c.simulation.exchange.receive(share.edge, share.number, share.values, c.simulation.truth, c.proxy.cache)

    def pass_token(self, token: CycleToken, now: int) -> None:
        """Leg 1 has come to the proxy: leg 2. Leg 2 has come back: every report leaves, then the completion."""
        c = self.context
        if token.leg is Leg.TOKEN_TO_PROXY:
            back = CycleToken(0, token.number, c.broker.next_id(), now, Leg.TOKEN_BACK)
            c.broker.send_reliable(back, PHYSICS, c.timings[0].msg)
            return
        cycle = self.cycles[token.number]
        if not self.telemetry:
            self.report_all(token.number, cycle.version, cycle.as_of, cycle.truth, now, "cycle")
        if c.trace is None or not cycle.members:
            del self.cycles[token.number]
            return
        leaves = now + c.timings[0].msg
        for rank in cycle.members:
            completion = make(CycleCompletion, (rank, token.number, c.broker.next_id(), leaves))
            c.broker.send_reliable(completion, PHYSICS, c.timings[rank].msg)

    def report_all(
        self, number: int, version: int, as_of: int, truth: NDArray[np.float64], now: int, cause: str
    ) -> None:
        """Leg 3, the only one that the network may delay or lose; `truth`: float64 `[layout.width]`."""
        for row, each in enumerate(self.context.simulation.model.layout.rows):
            if each.reported.counts:
                self.context.send_report(row, truth[each.reported.where], number, now, as_of, version, PHYSICS, cause)

    def ask_score(self, completion: CycleCompletion, now: int) -> None:
        """Leg 4 has come to the agent: leg 5."""
        c, rank = self.context, completion.agent
        request = make(LocalStateRequest, (rank, completion.number, c.broker.next_id(), now))
        c.broker.send_reliable(request, REWARD, c.timings[rank].msg)

    def answer_score(self, request: LocalStateRequest, now: int) -> None:
        """Leg 5 has come to the proxy: leg 6 carries the agent's score."""
        c, rank, number = self.context, request.agent, request.number
        cycle = self.cycles[number]
        outcome = cycle.outcome
        score = (outcome.rewards[rank], outcome.terminated[rank], outcome.truncated[rank], outcome.infos[rank])
        reply = make(LocalStateReply, (rank, number, c.broker.next_id(), now, make(TickResult, score)))
        c.broker.send_reliable(reply, REWARD, c.timings[rank].msg)
        cycle.unanswered -= 1
        if not cycle.unanswered:
            del self.cycles[number]

    def learn_score(self, reply: LocalStateReply, now: int) -> None:
        """Leg 6 has come to the agent, which notes it at the proxy: leg 7."""
        c, rank = self.context, reply.agent
        note = make(TickResultReport, (rank, reply.number, c.broker.next_id(), now, reply.body))
        c.broker.send_reliable(note, REWARD, c.timings[rank].msg)

    def messages(self) -> MessageCounts:
        """What became of all messages of the run so far."""
        c, counts = self.context, self.context.broker.total()
        if c.trace is not None:
            return counts
        until = max(c.reached, c.scheduler.now)
        return with_more(counts, *score_legs(c.timings, self.lived, c.dt_ns, c.wait_ns, until))


def score_legs(
    timings: Sequence[Timing], lived: Sequence[int], dt_ns: int, wait_ns: int, until: int
) -> tuple[int, int]:
    """How many of legs 4 to 7 have left, and come, by `until`, ns: nothing delays or loses them.

    `timings`, `lived`: by rank, the agent's schedule and how many of the first steps it was in.
    """
    system, left, come = timings[0].msg, 0, 0
    for timing, steps in zip(timings, lived, strict=True):
        left += in_time(until, wait_ns + 2 * system, dt_ns, steps)
        for leg in range(1, 5):
            came = in_time(until, wait_ns + 3 * system + leg * timing.msg, dt_ns, steps)
            come += came
            left += came * (leg < 4)
    return left, come


def in_time(until: int, first: int, dt_ns: int, count: int) -> int:
    """How many of `count` times, from `first` on every `dt_ns`, are not after `until`, all ns."""
    return max(0, min(count, (until - first) // dt_ns + 1))


def with_more(counts: MessageCounts, sent: int, delivered: int) -> MessageCounts:
    """These counts, and messages that are not lost."""
    under_way = counts.in_flight + sent - delivered
    return replace(counts, sent=counts.sent + sent, delivered=counts.delivered + delivered, in_flight=under_way)
