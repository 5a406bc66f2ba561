"""The rules of the Trace Event Format that a viewer relies on: `faults(document)` names each that is broken."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

PHASES = set("BEXMCsfi")


def faults(document: dict) -> Iterator[str]:
    """A sentence for each broken rule."""
    events = document["traceEvents"]
    timed = [e for e in events if e["ph"] != "M"]
    if any(b["ts"] < a["ts"] for a, b in pairwise(timed)):
        yield "events are not sorted by time"
    for event in events:
        yield from _shape(event)
    slices, wrong = _slices(timed)
    yield from wrong
    yield from _nesting(slices)
    yield from _flows(timed, slices)
    yield from _names(events)


def _shape(event: dict) -> Iterator[str]:
    if event["ph"] not in PHASES:
        yield f"unknown phase {event['ph']!r}"
    if not isinstance(event["ts"], int) or event["ts"] < 0:
        yield f"ts {event['ts']!r} is no whole number of us"
    if not isinstance(event["pid"], int) or (event["ph"] != "C" and not isinstance(event["tid"], int)):
        yield f"{event['name']!r} has no pid and tid"
    if event["ph"] == "X" and not (isinstance(event["dur"], int) and event["dur"] >= 0):
        yield f"{event['name']!r} has dur {event.get('dur')!r}"
    if event["ph"] == "i" and event["s"] not in "tpg":
        yield f"{event['name']!r} has scope {event['s']!r}"
    if event["ph"] == "C" and not all(isinstance(value, int | float) for value in event["args"].values()):
        yield f"counter {event['name']!r} counts {event['args']!r}"


def _slices(timed: list[dict]) -> tuple[dict, list[str]]:
    """(start, end, name) by lane; B and E are paired last in, first out."""
    found, open_, wrong = defaultdict(list), defaultdict(list), []
    for e in timed:
        lane = e["pid"], e.get("tid")
        if e["ph"] == "X":
            found[lane].append((e["ts"], e["ts"] + e["dur"], e["name"]))
        elif e["ph"] == "B":
            open_[lane].append(e)
        elif e["ph"] == "E":
            if not open_[lane]:
                wrong.append(f"an E without a B at {e['ts']}")
            else:
                begun = open_[lane].pop()
                found[lane].append((begun["ts"], e["ts"], begun["name"]))
    wrong += [f"{e['name']!r} at {e['ts']} has a B without an E" for lane in open_.values() for e in lane]
    return found, wrong


def _nesting(slices: dict) -> Iterator[str]:
    for lane, found in slices.items():
        stack: list[tuple] = []
        for start, end, name in sorted(found, key=lambda s: (s[0], -s[1])):
            while stack and stack[-1][1] <= start:
                stack.pop()
            if stack and end > stack[-1][1]:
                yield f"{name!r} at {start} on {lane} overlaps {stack[-1][2]!r} without lying in it"
            stack.append((start, end, name))


def _flows(timed: list[dict], slices: dict) -> Iterator[str]:
    starts, ends = {}, {}
    for e in timed:
        if e["ph"] not in "sf":
            continue
        side = starts if e["ph"] == "s" else ends
        key = e["cat"], e["name"], e["id"]
        if key in side or (e["ph"] == "f" and key not in starts):
            yield f"flow {key}: its {e['ph']} is not the only one, or has no start before it"
        side[key] = e
        if not any(start <= e["ts"] < end for start, end, _ in slices[e["pid"], e["tid"]]):
            yield f"flow {key}: its {e['ph']} at {e['ts']} lies in no slice of its lane"
        if e["ph"] == "f" and e.get("bp") != "e":
            yield f"flow {key}: without bp=e its end binds to the next slice"
    ids = [e["id"] for e in starts.values()]
    if len(set(ids)) != len(ids):
        yield "an id is used twice"
    for key in starts.keys() ^ ends.keys():
        yield f"flow {key} has one end"


def _names(events: list[dict]) -> Iterator[str]:
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for lane in {(e["pid"], e["tid"]) for e in events if e["ph"] in "BEXsfi"} - named:
        yield f"lane {lane} has no name"
    processes = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    for pid in {e["pid"] for e in events} - processes:
        yield f"process {pid} has no name"
