"""Two recorded episodes side by side: the first thing that is not the same, to the last bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from heron_env.lab.traces.contents import plain
from heron_env.lab.traces.episode import Episode, Event

EVERYBODY: Final = "everybody"
NOTHING: Final = "nothing"
NS: Final = 1_000_000_000


class Fact(NamedTuple):
    """Something of an episode that must come out the same; `order` sorts facts of one instant."""

    t: int
    order: tuple[int, int]
    agent: str
    what: str
    value: Any


@dataclass(frozen=True)
class Difference:
    """The first fact that is not the same in two episodes.

    Attributes:
        time: virtual time, s.
        what: which fact, down to the element: `reward`, `ObservationReply 3: vector[2] (battery_2.Charge.soc)`.
        recorded, now: its values; "nothing" where one side has no such fact.
    """

    time: float
    agent: str
    what: str
    recorded: Any
    now: Any

    def __str__(self) -> str:
        """`at 3.0 s, battery_1, reward: recorded 0.5, now 0.6`."""
        return f"at {self.time!r} s, {self.agent}, {self.what}: recorded {self.recorded}, now {self.now}"


def first_difference(recorded: Episode, now: Episode) -> Difference | None:
    """The earliest fact that differs, or None if every bit is the same."""
    pairs = zip_longest(facts(recorded), facts(now))
    return next((_difference(a, b, recorded) for a, b in pairs if _text(a) != _text(b)), None)


def facts(episode: Episode) -> list[Fact]:
    """All there is to compare, in the order of its time."""
    return sorted([*_scores(episode), *_course(episode), *_unhandled(episode), *_end(episode)], key=lambda f: f[:2])


def _scores(episode: Episode) -> Iterator[Fact]:
    outcome = episode.outcome
    for rank, agent in enumerate(episode.world.agents):
        for t, value in outcome.rewards.get(agent, ()):
            yield Fact(round(t * NS), (0, rank), agent, "reward", {"t": t, "value": value})
        for t, values in outcome.actions.get(agent, ()):
            yield Fact(round(t * NS), (1, rank), agent, "action", {"t": t, "values": values})


def _course(episode: Episode) -> Iterator[Fact]:
    """What was handled, one after another."""
    for place, each in episode.handled().items():
        if isinstance(each, Event):
            told = {"cause": each.cause, "cancelled": each.cancelled, "masked": each.masked, **each.content}
            if told.get("origin"):
                told["origin"] = {**told["origin"], "source": "endpoint"}  # a replay answers for it
            yield Fact(each.t, (2, place), each.agent, f"{each.kind} {each.number}", told)
        else:
            assert each.arrives is not None
            told = {"sent": each.sent, "id": each.id, "cause": each.cause, **each.content}
            yield Fact(each.arrives, (2, place), each.agent, f"{each.kind} {each.number}", told)


def _unhandled(episode: Episode) -> Iterator[Fact]:
    for number, m in enumerate(episode.messages):
        if m.place is None:
            told = {"arrives": m.arrives, "id": m.id, "cause": m.cause, **m.content}
            yield Fact(m.sent, (3, number), m.agent, f"{m.kind} {m.number}, {m.fate}", told)


def _end(episode: Episode) -> Iterator[Fact]:
    o, world = episode.outcome, episode.world
    end = round(o.end_time * NS)
    for rank, agent in enumerate(world.agents):
        yield Fact(end, (4, rank), agent, "terminated", o.terminated[agent])
        yield Fact(end, (5, rank), agent, "truncated", o.truncated[agent])
        yield Fact(end, (5, rank), agent, "masked effects", o.masked.get(agent, 0))
    yield Fact(end, (6, 0), EVERYBODY, "end of the episode, s", o.end_time)
    yield Fact(end, (7, 0), EVERYBODY, "cancelled effects", o.cancelled_effects)
    yield Fact(end, (7, 1), EVERYBODY, "unfinished effects", o.unfinished_effects)
    for number, (name, value) in enumerate(o.kpis.items()):
        yield Fact(end, (8, number), EVERYBODY, f"KPI {name}", value)


def _text(fact: Fact | None) -> str:
    """Equal exactly if the facts are: 0.0 and -0.0 differ, nan is nan."""
    return "" if fact is None else json.dumps([fact.t, fact.agent, fact.what, plain(fact.value, fact.what)])


def _difference(recorded: Fact | None, now: Fact | None, episode: Episode) -> Difference:
    """What to tell of two unequal facts: the same fact with another value, or the earlier of two."""
    if recorded and now and (recorded.t, recorded.agent, recorded.what) == (now.t, now.agent, now.what):
        where, old, new = _deepest(plain(recorded.value, ""), plain(now.value, ""))
        name = _column(episode, recorded, where)
        what = f"{recorded.what}{f': {where}' if where else ''}{f' ({name})' if name else ''}"
        return Difference(recorded.t / NS, recorded.agent, what, old, new)
    if recorded and (now is None or recorded[:2] <= now[:2]):
        return Difference(recorded.t / NS, recorded.agent, recorded.what, _told(recorded), NOTHING)
    assert now is not None
    return Difference(now.t / NS, now.agent, now.what, NOTHING, _told(now))


def _told(fact: Fact) -> str:
    text = json.dumps(plain(fact.value, fact.what))
    return text if len(text) <= 200 else f"{text[:197]}..."


def _deepest(recorded: Any, now: Any, path: str = "") -> tuple[str, Any, Any]:
    """The first place inside two values where they differ: `vector[2]`, and what stands there."""
    if isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() == now.keys():
        pairs = [(f"{path}.{key}" if path else key, recorded[key], now[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(recorded, now, strict=True))]
    else:
        return path, recorded, now
    return next(_deepest(a, b, where) for where, a, b in pairs if json.dumps(a) != json.dumps(b))


def _column(episode: Episode, fact: Fact, where: str) -> str:
    """The name of an observation's element."""
    if not (fact.what.startswith("ObservationReply ") and where.startswith("vector[")):
        return ""
    names, place = episode.world.columns.get(fact.agent, []), int(where[len("vector[") : -1])
    return names[place] if place < len(names) else ""
