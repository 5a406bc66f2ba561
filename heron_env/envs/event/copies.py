"""Every copy of every message of a run: from whom to whom, when, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heron_env.envs.hooks import PROXY
from heron_env.scheduling import messages as m
from heron_env.scheduling.broker import MessageBroker

if TYPE_CHECKING:
    from heron_env.envs.event.clock import EventRun
    from heron_env.envs.simulation import Simulation

Fate = Literal["delivered", "second copy", "lost", "in flight"]
TO_PROXY = (m.ObservationRequest, m.StateReport, m.LocalStateRequest, m.TickResultReport)
FROM_PROXY = (
    m.ObservationReply, m.ObservationPush, m.ReportReceived, m.CycleCompletion, m.LocalStateReply, m.CustomLetter,
)  # fmt: skip
TO_CHILD = (m.Command, m.PushedCommand)


class MessageCopy(NamedTuple):
    """One copy of a message.

    Attributes:
        arrives: when it arrived or is to arrive, ns; None if it was lost.
        place: in the order in which everything was handled; None if nobody handled it.
        cause: the place of what it follows from; -1 for none.
    """

    message: Any
    arrives: int | None
    fate: Fate
    place: int | None
    cause: int


class WatchedBroker(MessageBroker):
    """Delivers as any other; it takes over the books of a run in which nothing has been sent yet.

    Attributes:
        lost: copies that were lost under way, and the place of what each follows from.
        dropped: second copies that their receivers dropped, and when, ns.
    """

    __slots__ = ("dropped", "lost")

    def __init__(self, run: EventRun) -> None:
        for name in MessageBroker.__slots__:
            setattr(self, name, getattr(run.context.broker, name))
        self.lost: list[tuple[m.Message, int]] = []
        self.dropped: list[tuple[m.Message, int]] = []
        run.context.broker = self

    def send(self, message: Any, phase: int, lane: int, nominal: int, cause: str) -> int | None:
        """As MessageBroker.send; notes each copy that is lost."""
        account = self.accounts[message.agent]
        before = account.lost
        arrival = super().send(message, phase, lane, nominal, cause)
        self.lost += [(message, self._scheduler.here)] * (account.lost - before)
        return arrival

    def accept(self, message: m.Message) -> bool:
        """As MessageBroker.accept; notes second copies."""
        accepted = super().accept(message)
        if not accepted:
            self.dropped.append((message, self._scheduler.now))
        return accepted


def copies(run: EventRun, broker: WatchedBroker) -> Iterator[MessageCopy]:
    """From the trace those that came, from the heap those under way, from the broker the others."""
    trace, causes = run.context.result.trace, dict[int, int]()
    assert trace is not None
    for r in trace:
        if isinstance(r.payload, m.Message):
            causes[r.id] = r.cause
            yield MessageCopy(r.payload, r.t_ns, "delivered", r.index, r.cause)
    for ns, _, _, sequence, waiting in sorted(run.context.scheduler.heap, key=lambda entry: entry[:4]):
        if isinstance(waiting, m.Message):
            causes.setdefault(waiting.id, trace.causes[sequence - 1])
            yield MessageCopy(waiting, ns, "in flight", None, causes[waiting.id])
    for message, arrived in broker.dropped:
        yield MessageCopy(message, arrived, "second copy", None, causes[message.id])
    for message, cause in broker.lost:
        yield MessageCopy(message, None, "lost", None, cause)


def ends(message: Any, simulation: Simulation) -> tuple[int, int]:
    """Ranks of sender and receiver; the proxy is -1."""
    agent: int = message.agent
    if isinstance(message, TO_CHILD):
        return simulation.hierarchy.parent[agent], agent
    match message:
        case m.SharedState():
            return agent, simulation.hierarchy.index[simulation.exchange.edges[message.edge].route.receiver]
        case m.LetterUnderWay():
            return agent, message.receiver
        case m.CycleToken():
            return (agent, PROXY) if message.leg is m.Leg.TOKEN_TO_PROXY else (PROXY, agent)
    assert isinstance(message, TO_PROXY + FROM_PROXY), f"where does a {type(message).__name__} go?"
    return (agent, PROXY) if isinstance(message, TO_PROXY) else (PROXY, agent)
