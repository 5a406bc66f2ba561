"""What waits (T25 to T27) once more, from the law alone: lists that are searched and sorted whenever one is needed."""

from dataclasses import dataclass, field
from typing import Any

from heron_env.seeding import GOLDEN, MASK, h, mix

CHOICE = 10
UPWARD = ("up", "share", "letter")
SIZES = {
    "ObservationRequest": ("request", lambda content: 0),
    "ObservationReply": ("reply", lambda content: len(content[0])),
    "StateReport": ("report", lambda content: len(content[2])),
    "SharedState": ("share", lambda content: len(content[1])),
    "Command": ("command", len),
}
"""By kind of message, what a medium calls it, and how many numbers are in it."""


@dataclass(eq=False)
class Waiting:
    """A message whose arrival is not known yet."""

    kind: str
    rank: int
    number: int
    content: Any
    phase: int
    queue: str
    cause: Any
    leg: int
    letter: int
    since: int
    order: int = 0
    bytes: float = 0.0
    attempts: int = 0
    timeouts: int = 0
    where: str = "coming"
    """"coming" to its medium, "waiting" there, "lost" and to be sent again, "arriving" behind others, "gone"."""
    again: int = -1
    left: int = -1
    arrival: int = -1
    lost_first: int = 0


@dataclass
class Way:
    """A medium's server."""

    medium: Any
    number: int
    free: int = 0
    planned: bool = False
    queue: list[Waiting] = field(default_factory=list)


