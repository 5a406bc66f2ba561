"""A network as it was measured: what became of the messages of real runs, in a file, and for the event clock.

Delays are drawn from the measured ones, one of them for each message; losses are independent, or come in runs by the
chain of Gilbert and Elliott, which moves at each message of its link (`Bursts`). Each draw is keyed by seed, link, kind
and number of its message, so that switching one cause off moves no draw of another.

Not in it: delays that hang together over time, such as those behind a stalled TCP stream. Only what leaves at one
instant over a link on which nothing overtook has one delay in common.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, TraceError
from heron_env.files import reading, writing
from heron_env.files.models import ConfigModel, Flag, Many, Named, NonNegative, Number, Text, at_least
from heron_env.given import all_of, is_number, path_of, require_one_of, whole
from heron_env.real.bus import link_name
from heron_env.scheduling.arrivals import Arrivals, Delivery, Passage
from heron_env.scheduling.sources import Empirical, GilbertElliott
from heron_env.scheduling.timing import END_OF_TIME, SECOND, ScheduleConfig, to_seconds
from heron_env.seeding import element, key

FEWEST: Final = 20
"""Messages of a link that has a law of its own."""
MOST: Final = 2_000
"""Delays of a law: evenly spaced order statistics of more, with the least and the greatest."""
LEVEL: Final = 0.01
"""How often a link whose losses are independent gets a chain."""
EDGE: Final = 12.0
"""A fitted probability has a logit between -EDGE and EDGE."""
CAUSES: Final = ("delays", "jitter", "losses", "copies", "thinking")
"""What can be switched off."""
Lost = NDArray[np.bool_]
Share = Annotated[Number, Field(ge=0.0, le=1.0)]
Chance = Annotated[Number, Field(gt=0.0, le=1.0)]
Times = Annotated[tuple[Annotated[NonNegative, Field(lt=9.2e9)], ...], Many, Field(max_length=MOST)]
Direction = Literal["up", "down", "between"]
"""From an agent to the proxy, from the proxy to an agent, or among agents."""


class Bursts(ConfigModel):
    """The chain of Gilbert and Elliott: inside a burst and outside, messages are lost with a probability of its own.

    E. N. Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39 (1960); E. O. Elliott,
    "Estimates of error rates for codes on burst-noise channels", ibid. 42 (1963).

    Attributes:
        enter, leave: probability that from one message of the link to the next a burst begins, or ends.
        loss, outside: probability of a loss, inside and outside.
    """

    enter: Chance
    leave: Chance
    loss: Share
    outside: Share

    @classmethod
    def of(cls, courses: Sequence[Lost]) -> Bursts:
        """The chain under which losses, `[n]` each in the order of sending, are most likely; there must be some."""
        from scipy.optimize import minimize
        from scipy.special import expit, logit

        rate = float(np.concatenate(courses).mean())
        begins = [[leave * rate, leave, loss, rate / 10.0] for leave in (0.1, 0.4) for loss in (0.5, 0.9)]
        fits = [
            minimize(lambda x: -log_likelihood(courses, *expit(x)), logit(begin), bounds=[(-EDGE, EDGE)] * 4)
            for begin in begins
        ]
        best = expit(min(fits, key=lambda fit: fit.fun).x).tolist()
        return cls(**dict(zip(cls.model_fields, best, strict=True)))


def log_likelihood(courses: Sequence[Lost], enter: float, leave: float, loss: float, outside: float) -> float:
    """Of losses under a chain, by the forward algorithm.

    L. R. Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77 (1989), III A. A course is a product
    of matrices, which is taken in pairs.
    """
    moves, lost = np.array([[1.0 - enter, enter], [leave, 1.0 - leave]]), np.array([outside, loss])
    begins = np.array([[leave, enter]] * 2) / (enter + leave)
    words = np.concatenate([part for course in courses for part in ([2], course)])
    steps, total = np.stack([moves * (1.0 - lost), moves * lost, begins])[words], 0.0
    while len(steps) > 1:
        steps = np.concatenate([steps, np.eye(2)[None]]) if len(steps) % 2 else steps
        steps = steps[::2] @ steps[1::2]
        largest = steps.max(axis=(1, 2), keepdims=True)
        steps, total = steps / largest, total + float(np.log(largest).sum())
    return total + math.log(steps[0, 0].sum())


def in_runs(courses: Sequence[Lost]) -> bool:
    """Do losses, `[n]` each in the order of sending, follow each other more often than independent ones would?

    The exact test on the number of groups, at `LEVEL`: W. L. Stevens, "Distribution of groups in a sequence of
    alternatives", Annals of Eugenics 9 (1939).
    """
    from scipy.special import betaln

    def log_choose(n: Any, k: Any) -> Any:
        return -betaln(n - k + 1, k + 1) - np.log(n + 1)

    course = np.concatenate([[False], *courses])
    lost, came = int(course.sum()), int((~course[1:]).sum())
    if lost < 2:
        return False
    fewer = np.arange(1, (course[1:] & ~course[:-1]).sum() + 1)
    chances = log_choose(came + 1, fewer) + log_choose(lost - 1, fewer - 1) - log_choose(came + lost, lost)
    return float(np.exp(chances).sum()) < LEVEL


class Law(ConfigModel):
    """What becomes of the messages of a link, or of all of one direction.

    Attributes:
        messages: how many were measured.
        delays: s, rising; of copies, too. Empty where all were lost.
        loss: the share of messages of which no copy came.
        bursts: the chain of losses that come in runs; None: they don't.
        copies: the share of the messages that came which came twice.
        overtakes: did a message overtake an earlier one of its link?
    """

    messages: Annotated[int, at_least(1)]
    delays: Times
    loss: Share
    bursts: Bursts | None
    copies: Share
    overtakes: Flag

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if bool(self.delays) is (self.loss == 1.0):
            raise ValueError(f"{len(self.delays)} delays, loss={self.loss!r}: there are delays unless all is lost")
        if any(after < before for before, after in pairwise(self.delays)):
            raise ValueError("delays: must rise; sort them")
        return self

    @classmethod
    def of(cls, courses: Sequence[Sequence[Passage]]) -> Law:
        """Of passages: one course for each link and run, in the order of sending. Raises DeclarationError."""
        passages = [passage for course in courses for passage in course]
        came = [passage for passage in passages if passage.came]
        lost = [np.array([not passage.came for passage in course]) for course in courses]
        firsts = ([min(passage.came) for passage in course if passage.came] for course in courses)
        return cls(
            messages=len(passages),
            delays=order_statistics([ns - passage.sent for passage in came for ns in passage.came]),
            loss=(len(passages) - len(came)) / len(passages),
            bursts=Bursts.of(lost) if in_runs(lost) else None,
            copies=sum(len(passage.came) > 1 for passage in came) / max(len(came), 1),
            overtakes=any(after < before for course in firsts for before, after in pairwise(course)),
        )


def order_statistics(ns: Sequence[int]) -> tuple[float, ...]:
    """Times in s, rising: all of them, or `MOST` that are evenly spaced in their order."""
    rising, places = sorted(ns), np.linspace(0, len(ns) - 1, min(len(ns), MOST)).tolist()
    return tuple(to_seconds(rising[round(place)]) for place in places)


def direction(link: str) -> Direction:
    """Of a link, "battery_1 to proxy"."""
    return "up" if link.endswith(" to proxy") else "down" if link.startswith("proxy to ") else "between"


class Network(ConfigModel):
    """Measured network.

    Attributes:
        schema_version: of the file.
        places: by agent, its process, named by an agent in it; all others live with the proxy.
        links: by name, "battery_1 to proxy", those with `FEWEST` messages or more.
        directions: all links of a direction together: the law of those that `links` does not have.
        pooled: links that had messages, but too few for a law of their own.
        thinking: by agent, s from a question to the moment at which its answer counted; rising as `Law.delays`.
    """

    schema_version: Literal[1]
    places: Annotated[dict[str, Text], Named, Field(min_length=1)]
    links: Annotated[dict[str, Law], Named]
    directions: Annotated[dict[Direction, Law], Named, Field(min_length=1)]
    pooled: Annotated[tuple[Text, ...], Many]
    thinking: Annotated[dict[str, Annotated[Times, Field(min_length=1)]], Named]

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        for link in (*self.links, *self.pooled):
            if link.count(" to ") != 1 or self.places.keys().isdisjoint(link.split(" to ")):
                raise ValueError(f"{link!r:.100} is no link of an agent that has a place; write 'battery_1 to proxy'")
            if direction(link) not in self.directions:
                raise ValueError(f"directions: {direction(link)!r} is missing, the direction of {link!r:.100}")
        return self

    @classmethod
    def of(cls, records: Iterable[Arrivals]) -> Network:
        """Measure the network of one or more runs with the same places, `run_carried(...).arrivals`.

        Messages that a node's death lost count as lost; lockstep shows no delays. Raises TraceError.
        """
        courses, ways = defaultdict[str, list[list[Passage]]](list), defaultdict[Direction, list[list[Passage]]](list)
        thinking: dict[str, list[int]] = defaultdict(list)
        places: list[dict[str, str]] = []
        for record in all_of(records, "Network.of(records)", Arrivals):
            passages = [each for _, each in sorted(record.messages.items(), key=lambda item: (item[1].sent, item[0]))]
            for link in dict.fromkeys(passage.link for passage in passages):
                courses[link].append([passage for passage in passages if passage.link == link])
            for agent, answers in record.answers.items():
                thinking[agent] += [each.at - each.asked for each in answers if each and each.action is not None]
            firsts = {place: agent for agent, place in sorted(record.places.items(), reverse=True)}
            places.append({agent: firsts[place] for agent, place in record.places.items()})
        if not courses or any(each != places[0] for each in places):
            raise TraceError(
                "Network.of(records): no message left for another place, or other agents share one in some of them; "
                "measure runs with the same nodes"
            )
        for link, course in courses.items():
            ways[direction(link)] += course
        large = {link: course for link, course in courses.items() if sum(map(len, course)) >= FEWEST}
        return cls(
            schema_version=1,
            places=places[0],
            links={link: Law.of(course) for link, course in large.items()},
            directions={way: Law.of(course) for way, course in ways.items()},
            pooled=tuple(link for link in courses if link not in large),
            thinking={agent: order_statistics(ns) for agent, ns in thinking.items() if ns},
        )

    @classmethod
    def read(cls, path: str | Path) -> Network:
        """Read what `write` wrote. Raises TraceError naming the file and the mistake."""
        file = path_of(path, "Network.read(path)")
        try:
            return cls.model_validate(reading.parsed(reading.read(file), hostile=True))
        except (OSError, ValueError) as error:
            raise TraceError(f"{file}: {error!s:.1000}; restore the file, or measure the network again") from error

    def write(self, path: str | Path) -> Path:
        """Write it as JSON; all numbers are exact. Returns the path. Raises OSError."""
        return writing.write(path_of(path, "Network.write(path)"), writing.compact(self.model_dump()))

    def __str__(self) -> str:
        """A line for each link."""
        rows = [
            f"{link}: {law.messages} messages, " + (
                f"{1e3 * law.delays[len(law.delays) // 2]:.1f} ms (median), {1e3 * law.delays[-1]:.1f} ms (most)"
                if law.delays else "none came"
            ) + f", {100.0 * law.loss:.1f} % lost{', in runs' if law.bursts else ''}"
            for link, law in self.links.items()
        ]  # fmt: skip
        rows += [
            f"{agent} answers in {1e3 * times[len(times) // 2]:.1f} ms (median), {1e3 * times[-1]:.1f} ms (most)"
            for agent, times in self.thinking.items()
        ]
        return "\n".join(rows)

    def law(self, link: str) -> Law:
        """Return the law of a link. Raises ConfigError for a direction without messages."""
        if (law := self.links.get(link) or self.directions.get(direction(link))) is None:
            raise ConfigError(
                f"{link!r:.100}: no message went {direction(link)} in the measured runs; measure such ones"
            )
        return law

    def delivery(
        self, env: HeronEnv, seed: int, *, without: Collection[str] = (), scale: float = 1.0, runs: bool = True
    ) -> Delivery:
        """Return `arrivals` for `env.run_event_driven`: one episode over this network.

        Args:
            env: in which it will run.
            seed: of all draws.
            without: causes that are switched off, of "delays" (all arrive 1 ns after they left), "jitter" (all delays
                are the mean of their link), "losses", "copies", "thinking".
            scale: factor on the delays.
            runs: False: losses are independent, as many as were measured.

        Raises ConfigError.
        """
        for cause in (off := all_of(without, "without", str)):
            require_one_of(f"without={cause!r:.60}", cause, CAUSES)
        if not is_number(scale) or not 0.0 <= scale <= 1e6:
            raise ConfigError(f"scale={scale!r:.60}: must be a number from 0 to 1e6")
        seed = whole(seed, "seed", least=-(2**63))
        return MeasuredDelivery(self, env, seed, off, 0.0 if "delays" in off else scale, runs)

    def schedule(self, period: float) -> dict[str, ScheduleConfig]:
        """Return a schedule by agent to train under; copies and thinking are left out.

        `period`: s between its ticks: there it is time that moves a chain, not messages (see `GilbertElliott`). It has
        the mean parameters of those links that have one.
        """
        links = {agent: [link for link in (*self.links, *self.pooled) if agent in link.split(" to ")]
                 for agent in self.places}  # fmt: skip
        return {agent: scheduled([*map(self.law, names)], period) for agent, names in links.items() if names}


def scheduled(laws: Sequence[Law], period: float) -> ScheduleConfig:
    """One link for several."""
    sent, delays = [law.messages for law in laws], np.concatenate([law.delays for law in laws])
    if not len(delays):
        return ScheduleConfig(loss=1.0)
    loss: Any = float(np.average([law.loss for law in laws], weights=sent))
    if chains := [([*law.bursts.model_dump().values()], law.messages) for law in laws if law.bursts]:
        rows, counts = zip(*chains, strict=True)
        enter, leave, inside, outside = np.average(rows, axis=0, weights=counts).tolist()
        loss = GilbertElliott(enter, leave, inside, outside, period)
    each = [np.full(len(law.delays), law.messages * (1.0 - law.loss) / max(len(law.delays), 1)) for law in laws]
    places = np.linspace(0.0, 1.0, min(len(delays), MOST))
    pooled = np.quantile(delays, places, weights=np.concatenate(each), method="inverted_cdf")
    return ScheduleConfig(msg_delay=Empirical(pooled), loss=loss, reorder=any(law.overtakes for law in laws))


class Way:
    """One link in one episode: its law, its messages so far, and whether it is inside a burst."""

    def __init__(self, name: str, law: Law) -> None:
        self.name, self.law, self.sent, self.inside, self.latest = name, law, 0, False, 0
        self.numbers = Counter[tuple[str, int]]()


class MeasuredDelivery:
    """A delivery over a measured network, of one episode; see `Network.delivery`."""

    def __init__(
        self, network: Network, env: HeronEnv, seed: int, without: Collection[str], scale: float, runs: bool
    ) -> None:
        self.places: Mapping[str, str] = network.places
        self.thinks: Collection[str] = () if "thinking" in without else network.thinking.keys()
        self._network, self._env, self._seed, self._runs = network, env, seed, runs
        self._without, self._scale, self._ways = without, scale, dict[str, Way]()

    def seed_of(self, seed: int | None) -> int | None:
        """Any."""
        return seed

    def times(self, number: int, message: Any, phase: int) -> Sequence[int]:
        """When the copies of a message arrive, ns. Raises ConfigError in a second episode."""
        if number == 0 and self._ways:
            raise ConfigError("arrivals: a measured delivery is for one episode; take network.delivery(...) again")
        link = link_name(message, self._env)
        if link not in self._ways:
            self._ways[link] = Way(link, self._network.law(link))
        way, kind = self._ways[link], f"{type(message).__name__} {getattr(message, 'effect', '')}"
        way.numbers[kind, message.number] += 1
        draws = key(self._seed, link, kind, message.number, way.numbers[kind, message.number])
        copied = element(draws, 3) < way.law.copies and "copies" not in self._without
        arrivals = [self._arrival(way, message.sent, draws, copy) for copy in range(1 + copied)]
        return () if self._loses(way, element(draws, 2)) else arrivals

    def _arrival(self, way: Way, sent: int, draws: int, copy: int) -> int:
        """Of a copy, lost or not: whether there are losses moves no arrival."""
        delays, ordered = way.law.delays or (0.0,), not way.law.overtakes
        if ordered:  # what leaves together arrives together
            draws = key(self._seed, way.name, "departure", sent)
        mean = "jitter" in self._without
        delay = sum(delays) / len(delays) if mean else delays[int(element(draws, copy) * len(delays))]
        ns = min(sent + max(1, round(delay * self._scale * SECOND)), END_OF_TIME - 1)
        if ordered and not copy:
            way.latest = ns = max(ns, way.latest)
        return ns

    def _loses(self, way: Way, u: float) -> bool:
        """Is the next message of a link lost? Its chain moves."""
        bursts, chance, v = way.law.bursts, way.law.loss, element(key(self._seed, way.name, "chain"), way.sent)
        if bursts is not None and self._runs:
            enter = bursts.enter if way.sent else bursts.enter / (bursts.enter + bursts.leave)
            way.inside = v >= bursts.leave if way.inside else v < enter
            chance = bursts.loss if way.inside else bursts.outside
        way.sent += 1
        return u < chance and "losses" not in self._without

    def answered(self, agent: str, question: int, now: int) -> tuple[int, bool]:
        """When an answer counts, ns."""
        times = self._network.thinking[agent]
        seconds = times[int(element(key(self._seed, agent, "thinking"), question) * len(times))]
        return min(now + max(1, round(seconds * SECOND)), END_OF_TIME - 1), False
