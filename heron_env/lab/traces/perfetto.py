"""A recorded episode in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.

Virtual time is shown as if it were real, in whole microseconds; the record itself has the nanoseconds. A lane is a
thread. At every instant at which a message leaves or comes there is a slice of 1 us on the lane, so that both ends of
the message's arrow lie in one. Spans that overlap on a lane go to further lanes of the same agent, since slices of one
thread must nest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from heron_env.lab.traces.episode import DISTURBED, Episode, Event, SentMessage
from heron_env.lab.traces.lanes import Span, TraceMoment, came, lanes, moments, named, spans, told_disturbance, word

NAME: Final = "perfetto.json"
LANES, AGES = 1, 2
"""Process ids: of the lanes, and of the counters."""
MOMENT: Final = 1
"""us; how long an instant is shown."""
WAYS: Final = 1000
"""Thread ids of one agent: its own lane first, then those for what overlaps."""
SHOWN: Final = 8
"""Numbers of a vector that a slice tells, at most."""
ORDER: Final = {"M": 0, "X": 1, "C": 2, "i": 3, "s": 4, "f": 5}
"""Of events at one instant: an arrow's ends come after the slices that they lie in, its start before its end."""

Entry = dict[str, Any]


def as_text(episode: Episode) -> str:
    """The document, an event a line."""
    setting, outcome = episode.setting, episode.outcome
    facts = {
        "environment": setting.env_id,
        "options": setting.options,
        "policy": setting.policy.name or setting.policy.kind,
        "seed": setting.seed,
        "schedule": setting.schedule,
        "virtual time, s": outcome.end_time,
        "messages": episode.counts,
        "versions": setting.versions,
        "note": "time is the virtual time of the simulation",
    }
    entries = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in events(episode))
    return f'{{"displayTimeUnit":"ms","otherData":{json.dumps(facts)},"traceEvents":[\n{entries}\n]}}\n'


def events(episode: Episode) -> list[Entry]:
    """All trace events, by time."""
    place = {lane: WAYS * (number + 1) for number, lane in enumerate(lanes(episode))}
    drawn = list(_spans(spans(episode), place))
    found = [
        *_names(episode, place, {entry["tid"] for entry in drawn}),
        *drawn,
        *(_moment(moment, place) for moment in moments(episode)),
        *_ages(episode),
        *_messages(episode.messages, place),
    ]
    return sorted(found, key=lambda e: (e["ph"] != "M", e["ts"], ORDER[e["ph"]], -e.get("dur", 0)))


def _us(ns: int) -> int:
    return ns // 1000


def _names(episode: Episode, place: dict[str, int], used: set[int]) -> Iterator[Entry]:
    for pid, name in ((LANES, f"{episode.setting.env_id}, virtual time"), (AGES, "age of the oldest fact seen, s")):
        yield _meta("process_name", pid, 0, name=name)
        yield _meta("process_sort_index", pid, 0, sort_index=pid)
    of_lane = {first: lane for lane, first in place.items()}
    for tid in sorted({*place.values(), *used}):
        first = tid - tid % WAYS
        way = tid - first
        yield _meta("thread_name", LANES, tid, name=of_lane[first] + (f" ({way + 1})" if way else ""))
        yield _meta("thread_sort_index", LANES, tid, sort_index=tid)


def _meta(what: str, pid: int, tid: int, **args: Any) -> Entry:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _spans(found: Iterable[Span], place: dict[str, int]) -> Iterator[Entry]:
    """Each on the first way of its lane that is free; what is over at once has its moment only."""
    free: dict[str, list[int]] = {}
    for span in found:
        start, end = _us(span.start), _us(span.end)
        if end <= start:
            continue
        ways = free.setdefault(span.lane, [])
        way = next((number for number, until in enumerate(ways) if until <= start), len(ways))
        ways[way : way + 1] = [end]
        name = span.who if span.doing == "disturbed" else span.doing
        yield {
            "ph": "X", "cat": "span", "name": name, "pid": LANES, "tid": place[span.lane] + way,
            "ts": start, "dur": end - start, "args": {"number": span.number, "who": span.who},
        }  # fmt: skip


def _moment(moment: TraceMoment, place: dict[str, int]) -> Entry:
    args: dict[str, Any] = {}
    for each in moment.happens:
        args[f"{named(each)} {each.number} of {each.agent}"] = _shown(each)
    if moment.leaves:
        args["sends"] = ", ".join(f"{word(m.kind)} to {m.receiver}" for m in moment.leaves[:SHOWN])
    return {
        "ph": "X", "cat": "moment", "name": moment.name, "pid": LANES, "tid": place[moment.lane],
        "ts": _us(moment.t), "dur": MOMENT, "args": args,
    }  # fmt: skip


def _shown(each: SentMessage | Event) -> str:
    """The numbers that say something to people, in short."""
    content = each.content
    if each.kind == DISTURBED:
        return f"{'end' if content['ends'] else 'beginning'} of {told_disturbance(content)}"
    for name in ("vector", "values"):
        if name in content:
            numbers = [f"{x:.4g}" if isinstance(x, float) else str(x) for x in content[name]]
            return f"{name} {', '.join(numbers[:SHOWN])}{', ...' if len(numbers) > SHOWN else ''}"
    return ", ".join(f"{name} {value}" for name, value in content.items())


def _ages(episode: Episode) -> Iterator[Entry]:
    for agent in episode.world.decides:
        for age in episode.ages(agent):
            yield {"ph": "C", "name": agent, "pid": AGES, "ts": _us(age.t), "args": {"s": age.oldest}}


def _messages(sent: Iterable[SentMessage], place: dict[str, int]) -> Iterator[Entry]:
    """An arrow for each copy that came, a mark where it left for each that did not."""
    for number, m in enumerate(sent):
        common = {"cat": "message", "name": word(m.kind), "pid": LANES}
        start = {"tid": place[m.sender], "ts": _us(m.sent)}
        if came(m):
            assert m.arrives is not None
            yield {"ph": "s", "id": number, **common, **start}
            yield {"ph": "f", "bp": "e", "id": number, **common, "tid": place[m.receiver], "ts": _us(m.arrives)}
        else:
            told = {"to": m.receiver, "number": m.number}
            name = f"{m.fate}: {word(m.kind)}"
            yield {"ph": "i", "s": "t", **common, **start, "name": name, "args": told}
