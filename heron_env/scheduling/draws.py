"""What a link draws, as pure functions of keys: delays, losses and ticks by number, the state of a chain by time.

A delay x becomes max(min_delay, x * (1 + ratio * z)) with z of mean 0:
    uniform     z = 2 u - 1
    gaussian    z = n, standard normal
    lognormal   1 + ratio * z = exp(s n - s**2 / 2) with s**2 = ln(1 + ratio**2): mean exactly 1, std exactly ratio
Each draw u is indexed by (seed, episode, agent, purpose, cause, leg, number), so switching loss on moves no delay:

    U(purpose) = element `number` of uniforms(key(seed, episode, h(agent), purpose, cause, leg))    (heron_env.seeding)

A chain with thresholds `start` and `moves` has at t ns the state s_k with k = t // period_ns (whole numbers). With u_k
element k of uniforms(key(seed, episode, h(agent), "chain", FIELD, 0)), FIELD one of "msg_delay", "obs_delay",
"act_delay", "loss":

    s_0 = number of j with start[j] <= u_0
    s_k = number of j with moves[s_(k-1)][j] <= u_k                      for k = 1, 2, ...

So s_0 is stationary, one draw makes one move, and no draw but the link's own chain's is used up: what else is sent, and
in which order, does not show. The state may be found without all moves before: where all states move to the same one
at u_j (`met`), s_j is known. From k one goes back to such a j, or to 0, and then forward.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.scheduling.sources import Chain, mean_s
from heron_env.scheduling.timing import Timing
from heron_env.seeding import element, keys, standard_normal, uniform_rows

KEPT = 4
"""Blocks in store for one kind of draw, at most."""
SHORTEST, LONGEST, ENOUGH = 3, 6, 512
"""A block is for 2**3 to 2**6 numbers: so many that all links together make about 512 draws."""
FAR = 2.0**62
"""No delay is longer, ns: a century."""
NONE = -1
"""No state of a chain."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class What(IntEnum):
    """What is asked of a link's draws, an int each. The second copy of a message (TWIN) has draws of its own."""

    __hash__ = int.__hash__

    FATE = 0
    """The delay of a message, ns; of one that gets lost ~delay, which is below 0."""
    TWIN_FATE = 1
    DELAY = 2
    """The same without loss."""
    TWIN_DELAY = 3
    LOST = 4
    """Does it get lost? 0 or 1."""
    TWIN_LOST = 5
    DUPLICATED = 6
    """Does it travel twice? 0 or 1."""
    SHIFT = 7
    """How far a tick moves, ns."""


TWINS = (What.TWIN_FATE, What.TWIN_DELAY, What.TWIN_LOST)


Question = tuple[int, int, str, int]
"""(what, nominal delay or tick in ns, cause, leg)."""


def deviation(kind: str, ratio: float, u: Any) -> Any:
    """ratio * z of a uniform u; of an array of them only where `kind` is "uniform"."""
    if kind == "uniform":
        return ratio * (2.0 * u - 1.0)
    normal = standard_normal(u)
    if kind == "gaussian":
        return ratio * normal
    s = math.sqrt(math.log1p(ratio * ratio))
    return math.expm1(s * normal - 0.5 * s * s)


