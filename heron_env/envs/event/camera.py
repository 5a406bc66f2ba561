"""An event-driven run is filmed while it goes on: the truth at regular moments, its messages, and what agents saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heron_env.envs.event.context import ends
from heron_env.envs.event.message_log import copies
from heron_env.pictures.footage import Footage, MessageFlight, ObservationTaken
from heron_env.scheduling.messages import ObservationPush, ObservationReply, Routed
from heron_env.scheduling.timing import SECOND

if TYPE_CHECKING:
    from heron_env.envs.event.clock import EventRun

LOOKS = 8
"""How often the truth is kept in each control step."""


class EventCamera:
    """Films an event-driven run from its begin."""

    def __init__(self, run: EventRun) -> None:
        self._run, self._number = run, 0
        self.footage = Footage.of(run.env, run.agents.deciding)

    def film_until(self, last: int, handle: Callable[[int], None]) -> None:
        """Keep the truth of each look and of the end, while the run handles all until `last`, ns."""
        run, times = self._run, self.footage.times
        stop = last if run.t_end is None else min(last, run.t_end)
        while (look := self._number * run.env.dt_ns // LOOKS) <= stop and run.due is not None:
            handle(look)
            if run.closed:
                break
            self.footage.look(look / SECOND)
            self._number += 1
        handle(last)
        if run.closed and not (times and times[-1] >= run.reached / SECOND):
            self.footage.look(run.reached / SECOND)

    def develop(self) -> Footage:
        """All so far."""
        run, footage = self._run, self.footage
        ids, newest = run.env.hierarchy.ids, dict[str, int]()
        footage.flights, footage.observations = [], {}
        for copy in copies(run.context):
            message, arrives = copy.message, float("nan") if copy.arrives is None else copy.arrives / SECOND
            if isinstance(message, Routed):
                left = float("inf") if copy.left is None else copy.left / SECOND
                footage.flights.append(
                    MessageFlight(*ends(message, run.env.simulation), message.sent / SECOND, arrives, left)
                )
            agent = ids[message.agent]
            if copy.fate != "delivered" or not isinstance(message, ObservationReply | ObservationPush):
                continue
            if message.asked >= newest.get(agent, 0):  # an agent that knows something newer does not look at it
                newest[agent] = message.asked
                footage.take(agent, ObservationTaken(arrives, message.vector, message.as_of / SECOND))
        return footage
