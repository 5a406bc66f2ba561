"""A recorded episode as the document that ui.perfetto.dev opens: lanes are threads, messages arrows between them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from heron_env.lab.traces.episode import DISTURBED, Episode, Event, SentMessage
from heron_env.lab.traces.lanes import Span, arrived, disturbance_words, kind_words, lane_of, lanes, spans

NAME: Final = "perfetto.json"
OF_LANES, OF_AGES = 1, 2
"""Process ids: of the lanes, and of the counters."""
MOMENT: Final = 1
"""us; how long an instant is shown."""
THREADS: Final = 1000
"""Thread ids of one agent: its own lane first, then those for what overlaps."""
MOST: Final = 8
"""Numbers of a vector that a slice shows, and messages that it names."""
ORDER: Final = {"M": 0, "X": 1, "C": 2, "i": 3, "s": 4, "f": 5}
"""Of events at one instant: an arrow's ends come after the slices that they lie in, its start before its end."""

Entry = dict[str, Any]


def perfetto_text(episode: Episode) -> str:
    """The episode in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open, an event a line.

    Virtual time is shown as if it were real, in whole microseconds; the record itself has the nanoseconds. At every
    instant at which a message leaves or comes there is a slice of 1 us on the lane, so that both ends of the message's
    arrow lie in one. Spans that overlap on a lane go to further lanes of the same agent: slices of a thread must nest.
    """
    about = {"virtual time, s": episode.outcome.end_time, "messages": episode.counts, **asdict(episode.setting)}
    place = {lane: THREADS * (number + 1) for number, lane in enumerate(lanes(episode))}
    slices = list(_slices(spans(episode), place))
    entries = [
        *_names(episode, place, {entry["tid"] for entry in slices}),
        *slices, *_moments(episode, place), *_ages(episode), *_messages(episode.messages, place),
    ]  # fmt: skip
    entries.sort(key=lambda e: (e["ph"] != "M", e["ts"], ORDER[e["ph"]], -e.get("dur", 0)))
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    return f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":[\n{lines}\n]}}\n'


def _us(ns: int) -> int:
    return ns // 1000


def _names(episode: Episode, place: dict[str, int], used: set[int]) -> Iterator[Entry]:
    titles = {OF_LANES: f"{episode.setting.env_id}, virtual time", OF_AGES: "age of the oldest fact observed, s"}
    for pid, name in titles.items():
        yield _meta("process_name", pid, 0, name=name)
        yield _meta("process_sort_index", pid, 0, sort_index=pid)
    lane_at = {first: lane for lane, first in place.items()}
    for tid in sorted({*place.values(), *used}):
        way = tid % THREADS
        yield _meta("thread_name", OF_LANES, tid, name=lane_at[tid - way] + (f" ({way + 1})" if way else ""))
        yield _meta("thread_sort_index", OF_LANES, tid, sort_index=tid)


def _meta(what: str, pid: int, tid: int, **args: Any) -> Entry:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _slices(by_start: Iterable[Span], place: dict[str, int]) -> Iterator[Entry]:
    """Each on the first way of its lane that is free; what is over at once has its moment only."""
    free: dict[str, list[int]] = defaultdict(list)
    for span in by_start:
        start, end = _us(span.start), _us(span.end)
        if end <= start:
            continue
        ways = free[span.lane]
        way = next((number for number, until in enumerate(ways) if until <= start), len(ways))
        ways[way : way + 1] = [end]
        name = span.who if span.doing == "disturbed" else span.doing
        yield {
            "ph": "X", "cat": "span", "name": name, "pid": OF_LANES, "tid": place[span.lane] + way,
            "ts": start, "dur": end - start, "args": {"number": span.number, "who": span.who},
        }  # fmt: skip


def _moments(episode: Episode, place: dict[str, int]) -> Iterator[Entry]:
    """What comes in, happens and leaves, of each instant of each lane."""
    happens: dict[tuple[str, int], list[SentMessage | Event]] = defaultdict(list)
    leaves: dict[tuple[str, int], list[str]] = defaultdict(list)
    second = [m for m in episode.messages if m.fate == "second copy"]
    for each in [*dict(sorted(episode.handled().items())).values(), *second]:
        lane, t = (lane_of(each), each.t) if isinstance(each, Event) else (each.receiver, each.arrives or 0)
        happens[lane, t].append(each)
    for m in episode.messages:
        leaves[m.sender, m.sent].append(f"{kind_words(m)} to {m.receiver}")
    for lane, t in dict.fromkeys([*happens, *leaves]):
        here, sent = happens[lane, t], leaves[lane, t]
        counts = Counter(map(kind_words, here)) or {"sends": 1}
        yield {
            "ph": "X", "cat": "moment", "pid": OF_LANES, "tid": place[lane], "ts": _us(t), "dur": MOMENT,
            "name": ", ".join(name if n == 1 else f"{n} x {name}" for name, n in counts.items()),
            "args": {
                **{f"{kind_words(each)} {each.number} of {each.agent}": _values(each) for each in here},
                **({"sends": ", ".join(sent[:MOST])} if sent else {}),
            },
        }  # fmt: skip


def _values(each: SentMessage | Event) -> str:
    """The numbers that people read, in short."""
    if each.kind == DISTURBED:
        return f"{'end' if each.content['ends'] else 'beginning'} of {disturbance_words(each.content)}"
    vector = each.content.get("vector", each.content.get("values"))
    if vector is None:
        return ", ".join(f"{name} {value}" for name, value in each.content.items())
    numbers = [f"{x:.4g}" if isinstance(x, float) else str(x) for x in vector]
    return ", ".join([*numbers[:MOST], *["..."] * (len(numbers) > MOST)])


def _ages(episode: Episode) -> Iterator[Entry]:
    for agent in episode.world.decides:
        for age in episode.ages(agent):
            yield {"ph": "C", "name": agent, "pid": OF_AGES, "ts": _us(age.t), "args": {"s": age.oldest}}


def _messages(sent: Iterable[SentMessage], place: dict[str, int]) -> Iterator[Entry]:
    """An arrow for each copy that came, a mark where it left for each that did not."""
    for number, m in enumerate(sent):
        common = {"cat": "message", "name": kind_words(m), "pid": OF_LANES}
        start = {"tid": place[m.sender], "ts": _us(m.sent)}
        if arrived(m):
            yield {"ph": "s", "id": number, **common, **start}
            end = {"tid": place[m.receiver], "ts": _us(m.arrives or 0)}
            yield {"ph": "f", "bp": "e", "id": number, **common, **end}
        else:
            values = {"to": m.receiver, "number": m.number}
            yield {"ph": "i", "s": "t", **common, **start, "name": f"{m.fate}: {kind_words(m)}", "args": values}
