"""A list of what is to come, searched for its minimum, and the post (T2, T7, T13): the ground of the plain clock."""

from collections import Counter
from typing import Any

from laws.plain_draws import PlainLink
from laws.plain_post import PlainPost, Waiting

PHYSICS, REWARD, CLOSE, ENV_UPDATE, TICK, REQUEST, REPLY, COMMAND, EFFECT, REPORT = range(10)
"""What comes first within one instant (T2)."""


class PlainAgenda:
    """Hands out events in their order; a letter may be lost, late or doubled on its way.

    Attributes: seen: what happened: [ns, kind, rank, number, content, cancelled?]; counts: sent, delivered, lost; what
        is in flight is counted when asked for.
    """

    def __init__(self, links: list[PlainLink], t_end: int | None) -> None:
        self.links, self.t_end = links, t_end
        self.agenda: list[tuple[Any, ...]] = []
        self.seen: list[list[Any]] = []
        self.now = self.scheduled = self.letters = 0
        self.closed = False
        self.counts: Counter[str] = Counter()
        self.last_arrival: Counter[tuple[int, str]] = Counter()
        self.post = PlainPost(self, links)

    def _plan(
        self, ns: int, phase: int, rank: int, kind: str, number: int, content: Any = None, letter: int = 0
    ) -> None:
        self.scheduled += 1
        self.agenda.append((ns, phase, rank, self.scheduled, kind, number, content, letter))

    def run(self, until: int | None) -> None:
        """Carry on up to and including `until`, ns; None: to the end."""
        while not self.closed:
            entry = min(self.agenda)
            if until is not None and entry[0] > until:
                return
            if self.t_end is not None and entry[:2] > (self.t_end, CLOSE):
                self.closed = True
                self.on_time_out()
                return
            self.agenda.remove(entry)
            self._handle(*entry)

    def _handle(
        self, ns: int, phase: int, rank: int, order: int, kind: str, number: int, content: Any, letter: int
    ) -> None:
        self.now = ns
        if kind == "Offered":
            self.post.come(*content)
            return
        if kind == "Chosen":
            self.post.choose(content)
            return
        if letter:
            self.counts["delivered"] += 1
        self.seen.append([ns, kind, rank, number, content, False])
        if handler := getattr(self, f"on_{kind}", None):
            handler(rank, number, content)

    def on_time_out(self) -> None:
        """The run was stopped."""

    # The post

    def _send(
        self,
        kind: str,
        rank: int,
        number: int,
        content: Any,
        phase: int,
        queue: str,
        cause: str,
        leg: int,
        at: int = -1,
    ) -> None:
        """Over the agent's link, with all that may befall a message (T7); a lost one keeps its place in the queue.

        Queues are those of the link and purpose (T22); `at`: it leaves then, ns; now if it is below 0.
        """
        link = self.links[rank]
        self.letters += 1
        self.counts["sent"] += 1
        leaves = self.now if at < 0 else at
        if self.post.takes(rank, kind):
            self.post.take(Waiting(kind, rank, number, content, phase, queue, cause, leg, self.letters, leaves))
            return
        arrival = leaves + link.delay(link.timing.msg, cause, leg, number, leaves)
        if not link.config.reorder:
            arrival = self.last_arrival[rank, queue] = max(arrival, self.last_arrival[rank, queue])
        if link.lost(cause, leg, number, leaves):
            self.counts["lost"] += 1
        else:
            self._plan(arrival, phase, rank, kind, number, content, self.letters)

    def _send_surely(self, kind: str, rank: int, number: int, content: Any, phase: int, at: int = -1) -> None:
        """A leg of the physics cycle other than a report (T3)."""
        self.letters += 1
        self.counts["sent"] += 1
        leaves = self.now if at < 0 else at
        self._plan(leaves + self.links[rank].timing.msg, phase, rank, kind, number, content, self.letters)

    def messages(self) -> dict[str, int]:
        """What became of the messages so far."""
        names = ("sent", "delivered", "lost", "discarded", "repeated")
        under_way = len(self.post.open) + sum(entry[7] > 0 for entry in self.agenda)
        return {name: self.counts[name] for name in names} | {"in_flight": under_way}
