"""What waits: for a medium that others use, for another attempt, for those before it (T25 to T27).

A message of a link with a medium or a transport is a parcel until its arrival is known:

    offer      it comes to its medium: at `message.sent`, and again for each repetition
    transmit   the medium is free and chooses who is next; of a plain fifo the departure is known at the offer
    depart     its last bit leaves, `work` ns after it was chosen: from here on the link's own delay and loss count
    arrive     where nothing before it in its queue is missing

Draws of the first attempt are those of a link without transport; those of attempt j have the cause mix(h(cause) +
j * GOLDEN), so that nothing moves when a link becomes reliable, or another attempt is made.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heron_env.scheduling.contents import content_size, stream_of
from heron_env.scheduling.links import Link, What
from heron_env.scheduling.media import Medium
from heron_env.scheduling.sources import SECOND
from heron_env.scheduling.timing import END_OF_TIME, ScheduleConfig
from heron_env.seeding import GOLDEN, MASK, h, mix

if TYPE_CHECKING:
    from heron_env.scheduling.broker import MessageBroker

FATE = int(What.FATE)
TRANSMIT = 10
"""Phase of a choice: after all else of an instant, so that it is among all that were offered by then."""
UPWARD = (0, 4, 7)
"""Queues of what an agent itself sends, UP, SHARE and LETTER; all else comes from above it."""
BOUND = ("_broker", "_links", "_scheduler")
"""What does not change in a run."""


@dataclass(slots=True, eq=False)
class Parcel:
    """A message of a link that is shared or reliable, until its arrival is known.

    Attributes:
        size, work: bytes with headers, and ns that they occupy the medium.
        stream: of which at most `keep` wait; None: nothing displaces it.
        attempt, timeouts: how often it was sent again, and how often because its timer had run out.
        back: when it is offered again, ns; -1: it is not waiting for that.
        left: the departure of the attempt that was lost, ns.
        arrival: its own, ns; -1 while it is not known.
        gone: it will not arrive.
        place: in a trace, of what it follows from.
    """

    message: Any
    phase: int
    queue: int
    nominal: int
    cause: str
    server: Server | None = None
    size: float = 0.0
    work: int = 0
    stream: Any = None
    attempt: int = 0
    timeouts: int = 0
    back: int = -1
    left: int = -1
    arrival: int = -1
    gone: bool = False
    place: int = -1


class Offered:
    """A parcel comes to its medium; `timed`: for its timer has run out."""

    __slots__ = ("at", "attempt", "number", "parcel", "timed")

    def __init__(self, parcel: Parcel, at: int, *, timed: bool = True) -> None:
        self.parcel, self.at, self.timed, self.number = parcel, at, timed, parcel.message.number
        self.attempt = parcel.attempt

    def to_dict(self) -> dict[str, Any]:
        """For a trace."""
        return {"id": self.parcel.message.id, "attempt": self.attempt}


class Transmit:
    """A medium is free, and something waits."""

    __slots__ = ("number", "server")

    def __init__(self, server: Server) -> None:
        self.server, self.number = server, server.number

    def to_dict(self) -> dict[str, Any]:
        """For a trace."""
        return {"medium": self.server.name}


@dataclass(frozen=True, slots=True)
class MediumUse:
    """What went over a medium: offered == carried + refused + waiting, bytes with headers, of each attempt.

    Attributes:
        refused: of what was discarded, as there was no room, or it was displaced or too old.
        busy: share of the time in which something was sent.
        load: what was offered, as a share of what could have been sent; above 1 what waits grows without bound.
    """

    offered: float
    carried: float
    refused: float
    waiting: float
    busy: float
    load: float

    @classmethod
    def until(
        cls, end: int, rate: float, offered: float, carried: float, refused: float, waiting: float, *, busy: int,
        free: int,
    ) -> MediumUse:  # fmt: skip
        """By a time, ns; `busy`: ns, those included until it is `free`."""
        share, load = ((busy - max(free - end, 0)) / end, offered / rate * SECOND / end) if end else (0.0, 0.0)
        return cls(offered, carried, refused, waiting, share, load)

    def __str__(self) -> str:
        """`busy 87 % of the time, 120 bytes refused, 48 waiting`."""
        bytes_of = f"{self.refused:,.0f} bytes refused, {self.waiting:,.0f} waiting"
        return f"busy {100.0 * self.busy:.0f} % of the time, {bytes_of}"


def overload(media: Mapping[str, MediumUse]) -> list[str]:
    """A note for each medium that was offered more than it can carry."""
    return [
        f"medium {name!r} was offered {use.load:.2g} times what it can carry: what waits for it grows, and so do ages; "
        "raise its rate, or discard what is old: limit=, keep=1, lifespan="
        for name, use in media.items() if use.load > 1.0
    ]  # fmt: skip


class Server:
    """One way over a medium: it sends one message at a time.

    Attributes:
        free: when the message that is being sent has left, ns.
        sizes: bytes of the content by kind of message, where the medium says them.
        waiting: parcels, in the order in which they came; `backlog`: their bytes.
        pending: is a choice scheduled?
        at_once: is each departure known at the offer? Of a fifo on which everything waits, however long.
    """

    def __init__(self, medium: Medium, number: int, name: str, *, at_once: bool = False) -> None:
        self.medium, self.number, self.name, self.at_once = medium, number, name, at_once
        self.free, self.pending, self.sizes = 0, False, dict(medium.sizes)
        self.waiting: list[Parcel] = []
        self.backlog = self.offered = self.carried = self.refused = 0.0
        self.busy = 0

    def use(self, end: int) -> MediumUse:
        """What went over it by a time, ns."""
        return MediumUse.until(
            end,
            self.medium.rate,
            self.offered,
            self.carried,
            self.refused,
            self.backlog,
            busy=self.busy,
            free=self.free,
        )


def ways_of(configs: Sequence[ScheduleConfig]) -> tuple[list[tuple[Medium, str]], dict[int, tuple[int, int]]]:
    """The ways over all media, in the order of the agents, with their names; by rank those up and down, by number."""
    ways, first = list[tuple[Medium, str]](), dict[Medium, int]()
    for medium in dict.fromkeys(config.medium for config in configs if config.medium is not None):
        first[medium] = len(ways)
        ways += [(medium, f"{medium.name}{way}") for way in ((", up", ", down") if medium.duplex else ("",))]
    ends = {
        r: (first[c.medium], first[c.medium] + c.medium.duplex) for r, c in enumerate(configs) if c.medium is not None
    }
    return ways, ends


def departs_at_once(medium: Medium, configs: Iterable[ScheduleConfig]) -> bool:
    """Is each departure known at the offer: does everything wait in its turn, however long?"""
    patient = all(c.keep is None and c.lifespan is None for c in configs if c.medium == medium)
    return medium.order == "fifo" and medium.limit is None and patient


class Sharing:
    """The media of one episode, and all that waits for them or behind losses.

    Args:
        broker: the post office, whose accounts it keeps.
        links: by rank.

    Attributes:
        servers: the ways over all media.
    """

    def __init__(self, broker: MessageBroker, links: Sequence[Link]) -> None:
        self._broker, self._links, self._scheduler = broker, links, broker.scheduler
        self._under_way: dict[int, Parcel] = {}  # by id of the message: those whose arrival is not known
        self._lines: dict[tuple[int, int], deque[Parcel]] = {}
        self._streams: dict[Any, deque[Parcel]] = {}
        self._missing: dict[tuple[int, int], list[Parcel]] = {}  # lost once, by queue, where gaps are noticed
        self.servers: list[Server] = []
        configs = [link.timing.config for link in links]
        ways, self._ends = ways_of(configs)
        for number, (medium, name) in enumerate(ways):
            at_once = departs_at_once(medium, configs) and not broker.asks
            self.servers.append(Server(medium, number, name, at_once=at_once))

    def use(self, end: int) -> dict[str, MediumUse]:
        """By medium, of one that is duplex by way, what went over it by a time, ns."""
        return {server.name: server.use(end) for server in self.servers}

    def waiting(self) -> Iterator[tuple[Any, int]]:
        """Messages whose arrival is not known yet, and the places in a trace of what they follow from."""
        return ((parcel.message, parcel.place) for parcel in self._under_way.values())

    def take(self, message: Any, phase: int, queue: int, nominal: int, cause: str) -> None:
        """A message leaves over such a link: now, or where it was held back at `message.sent`."""
        link = self._links[message.agent]
        config, parcel = link.timing.config, Parcel(message, phase, queue, nominal, cause, place=self._scheduler.here)
        self._under_way[message.id] = parcel
        if (medium := config.medium) is not None:
            up, down = self._ends[message.agent]
            parcel.server = self.servers[up if queue in UPWARD else down]
            parcel.size = content_size(message, parcel.server.sizes) + medium.overhead
            parcel.work = medium.work(parcel.size)
        if config.keep is not None:
            parcel.stream = stream_of(message)
        if message.sent > self._scheduler.now:  # until then the medium is not held for it
            self._schedule(message.sent, parcel, Offered(parcel, message.sent))
        else:
            self._offer(parcel)

    def handle(self, event: Offered | Transmit, now: int) -> None:
        """An event of its own."""
        if isinstance(event, Offered):
            self._come(event)
        else:
            self._transmit(event.server)

    def takes(self, event: Any) -> bool:
        """Is it an event of its own? Then it is handled."""
        if mine := isinstance(event, Offered | Transmit):
            self.handle(event, self._scheduler.now)
        return mine

    def _come(self, offer: Offered) -> None:
        """A parcel comes to its medium, unless it has been sent again, or given up, since this was planned."""
        parcel = offer.parcel
        if parcel.gone:
            return
        if parcel.attempt:
            if offer.at != parcel.back:
                return
            self._is_noticed(parcel)
            parcel.back = -1
            parcel.timeouts += offer.timed
            if self._is_too_old(parcel):
                self._discard(parcel)
                return
        self._offer(parcel)

    def _offer(self, parcel: Parcel) -> None:
        now, rank, server = self._scheduler.now, parcel.message.agent, parcel.server
        config = self._links[rank].timing.config
        if parcel.attempt == 0:
            if config.transport is not None and not config.reorder:
                self._lines.setdefault((rank, parcel.queue), deque()).append(parcel)
            if parcel.stream is not None:
                alike = self._streams.setdefault(parcel.stream, deque())
                if len(alike) >= config.keep:
                    self._discard(alike[0])
                alike.append(parcel)
        if server is None:
            self._depart(parcel, now)
            return
        server.offered += parcel.size
        if server.at_once or (parcel.work == 0 and not server.waiting and server.free <= now):
            self._send(parcel, server, max(now, server.free))
            return
        limit = server.medium.limit
        if limit is not None and (server.free > now or server.waiting) and server.backlog + parcel.size > limit:
            server.refused += parcel.size
            self._discard(parcel)
            return
        server.waiting.append(parcel)
        server.backlog += parcel.size
        self._plan(server)

    def _plan(self, server: Server) -> None:
        """Something is chosen once the medium is free, and no earlier than all else of this instant is done."""
        if not server.pending:
            server.pending = True
            at = max(self._scheduler.now, server.free)
            self._scheduler.schedule(at, TRANSMIT, server.number, Transmit(server))

    def _transmit(self, server: Server) -> None:
        """The medium is free: the next one is sent, after those that are too old were discarded."""
        server.pending = False
        for parcel in [each for each in server.waiting if self._is_too_old(each)]:
            self._discard(parcel)
        if not server.waiting:
            return
        chosen = server.waiting[0]
        if server.medium.order == "priority":
            chosen = min(server.waiting, key=lambda each: self._links[each.message.agent].timing.config.priority)
        server.waiting.remove(chosen)
        server.backlog -= chosen.size
        self._send(chosen, server, self._scheduler.now)
        if server.waiting:
            self._plan(server)

    def _send(self, parcel: Parcel, server: Server, start: int) -> None:
        server.free = min(start + parcel.work, END_OF_TIME - 1)
        server.carried, server.busy = server.carried + parcel.size, min(server.busy + parcel.work, END_OF_TIME - 1)
        self._depart(parcel, server.free)

    def _depart(self, parcel: Parcel, leaves: int) -> None:
        """Its last bit leaves at `leaves`, ns: what becomes of it from there is drawn."""
        message, rank, link = parcel.message, parcel.message.agent, self._links[parcel.message.agent]
        config, transport = link.timing.config, link.timing.config.transport
        self._broker.ask(link, message)
        self._broker.depart(message, leaves)
        cause: Any = parcel.cause if parcel.attempt == 0 else repeated(parcel.cause, parcel.attempt)
        fate = link.draw(FATE, parcel.nominal, cause, message.leg, message.number, leaves)
        if fate < 0 and transport is not None and (transport.tries is None or parcel.attempt + 1 < transport.tries):
            parcel.attempt, parcel.left = parcel.attempt + 1, leaves
            self._broker.accounts[rank].repeated += 1
            if transport.gaps and parcel.attempt == 1:
                self._missing.setdefault((rank, parcel.queue), []).append(parcel)
            self._repeat(parcel, leaves + transport.wait(parcel.timeouts, 2 * link.timing.msg), timed=True)
            return
        self._forget(parcel)
        arrival = leaves + (fate if fate >= 0 else ~fate)
        if transport is not None and transport.gaps and fate >= 0:
            self._reveal(rank, parcel.queue, leaves, arrival + link.timing.msg)
        if transport is not None and not config.reorder:
            parcel.arrival, parcel.gone = arrival, fate < 0
            if parcel.gone:
                self._end(parcel, self._broker.lose)
            self._arrive(rank, parcel.queue)
            return
        if not config.reorder:
            arrival = self._broker.behind(rank, parcel.queue, arrival)
        if fate < 0:
            self._end(parcel, self._broker.lose)
        else:
            self._deliver(parcel, arrival)

    def _repeat(self, parcel: Parcel, at: int, *, timed: bool) -> None:
        parcel.back = at
        self._schedule(at, parcel, Offered(parcel, at, timed=timed))

    def _reveal(self, rank: int, queue: int, left: int, due: int) -> None:
        """Of what left earlier and was lost the sender knows at `due`, ns; lost repetitions only a timer tells."""
        for parcel in self._missing.get((rank, queue), ()):
            if parcel.left < left and due < parcel.back:
                self._repeat(parcel, due, timed=False)

    def _is_noticed(self, parcel: Parcel) -> None:
        """It is no first loss any more of which later messages tell."""
        if parcel.attempt == 1 and parcel in (missing := self._missing.get((parcel.message.agent, parcel.queue), [])):
            missing.remove(parcel)

    def _arrive(self, rank: int, queue: int) -> None:
        """What nothing before it holds up arrives: at its time, and not before what was sent before it."""
        line = self._lines[rank, queue]
        while line and (line[0].gone or line[0].arrival >= 0):
            parcel = line.popleft()
            if not parcel.gone:
                arrival = max(parcel.arrival, self._scheduler.now)
                self._deliver(parcel, self._broker.behind(rank, queue, arrival))

    def _schedule(self, ns: int, parcel: Parcel, event: Any) -> None:
        """Something that follows from what sent the parcel, whatever is being handled now."""
        scheduler = self._scheduler
        here, scheduler.here = scheduler.here, parcel.place
        scheduler.schedule(ns, parcel.phase, parcel.message.agent, event)
        scheduler.here = here

    def _deliver(self, parcel: Parcel, arrival: int) -> None:
        del self._under_way[parcel.message.id]
        self._schedule(arrival, parcel, parcel.message)

    def _end(self, parcel: Parcel, note: Callable[[Any], None]) -> None:
        """It will not arrive, which `send` could not say."""
        del self._under_way[parcel.message.id]
        note(parcel.message)
        if self._broker.on_loss is not None:
            self._broker.on_loss(parcel.message)

    def _is_too_old(self, parcel: Parcel) -> bool:
        lifespan = self._links[parcel.message.agent].timing.lifespan
        return lifespan is not None and self._scheduler.now - parcel.message.sent > lifespan

    def _discard(self, parcel: Parcel) -> None:
        """The sender gives it up: there is no room, it is too old, or newer ones have come."""
        rank, server, parcel.gone = parcel.message.agent, parcel.server, True
        self._end(parcel, self._broker.discard)
        if server is not None and parcel in server.waiting:
            server.waiting.remove(parcel)
            server.backlog -= parcel.size
            server.refused += parcel.size
        self._is_noticed(parcel)
        self._forget(parcel)
        if (rank, parcel.queue) in self._lines:
            self._arrive(rank, parcel.queue)

    def standing(self) -> tuple[Any, ...]:
        """What `go_back` takes: the heap, which has offers and choices, too, and all that waits."""
        state = {name: value for name, value in vars(self).items() if name not in BOUND}
        return copy.deepcopy((self._scheduler.heap, state))

    def go_back(self, standing: tuple[Any, ...]) -> None:
        """Restore what `standing` returned."""
        self._scheduler.heap[:], state = copy.deepcopy(standing)
        vars(self).update(state)

    def _forget(self, parcel: Parcel) -> None:
        """It waits no more among those of its stream."""
        if parcel.stream is not None and parcel in (alike := self._streams.get(parcel.stream, deque())):
            alike.remove(parcel)


def repeated(cause: str, attempt: int) -> int:
    """What attempt 1, 2, ... of a message is caused by."""
    return mix(h(cause) + attempt * GOLDEN & MASK)
