"""The draws of a link (T7, T8) once more, one number at a time: nothing is kept, nothing depends on who asks when."""

import math
from collections.abc import Sequence
from typing import Any

from heron_env import Empirical, GilbertElliott, Markov, Recorded
from heron_env.seeding import GOLDEN, MASK, key, mix, standard_normal, uniform
from heron_env.testing import clock

CENTURY = 2**62
"""No delay is longer, ns."""


def picked(shares: Sequence[float], u: float) -> int:
    """The first whose share, and all before it, together exceed u; else the last."""
    total = 0.0
    for number, share in enumerate(shares):
        total += share
        if u < total:
            return number
    return len(shares) - 1


def ages_by_clocks(timings: Sequence[Any], reader: int, sources: Any, as_of: Any, now: int) -> list[float]:
    """Ages as an agent observes them, s (T28): its clock now less what the clock of each row's owner said at as-of."""

    def error(rank: int, ns: int) -> int:
        """How much a clock is ahead; the global row, behind all agents', is the system agent's."""
        config = timings[rank if rank < len(timings) else 0].config
        return round(config.clock_offset * 1e9) + round(config.clock_drift * ns)

    known = [(row, int(since)) for row, since in zip(sources.tolist(), as_of, strict=True)]
    return [(float(max(now - t, 0)) + float(error(reader, now) - error(row, t))) / 1e9 for row, t in known]


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

    def _base(self, nominal: int, cause: str, leg: int, number: int, at: int) -> int:
        """The delay before jitter of what departs `at`, ns: the number, or what its source says (T20)."""
        name = {clock.Leg.GATHERING: "obs_delay", clock.Leg.ACTION: "act_delay"}.get(clock.Leg(leg), "msg_delay")
        source = getattr(self.config, name)
        if isinstance(source, Recorded):
            rest = at % source.period_ns
            times = [round((time - source.times[0]) * 1e9) for time in source.times]
            return max(
                (time, round(delay * 1e9)) for time, delay in zip(times, source.delays, strict=True) if time <= rest
            )[1]
        if isinstance(source, Markov):
            n = len(source.states)
            stays = source.stay if isinstance(source.stay, tuple) else (source.stay,) * n
            rows = [[s if i == j else (1.0 - s) / (n - 1) for j in range(n)] for i, s in enumerate(stays)]
            long = [1.0 / (1.0 - s) for s in stays]
            source = source.states[self._state(name, [x / sum(long) for x in long], rows, source.period, at)]
            nominal = 0 if isinstance(source, Empirical) else round(source * 1e9)
        if isinstance(source, Empirical):
            if len(source.delays) == 1:
                return round(source.delays[0] * 1e9)
            u = self._uniform("sample", cause, leg, number)
            return round(source.delays[int(u * len(source.delays))] * 1e9)
        return nominal

    def _state(self, name: str, first: Sequence[float], rows: Any, period: float, at: int) -> int:
        """The state of a chain: from the beginning, one move after another."""
        state = picked(first, self._uniform("chain", name, 0, 0))
        for k in range(1, at // round(period * 1e9) + 1):
            state = picked(rows[state], self._uniform("chain", name, 0, k))
        return state

    def delay(self, nominal: int, cause: str, leg: int, number: int, at: int) -> int:
        """What a delay of `nominal` becomes."""
        nominal = self._base(nominal, cause, leg, number, at)
        if nominal and self.config.jitter_ratio:
            u = self._uniform("delay", cause, leg, number)
            nominal = min(round(nominal * (1.0 + self._deviation(u, self.config.jitter_ratio))), CENTURY)
        return max(self.timing.min_delay, nominal)

    def lost(self, cause: str, leg: int, number: int, at: int) -> bool:
        """Does it never arrive?"""
        loss = self.config.loss
        if isinstance(loss, GilbertElliott):
            bad = loss.p_bad / (loss.p_bad + loss.p_good)
            rows = [[1.0 - loss.p_bad, loss.p_bad], [loss.p_good, 1.0 - loss.p_good]]
            loss = (loss.loss_good, loss.loss_bad)[self._state("loss", [1.0 - bad, bad], rows, loss.period, at)]
        return self._uniform("loss", cause, leg, number) < loss

    def tick(self, number: int, previous: int) -> int:
        """Time of a tick: it wavers by at most half an interval, but never before the one before it."""
        due = self.timing.phase + number * self.timing.tick
        if number and self.config.tick_jitter_ratio and due < 2**63:
            shift = self._deviation(self._uniform("tick", "tick", 0, number), self.config.tick_jitter_ratio)
            due += round(min(max(shift, -0.5), 0.5) * self.timing.tick)
        return max(previous, due)
