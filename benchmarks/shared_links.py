"""Senders that share links, through the post office alone: ages and shares by closed forms (T25 to T27).

    python -m benchmarks.shared_links                 # 10 seeds of 100,000 messages each: ten minutes
    python -m benchmarks.shared_links --quick

Ages are mean ages of the newest message that has arrived, in a unit of one message's work; load is the share of time in
which the medium would be busy. Draws have exactly the wanted mean (moment matching): less chance in a comparison.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.post_office import standard_errors
from heron_env import EventScheduler, MessageBroker, ScheduleConfig
from heron_env.scheduling import contents, sharing
from heron_env.scheduling.links import links_of
from heron_env.scheduling.media import Medium, Reliable
from heron_env.scheduling.messages import StateReport
from heron_env.scheduling.timing import Timing
from heron_env.seeding import h
from heron_env.testing import clock
from heron_env.testing.clock import SECOND

Draws = Callable[[int], Iterator[float]]
Row = tuple[int, int, int]
"""(number, departure, arrival) of a message, ns."""


NOTHING = np.zeros(0)


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
        elif not (self.broker.sharing and self.broker.sharing.takes(event)) and self.broker.accept(event):
            self.arrived[sender].append((event.number, event.sent, now))

    def _send(self, sender: int, now: int) -> None:
        self.numbers[sender] += 1
        id, number = self.broker.next_id(), self.numbers[sender]
        self.sent[id] = sender, number, now
        content: Any = Sized(next(self._sizes[sender]))
        report = StateReport(sender, number, id, now, 0, 0, now, NOTHING, False, content)
        self.broker.send(report, clock.Phase.REPORT, clock.Queue.UP, self.timings[sender].msg, "telemetry")
        self._plan(sender, now)

    def age(self, sender: int, shift: float = 0.0) -> float:
        """Mean age of the newest message that arrived, s, without the first 2 %; `shift` s taken off each arrival."""
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


def content_size(message: Any, sizes: dict[str, float]) -> float:
    """Bytes of a message of an Office; stands in for `sharing.content_size`."""
    content = getattr(message, "view", None)
    return float(content.size) if isinstance(content, Sized) else contents.content_size(message, sizes)


# Closed forms

ONE: Final = Medium(rate=1.0)
LOADS: Final = (0.5, 0.8)


class Form(NamedTuple):
    """What should come out, and how it is tried: `play(seed, messages)`."""

    value: float
    play: Callable[[int, int], float]


def aged(config: ScheduleConfig, gaps: Callable[[int, int], Draws], sizes: Callable[[int, int], Draws]) -> Any:
    """The mean age of one sender."""

    def play(seed: int, messages: int) -> float:
        return Office(config, 1, gaps(seed, messages), sizes(seed, messages), seed).run(messages).age(0)

    return play


def _poisson(load: float) -> Callable[[int, int], Draws]:
    return lambda seed, messages: matched(1.0 / load, messages, seed, 11)


def _random(seed: int, messages: int) -> Draws:
    return matched(1.0, messages, seed, 12)


def _fixed(value: float) -> Callable[[int, int], Draws]:
    return lambda seed, messages: constant(value)


def d_m_1(load: float) -> float:
    """Age of D/M/1: 1 / (2 load) + 1 / (1 - s), s = exp(-(1 - s) / load)."""
    s = 0.5
    for _ in range(500):
        s = math.exp(-(1.0 - s) / load)
    return 1.0 / (2.0 * load) + 1.0 / (1.0 - s)


def refused(load: float, places: int) -> float:
    """The share that M/D/1 with so many places to wait refuses, from the chain embedded at departures."""
    arrivals = [math.exp(-load) * load**k / math.factorial(k) for k in range(60)]
    n = places + 1
    moves = np.zeros((n, n))
    for i, j in itertools.product(range(n), range(n - 1)):
        moves[i, j] = arrivals[j - max(i - 1, 0)] if j >= max(i - 1, 0) else 0.0
    moves[:, -1] = 1.0 - moves.sum(axis=1)
    values, vectors = np.linalg.eig(moves.T)
    left = np.real(vectors[:, np.argmin(abs(values - 1.0))])
    left = left / left.sum()
    return float(1.0 - 1.0 / (left[0] + load))


def share_refused(load: float, places: int) -> Callable[[int, int], float]:
    """What of its messages a sender must discard where so many may wait."""

    def play(seed: int, messages: int) -> float:
        config = ScheduleConfig(medium=replace(ONE, limit=float(places)))
        office = Office(config, 1, _poisson(load)(seed, messages), constant(1.0), seed).run(messages)
        return office.broker.total().discarded / messages

    return play


def waits(load: float, place: int) -> Callable[[int, int], float]:
    """The mean wait of the first or second of two priorities, M/D/1."""

    def play(seed: int, messages: int) -> float:
        medium = Medium(rate=1.0, order="priority")
        configs = [ScheduleConfig(medium=medium, priority=i) for i in range(2)]
        office = Office(configs, 2, exponential(2.0 / load, seed, 5), constant(1.0), seed).run(messages)
        return float(np.mean([(arrived - sent) / SECOND for _, sent, arrived in office.arrived[place]])) - 1.0

    return play


def _forms() -> Iterator[tuple[str, Form]]:
    plain = ScheduleConfig(medium=ONE)
    for x in LOADS:
        yield f"M/M/1 fifo, load {x}", Form(1 + 1 / x + x**2 / (1 - x), aged(plain, _poisson(x), _random))
        value = 1 / (2 * (1 - x)) + 0.5 + (1 - x) * math.exp(x) / x
        yield f"M/D/1 fifo, load {x}", Form(value, aged(plain, _poisson(x), _fixed(1.0)))
        yield f"D/M/1 fifo, load {x}", Form(d_m_1(x), aged(plain, _fixed(1.0 / x), _random))
        nobody = ScheduleConfig(medium=replace(ONE, limit=0.0))
        yield f"M/M/1/1 (limit=0), load {x}", Form(1 / x + 2 - 1 / (1 + x), aged(nobody, _poisson(x), _random))
        value = 1 / x + 2 + x / (1 + x) ** 2 + 1 / (1 + x) - 2 * (1 + x) / (1 + x + x**2)
        newest = ScheduleConfig(medium=ONE, keep=1)
        yield f"M/M/1/2* (keep=1), load {x}", Form(value, aged(newest, _poisson(x), _random))
    for x, places in ((1.3, 3), (0.8, 2)):
        yield (
            f"drop-tail M/D/1, {places} may wait, load {x}: refused",
            Form(refused(x, places), share_refused(x, places)),
        )
    rest = 0.8 / 2  # of the message that is being sent, where all last equally long
    yield "priorities M/D/1, load 0.8, first: wait", Form(rest / (1 - 0.4), waits(0.8, 0))
    yield "priorities M/D/1, load 0.8, second: wait", Form(rest / ((1 - 0.4) * (1 - 0.8)), waits(0.8, 1))
    loss, rto, gap = 0.3, 0.5, 20.0
    alone = ScheduleConfig(medium=ONE, loss=loss, transport=Reliable(rto=rto, backoff=1.0))
    value = gap / 2 + 1 + loss / (1 - loss) * (1 + rto)
    yield "reliable, one at a time", Form(value, aged(alone, _fixed(gap), _fixed(1.0)))


FORMS: Final[Mapping[str, Form]] = dict(_forms())
"""M/M/1, D/M/1: S. Kaul, R. Yates, M. Gruteser, "Real-time status: how often should one update?", INFOCOM 2012; M/D/1
and packet management: M. Costa, M. Codreanu, A. Ephremides, "On the age of information in status update systems with
packet management", IEEE Trans. Inf. Theory 62 (2016); priorities: A. Cobham, "Priority assignment in waiting line
problems", Operations Research 2 (1954)."""


def tried(name: str, seeds: int, messages: int) -> tuple[list[float], float]:
    """By seed, what comes out; and how many standard errors off that is in the mean."""
    with patch.object(sharing, "content_size", content_size):
        values = [FORMS[name].play(seed, messages) for seed in range(seeds)]
    return values, float(standard_errors([np.array(value) for value in values], np.array(FORMS[name].value)))


def main() -> None:
    """Print each form and what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 seeds of 5,000 messages")
    seeds, messages = (4, 5_000) if parser.parse_args().quick else (10, 100_000)
    print("| law | form | post office | off |\n| --- | ---: | ---: | ---: |")
    for name, form in FORMS.items():
        values, score = tried(name, seeds, messages)
        print(f"| {name} | {form.value:.4f} | {np.mean(values):.4f} | {score:+.1f} standard errors |", flush=True)


if __name__ == "__main__":
    main()
