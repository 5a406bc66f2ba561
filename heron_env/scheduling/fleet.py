"""What links draw: for all that differ in their agent only, as arrays, some numbers ahead.

A delay x becomes max(min_delay, x * (1 + ratio * z)) with z of mean 0:
    uniform     z = 2 u - 1
    gaussian    z = n, standard normal
    lognormal   1 + ratio * z = exp(s n - s**2 / 2) with s**2 = ln(1 + ratio**2): mean exactly 1, std exactly ratio
Each draw u is indexed by (seed, episode, agent, purpose, cause, leg, number), so switching loss on moves no delay. What
is kept is a copy of the law's value: neither the order of asking nor who else is in the fleet shows.
"""

import math
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from heron_env.scheduling.sources import mean_s
from heron_env.scheduling.timing import Timing
from heron_env.seeding import GOLDEN, h, key, mixed, standard_normal

KEPT = 4
"""Blocks in store for one kind of draw, at most."""
SHORTEST, LONGEST, ENOUGH = 3, 6, 512
"""A block is for 2**3 to 2**6 numbers: so many that all links together make about 512 draws."""
FAR = 2.0**62
"""No delay is longer, ns: a century."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class What(IntEnum):
    """What is asked of a fleet, an int each. The second copy of a message (TWIN) has draws of its own."""

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


Question = tuple[int, int, str, int]
"""(what, nominal delay or tick in ns, cause, leg)."""


class Fleet(dict[Question, "Draws"]):
    """Links that differ in their agent only: `fleet[what, nominal, cause, leg]` is what they draw.

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

    def __missing__(self, question: Question) -> "Draws":
        """Nothing is drawn yet: a fleet is asked the same questions over and over."""
        draws = self[question] = Draws(self, question)
        return draws

    def __reduce__(self) -> tuple[object, ...]:
        """Nothing that was drawn."""
        return _bare, ({name: value for name, value in vars(self).items() if name != "_own"},)

    def drawn(self, question: Question, links: slice, first: int, count: int) -> Ints:
        """The answers for some links and for numbers from `first` on, int64 `[links, count]`."""
        what, nominal, cause, leg = question
        twin = "twin " if what in (What.TWIN_FATE, What.TWIN_DELAY, What.TWIN_LOST) else ""
        where = (cause, leg, links, first, count)
        if what == What.DUPLICATED:
            return (self._uniforms("duplicate", *where) < self.duplicate).astype(np.int64)
        if what == What.SHIFT:
            shift = np.clip(self._deviation(self._uniforms("tick", *where), self.tick_ratio), -0.5, 0.5)
            return np.rint(shift * nominal).astype(np.int64)
        if what in (What.LOST, What.TWIN_LOST):
            return (self._uniforms(f"{twin}loss", *where) < self.loss).astype(np.int64)
        if self.ratio and nominal:
            spread = nominal * (1.0 + self._deviation(self._uniforms(f"{twin}delay", *where), self.ratio))
            delays = np.minimum(np.rint(spread), FAR).astype(np.int64)
        else:
            delays = np.full((len(self._agents[links]), count), nominal)
        delays = np.maximum(delays, self._least)
        if self.loss and what in (What.FATE, What.TWIN_FATE):
            return np.where(self._uniforms(f"{twin}loss", *where) < self.loss, ~delays, delays)
        return delays

    def _uniforms(self, purpose: str, cause: str, leg: int, links: slice, first: int, count: int) -> Floats:
        """Elements of `seeding.uniforms(key(seed, episode, agent, purpose, cause, leg), ...)`, float64."""
        golden = np.uint64(GOLDEN)
        if self._own is None:
            self._own = mixed((self._agents ^ np.uint64(key(*self._identity))) + golden)
        x = self._own[links]
        for part in (h(purpose), h(cause), int(leg)):
            x = mixed((x ^ np.uint64(part)) + golden)
        counter = np.arange(first + 1, first + count + 1, dtype=np.uint64)
        z = mixed(x[:, None] + counter * golden)
        return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _deviation(self, u: Floats, ratio: float) -> Floats:
        """ratio * z."""
        if self._kind == "uniform":
            return ratio * (2.0 * u - 1.0)
        normal = np.array([standard_normal(x) for x in u.ravel().tolist()]).reshape(u.shape)
        if self._kind == "gaussian":
            return ratio * normal
        s = math.sqrt(math.log1p(ratio * ratio))
        return np.array([math.expm1(s * n - 0.5 * s * s) for n in normal.ravel().tolist()]).reshape(u.shape)


class Draws:
    """The answers to one question, in blocks of 2**bits numbers: link after link, one number after another."""

    __slots__ = ("_fleet", "_question", "blocks")

    def __init__(self, fleet: Fleet, question: Question) -> None:
        self._fleet, self._question = fleet, question
        self.blocks: dict[int, list[int]] = {}

    def draw(self, link: int, number: int) -> int:
        """Of one link (its place in the fleet) and number: with all of its block, unless the others are far ahead."""
        fleet, blocks = self._fleet, self.blocks
        wanted, size = number >> fleet.bits, 1 << fleet.bits
        if blocks and wanted <= max(blocks) - KEPT:
            return int(fleet.drawn(self._question, slice(link, link + 1), number, 1)[0, 0])
        if len(blocks) == KEPT:
            del blocks[min(blocks)]
        block = fleet.drawn(self._question, slice(None), wanted * size, size)
        blocks[wanted] = drawn = block.ravel().tolist()
        return drawn[link * size + number % size]


def _bare(kept: dict[str, object]) -> Fleet:
    fleet = Fleet.__new__(Fleet)
    vars(fleet).update(kept, _own=None)
    return fleet