class PlainPost:
    """All media of an episode; `agenda` plans and counts."""

    def __init__(self, agenda: Any, links: list[Any]) -> None:
        self.agenda, self.links = agenda, links
        self.ways: dict[tuple[str, bool], Way] = {}
        self.offered = self.losses = 0
        self.open: list[Waiting] = []
        self.lines: dict[tuple[int, str], list[Waiting]] = {}
        for medium in dict.fromkeys(link.config.medium for link in links if link.config.medium is not None):
            for up in (True, False) if medium.duplex else (True,):
                self.ways[medium.name, up] = Way(medium, len(self.ways))

    def takes(self, rank: int, kind: str) -> bool:
        """May such a message wait?"""
        config = self.links[rank].config
        return kind != "ReportReceived" and (config.medium is not None or config.transport is not None)

    def way(self, w: Waiting) -> Way | None:
        """Its server."""
        medium = self.links[w.rank].config.medium
        return None if medium is None else self.ways[medium.name, w.queue in UPWARD or not medium.duplex]

    def take(self, w: Waiting) -> None:
        """It leaves at `since`."""
        way = self.way(w)
        self.open.append(w)
        if way is not None:
            name, numbers = SIZES[w.kind]
            w.bytes = dict(way.medium.sizes).get(name, 4.0 * numbers(w.content)) + way.medium.overhead
        if w.since > self.agenda.now:
            self.agenda._plan(w.since, w.phase, w.rank, "Offered", w.number, (w, w.since, True))
        else:
            self.offer(w)

    def work(self, w: Waiting) -> int:
        """ns on its medium."""
        way = self.way(w)
        return 0 if way is None or not w.bytes else round(w.bytes * (1e9 / way.medium.rate))

    def stream(self, w: Waiting) -> Any:
        """What a newer one displaces an older one in."""
        which = {"StateReport": lambda: w.content[0], "SharedState": lambda: w.content[0]}
        return w.kind, which.get(w.kind, lambda: w.rank)()

    def come(self, w: Waiting, at: int, timed: bool) -> None:
        """An event of it falls due."""
        if w.where == "gone" or (w.attempts and w.again != at):
            return
        if w.attempts:
            w.again, w.where = -1, "coming"
            w.lost_first = 0
            w.timeouts += timed
            if self.is_old(w):
                self.discard(w)
                return
        self.offer(w)

    def is_old(self, w: Waiting) -> bool:
        """Has it waited too long?"""
        lifespan = self.links[w.rank].config.lifespan
        return lifespan is not None and self.agenda.now - w.since > round(lifespan * 1e9)

    def is_ordered(self, w: Waiting) -> bool:
        """Does it wait for those before it?"""
        config = self.links[w.rank].config
        return config.transport is not None and not config.reorder

    def offer(self, w: Waiting) -> None:
        """It is there to be sent."""
        config, way, now = self.links[w.rank].config, self.way(w), self.agenda.now
        if not w.attempts:
            self.offered += 1
            w.order = self.offered
            if self.is_ordered(w):
                self.lines.setdefault((w.rank, w.queue), []).append(w)
            if config.keep is not None:
                alike = [o for o in self.open if o.order and o is not w and o.where in ("waiting", "lost", "coming")]
                alike = sorted((o for o in alike if self.stream(o) == self.stream(w)), key=lambda o: o.order)
                if len(alike) >= config.keep:
                    self.discard(alike[0])
        if way is None:
            self.depart(w, now)
            return
        idle = way.free <= now and not way.queue
        if idle and self.work(w) == 0:
            self.depart(w, now)
            return
        if way.medium.limit is not None and not idle and sum(o.bytes for o in way.queue) + w.bytes > way.medium.limit:
            self.discard(w)
            return
        if self.at_once(way):
            way.free = max(now, way.free) + self.work(w)
            self.depart(w, way.free)
            return
        w.where = "waiting"
        way.queue.append(w)
        self.plan(way)

    def at_once(self, way: Way) -> bool:
        """Nothing can come of its waiting but its turn."""
        members = [link.config for link in self.links if link.config.medium == way.medium]
        plain = all(c.keep is None and c.lifespan is None for c in members)
        return way.medium.order == "fifo" and way.medium.limit is None and plain

    def plan(self, way: Way) -> None:
        """A choice, when it is free."""
        if way.queue and not way.planned:
            way.planned = True
            self.agenda._plan(max(self.agenda.now, way.free), CHOICE, way.number, "Chosen", 0, way)

    def choose(self, way: Way) -> None:
        """Of all that wait now."""
        way.planned = False
        for w in [o for o in way.queue if self.is_old(o)]:
            self.discard(w)
        if not way.queue:
            return
        by_priority = way.medium.order == "priority"
        turn = {id(w): place for place, w in enumerate(way.queue)}
        rank_of = lambda w: (self.links[w.rank].config.priority if by_priority else 0, turn[id(w)])  # noqa: E731
        first = sorted(way.queue, key=rank_of)[0]
        way.queue.remove(first)
        way.free = self.agenda.now + self.work(first)
        self.depart(first, way.free)
        self.plan(way)

    def depart(self, w: Waiting, leaves: int) -> None:
        """Its last bit leaves."""
        link, config, transport = self.links[w.rank], self.links[w.rank].config, self.links[w.rank].config.transport
        cause = w.cause if not w.attempts else mix(h(w.cause) + w.attempts * GOLDEN & MASK)
        lost = link.lost(cause, w.leg, w.number, leaves)
        w.where = "sent"
        if lost and transport is not None and (transport.tries is None or w.attempts + 1 < transport.tries):
            w.attempts, w.left, w.where = w.attempts + 1, leaves, "lost"
            self.agenda.counts["repeated"] += 1
            if transport.gaps and w.attempts == 1:
                self.losses += 1
                w.lost_first = self.losses
            wait = float(round(transport.rto * 1e9) + 2 * link.timing.msg)
            for _ in range(w.timeouts):
                wait = wait if wait >= 120e9 else wait * transport.backoff
            self.again(w, leaves + round(min(wait, 120e9)), True)
            return
        arrival = leaves + link.delay(link.timing.msg, cause, w.leg, w.number, leaves)
        if transport is not None and transport.gaps and not lost:
            told = arrival + link.timing.msg
            missing = [o for o in self.open if o.lost_first and (o.rank, o.queue) == (w.rank, w.queue)]
            for o in sorted(missing, key=lambda o: o.lost_first):
                if o.left < leaves and told < o.again:
                    self.again(o, told, False)
        if self.is_ordered(w):
            w.arrival, w.where = arrival, "gone" if lost else "arriving"
            if lost:
                self.open.remove(w)
                self.agenda.counts["lost"] += 1
            self.arrive(w)
            return
        if not config.reorder:
            arrival = self.behind(w, arrival)
        self.open.remove(w)
        w.where = "gone"
        if lost:
            self.agenda.counts["lost"] += 1
        else:
            self.agenda._plan(arrival, w.phase, w.rank, w.kind, w.number, w.content, w.letter)

    def behind(self, w: Waiting, arrival: int) -> int:
        """Not before the others of its queue."""
        last = self.agenda.last_arrival
        last[w.rank, w.queue] = max(arrival, last[w.rank, w.queue])
        return int(last[w.rank, w.queue])

    def again(self, w: Waiting, at: int, timed: bool) -> None:
        """It comes once more."""
        w.again = at
        self.agenda._plan(at, w.phase, w.rank, "Offered", w.number, (w, at, timed))

    def arrive(self, w: Waiting) -> None:
        """All that nothing before it holds up."""
        line = self.lines[w.rank, w.queue]
        while line and line[0].where in ("arriving", "gone"):
            first = line.pop(0)
            if first.where == "arriving":
                first.where = "gone"
                self.open.remove(first)
                arrival = self.behind(first, max(first.arrival, self.agenda.now))
                self.agenda._plan(
                    arrival, first.phase, first.rank, first.kind, first.number, first.content, first.letter
                )

    def discard(self, w: Waiting) -> None:
        """It is given up."""
        way = self.way(w)
        if way is not None and w in way.queue:
            way.queue.remove(w)
        w.where, w.lost_first = "gone", 0
        self.open.remove(w)
        self.agenda.counts["discarded"] += 1
        if self.is_ordered(w):
            self.arrive(w)
