"""Links whose delays or losses come from data: what they draw, operation by operation (T20).

A leg of link `agent` that departs at t (ns) with (cause, leg, number), or its second copy (TWIN = "twin ", else ""):

1.  base, ns, by the field that the leg belongs to (GATHERING obs_delay, ACTION act_delay, all others msg_delay):
    a number    what it is in ns
    Empirical   ns[int(u * n)] of its n delays, u = U(TWIN + "sample"); with n = 1 nothing is drawn
    Recorded    ns[i] with the greatest i for which departures[i] <= t % period_ns
    Markov      as Empirical, of the delays of the state at t (see `chains`, FIELD that of the leg)
2.  jitter as for numbers (see `fleet`): if jitter_ratio > 0 and base != 0, with d = ratio * z of U(TWIN + "delay"):
    min(rint(base * (1.0 + d)), 2**62); then the greater of that and min_delay.
3.  lost if p > 0 and U(TWIN + "loss") < p, where p is the number, or losses[state at t] (FIELD "loss").

U(purpose) is the draw of `fleet`: element `number` of uniforms(key(seed, episode, h(agent), purpose, cause, leg)). What
is drawn for one of these shifts none of the others. t is the departure: of a message when it is sent, of a gathering
the moment the proxy gathers, of an action the moment of the decision.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from heron_env.scheduling.chains import ChainState
from heron_env.scheduling.fleet import FAR, Fleet, What
from heron_env.scheduling.links import Link
from heron_env.scheduling.messages import Leg
from heron_env.scheduling.sources import DelaySource, Empirical, GilbertElliott, Markov, Recorded
from heron_env.scheduling.timing import Timing
from heron_env.seeding import GOLDEN, MASK, key, mix, standard_normal

FIELD_OF = {Leg.GATHERING: "obs_delay", Leg.ACTION: "act_delay"}
"""Of all other legs: msg_delay."""
TWINS = (What.TWIN_FATE, What.TWIN_DELAY, What.TWIN_LOST)


class SourcedLink(Link):
    """A Link with a source; the same questions, answered one by one. Arguments as of Link."""

    __slots__ = ("_chains", "_key", "_loss", "_prefixes", "_sources")

    def __init__(
        self, agent_key: int, timing: Timing, seed: int, episode: int, fleet: Fleet | None = None, place: int = 0
    ) -> None:
        super().__init__(agent_key, timing, seed, episode, fleet, place)
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
        ratio = self.timing.config.jitter_ratio
        if ratio and base:
            spread = base * (1.0 + self._deviation(self._u(f"{twin}delay", cause, leg, number), ratio))
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
        """Element `number` of `seeding.uniforms(key(seed, episode, agent, purpose, cause, leg), ...)`."""
        x = self._prefixes.get((purpose, cause, leg))
        if x is None:
            x = self._prefixes[purpose, cause, leg] = key(*self._key, purpose, cause, leg)
        return (mix(x + (number + 1) * GOLDEN & MASK) >> 11) * 2.0**-53

    def _deviation(self, u: float, ratio: float) -> float:
        """ratio * z, as Fleet has it."""
        kind = self.timing.config.jitter_type
        if kind == "uniform":
            return ratio * (2.0 * u - 1.0)
        normal = standard_normal(u)
        if kind == "gaussian":
            return ratio * normal
        s = math.sqrt(math.log1p(ratio * ratio))
        return math.expm1(s * normal - 0.5 * s * s)


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
        self, agent_key: int, timing: Timing, seed: int, episode: int, fleet: Fleet | None = None, place: int = 0
    ) -> None:
        super().__init__(agent_key, timing, seed, episode, fleet, place)
        self.special = True

    def _base(self, nominal: int, cause: str, leg: int, number: int, sent: int, twin: str) -> int:
        base = super()._base(nominal, cause, leg, number, sent, twin)
        return round(min(base * self.factor, FAR)) if base and leg not in FIELD_OF else base

    def _share_lost(self, sent: int) -> float:
        share = super()._share_lost(sent)
        return share + self.more * (1.0 - share)