class LinkDraws(dict[Question, "Blocks"]):
    """`draws[what, nominal, cause, leg]`: what links draw that differ in their agent only, as arrays, numbers ahead.

    What is kept is a copy of the law's value: neither the order of asking nor who else draws here shows.

    Args:
        timing: the schedule of one of them; all are alike.
        seed: the run's seed.
        episode: number of the episode since it.
        agents: stable numbers of the agents, `seeding.h(id)`.
    """

    def __init__(self, timing: Timing, seed: int, episode: int, agents: Sequence[int]) -> None:
        super().__init__()
        config = timing.config
        self.ratio, self.tick_ratio = float(config.jitter_ratio), float(config.tick_jitter_ratio)
        self.loss, self.duplicate = mean_s(config.loss), float(config.duplicate)
        self.bits = min(max((ENOUGH // len(agents)).bit_length(), SHORTEST), LONGEST)
        self._kind, self._least = config.jitter_type, timing.min_delay
        self._identity, self._agents = (seed, episode), np.array(agents, np.uint64)
        self._own: NDArray[np.uint64] | None = None

    def __missing__(self, question: Question) -> Blocks:
        """Nothing is drawn yet: the same questions come over and over."""
        blocks = self[question] = Blocks(self, question)
        return blocks

    def __reduce__(self) -> tuple[object, ...]:
        """Nothing that was drawn."""
        return _bare, ({name: value for name, value in vars(self).items() if name != "_own"},)

    def drawn(self, question: Question, links: slice, first: int, count: int) -> Ints:
        """The answers for some links and for numbers from `first` on, int64 `[links, count]`."""
        what, nominal, cause, leg = question
        twin = "twin " if what in TWINS else ""
        where = (cause, leg, links, first, count)
        if what == What.DUPLICATED:
            return (self._uniforms("duplicate", *where) < self.duplicate).astype(np.int64)
        if what == What.SHIFT:
            shift = np.clip(self._deviations(self._uniforms("tick", *where), self.tick_ratio), -0.5, 0.5)
            return np.rint(shift * nominal).astype(np.int64)
        if what in (What.LOST, What.TWIN_LOST):
            return (self._uniforms(f"{twin}loss", *where) < self.loss).astype(np.int64)
        if self.ratio and nominal:
            spread = nominal * (1.0 + self._deviations(self._uniforms(f"{twin}delay", *where), self.ratio))
            delays = np.minimum(np.rint(spread), FAR).astype(np.int64)
        else:
            delays = np.full((len(self._agents[links]), count), nominal)
        delays = np.maximum(delays, self._least)
        if self.loss and what in (What.FATE, What.TWIN_FATE):
            return np.where(self._uniforms(f"{twin}loss", *where) < self.loss, ~delays, delays)
        return delays

    def _uniforms(self, purpose: str, cause: str, leg: int, links: slice, first: int, count: int) -> Floats:
        """U(purpose) of numbers from `first` on, float64 `[links, count]`."""
        if self._own is None:
            self._own = keys(*self._identity, self._agents)
        return uniform_rows(keys(purpose, cause, int(leg), after=self._own[links]), count, first)

    def _deviations(self, u: Floats, ratio: float) -> Floats:
        if self._kind == "uniform":
            return np.asarray(deviation(self._kind, ratio, u))
        return np.array([deviation(self._kind, ratio, x) for x in u.ravel().tolist()]).reshape(u.shape)


class Blocks:
    """The answers to one question, in blocks of 2**bits numbers: link after link, one number after another."""

    __slots__ = ("_draws", "_question", "blocks")

    def __init__(self, draws: LinkDraws, question: Question) -> None:
        self._draws, self._question = draws, question
        self.blocks: dict[int, list[int]] = {}

    def draw(self, link: int, number: int) -> int:
        """Of one link (its place) and number: with all of its block, unless the others are far ahead."""
        draws, blocks = self._draws, self.blocks
        wanted, size = number >> draws.bits, 1 << draws.bits
        if blocks and wanted <= max(blocks) - KEPT:
            return int(draws.drawn(self._question, slice(link, link + 1), number, 1)[0, 0])
        if len(blocks) == KEPT:
            del blocks[min(blocks)]
        block = draws.drawn(self._question, slice(None), wanted * size, size)
        blocks[wanted] = drawn = block.ravel().tolist()
        return drawn[link * size + number % size]


def _bare(kept: dict[str, object]) -> LinkDraws:
    draws = LinkDraws.__new__(LinkDraws)
    vars(draws).update(kept, _own=None)
    return draws


def met(chain: Chain, u: float) -> int:
    """The state to which all move at u; -1 if there is none."""
    first = bisect_right(chain.moves[0], u)
    return first if all(bisect_right(row, u) == first for row in chain.moves[1:]) else NONE


class ChainState:
    """One chain of one link in one episode; it remembers where it was asked last, which saves time only.

    Args:
        chain: how it moves.
        x: the key of its draws.
    """

    __slots__ = ("_chain", "_last", "_state", "_x")

    def __init__(self, chain: Chain, x: int) -> None:
        self._chain, self._x = chain, x
        self._last, self._state = NONE, NONE

    def at(self, ns: int) -> int:
        """The state at a time, ns >= 0."""
        last = ns // self._chain.period_ns
        if last != self._last:
            self._state = self._found(last)
            self._last = last
        return self._state

    def _found(self, wanted: int) -> int:
        chain, draws, k = self._chain, list[float](), wanted
        while True:
            if k == self._last:
                state = self._state
                break
            u = self._draw(k)
            state = bisect_right(chain.start, u) if k == 0 else met(chain, u)
            if state != NONE:
                break
            draws.append(u)
            k -= 1
        for u in reversed(draws):
            state = bisect_right(chain.moves[state], u)
        return state

    def _draw(self, k: int) -> float:
        return element(self._x, k)
