"""The post office alone against closed forms: age of information, and losses in a row.

A source sends an update every period over one link. Its age of information is how old the newest update is that has
arrived, in the mean over time (S. Kaul, R. Yates, M. Gruteser, "Real-time status: how often should one update?",
INFOCOM 2012). With period T, independent delays D of distribution F, and losses of probability p it is

    reorder    T / 2 + sum over n >= 1 of the integral over u in [0, T] of prod over j < n of 1 - (1 - p) F(u + j T)
    in order   T (1 + p) / (2 (1 - p)) + E[max over i >= 0 of D_i - i T]

In order a lost message keeps its place (T7): those behind it wait for it as if it had come. The link is a resequencer,
not a server, so no formula of queues applies. A second copy, sent with probability q, turns 1 - c, c = (1 - p) F, into
(1 - c) (1 - q c).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env import Empirical, EventScheduler, GilbertElliott, MessageBroker, ScheduleConfig
from heron_env.testing import clock

PERIOD: Final = 1.0
"""Between two updates, s, where the schedule has no other."""
WARM_UP: Final = 200.0
"""s; by then the first updates show no more."""
CELLS: Final = 1000
"""Of a second, in integrals; their middles count."""
HORIZON: Final = 150.0
"""s; after that a delay has ended for certain."""
Floats = NDArray[np.float64]

DELAYS: Final[dict[str, ScheduleConfig]] = {
    "constant": ScheduleConfig(msg_delay=2.25),
    "uniform": ScheduleConfig(msg_delay=2.0, jitter_type="uniform", jitter_ratio=0.9),
    "gaussian": ScheduleConfig(msg_delay=1.0, jitter_type="gaussian", jitter_ratio=0.8, min_delay=0.25),
    "lognormal": ScheduleConfig(msg_delay=1.5, jitter_type="lognormal", jitter_ratio=1.0),
    "measured": ScheduleConfig(msg_delay=Empirical([0.25, 0.25, 0.5, 4.0])),
}
"""On the scale of the period and above it, so that updates overtake each other or wait."""
AGES: Final[dict[str, ScheduleConfig]] = {
    f"{name}, loss {loss:g}, {'reorder' if reorder else 'in order'}": replace(DELAYS[name], loss=loss, reorder=reorder)
    for name, losses in {"uniform": [0.3], "gaussian": [0.3], "lognormal": [0.0, 0.3, 0.6], "measured": [0.3]}.items()
    for loss in losses
    for reorder in (False, True)
} | {
    "constant, loss 0.3, in order": replace(DELAYS["constant"], loss=0.3),
}
LOSSES: Final[dict[str, float | GilbertElliott]] = {
    "Bernoulli 0.1": 0.1,
    "Bernoulli 0.4": 0.4,
    "Gilbert": GilbertElliott(p_bad=0.03, p_good=0.25, loss_bad=1.0, loss_good=0.0, period=PERIOD),
    "Gilbert-Elliott": GilbertElliott(p_bad=0.05, p_good=0.2, loss_bad=0.8, loss_good=0.02, period=PERIOD),
}
"""The chains move once between two departures."""


class Wire:
    """One link of the post office, an update a period: what is sent, and when it arrives."""

    def __init__(self, config: ScheduleConfig, seed: int) -> None:
        self.scheduler = EventScheduler()
        link = clock.link("source", config, seed=seed, dt=PERIOD)
        self.broker = MessageBroker(self.scheduler, [link])
        self.delay, self.period = link.timing.msg, link.timing.tick

    def send(self, number: int) -> bool:
        """Send update `number`; does it arrive?"""
        update = clock.ObservationRequest(0, number, self.broker.next_id(), number * self.period, 0)
        arrival = self.broker.send(update, clock.Phase.REPORT, clock.Queue.UP, self.delay, "telemetry")
        return arrival is not None

    def arrivals(self, updates: int) -> Iterator[tuple[int, int]]:
        """(arrival, departure) of each message, ns, as they arrive, up to the time of the departure after the last."""
        for number in range(updates + 1):
            while self.scheduler and self.scheduler.heap[0][0] <= number * self.period:
                ns, _, _, message = self.scheduler.pop()
                if self.broker.accept(message):
                    yield ns, message.sent
            self.send(number)


def mean_age(config: ScheduleConfig, seed: int, updates: int) -> float:
    """Age of the newest update that has arrived, s: the mean over the time of `updates` of them."""
    wire = Wire(config, seed)
    before = round(WARM_UP * clock.SECOND / wire.period)
    begin, end = before * wire.period, (before + updates) * wire.period
    area, last, newest = 0.0, begin, 0
    for ns, sent in wire.arrivals(before + updates):
        if sent > newest:
            if ns > begin:
                area += _area(last - newest, ns - newest)
                last = ns
            newest = sent
    return (area + _area(last - newest, end - newest)) / (end - begin) / clock.SECOND


def _area(young: int, old: int) -> float:
    """The integral of an age that grows with time, ns."""
    return 0.5 * (float(old) ** 2 - float(young) ** 2)


def distribution(config: ScheduleConfig) -> Callable[[Floats], Floats]:
    """F: the probability that a delay drawn for `config` is at most x, s."""
    delay, ratio, kind = config.msg_delay, config.jitter_ratio, config.jitter_type
    if isinstance(delay, Empirical):
        drawn = np.sort(delay.delays)
        return lambda x: np.searchsorted(drawn, x, side="right").astype(np.float64) / len(drawn)
    assert isinstance(delay, float), "no other source is made of independent delays"
    if not ratio:
        return lambda x: np.where(x >= delay, 1.0, 0.0)
    if kind == "uniform":
        return lambda x: np.clip(0.5 + (x / delay - 1.0) / (2.0 * ratio), 0.0, 1.0)
    if kind == "gaussian":
        return lambda x: np.where(x >= config.min_delay, _normal((x / delay - 1.0) / ratio), 0.0)
    spread = math.sqrt(math.log1p(ratio * ratio))
    return lambda x: _normal(np.log(x / delay) / spread + 0.5 * spread)


def _normal(x: Floats) -> Floats:
    below: Floats = 0.5 + 0.5 * np.vectorize(math.erf)(x / math.sqrt(2.0))
    return below


def expected_age(config: ScheduleConfig) -> float:
    """What `mean_age` tends to, s."""
    assert isinstance(config.loss, float), "the forms are for independent losses"
    period, p = config.tick_interval or PERIOD, config.loss
    cells = round(period * CELLS)
    rows = round(HORIZON * CELLS) // cells
    arrived = distribution(config)((np.arange(rows * cells) + 0.5) / CELLS).reshape(rows, cells)
    if config.reorder:
        missing = 1.0 - (1.0 - p) * arrived
        return period / 2 + float(np.cumprod(missing, axis=0).sum()) / CELLS
    none_waits = np.cumprod(arrived[::-1], axis=0)
    return period * (1 + p) / (2 * (1 - p)) + float((1.0 - none_waits).sum()) / CELLS


def loss_runs(loss: float | GilbertElliott, seed: int, updates: int) -> Floats:
    """The share of `updates` that is lost; of how many are lost in a row, the mean and the mean square."""
    wire = Wire(ScheduleConfig(loss=loss), seed)
    lost = np.array([False, *(not wire.send(number) for number in range(updates)), False])
    edges = np.flatnonzero(np.diff(lost))
    runs = edges[1::2] - edges[::2]
    return np.array([lost.sum() / updates, runs.mean(), (runs**2).mean()])


def expected_runs(loss: float | GilbertElliott) -> Floats:
    """What `loss_runs` tends to.

    With moves M of the chain, losses L by state on a diagonal, and stationary shares s, runs begin as s (1 - L) M L and
    go on by Q = M L: runs of n or more are s (1 - L) Q ** n of all messages, summed over states. The mean is the sum of
    these shares over n, the mean square that with weights 2 n - 1. Bernoulli's losses are a chain of one state.
    """
    moves, shares, losses = np.eye(1), np.ones(1), np.array([loss])
    if isinstance(loss, GilbertElliott):
        moves = np.array([[1.0 - loss.p_bad, loss.p_bad], [loss.p_good, 1.0 - loss.p_good]])
        shares = np.array([loss.p_good, loss.p_bad]) / (loss.p_bad + loss.p_good)
        losses = np.array([loss.loss_good, loss.loss_bad])
    losses = np.diag(losses)
    begun, one = shares @ (np.eye(len(shares)) - losses) @ moves @ losses, np.eye(len(shares))
    all_longer = np.linalg.inv(one - moves @ losses)
    mean, square = begun @ all_longer, begun @ all_longer @ (one + moves @ losses) @ all_longer
    return np.array([(shares @ losses).sum(), mean.sum() / begun.sum(), square.sum() / begun.sum()])


def standard_errors(values: Sequence[Floats], expected: Floats) -> Floats:
    """How many standard errors over seeds `[seeds, ...]` the mean is off; 0 where it is exact and nothing scatters."""
    off = np.mean(values, axis=0) - expected
    error = np.std(values, axis=0, ddof=1) / math.sqrt(len(values))
    close = np.abs(off) <= 1e-9
    scores: Floats = np.where(close, 0.0, off / np.where(error > 0.0, error, 1e-12))
    return scores
