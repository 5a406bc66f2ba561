"""One agent's link: delays, losses and ticks as pure functions of keys, and chains of states by time.

A delay x becomes max(min_delay, x * (1 + ratio * z)) with z of mean 0:
    uniform     z = 2 u - 1
    gaussian    z = n, standard normal
    lognormal   1 + ratio * z = exp(s n - s**2 / 2) with s**2 = ln(1 + ratio**2): mean exactly 1, std exactly ratio
Each draw u is indexed by (seed, episode, agent, purpose, cause, leg, number), so switching loss on moves no delay:

    U(purpose) = element `number` of uniforms(key(seed, episode, h(agent), purpose, cause, leg))    (heron_env.seeding)

A chain with thresholds `start` and `moves` has at t ns the state s_k with k = t // period_ns (whole numbers). With u_k
element k of uniforms(key(seed, episode, h(agent), "chain", FIELD, 0)), FIELD one of "msg_delay", "obs_delay",
"act_delay", "thinking", "loss":

    s_0 = number of j with start[j] <= u_0
    s_k = number of j with moves[s_(k-1)][j] <= u_k                      for k = 1, 2, ...

So s_0 is stationary, one draw makes one move, and no draw but the link's own chain's is used up: what else is sent, and
in which order, does not show. The state may be found without all moves before: where all states move to the same one
at u_j (`met`), s_j is known. From k one goes back to such a j, or to 0, and then forward.

Where delays or losses come from data (T20), a leg of link `agent` that departs at t (ns) with (cause, leg, number) has
operation by operation:

1.  base, ns, by the field that the leg belongs to (GATHERING obs_delay, ACTION act_delay, THINKING
    thinking, without 2. and 3., all others msg_delay):
    a number    what it is in ns
    Empirical   ns[int(u * n)] of its n delays, u = U("sample"); with n = 1 nothing is drawn
    Recorded    ns[i] with the greatest i for which departures[i] <= t % period_ns
    Markov      as Empirical, of the delays of the state at t of the chain whose FIELD is that of the leg
2.  jitter as for numbers: if jitter_ratio > 0 and base != 0, with d = ratio * z of U("delay"):
    min(rint(base * (1.0 + d)), 2**62); then the greater of that and min_delay.
3.  lost if p > 0 and U("loss") < p, where p is the number, or losses[state at t] (FIELD "loss").

What is drawn for one of these shifts none of the others. t is the departure: of a message when it is sent, of a
gathering the moment the proxy gathers, of an action the moment of the decision.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.quantity import clip, within
from heron_env.scheduling.messages import Leg
from heron_env.scheduling.sources import Chain, DelaySource, Empirical, GilbertElliott, Markov, Recorded, mean_s
from heron_env.scheduling.timing import END_OF_TIME, Timing
from heron_env.seeding import element, key, keys, standard_normal, uniform_rows

CACHED = 4
"""Blocks in store for one kind of draw, at most."""
SHORTEST, LONGEST, ENOUGH = 3, 6, 512
"""A block is for 2**3 to 2**6 numbers: so many that all links together make about 512 draws."""
FAR = 2.0**62
"""No delay is longer, ns: a century."""
MOST_FACTOR = 1e6
"""No delay grows more by the hook `link`."""
NONE = -1
"""No state of a chain."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class What(IntEnum):
    """What is asked of a link's draws, an int each."""

    __hash__ = int.__hash__

    FATE = 0
    """The delay of a message, ns; of one that gets lost ~delay, which is below 0."""
    DELAY = 1
    """The same without loss."""
    LOST = 2
    """Does it get lost? 0 or 1."""
    SHIFT = 3
    """How far a tick moves, ns."""


Question = tuple[int, int, str, int]
"""(what, nominal delay or tick in ns, cause, leg)."""
DELAY, LOST, SHIFT = map(int, (What.DELAY, What.LOST, What.SHIFT))
FIELD_OF = {Leg.GATHERING: "obs_delay", Leg.ACTION: "act_delay", Leg.THINKING: "thinking"}
"""Of all other legs: msg_delay."""


