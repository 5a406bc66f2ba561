"""Every copy of every message of a run: from whom to whom, when, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heron_env.scheduling import messages as m
from heron_env.scheduling.broker import MessageBroker

if TYPE_CHECKING:
    from heron_env.envs.event.context import EventContext

Fate = Literal["delivered", "second copy", "lost", "discarded", "in flight"]


class MessageCopy(NamedTuple):
    """One copy of a message.

    Attributes:
        arrives: when it arrived or is to arrive, ns; None if it was lost or discarded, or waits at its sender.
        place: in the order in which everything was handled; None if nobody handled it.
        cause: the place of what it follows from; -1 for none.
        left: when it left its sender last, or was given up there, ns; None if it still waits there.
    """

    message: Any
    arrives: int | None
    fate: Fate
    place: int | None
    cause: int
    left: int | None


class WatchedBroker(MessageBroker):
    """Delivers as any other, for a run that keeps a trace.

    Attributes:
        lost, discarded: messages that were lost under way, or given up before, and the place of what each follows from.
        dropped: second copies that their receivers dropped, and when, ns.
        left: of messages that may wait, by id, as in a MessageCopy.
    """

    __slots__ = ("discarded", "dropped", "left", "lost")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.lost: list[tuple[m.Message, int]] = []
        self.discarded: list[tuple[m.Message, int]] = []
        self.dropped: list[tuple[m.Message, int]] = []
        self.left: dict[int, int] = {}

    def depart(self, message: m.Message, ns: int) -> None:
        """As MessageBroker.depart; notes when."""
        self.left[message.id] = ns

    def lose(self, message: m.Message) -> None:
        """As MessageBroker.lose."""
        super().lose(message)
        self.lost.append((message, self.scheduler.here))

    def discard(self, message: m.Message) -> None:
        """As MessageBroker.discard."""
        super().discard(message)
        self.discarded.append((message, self.scheduler.here))
        self.left[message.id] = self.scheduler.now

    def land(self, message: Any, phase: int, ns: int, first: int | None) -> None:
        """As MessageBroker.land; it was not lost."""
        super().land(message, phase, ns, first)
        if first is None:
            place = next(k for k in reversed(range(len(self.lost))) if self.lost[k][0] is message)
            del self.lost[place]

    def accept(self, message: m.Message) -> bool:
        """As MessageBroker.accept; notes second copies."""
        accepted = super().accept(message)
        if not accepted:
            self.dropped.append((message, self.scheduler.now))
        return accepted


def copies(context: EventContext) -> Iterator[MessageCopy]:
    """From the trace those that came, from the heap those under way, from the broker the others."""
    trace, broker, causes = context.trace, context.broker, dict[int, int]()
    assert trace is not None and isinstance(broker, WatchedBroker)

    def copy(message: Any, arrives: int | None, fate: Fate, place: int | None, cause: int) -> MessageCopy:
        return MessageCopy(message, arrives, fate, place, cause, broker.left.get(message.id, message.sent))

    for r in trace:
        if isinstance(r.payload, m.Message):
            causes[r.id] = r.cause
            yield copy(r.payload, r.t_ns, "delivered", r.index, r.cause)
    for ns, _, _, sequence, waiting in sorted(context.scheduler.heap, key=lambda entry: entry[:4]):
        if isinstance(waiting, m.Message):
            causes.setdefault(waiting.id, trace.causes[sequence - 1])
            yield copy(waiting, ns, "in flight", None, causes[waiting.id])
    for message, arrived in broker.dropped:
        yield copy(message, arrived, "second copy", None, causes[message.id])
    yield from (copy(message, None, "lost", None, cause) for message, cause in broker.lost)
    yield from (copy(message, None, "discarded", None, cause) for message, cause in broker.discarded)
    for message, cause in [] if broker.sharing is None else broker.sharing.waiting():
        yield MessageCopy(message, None, "in flight", None, cause, None)
