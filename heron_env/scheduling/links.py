"""One agent's link: how late, lost or doubled a message is, as a pure function of what caused it (draws: see `draws`).

Where delays or losses come from data (T20), a leg of link `agent` that departs at t (ns) with (cause, leg, number), or
its second copy (TWIN = "twin ", else ""), has operation by operation:

1.  base, ns, by the field that the leg belongs to (GATHERING obs_delay, ACTION act_delay, all others msg_delay):
    a number    what it is in ns
    Empirical   ns[int(u * n)] of its n delays, u = U(TWIN + "sample"); with n = 1 nothing is drawn
    Recorded    ns[i] with the greatest i for which departures[i] <= t % period_ns
    Markov      as Empirical, of the delays of the state at t of the chain whose FIELD is that of the leg
2.  jitter as for numbers: if jitter_ratio > 0 and base != 0, with d = ratio * z of U(TWIN + "delay"):
    min(rint(base * (1.0 + d)), 2**62); then the greater of that and min_delay.
3.  lost if p > 0 and U(TWIN + "loss") < p, where p is the number, or losses[state at t] (FIELD "loss").

What is drawn for one of these shifts none of the others. t is the departure: of a message when it is sent, of a
gathering the moment the proxy gathers, of an action the moment of the decision.
"""

from bisect import bisect_right
from collections.abc import Sequence

from heron_env.scheduling.draws import FAR, TWINS, ChainState, LinkDraws, What, deviation
from heron_env.scheduling.messages import Leg
from heron_env.scheduling.sources import DelaySource, Empirical, GilbertElliott, Markov, Recorded
from heron_env.scheduling.timing import END_OF_TIME, Timing
from heron_env.seeding import element, key