def deviation(kind: str, ratio: float, u: Any) -> Any:
    """ratio * z of a uniform u; of an array of them only where `kind` is "uniform"."""
    if kind == "uniform":
        return ratio * (2.0 * u - 1.0)
    normal = standard_normal(u)
    if kind == "gaussian":
        return ratio * normal
    s = math.sqrt(math.log1p(ratio * ratio))
    return math.expm1(s * normal - 0.5 * s * s)


class Link:
    """The link between one agent and its proxy or parent, in one episode.

    Args:
        agent_key: a stable number of the agent, `seeding.h(id)`.
        timing: the agent's schedule.
        seed: the run's seed.
        episode: number of the episode since it.
        draws: what is drawn for several, for this link at `place`; without it a link draws for itself.
    """

    __slots__ = (
        "_bits", "_draws", "_first", "_least", "_place", "ideal", "jitters", "reorder", "ruled", "timing", "wavers",
    )  # fmt: skip

    def __init__(
        self, agent_key: int, timing: Timing, seed: int, episode: int, draws: LinkDraws | None = None, place: int = 0
    ) -> None:
        self.timing = timing
        self._draws = draws = LinkDraws(timing, seed, episode, [agent_key]) if draws is None else draws
        self._place, self._bits, self._first = place, draws.bits, place << draws.bits
        self._least = timing.min_delay
        self.reorder = timing.config.reorder
        self.jitters, self.wavers = draws.ratio > 0.0, draws.tick_ratio > 0.0
        self.ideal = not (self.jitters or draws.loss or timing.min_delay or timing.shared)
        """Nothing is drawn on this link, and a delay is what it is said to be."""
        self.ruled = False
        """Has the world a say in it?"""

    def delay(self, nominal: int, cause: str, leg: int, number: int, sent: int = 0) -> int:
        """The delay of one leg that departs at `sent`, ns."""
        if self.jitters and nominal:
            return self.draw(DELAY, nominal, cause, leg, number)
        return max(nominal, self._least)

    def thinking(self, number: int, now: int) -> int:
        """How long decision `number`, asked for at `now`, takes to think about, ns: without jitter."""
        return self.timing.thinking

    def lost(self, cause: str, leg: int, number: int, sent: int = 0) -> bool:
        """Is the message lost that departs at `sent`, ns?"""
        return self._draws.loss > 0.0 and self.draw(LOST, 0, cause, leg, number) == 1

    def tick_time(self, number: int, previous: int) -> int:
        """Time of tick `number`, ns, not before the previous one (0 for none); after the end of time none wavers."""
        due = self.timing.nominal(number)
        if self.wavers and number and due < END_OF_TIME:
            due += self.draw(SHIFT, self.timing.tick, "tick", 0, number)
        return max(previous, due)

    def draw(self, what: int, nominal: int, cause: str, leg: int, number: int, sent: int = 0) -> int:
        """The answer to `what` (see What) for one leg; `nominal` is its delay before jitter, ns.

        When it departs, `sent` ns, is for links whose delays come from data (SourcedLink).
        """
        answers, size = self._draws[what, nominal, cause, leg], self._bits
        block = answers.blocks.get(number >> size)
        if block is None:
            return answers.draw(self._place, number)
        return block[self._first + number - (number >> size << size)]


