"""The draws of a link (T7, T8) once more, one number at a time: nothing is kept, nothing depends on who asks when."""

import math
from typing import Any

from heron_env.seeding import GOLDEN, MASK, key, mix, standard_normal, uniform

CENTURY = 2**62
"""No delay is longer, ns."""


class PlainLink:
    """How late, lost or doubled what one agent's link carries is; times in ns."""

    def __init__(self, timing: Any, seed: int, episode: int) -> None:
        self.timing, self.config = timing, timing.config
        self.identity = (seed, episode, timing.agent)

    def _uniform(self, purpose: str, cause: str, leg: int, number: int) -> float:
        """Element `number` of the stream that all the other names key."""
        stream = key(*self.identity, purpose, cause, leg)
        return uniform(mix(stream + (number + 1) * GOLDEN & MASK))

    def _deviation(self, u: float, ratio: float) -> float:
        """How far the link's jitter moves something, as a share of it; of mean 0."""
        match self.config.jitter_type:
            case "uniform":
                return ratio * (2.0 * u - 1.0)
            case "gaussian":
                return ratio * standard_normal(u)
            case _:
                s = math.sqrt(math.log1p(ratio * ratio))
                return math.expm1(s * standard_normal(u) - 0.5 * s * s)

    def delay(self, nominal: int, cause: str, leg: int, number: int, twin: str = "") -> int:
        """What a delay of `nominal` becomes; the second copy of a message is the `twin`, "twin "."""
        if nominal and self.config.jitter_ratio:
            u = self._uniform(f"{twin}delay", cause, leg, number)
            nominal = min(round(nominal * (1.0 + self._deviation(u, self.config.jitter_ratio))), CENTURY)
        return max(self.timing.min_delay, nominal)

    def lost(self, cause: str, leg: int, number: int, twin: str = "") -> bool:
        """Does it never arrive?"""
        return self._uniform(f"{twin}loss", cause, leg, number) < self.config.loss

    def duplicated(self, cause: str, leg: int, number: int) -> bool:
        """Does it travel twice?"""
        return self._uniform("duplicate", cause, leg, number) < self.config.duplicate

    def tick(self, number: int, previous: int) -> int:
        """Time of a tick: it wavers by at most half an interval, but never before the one before it."""
        due = self.timing.phase + number * self.timing.tick
        if number and self.config.tick_jitter_ratio:
            shift = self._deviation(self._uniform("tick", "tick", 0, number), self.config.tick_jitter_ratio)
            due += round(min(max(shift, -0.5), 0.5) * self.timing.tick)
        return max(previous, due)
