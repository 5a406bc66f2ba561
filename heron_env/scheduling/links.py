"""The law of one link: how late, lost or doubled a message is, as a pure function of what caused it.

A delay x becomes max(min_delay, x * (1 + ratio * z)) with z of mean 0:
    uniform     z = 2 u - 1
    gaussian    z = n, standard normal
    lognormal   1 + ratio * z = exp(s n - s**2 / 2) with s**2 = ln(1 + ratio**2): mean exactly 1, std exactly ratio
Each draw is indexed by (seed, episode, agent, purpose, cause, leg, number), so switching loss on moves no delay.
"""

import math

import numpy as np

from heron_env.scheduling.timing import Timing
from heron_env.seeding import GOLDEN, MASK, h, key, mix, mixed, standard_normal, uniform

FEW = 8
"""From so many on, an array is drawn quicker than one by one."""
MOST = 64
"""Draws in store, at most: memory grows with agents times streams."""


class Link:
    """The link between one agent and its proxy or parent, in one episode.

    Args:
        agent_key: a stable number of the agent, `seeding.h(id)`.
        timing: the agent's schedule.
        seed: the run's seed.
        episode: number of the episode since it.
    """

    __slots__ = (
        "_duplicate",
        "_gaussian",
        "_identity",
        "_least",
        "_loss",
        "_own",
        "_ratio",
        "_s",
        "_streams",
        "_uniform",
        "doubles",
        "ideal",
        "loses",
        "reorder",
        "timing",
    )

    def __init__(self, agent_key: int, timing: Timing, seed: int, episode: int) -> None:
        config = timing.config
        self.timing = timing
        self.reorder = config.reorder
        self._uniform, self._gaussian = config.jitter_type == "uniform", config.jitter_type == "gaussian"
        self._ratio = float(config.jitter_ratio)
        self._loss = float(config.loss)
        self._duplicate = float(config.duplicate)
        self._s = math.sqrt(math.log1p(self._ratio * self._ratio))
        self._identity = (seed, episode, agent_key)
        self._own: int | None = None
        self._least = timing.min_delay
        self._streams: dict[tuple[str, str, int], _Stream] = {}
        self.loses, self.doubles = self._loss > 0.0, self._duplicate > 0.0
        self.ideal = not (self._ratio or self._loss or self._duplicate or timing.min_delay)
        """Nothing is drawn on this link, and a delay is what it is said to be."""

    def delay(self, nominal: int, cause: str, leg: int, number: int, *, twin: bool = False) -> int:
        """The delay of one leg, ns; a duplicate (`twin`) has a draw of its own."""
        if self._ratio and nominal:
            u = self._u("twin delay" if twin else "delay", cause, leg, number)
            z = 2.0 * u - 1.0 if self._uniform else self._bent(u)
            nominal = round(nominal * (1.0 + self._ratio * z))
        least = self._least
        return nominal if nominal > least else least

    def lost(self, cause: str, leg: int, number: int, *, twin: bool = False) -> bool:
        """Is the message lost? A duplicate (`twin`) has a draw of its own."""
        return self.loses and self._u("twin loss" if twin else "loss", cause, leg, number) < self._loss

    def duplicated(self, cause: str, leg: int, number: int) -> bool:
        """Does the message travel twice?"""
        return self.doubles and self._u("duplicate", cause, leg, number) < self._duplicate

    def tick_time(self, number: int, previous: int) -> int:
        """Time of tick `number`, ns, not before the previous one (0 for none)."""
        if not self._ratio or not number:
            return self.timing.tick_time(number, previous, 0.0)
        u = self._u("tick", "tick", 0, number)
        return self.timing.tick_time(number, previous, 2.0 * u - 1.0 if self._uniform else self._bent(u))

    def _bent(self, u: float) -> float:
        """z of the two laws that come from a normal number."""
        n = standard_normal(u)
        if self._gaussian:
            return n
        return math.expm1(self._s * n - 0.5 * self._s * self._s) / self._ratio

    def _u(self, purpose: str, cause: str, leg: int, number: int) -> float:
        """Element `number` of `uniforms(key(seed, episode, agent_key, purpose, cause, leg), ...)`."""
        stream = self._streams.get((purpose, cause, leg))
        if stream is None:
            if self._own is None:
                self._own = key(*self._identity)
            x = self._own
            for part in (h(purpose), h(cause), int(leg)):  # key(*identity, purpose, cause, leg), begun once a link
                x = mix((x ^ part) + GOLDEN & MASK)
            stream = self._streams[purpose, cause, leg] = _Stream(x)
        at = number - stream.first
        return stream.drawn[at] if 0 <= at < len(stream.drawn) else stream.draw(number)


class _Stream:
    """Uniforms of one key, some in store: numbers are asked for one after another, and arrays are drawn at less cost.

    What is in store is a copy of the law's value, so that neither order nor store shows.
    """

    __slots__ = ("drawn", "first", "key")

    def __init__(self, key: int) -> None:
        self.key, self.first = key, 0
        self.drawn: list[float] = []

    def draw(self, number: int) -> float:
        """Number `number`, putting those behind it in store: twice as many as before, up to MOST."""
        many = min(2 * len(self.drawn), MOST) or 2
        self.first = number
        if many < FEW:
            self.drawn = [uniform(mix(self.key + (n + 1) * GOLDEN & MASK)) for n in range(number, number + many)]
        else:
            counter = np.arange(number + 1, number + many + 1, dtype=np.uint64)
            z = mixed(counter * np.uint64(GOLDEN) + np.uint64(self.key))
            self.drawn = ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53).tolist()
        return self.drawn[0]