class SourcedLink(Link):
    """A Link with a source; the same questions, answered one by one. Arguments as of Link."""

    __slots__ = ("_chains", "_key", "_loss", "_prefixes", "_sources")

    def __init__(
        self, agent_key: int, timing: Timing, seed: int, episode: int, draws: LinkDraws | None = None, place: int = 0
    ) -> None:
        super().__init__(agent_key, timing, seed, episode, draws, place)
        self.ideal = False
        self._key = (seed, episode, agent_key)
        config = timing.config
        delays = {name: getattr(config, name) for name in ("msg_delay", "obs_delay", "act_delay", "thinking")}
        self._sources: dict[str, DelaySource] = {
            name: value for name, value in delays.items() if isinstance(value, DelaySource)
        }
        self._loss = config.loss
        self._prefixes: dict[tuple[str, str, int], int] = {}
        chains = {name: value.chain for name, value in self._sources.items() if isinstance(value, Markov)}
        if isinstance(config.loss, GilbertElliott):
            chains["loss"] = config.loss.chain
        self._chains = {name: ChainState(c, key(*self._key, "chain", name, 0)) for name, c in chains.items()}

    def delay(self, nominal: int, cause: str, leg: int, number: int, sent: int = 0) -> int:
        """The delay of one leg that departs at `sent`, ns."""
        base = self._base(nominal, cause, leg, number, sent)
        kind, ratio = self.timing.config.jitter_type, self.timing.config.jitter_ratio
        if ratio and base:
            spread = base * (1.0 + deviation(kind, ratio, self._u("delay", cause, leg, number)))
            base = round(min(spread, FAR))
        return max(base, self._least)

    def thinking(self, number: int, now: int) -> int:
        """How long a decision takes to think about, ns."""
        return self._base(self.timing.thinking, "tick", Leg.THINKING, number, now)

    def lost(self, cause: str, leg: int, number: int, sent: int = 0) -> bool:
        """Is the message lost?"""
        share = self._share_lost(sent)
        return share > 0.0 and self._u("loss", cause, leg, number) < share

    def draw(self, what: int, nominal: int, cause: str, leg: int, number: int, sent: int = 0) -> int:
        """The answer to `what`, as Link has it."""
        if what == What.SHIFT:
            return super().draw(what, nominal, cause, leg, number)
        if what == What.LOST:
            return int(self.lost(cause, leg, number, sent))
        late = self.delay(nominal, cause, leg, number, sent)
        return ~late if what == What.FATE and self.lost(cause, leg, number, sent) else late

    def _base(self, nominal: int, cause: str, leg: int, number: int, sent: int) -> int:
        name = FIELD_OF.get(leg, "msg_delay")  # type: ignore[call-overload]
        match self._sources.get(name):
            case Empirical(ns=ns):
                return self._one_of(ns, cause, leg, number)
            case Markov(values=values):
                return self._one_of(values[self._chains[name].at(sent)], cause, leg, number)
            case Recorded(departures=departures, period_ns=period, ns=ns):
                return ns[bisect_right(departures, sent % period) - 1]
        return nominal

    def _one_of(self, ns: tuple[int, ...], cause: str, leg: int, number: int) -> int:
        return ns[0] if len(ns) == 1 else ns[int(self._u("sample", cause, leg, number) * len(ns))]

    def _share_lost(self, sent: int) -> float:
        loss = self._loss
        return loss.losses[self._chains["loss"].at(sent)] if isinstance(loss, GilbertElliott) else loss

    def _u(self, purpose: str, cause: str, leg: int, number: int) -> float:
        """U(purpose)."""
        x = self._prefixes.get((purpose, cause, leg))
        if x is None:
            x = self._prefixes[purpose, cause, leg] = key(*self._key, purpose, cause, leg)
        return element(x, number)


class RuledLink(SourcedLink):
    """A link that the world has a say in (the hook `link`): it says it for each message just before this is drawn.

    Of a message, between 1. and 2.: base = rint(min(base * factor, 2**62)) unless base is 0; and in 3. p becomes
    p + more * (1.0 - p). Gathering and acting are no messages.
    """

    __slots__ = ("factor", "more")

    factor: float
    """On the delay, from 0 to MOST_FACTOR."""
    more: float
    """Probability that the message is lost for the world's reasons."""

    def __init__(self, *link: Any) -> None:
        super().__init__(*link)
        self.ruled = True

    def _base(self, nominal: int, cause: str, leg: int, number: int, sent: int) -> int:
        base = super()._base(nominal, cause, leg, number, sent)
        return round(min(base * self.factor, FAR)) if base and leg not in FIELD_OF else base

    def _share_lost(self, sent: int) -> float:
        share = super()._share_lost(sent)
        return share + self.more * (1.0 - share)


def link_of(
    agent_key: int,
    timing: Timing,
    seed: int,
    episode: int,
    draws: LinkDraws | None = None,
    place: int = 0,
    *,
    ruled: bool = False,
) -> Link:
    """The link of one agent; arguments as of Link. `ruled`: the world has a say in it."""
    kind = RuledLink if ruled else SourcedLink if timing.sourced else Link
    return kind(agent_key, timing, seed, episode, draws, place)


