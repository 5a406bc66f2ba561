"""An episode is filmed while it runs, in either clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.envs.event.copies import WatchedBroker, copies, ends
from heron_env.pictures.footage import Footage, MessageFlight, ObservationTaken
from heron_env.scheduling.messages import ObservationPush, ObservationReply, Routed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heron_env.envs.event.clock import EventRun
    from heron_env.envs.synchronous import SynchronousEnv

LOOKS = 8
"""At the truth, in a control step of the event-driven clock."""
SECOND = 1e9
"""ns"""


def footage_of(env: Any, deciding: Iterable[int]) -> Footage:
    """Nothing filmed yet, of agents that decide, by rank."""
    views = env.simulation.plan.views
    return Footage(env, {env.hierarchy.ids[rank]: views[rank].columns for rank in sorted(deciding)})


def film_observation(footage: Footage, env: SynchronousEnv, rank: int, vector: Any) -> None:
    """Keep what an agent sees in the coming synchronous step."""
    simulation, agent = env.simulation, env.hierarchy.ids[rank]
    known = env._late or simulation.course
    ages = np.zeros(len(simulation.plan.views[rank].sources)) if known is None else known.ages(rank)
    taken = ObservationTaken(simulation.time, vector, simulation.time - ages)
    footage.observations.setdefault(agent, []).append(taken)


class EventCamera:
    """Films an event-driven run in which nothing has been sent yet."""

    def __init__(self, run: EventRun) -> None:
        self._run, self._broker, self._number = run, WatchedBroker(run), 0
        self.footage = footage_of(run.env, run.agents.deciding)

    @property
    def next_look(self) -> int:
        """ns."""
        return self._number * self._run.env.dt_ns // LOOKS

    def look(self) -> None:
        """Keep the truth of `next_look`, or of the end, when everything until then has happened."""
        run, time = self._run, self.next_look
        if run.closed:
            ended = run.t_end is None or run.context.simulation.over
            time = min(time, run.context.scheduler.now if ended else run.t_end or 0)
        self.footage.look(time / SECOND)
        self._number += 1

    def develop(self) -> Footage:
        """All so far."""
        run, footage = self._run, self.footage
        ids, asked = run.env.hierarchy.ids, dict[str, int]()
        footage.flights, footage.observations = [], {}
        for copy in copies(run, self._broker):
            message, arrives = copy.message, float("nan") if copy.arrives is None else copy.arrives / SECOND
            if isinstance(message, Routed):
                route = ends(message, run.env.simulation)
                footage.flights.append(MessageFlight(*route, message.sent / SECOND, arrives))
            agent = ids[message.agent]
            if copy.fate != "delivered" or not isinstance(message, ObservationReply | ObservationPush):
                continue
            if message.asked >= asked.get(agent, 0):  # an agent that knows something newer does not look at it
                asked[agent] = message.asked
                taken = ObservationTaken(arrives, message.vector, message.as_of / SECOND)
                footage.observations.setdefault(agent, []).append(taken)
        return footage
