"""The one post office: every message goes through it, and it can account for each."""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any

from heron_env.scheduling.arrivals import Delivery
from heron_env.scheduling.links import Link, What
from heron_env.scheduling.messages import Leg, Message, Routed
from heron_env.scheduling.records import MessageCounts
from heron_env.scheduling.scheduler import EventScheduler
from heron_env.scheduling.sharing import MediumUse, Sharing


class Queue(IntEnum):
    """The queues of a link: within one, a message never overtakes another unless the link reorders."""

    UP = 0
    """Agent to proxy."""
    DOWN = 1
    """Proxy to agent: observations."""
    COMMAND = 2
    """Parent to child."""
    ACKNOWLEDGEMENT = 3
    """Proxy to agent: receipts, which an observation held back by obs_delay must not hold up."""
    SHARE = 4
    """Agent to its neighbours, all of them: what a horizontal protocol tells, over the sender's link."""
    PUSH = 5
    """Monitor to agent: an observation that nobody asked for waits behind no other."""
    CUSTOM = 6
    """Messages of a user's own."""
    LETTER = 7
    """Agent to agents, all of them: what its policy writes, over the sender's link."""


_QUEUES = len(Queue)
Ask = Callable[[Link, Routed], None]
FATE = int(What.FATE)


class Account:
    """Running counts of one agent's link; what is in flight is counted on the heap, so that the balance is a check."""

    __slots__ = ("delivered", "discarded", "dropped", "duplicated", "lost", "repeated", "sent")

    def __init__(self) -> None:
        self.sent = self.duplicated = self.delivered = self.lost = self.dropped = self.discarded = self.repeated = 0

    def counts(self, in_flight: int) -> MessageCounts:
        """What became of its messages."""
        return MessageCounts(
            self.sent, self.duplicated, self.delivered, self.lost, in_flight, self.dropped, self.discarded,
            self.repeated,
        )  # fmt: skip


