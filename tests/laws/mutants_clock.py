"""Faults of the event clock that only a comparison with the plain one shows, planted as in `mutants`."""

from typing import Any

from laws.mutants import mutant_in

from heron_env.envs.event.agents import AgentLoop
from heron_env.scheduling.broker import MessageBroker

CLOCK_MUTANTS: dict[str, Any] = {}
mutant = mutant_in(CLOCK_MUTANTS)


@mutant(AgentLoop, "decide")
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
