"""What both halves of the event clock share: the simulation, the proxy, the post office, and the episode's records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.envs.results import EpisodeResult
from heron_env.observability.noise import Moment
from heron_env.scheduling import events, messages
from heron_env.scheduling.broker import MessageBroker
from heron_env.scheduling.links import Link
from heron_env.scheduling.scheduler import EventScheduler
from heron_env.scheduling.timing import Timing
from heron_env.scheduling.trace import NOBODY, Trace
from heron_env.seeding import h

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

Handled = events.AgentTick | events.Deadline | events.ActionEffect | events.Simulation | events.CloseEpisode


class EventContext:
    """One event-driven episode's shared state. Truth lives in the simulation, knowledge in the proxy's cache."""

    def __init__(
        self,
        env: HeronEnv,
        timings: Sequence[Timing],
        *,
        wait_ns: int,
        trace: bool,
        record: frozenset[str],
        observing: Sequence[str],
    ) -> None:
        self.env, self.simulation, self.proxy = env, env.simulation, env.proxy
        self.timings, self.wait_ns, self.dt_ns = tuple(timings), wait_ns, env.dt_ns
        self.record = record
        self.scheduler = EventScheduler()
        ids = env.hierarchy.ids
        self.links = [Link(h(a), timing, env._seed, env._episode) for a, timing in zip(ids, timings, strict=True)]
        self.broker = MessageBroker(self.scheduler, self.links)
        self.version = 0
        self.staleness: dict[int, list[float]] = {rank: [] for rank in range(len(ids))}
        self.latency: dict[int, list[float]] = {rank: [] for rank in range(len(ids))}
        acting = [ids[rank] for rank, spec in enumerate(self.simulation.specs) if spec.size]
        self.result = EpisodeResult.blank(ids, acting, observing, Trace() if trace else None)
        self._caused_by: dict[Any, int] = {}
        self._here = NOBODY
        env.proxy.keep(self.simulation.truth.copy())

    def __getstate__(self) -> dict[str, Any]:
        """Without what the environment rebuilds: `EventRun.__setstate__` puts it back."""
        return {name: value for name, value in self.__dict__.items() if name not in ("simulation", "proxy")}

    def moment(self, turn: int) -> Moment:
        """What keys the noise of an observation that was asked for in `turn` (T9)."""
        return Moment(self.env._seed, self.env._episode, turn)

    def next_version(self) -> int:
        """The number of a new fact about the world: reports carry it, and the cache takes newer ones only (T12)."""
        self.version += 1
        return self.version

    def schedule(self, ns: int, phase: int, rank: int, event: Handled) -> None:
        """Put an event on the heap."""
        self.scheduler.schedule(ns, phase, rank, event)
        if self.result.trace is not None:
            self._caused_by[event] = self._here

    def next_id(self) -> int:
        """Id of a message that is about to be sent."""
        number = self.broker.next_id()
        if self.result.trace is not None:
            self._caused_by[number] = self._here
        return number

    def note(self, now: int, rank: int, event: Any) -> None:
        """Write the event that is handled now into the trace."""
        trace = self.result.trace
        assert trace is not None
        if isinstance(event, messages.Message):
            cause = self._caused_by.get(event.id, NOBODY)
            self._here = trace.add(
                now, type(event).__name__, rank, event.number, event.id, cause, now - event.sent, event
            )
            return
        number = event.step if isinstance(event, events.Simulation | events.CloseEpisode) else event.number
        cause = self._caused_by.pop(event, NOBODY)
        self._here = trace.add(now, type(event).__name__, rank, number, NOBODY, cause, 0, event)

    def ages(self, as_of: Any, now: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Ages of information in s; 0 for a boundary still to come, whose physics was complete early (wait < dt)."""
        ages: np.ndarray[Any, np.dtype[np.float64]] = np.maximum(now - np.asarray(as_of), 0) / 1e9
        return ages