class MessageBroker:
    """Delivers the messages of one episode over the agents' links.

    Args:
        scheduler: where deliveries are scheduled, with the message as the event and its agent as the rank.
        links: by rank.
        ask: the hook `link` of the environment, for a message; a RuledLink needs it.
        delivery: says when messages arrive that leave for another place; None: links draw it for all.
        crosses: does a message leave for another place?
    """

    __slots__ = (
        "_ask", "_carried", "_crosses", "_delivery", "_last_arrival", "_last_id", "_links", "_twins", "accounts",
        "doubles", "on_loss", "scheduler", "sharing",
    )  # fmt: skip

    def __init__(
        self,
        scheduler: EventScheduler,
        links: Sequence[Link],
        ask: Ask | None = None,
        delivery: Delivery | None = None,
        crosses: Callable[[Routed], bool] | None = None,
    ) -> None:
        self._ask, self._delivery, self._crosses = ask, delivery, crosses
        self.scheduler = scheduler
        self._links = tuple(links)
        self.accounts = tuple(Account() for _ in self._links)
        """By rank, for a loop that notes plain deliveries itself."""
        self.doubles = delivery is not None
        """May there be second copies, which only `accept` knows?"""
        self._last_arrival = [0] * (_QUEUES * len(self._links))
        self._twins: dict[int, bool] = {}
        self._last_id = self._carried = 0
        self.sharing = Sharing(self, self._links) if any(link.timing.shared for link in self._links) else None
        """Of links that share a medium, or repeat what is lost."""
        self.on_loss: Callable[[Message], None] | None = None
        """Is called for a message of which `send` could not say yet that it will not arrive."""

    def next_id(self) -> int:
        """Return a new message id: 1, 2, ..."""
        self._last_id = number = self._last_id + 1
        return number

    def send(self, message: Routed, phase: int, queue: int, nominal: int, cause: str) -> int | None:
        """Send a message that leaves at `message.sent`; its first arrival, ns, or None if it is lost.

        What waits for a medium or another attempt has no arrival yet: its departure is returned; `lose` and `discard`
        are called for what does not come.

        Within a queue the order is that of the calls. A lost message keeps its place in the queue, so that loss moves
        no other message.

        Args:
            message: its agent's link is used; its leg and number index the draws.
            phase: order within the instant of arrival.
            queue: in which it waits.
            nominal: delay before jitter, ns.
            cause: name of what caused it ("tick", "cycle", "effect", ...); each cause has draws of its own.
        """
        agent = message.agent
        link = self._links[agent]
        account = self.accounts[agent]
        account.sent += 1
        if self._crosses is not None and self._crosses(message):
            return self._deliver(account, message, phase)
        if not link.ideal:
            return self._send_over(link, account, message, phase, queue, nominal, cause)
        arrival = message.sent + nominal
        if not link.reorder:  # as in behind(): nothing overtakes
            index = _QUEUES * agent + queue
            last = self._last_arrival
            if arrival < last[index]:
                arrival = last[index]
            else:
                last[index] = arrival
        self.scheduler.schedule(arrival, phase, agent, message)
        return arrival

    def send_reliable(self, message: Message, phase: int, delay: int) -> int:
        """Send a leg of the physics cycle: no loss, jitter or queue; its arrival, ns."""
        agent = message.agent
        self.accounts[agent].sent += 1
        arrival = message.sent + delay
        self.scheduler.schedule(arrival, phase, agent, message)
        return arrival

    def accept(self, message: Message) -> bool:
        """Note a delivery; False for a duplicate, which the receiver drops."""
        account, twins = self.accounts[message.agent], self._twins
        account.delivered += 1
        if not twins or message.id not in twins:
            return True
        if not twins[message.id]:
            twins[message.id] = True
            return True
        del twins[message.id]
        account.dropped += 1
        return False

    def is_second_copy(self, message: Message) -> bool:
        """Is it a duplicate that `accept` would refuse?"""
        return self._twins.get(message.id, False)

    def standing(self) -> tuple[Any, ...]:
        """Return a snapshot for `go_back`, without the scheduler's."""
        counts = [tuple(getattr(account, name) for name in Account.__slots__) for account in self.accounts]
        shared = None if self.sharing is None else self.sharing.standing()
        return self._last_id, self._carried, self._last_arrival.copy(), self._twins.copy(), counts, shared

    def go_back(self, standing: tuple[Any, ...]) -> None:
        """Restore what `standing` returned."""
        self._last_id, self._carried, self._last_arrival, self._twins, each, shared = standing
        if self.sharing is not None:
            self.sharing.go_back(shared)
        for account, counts in zip(self.accounts, each, strict=True):
            for name, count in zip(Account.__slots__, counts, strict=True):
                setattr(account, name, count)

    def counts(self, agent: int) -> MessageCounts:
        """Return the counts of messages over one agent's link."""
        return self.accounts[agent].counts(sum(message.agent == agent for message in self.under_way()))

    def total(self) -> MessageCounts:
        """Return the counts of all messages."""
        every = Account()
        for name in Account.__slots__:
            setattr(every, name, sum(getattr(account, name) for account in self.accounts))
        return every.counts(sum(1 for _ in self.under_way()))

    def media(self, end: int) -> dict[str, MediumUse]:
        """Return the use of each medium up to a time, ns."""
        return {} if self.sharing is None else self.sharing.use(end)

    def under_way(self) -> Iterator[Message]:
        """Return messages that have not arrived, each copy: on the heap, or waiting for a medium or another attempt."""
        yield from (entry[4] for entry in self.scheduler.heap if isinstance(entry[4], Message))
        if self.sharing is not None:
            yield from (message for message, _ in self.sharing.waiting())

    def _send_over(
        self, link: Link, account: Account, message: Routed, phase: int, queue: int, nominal: int, cause: str
    ) -> int | None:
        if link.timing.shared and message.leg != Leg.REPORT_RECEIVED:
            assert self.sharing is not None
            self.sharing.take(message, phase, queue, nominal, cause)
            return int(message.sent)
        self.ask(link, message)
        fate = link.draw(FATE, nominal, cause, message.leg, message.number, message.sent)
        arrival = message.sent + (fate if fate >= 0 else ~fate)
        if not link.reorder:
            arrival = self.behind(message.agent, queue, arrival)
        if fate < 0:
            self.lose(message)
            return None
        self.scheduler.schedule(arrival, phase, message.agent, message)
        return arrival

    def _deliver(self, account: Account, message: Routed, phase: int) -> int | None:
        """Copies arrive when the delivery says; one that it does not know of yet counts as lost until it comes."""
        assert self._delivery is not None
        number = self._carried
        self._carried += 1
        times = self._delivery.times(number, message, phase)
        if not times:
            self.lose(message)
            return None
        account.duplicated += len(times) - 1
        for ns in times:
            self.scheduler.schedule(ns, phase, message.agent, message)
        if len(times) > 1:
            self._twins[message.id] = False
        return min(times)

    def land(self, message: Routed, phase: int, ns: int, first: int | None) -> None:
        """Note that a copy of a message counted as lost arrives at `ns`; first: arrival of its first copy, if any."""
        account = self.accounts[message.agent]
        if first is None:
            account.lost -= 1
        else:
            account.duplicated += 1
            self._twins[message.id] = first <= self.scheduler.now
        self.scheduler.schedule(ns, phase, message.agent, message)

    @property
    def asks(self) -> bool:
        """Does the hook `link` change its links?"""
        return self._ask is not None

    def ask(self, link: Link, message: Routed) -> None:
        """Call the hook `link` for a message, just before its link draws."""
        if link.ruled and self._ask is not None:
            self._ask(link, message)

    def depart(self, message: Message, ns: int) -> None:
        """Note that the last bit of an attempt leaves at `ns`; for subclasses that watch."""

    def lose(self, message: Message) -> None:
        """Note that the link lost a message, in all its attempts."""
        self.accounts[message.agent].lost += 1

    def discard(self, message: Message) -> None:
        """Note that a message was dropped before it was sent."""
        self.accounts[message.agent].discarded += 1

    def behind(self, agent: int, queue: int, arrival: int) -> int:
        """Return the arrival behind all earlier messages of the queue."""
        index = _QUEUES * agent + queue
        last = self._last_arrival[index]
        if arrival < last:
            return last
        self._last_arrival[index] = arrival
        return arrival
