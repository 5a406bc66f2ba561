"""What both halves of the event clock share: simulation, proxy, post office, records, and the hook `link` (T20)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.episodes import EpisodeResult
from heron_env.envs.event.measuring import Measuring
from heron_env.envs.event.message_log import WatchedBroker
from heron_env.envs.hooks import PROXY, has_link_rule, links_compiled
from heron_env.envs.lane_hooks import ask_link
from heron_env.errors import UnknownAgent, did_you_mean
from heron_env.observability.noise import Moment
from heron_env.scheduling import messages as m
from heron_env.scheduling.arrivals import Delivery
from heron_env.scheduling.broker import MessageBroker, Queue
from heron_env.scheduling.links import Link, RuledLink, links_of
from heron_env.scheduling.messages import LetterUnderWay, StateReport
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import EventScheduler
from heron_env.scheduling.timing import Timing
from heron_env.scheduling.trace import Trace

if TYPE_CHECKING:
    from heron_env.agents.proxy import ProxyAgent
    from heron_env.envs.ownership import Ownership
    from heron_env.envs.simulation import Simulation

TO_PROXY = (m.ObservationRequest, m.StateReport, m.LocalStateRequest, m.TickResultReport)
FROM_PROXY = (
    m.ObservationReply, m.ObservationPush, m.ReportReceived, m.CycleCompletion, m.LocalStateReply, m.CustomLetter,
)  # fmt: skip
TO_CHILD = (m.Command, m.PushedCommand)
UP = int(Queue.UP)
BLACK_BOX: Final = -2
Ints = NDArray[np.int64]
Received = tuple[Ints, int]
"""An observation that came: (as-of times of its sources, when it came), ns."""


class EventContext:
    """One event-driven episode's shared state. Truth lives in the simulation, knowledge in the proxy's cache."""

    def __init__(
        self,
        simulation: Simulation,
        proxy: ProxyAgent,
        ownership: Ownership,
        timings: Sequence[Timing],
        *,
        draw_of: Callable[[int, int], int],
        reports: int,
        wait_ns: int,
        trace: bool,
        record: frozenset[str],
        observing: Sequence[str],
        delivery: Delivery | None = None,
    ) -> None:
        self.bind(simulation, proxy, ownership, draw_of)
        self.mark, self.reports = ownership.mark, reports
        self.timings, self.wait_ns, self.dt_ns = tuple(timings), wait_ns, simulation.model.dt_ns
        simulation.look()
        self.record, self.measuring = record, Measuring(simulation, self.timings)
        self.scheduler = EventScheduler()
        self._clocks = _clocks(self.timings) if simulation.model.plan.by_wrong_clocks else None
        ids = simulation.model.hierarchy.ids
        rhythms = [timings[simulation.model.clocks[rank]] for rank in range(len(ids))]
        ruled = has_link_rule(simulation.hooks)
        names = simulation.model.hierarchy.hashes.tolist()
        self.links = links_of(names, self.timings, rhythms, proxy.seed, proxy.episode, ruled=ruled)
        self.trace = Trace() if trace or "frames" in record else None
        self.delivery, self._stamps = delivery, (set[int](), set[int]())  # of messages, of answers
        self.places = places_of(ids, delivery)
        self.broker = self._broker(LinkRule(self) if ruled else None)
        self.reached = self.version = 0  # until when everything has happened, ns: this moment may have more to come
        self.received: list[list[Received]] = [[] for _ in ids]
        self.latency: list[list[float]] = [[] for _ in ids]
        acting = [ids[rank] for rank, spec in enumerate(self.simulation.model.specs) if spec.size]
        masked = [ids[rank] for rank in sorted(self.simulation.masks.ranks)]
        shown, moment = self.trace if trace else None, (proxy.seed, proxy.episode)
        self.result = EpisodeResult.blank(ids, acting, observing, masked, shown, moment=moment)
        if self.trace is not None:
            self.scheduler.causes = self.trace.causes
        proxy.keep(simulation.facts.copy())

    def _broker(self, ask: LinkRule | None) -> MessageBroker:
        kind = MessageBroker if self.trace is None else WatchedBroker
        broker = kind(self.scheduler, self.links, ask, self.delivery, self.crosses if self.places else None)
        broker.on_loss = self._note_loss
        return broker

    def bind(
        self, simulation: Simulation, proxy: ProxyAgent, ownership: Ownership, draw_of: Callable[[int, int], int]
    ) -> None:
        """Look up what belongs to the environment; again when it has been rebuilt. `draw_of`: (rank, number) -> key."""
        self.simulation, self.proxy, self.ownership, self.draw_of = simulation, proxy, ownership, draw_of

    def __getstate__(self) -> dict[str, Any]:
        """Nothing that `bind` looks up."""
        bound = ("simulation", "proxy", "ownership", "draw_of")
        return {name: value for name, value in self.__dict__.items() if name not in bound}

    def _note_loss(self, message: Any) -> None:
        if isinstance(message, LetterUnderWay):
            self.simulation.post.lose()

    def crosses(self, message: Any) -> bool:
        """Does a message leave for another place?"""
        sender, receiver = ends(message, self.simulation)
        return self.places.get(sender) != self.places.get(receiver)

    def stamp(self, ns: int, *, message: bool) -> int:
        """A time for what came from outside at `ns`: after all that has happened, and no message's but its own.

        So a repeated run, which schedules it when its cause happens, handles it at the same place in the order; answers
        of one instant are in order by rank.
        """
        ns = max(ns, self.scheduler.now + 1)
        messages, answers = self._stamps
        while ns in messages or (message and ns in answers):
            ns += 1
        self._stamps[not message].add(ns)
        return ns

    def moment(self, turn: int) -> Moment:
        """What keys the noise of an observation that was asked for in `turn` (T9)."""
        return Moment(self.proxy.seed, self.proxy.episode, turn)

    def next_version(self) -> int:
        """The number of a new fact about the world: reports carry it, and the cache takes newer ones only (T12)."""
        self.version += 1
        return self.version

    def send_report(
        self, row: int, values: NDArray[np.float64], number: int, now: int, as_of: int, version: int | None,
        phase: int, cause: str, *, effect: bool = False,
    ) -> None:  # fmt: skip
        """A report of a row leaves, if it has something to tell and its sensor works.

        The global row uses the system agent's link. values: as they were measured, which nobody writes any more.
        version: None: a new one.
        """
        reported, last = self.simulation.model.layout.rows[row].reported, len(self.simulation.model.layout.rows) - 1
        read = self.measuring.reported(row, values) if reported.counts else None
        if read is None:
            return
        rank, why = (row, cause) if row < last else (0, f"{cause} of the global row")
        version = self.next_version() if version is None else version
        fields = (rank, number, self.broker.next_id(), now, row, version, as_of, read, effect, reported)
        self.broker.send(make(StateReport, fields), phase, UP, self.timings[rank].msg, why)

    def mark_cancelled(self) -> None:
        """What is being handled comes to nothing, as its agent has ended (T22)."""
        if self.trace is not None:
            self.trace.cancelled.add(self.scheduler.here)

    def mark_masked(self, rank: int) -> None:
        """What takes effect had a choice that is forbidden now: the no-op took its place."""
        self.result.masked[self.simulation.model.hierarchy.ids[rank]] += 1
        if self.trace is not None:
            self.trace.masked.add(self.scheduler.here)

    def shown_ages(self, rank: int, as_of: Ints, now: int) -> NDArray[np.float64]:
        """Ages that an agent observes, s: by its own clock, of what the owners of rows stamped by theirs (T28)."""
        if self._clocks is None:
            return ages(as_of, now)
        (offset, drift), stampers = self._clocks, self.simulation.model.plan.views[rank].sources
        mine = offset[rank] + np.rint(drift[rank] * now).astype(np.int64)
        theirs = offset[stampers] + np.rint(drift[stampers] * as_of).astype(np.int64)
        shown: NDArray[np.float64] = (np.maximum(now - as_of, 0).astype(np.float64) + (mine - theirs)) / 1e9
        return shown

    def staleness(self, rank: int) -> NDArray[np.float64]:
        """Ages in s of everything that an agent's observations held when it received them, in their order."""
        return np.concatenate([np.zeros(0), *(ages(as_of, now) for as_of, now in self.received[rank])])


