"""Senders that report over links of which some are shared or reliable, through a post office of their own: no agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from heron_env import EventScheduler, MessageBroker, ScheduleConfig
from heron_env.scheduling.links import links_of
from heron_env.scheduling.messages import CustomLetter
from heron_env.scheduling.sharing import Offer, Transmit
from heron_env.scheduling.timing import Timing
from heron_env.seeding import h
from heron_env.testing import clock
from heron_env.testing.clock import SECOND

Draws = Callable[[int], Iterator[float]]
Row = tuple[int, int, int]
"""(number, departure, arrival) of a message, ns."""


class Sized:
    """The content of a message of so many bytes."""

    def __init__(self, size: float) -> None:
        self.size = size


class Office:
    """Sender i sends its next message after `gaps(i)` s each, of `sizes(i)` bytes.

    Attributes:
        sent: by id, (sender, number, ns).
        arrived: by sender, rows in the order in which they came.
        departures: by id, of each attempt.
    """

    def __init__(
        self, config: ScheduleConfig | Sequence[ScheduleConfig], senders: int, gaps: Draws, sizes: Draws, seed: int = 0
    ) -> None:
        configs = [config] * senders if isinstance(config, ScheduleConfig) else list(config)
        timings = [Timing.of(f"sender_{i}", each, SECOND) for i, each in enumerate(configs)]
        keys = [h(timing.agent) for timing in timings]
        self.scheduler = EventScheduler()
        self.broker = MessageBroker(self.scheduler, links_of(keys, timings, timings, seed, 0))
        self.timings, self.numbers = timings, [0] * senders
        self._gaps, self._sizes = [gaps(i) for i in range(senders)], [sizes(i) for i in range(senders)]
        self.sent: dict[int, tuple[int, int, int]] = {}
        self.arrived: list[list[Row]] = [[] for _ in range(senders)]
        for sender in range(senders):
            self._plan(sender, 0)

    def _plan(self, sender: int, now: int) -> None:
        ns = now + max(1, round(next(self._gaps[sender]) * SECOND))
        self.scheduler.schedule(ns, int(clock.Phase.AGENT_TICK), sender, None)

    def run(self, messages: int) -> Office:
        """Until so many have been sent; what is under way then stays."""
        while len(self.sent) < messages:
            self.handle()
        return self

    def finish(self) -> Office:
        """Nobody sends any more; what is under way arrives."""
        self._plan = lambda sender, now: None  # type: ignore[method-assign]
        while self.scheduler:
            self.handle(sends=False)
        return self

    def handle(self, *, sends: bool = True) -> None:
        """The next event."""
        now, _, sender, event = self.scheduler.pop()
        if event is None:
            if sends:
                self._send(sender, now)
        elif isinstance(event, Offer | Transmit):
            assert self.broker.sharing is not None
            self.broker.sharing.handle(event, now)
        elif self.broker.accept(event):
            self.arrived[sender].append((event.number, event.sent, now))

    def _send(self, sender: int, now: int) -> None:
        self.numbers[sender] += 1
        id, number = self.broker.next_id(), self.numbers[sender]
        self.sent[id] = sender, number, now
        letter = CustomLetter(sender, number, id, now, Sized(next(self._sizes[sender])))
        self.broker.send(letter, clock.Phase.REPORT, clock.Queue.UP, self.timings[sender].msg, "telemetry")
        self._plan(sender, now)

    def age(self, sender: int, shift: float = 0.0) -> float:
        """Mean age of the newest message that has arrived, s, without the first 2 %; `shift` s taken off each arrival."""
        rows = np.array(self.arrived[sender], dtype=np.int64)
        came, left = rows[:, 2] - round(shift * SECOND), rows[:, 1]
        newest = np.maximum.accumulate(left)
        news = np.r_[True, left[1:] > newest[:-1]]
        came, left = came[news], left[news]
        first = len(came) // 50
        x, y = came[first:] / SECOND, left[first:] / SECOND
        gaps = np.diff(x)
        return float(((x[:-1] - y[:-1]) * gaps + gaps * gaps / 2).sum() / gaps.sum())

    def mean_age(self) -> float:
        """Over all senders."""
        return float(np.mean([self.age(sender) for sender in range(len(self.timings))]))


def exponential(mean: float, *seed: int) -> Draws:
    """Of each sender its own."""

    def draws(sender: int) -> Iterator[float]:
        generator = np.random.default_rng([*seed, sender])
        while True:
            yield from generator.exponential(mean, 4096).tolist()

    return draws


def matched(mean: float, count: int, *seed: int) -> Draws:
    """The first `count` have exactly this mean: less chance in a comparison."""

    def draws(sender: int) -> Iterator[float]:
        first = np.random.default_rng([*seed, sender]).exponential(mean, count)
        yield from (first * (mean / first.mean())).tolist()
        yield from exponential(mean, *seed, 1)(sender)

    return draws


def constant(value: float) -> Draws:
    """Always the same."""

    def draws(sender: int) -> Iterator[float]:
        while True:
            yield value

    return draws


def sized(sharing: Any) -> Callable[[Any, dict[str, float]], float]:
    """Stands in for `sharing.content_size`: the bytes that a message of an Office says."""
    original = sharing.content_size

    def content_size(message: Any, sizes: dict[str, float]) -> float:
        content = getattr(message, "content", None)
        return content.size if isinstance(content, Sized) else original(message, sizes)

    return content_size