DELAY, LOST, DUPLICATED, SHIFT = map(int, (What.DELAY, What.LOST, What.DUPLICATED, What.SHIFT))
FIELD_OF = {Leg.GATHERING: "obs_delay", Leg.ACTION: "act_delay"}
"""Of all other legs: msg_delay."""


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
        "_bits", "_draws", "_first", "_least", "_place", "doubles", "ideal", "jitters", "reorder", "special", "timing",
        "wavers",
    )  # fmt: skip

    def __init__(
        self, agent_key: int, timing: Timing, seed: int, episode: int, draws: LinkDraws | None = None, place: int = 0
    ) -> None:
        self.timing = timing
        self._draws = draws = LinkDraws(timing, seed, episode, [agent_key]) if draws is None else draws
        self._place, self._bits, self._first = place, draws.bits, place << draws.bits
        self._least = timing.min_delay
        self.reorder = timing.config.reorder
        self.jitters, self.doubles = draws.ratio > 0.0, draws.duplicate > 0.0
        self.wavers = draws.tick_ratio > 0.0
        self.ideal = not (self.jitters or draws.loss or self.doubles or timing.min_delay)
        """Nothing is drawn on this link, and a delay is what it is said to be."""
        self.special = self.doubles
        """Is there more to do for a message than to draw its delay and whether it gets lost?"""

    def delay(self, nominal: int, cause: str, leg: int, number: int, sent: int = 0, *, twin: bool = False) -> int:
        """The delay of one leg that departs at `sent`, ns; a duplicate (`twin`) has a draw of its own."""
        if self.jitters and nominal:
            return self.draw(DELAY + twin, nominal, cause, leg, number)
        return max(nominal, self._least)

    def lost(self, cause: str, leg: int, number: int, sent: int = 0, *, twin: bool = False) -> bool:
        """Is the message lost that departs at `sent`, ns? A duplicate (`twin`) has a draw of its own."""
        return self._draws.loss > 0.0 and self.draw(LOST + twin, 0, cause, leg, number) == 1

    def duplicated(self, cause: str, leg: int, number: int) -> bool:
        """Does the message travel twice?"""
        return self.doubles and self.draw(DUPLICATED, 0, cause, leg, number) == 1

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
        given = {name: getattr(config, name) for name in ("msg_delay", "obs_delay", "act_delay")}
        self._sources: dict[str, DelaySource] = {
            name: value for name, value in given.items() if isinstance(value, DelaySource)
        }
        self._loss = config.loss
        self._prefixes: dict[tuple[str, str, int], int] = {}
        chains = {name: value.chain for name, value in self._sources.items() if isinstance(value, Markov)}
        if isinstance(config.loss, GilbertElliott):
            chains["loss"] = config.loss.chain
        self._chains = {name: ChainState(c, key(*self._key, "chain", name, 0)) for name, c in chains.items()}

    def delay(self, nominal: int, cause: str, leg: int, number: int, sent: int = 0, *, twin: bool = False) -> int:
        """The delay of one leg that departs at `sent`, ns."""
        return self._late(nominal, cause, leg, number, sent, "twin " if twin else "")

    def lost(self, cause: str, leg: int, number: int, sent: int = 0, *, twin: bool = False) -> bool:
        """Is the message lost?"""
        return self._is_lost(cause, leg, number, sent, "twin " if twin else "")

    def draw(self, what: int, nominal: int, cause: str, leg: int, number: int, sent: int = 0) -> int:
        """The answer to `what`, as Link has it."""
        twin = "twin " if what in TWINS else ""
        if what in (What.DUPLICATED, What.SHIFT):
            return super().draw(what, nominal, cause, leg, number)
        if what in (What.LOST, What.TWIN_LOST):
            return int(self._is_lost(cause, leg, number, sent, twin))
        late = self._late(nominal, cause, leg, number, sent, twin)
        meant = what in (What.FATE, What.TWIN_FATE)
        return ~late if meant and self._is_lost(cause, leg, number, sent, twin) else late

    def _late(self, nominal: int, cause: str, leg: int, number: int, sent: int, twin: str) -> int:
        base = self._base(nominal, cause, leg, number, sent, twin)
        kind, ratio = self.timing.config.jitter_type, self.timing.config.jitter_ratio
        if ratio and base:
            spread = base * (1.0 + deviation(kind, ratio, self._u(f"{twin}delay", cause, leg, number)))
            base = round(min(spread, FAR))
        return max(base, self._least)

    def _base(self, nominal: int, cause: str, leg: int, number: int, sent: int, twin: str) -> int:
        name = FIELD_OF.get(leg, "msg_delay")  # type: ignore[call-overload]
        match self._sources.get(name):
            case Empirical(ns=ns):
                return self._one_of(ns, cause, leg, number, twin)
            case Markov(values=values):
                return self._one_of(values[self._chains[name].at(sent)], cause, leg, number, twin)
            case Recorded(departures=departures, period_ns=period, ns=ns):
                return ns[bisect_right(departures, sent % period) - 1]
        return nominal

    def _one_of(self, ns: tuple[int, ...], cause: str, leg: int, number: int, twin: str) -> int:
        return ns[0] if len(ns) == 1 else ns[int(self._u(f"{twin}sample", cause, leg, number) * len(ns))]

    def _share_lost(self, sent: int) -> float:
        loss = self._loss
        return loss.losses[self._chains["loss"].at(sent)] if isinstance(loss, GilbertElliott) else loss

    def _is_lost(self, cause: str, leg: int, number: int, sent: int, twin: str) -> bool:
        share = self._share_lost(sent)
        return share > 0.0 and self._u(f"{twin}loss", cause, leg, number) < share

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

    def __init__(
        self, agent_key: int, timing: Timing, seed: int, episode: int, draws: LinkDraws | None = None, place: int = 0
    ) -> None:
        super().__init__(agent_key, timing, seed, episode, draws, place)
        self.special = True

    def _base(self, nominal: int, cause: str, leg: int, number: int, sent: int, twin: str) -> int:
        base = super()._base(nominal, cause, leg, number, sent, twin)
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