def places_of(ids: Sequence[str], delivery: Delivery | None) -> dict[int, str]:
    """By rank, the place of each agent that does not live with the proxy. Raises UnknownAgent."""
    named = {} if delivery is None else delivery.places
    for agent in named:
        if agent not in ids:
            raise UnknownAgent(f"places: {agent!r:.60} is not in this environment.{did_you_mean(agent, ids)}")
    return {rank: named[agent] for rank, agent in enumerate(ids) if agent in named}


def ages(as_of: Ints, now: int) -> NDArray[np.float64]:
    """Ages of information in s; 0 for a boundary still to come, whose physics was complete early (wait < dt)."""
    in_seconds: NDArray[np.float64] = np.maximum(now - as_of, 0) / 1e9
    return in_seconds


def _clocks(timings: Sequence[Timing]) -> tuple[Ints, NDArray[np.float64]]:
    """Offset, ns, and drift of the clock of each row's owner; the global row's is the system agent."""
    owners = [*timings, timings[0]]
    return np.array([one.offset for one in owners]), np.array([one.config.clock_drift for one in owners])


class LinkRule:
    """Asks the hook for each message, and tells the message's link: results are clipped, nan is refused (RuleError)."""

    def __init__(self, context: EventContext) -> None:
        self.context = context

    def __call__(self, link: Link, message: Any) -> None:
        """Before the message is drawn. The physics cycle's reliable legs are not asked about."""
        (sender, receiver), simulation = ends(message, self.context.simulation), self.context.simulation
        hooks, ids = simulation.hooks, simulation.model.hierarchy.ids
        world = simulation.reading() if links_compiled(hooks) else simulation.world
        assert isinstance(link, RuledLink)
        link.factor, link.more = ask_link(hooks, world, ids, sender, receiver)


def ends(message: Any, simulation: Simulation) -> tuple[int, int]:
    """Ranks of sender and receiver; the proxy is -1, a black box BLACK_BOX."""
    agent: int = message.agent
    if isinstance(message, TO_CHILD):
        return simulation.model.hierarchy.parent[agent], agent
    match message:
        case m.SharedState():
            return agent, simulation.model.hierarchy.index[simulation.exchange.edges[message.edge].route.receiver]
        case m.LetterUnderWay():
            return agent, message.receiver
        case m.ObservationCopy():
            return BLACK_BOX, message.receiver
        case m.ActionCommand():
            return agent, BLACK_BOX
        case m.CycleToken():
            return (agent, PROXY) if message.leg is m.Leg.TOKEN_TO_PROXY else (PROXY, agent)
    assert isinstance(message, TO_PROXY + FROM_PROXY), f"where does a {type(message).__name__} go?"
    return (agent, PROXY) if isinstance(message, TO_PROXY) else (PROXY, agent)
