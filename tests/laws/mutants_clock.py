"""Faults of the event clock that only a comparison with the plain one shows, planted as in `mutants`."""

from typing import Any

from laws.mutants import mutant_in

from heron_env import MessageBroker
from heron_env.envs.event import physics
from heron_env.envs.event.agents import AgentLoop
from heron_env.envs.event.measuring import Measuring
from heron_env.envs.exchange import Exchange
from heron_env.testing.clock import Disturbed

CLOCK_MUTANTS: dict[str, Any] = {}
mutant = mutant_in(CLOCK_MUTANTS)


@mutant(Exchange, "leaving")
def a_raised_flag_stays_up(original: Any) -> Any:
    """Who has told something once tells it at each boundary."""

    def leaving(self: Any, sender: int, truth: Any) -> Any:
        before = truth.copy()
        yield from original(self, sender, truth)
        truth[:] = before

    return leaving


@mutant(Exchange, "leaving")
def who_says_nothing_is_heard(original: Any) -> Any:
    """Flags are lowered, and nothing else."""

    def leaving(self: Any, sender: int, truth: Any) -> Any:
        yield from self.outgoing[sender]
        list(original(self, sender, truth))

    return leaving


@mutant(AgentLoop, "receive_reply")
def a_late_reply_is_used(original: Any) -> Any:
    """An observation counts whenever it comes, whatever newer one was decided on."""

    def decide(self: Any, reply: Any, now: int) -> None:
        newest, self.decided[reply.agent] = self.decided[reply.agent], -1
        original(self, reply, now)
        self.decided[reply.agent] = max(newest, self.decided[reply.agent])

    return decide


@mutant(MessageBroker, "_send_over")
def loss_moves_another_message(original: Any) -> Any:
    """Only what arrives holds up the queue: with other losses other messages come sooner."""

    def send_over(self: Any, *message: Any) -> Any:
        before = list(self._last_arrival)
        arrival = original(self, *message)
        if arrival is None:
            self._last_arrival[:] = before
        return arrival

    return send_over


@mutant(physics.PhysicsCycle, "telemeter")
def telemetry_after_disturbances(original: Any) -> Any:
    """Reports of an instant hold what only happens at that instant."""

    def telemeter(self: Any, step: int, substeps: int, version: int, truth: Any, now: int) -> None:
        c, simulation = self.context, self.context.simulation
        before = simulation.truth.copy()
        for ns, *_, event in sorted(c.scheduler.heap):
            if ns == now and isinstance(event, Disturbed) and event.disturbance.type == "gust":
                simulation.hooks.disturb(simulation.world, event.disturbance)
        after = c.measuring.measure_all()
        simulation.truth[:] = before
        original(self, step, substeps, version, after, now)

    return telemeter


@mutant(Measuring, "row")
def running_sums_are_reported(original: Any) -> Any:
    """A flow is reported as far as it has come."""
    return lambda self, row: self.simulation.truth[self.simulation.model.layout.rows[row].reported.where].copy()


@mutant(physics, "score_legs")
def the_last_leg_is_not_counted(original: Any) -> Any:
    """What an agent notes at the proxy is forgotten."""

    def legs(timings: Any, lived: Any, dt: int, wait: int, until: int) -> tuple[int, int]:
        sent, come = original(timings, lived, dt, wait, until)
        late = (wait + 3 * timings[0].msg + 4 * timing.msg for timing in timings)
        return sent, come - sum(physics.in_time(until, ns, dt, steps) for ns, steps in zip(late, lived, strict=True))

    return legs


@mutant(physics.PhysicsCycle, "messages")
def legs_count_up_to_the_last_event(original: Any) -> Any:
    """What has come since the last event that was handled is not counted."""

    def messages(self: Any) -> Any:
        self.context.reached = 0
        return original(self)

    return messages
