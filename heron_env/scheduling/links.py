"""The law of one link: how late, lost or doubled a message is, as a pure function of what caused it.

A delay x becomes max(min_delay, x * (1 + ratio * z)) with z of mean 0:
    uniform     z = 2 u - 1
    gaussian    z = n, standard normal
    lognormal   1 + ratio * z = exp(s n - s**2 / 2) with s**2 = ln(1 + ratio**2): mean exactly 1, std exactly ratio
Each draw is indexed by (seed, episode, agent, purpose, cause, leg, number), so switching loss on moves no delay.
"""

import math

from heron_env.scheduling.timing import Timing
from heron_env.seeding import GOLDEN, MASK, key, mix, standard_normal, uniform


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
        "_identity",
        "_jitter",
        "_loss",
        "_ratio",
        "_s",
        "_streams",
        "ideal",
        "reorder",
        "timing",
    )

    def __init__(self, agent_key: int, timing: Timing, seed: int, episode: int) -> None:
        config = timing.config
        self.timing = timing
        self.reorder = config.reorder
        self._jitter = config.jitter_type
        self._ratio = float(config.jitter_ratio)
        self._loss = float(config.loss)
        self._duplicate = float(config.duplicate)
        self._s = math.sqrt(math.log1p(self._ratio * self._ratio))
        self._identity = (seed, episode, agent_key)
        self._streams: dict[tuple[str, str, int], int] = {}
        self.ideal = not (self._ratio or self._loss or self._duplicate or timing.min_delay)
        """Nothing is drawn on this link, and a delay is what it is said to be."""

    def delay(self, nominal: int, cause: str, leg: int, number: int, *, twin: bool = False) -> int:
        """The delay of one leg, ns; a duplicate (`twin`) has a draw of its own."""
        if self._ratio and nominal:
            z = self._z("twin delay" if twin else "delay", cause, leg, number)
            nominal = round(nominal * (1.0 + self._ratio * z))
        least = self.timing.min_delay
        return nominal if nominal > least else least

    def lost(self, cause: str, leg: int, number: int, *, twin: bool = False) -> bool:
        """Is the message lost? A duplicate (`twin`) has a draw of its own."""
        return bool(self._loss) and self._u("twin loss" if twin else "loss", cause, leg, number) < self._loss

    def duplicated(self, cause: str, leg: int, number: int) -> bool:
        """Does the message travel twice?"""
        return bool(self._duplicate) and self._u("duplicate", cause, leg, number) < self._duplicate

    def tick_time(self, number: int, previous: int) -> int:
        """Time of tick `number`, ns, not before the previous one (0 for none)."""
        z = self._z("tick", "tick", 0, number) if self._ratio and number else 0.0
        return self.timing.tick_time(number, previous, z)

    def _z(self, purpose: str, cause: str, leg: int, number: int) -> float:
        u = self._u(purpose, cause, leg, number)
        if self._jitter == "uniform":
            return 2.0 * u - 1.0
        n = standard_normal(u)
        if self._jitter == "gaussian":
            return n
        return math.expm1(self._s * n - 0.5 * self._s * self._s) / self._ratio

    def _u(self, purpose: str, cause: str, leg: int, number: int) -> float:
        """Element `number` of `uniforms(key(seed, episode, agent_key, purpose, cause, leg), ...)`."""
        name = (purpose, cause, int(leg))  # int: the hash of an IntEnum is slow
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = key(*self._identity, *name)
        return uniform(mix(stream + (number + 1) * GOLDEN & MASK))