def links_of(
    agent_keys: Sequence[int],
    timings: Sequence[Timing],
    rhythms: Sequence[Timing],
    seed: int,
    episode: int,
    *,
    ruled: bool = False,
) -> list[Link]:
    """The links of several agents; those with like schedules, whose ticks `rhythms` say alike, draw together."""
    alike: dict[object, list[int]] = {}
    for rank, (timing, rhythm) in enumerate(zip(timings, rhythms, strict=True)):
        delays = (timing.tick, timing.phase, timing.obs, timing.act, timing.msg, timing.min_delay, timing.config)
        alike.setdefault((delays, rhythm.tick, rhythm.phase), []).append(rank)
    links: dict[int, Link] = {}
    for ranks in alike.values():
        draws = LinkDraws(timings[ranks[0]], seed, episode, [agent_keys[rank] for rank in ranks])
        for place, rank in enumerate(ranks):
            links[rank] = link_of(agent_keys[rank], timings[rank], seed, episode, draws, place, ruled=ruled)
    return [links[rank] for rank in range(len(timings))]


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
        self.loss = mean_s(config.loss)
        self.bits = int(within((ENOUGH // len(agents)).bit_length(), SHORTEST, LONGEST))
        self._kind, self._least = config.jitter_type, timing.min_delay
        self._identity, self._agents = (seed, episode), np.array(agents, np.uint64)
        self._own: NDArray[np.uint64] | None = None

    def __missing__(self, question: Question) -> Blocks:
        """Nothing is drawn yet: the same questions come over and over."""
        blocks = self[question] = Blocks(self, question)
        return blocks

    def __reduce__(self) -> tuple[object, ...]:
        return _bare, ({name: value for name, value in vars(self).items() if name != "_own"},)

    def drawn(self, question: Question, links: slice, first: int, count: int) -> Ints:
        """The answers for some links and for numbers from `first` on, int64 `[links, count]`."""
        what, nominal, cause, leg = question
        where = (cause, leg, links, first, count)
        if what == What.SHIFT:
            shift = clip(self._deviations(self._uniforms("tick", *where), self.tick_ratio), -0.5, 0.5)
            return np.rint(shift * nominal).astype(np.int64)
        if what == What.LOST:
            return (self._uniforms("loss", *where) < self.loss).astype(np.int64)
        if self.ratio and nominal:
            spread = nominal * (1.0 + self._deviations(self._uniforms("delay", *where), self.ratio))
            delays = clip(np.rint(spread), 0.0, FAR).astype(np.int64)
        else:
            delays = np.full((len(self._agents[links]), count), nominal)
        delays = np.maximum(delays, self._least)
        if self.loss and what == What.FATE:
            return np.where(self._uniforms("loss", *where) < self.loss, ~delays, delays)
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
        index, size = number >> draws.bits, 1 << draws.bits
        if blocks and index <= max(blocks) - CACHED:
            return int(draws.drawn(self._question, slice(link, link + 1), number, 1)[0, 0])
        if len(blocks) == CACHED:
            del blocks[min(blocks)]
        block = draws.drawn(self._question, slice(None), index * size, size)
        blocks[index] = drawn = block.ravel().tolist()
        return drawn[link * size + number % size]


def _bare(state: dict[str, object]) -> LinkDraws:
    draws = LinkDraws.__new__(LinkDraws)
    vars(draws).update(state, _own=None)
    return draws


def met(chain: Chain, u: float) -> int:
    """The state to which all move at u; -1 if there is none."""
    first = bisect_right(chain.moves[0], u)
    return first if all(bisect_right(row, u) == first for row in chain.moves[1:]) else NONE


class ChainState:
    """One chain of one link in one episode; it remembers where it was asked last, which changes no state.

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
            self._state = self._state_in(last)
            self._last = last
        return self._state

    def _state_in(self, period: int) -> int:
        chain, draws, k = self._chain, list[float](), period
        while True:
            if k == self._last:
                state = self._state
                break
            u = element(self._x, k)
            state = bisect_right(chain.start, u) if k == 0 else met(chain, u)
            if state != NONE:
                break
            draws.append(u)
            k -= 1
        for u in reversed(draws):
            state = bisect_right(chain.moves[state], u)
        return state
