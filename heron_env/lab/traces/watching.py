"""A post office that remembers what never arrives, which the trace of a run, made of arrivals, can't tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from heron_env.scheduling.broker import MessageBroker
from heron_env.scheduling.messages import Message

if TYPE_CHECKING:
    from heron_env.envs.event.clock import EventRun


class Lost(NamedTuple):
    """A copy that was lost under way, and the place of what it follows from."""

    message: Message
    cause: int


class Dropped(NamedTuple):
    """A second copy that its receiver dropped at `arrived`, ns."""

    message: Message
    arrived: int


class WatchedBroker(MessageBroker):
    """Delivers as any other; it takes over the books of a run in which nothing has been sent yet."""

    __slots__ = ("dropped", "lost")

    def __init__(self, run: EventRun) -> None:
        for name in MessageBroker.__slots__:
            setattr(self, name, getattr(run.context.broker, name))
        self.lost: list[Lost] = []
        self.dropped: list[Dropped] = []
        run.context.broker = self

    def send(self, message: Any, phase: int, lane: int, nominal: int, cause: str) -> int | None:
        """As MessageBroker.send; notes each copy that is lost."""
        account = self.accounts[message.agent]
        before = account.lost
        arrival = super().send(message, phase, lane, nominal, cause)
        self.lost += [Lost(message, self._scheduler.here)] * (account.lost - before)
        return arrival

    def accept(self, message: Message) -> bool:
        """As MessageBroker.accept; notes second copies."""
        accepted = super().accept(message)
        if not accepted:
            self.dropped.append(Dropped(message, self._scheduler.now))
        return accepted
