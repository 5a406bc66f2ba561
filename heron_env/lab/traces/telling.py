"""A recorded episode in words: what a lane, a span, a message or a moment says when it is pointed at or read aloud."""

from __future__ import annotations

from typing import Any

from heron_env.lab.traces.episode import DISTURBED, Age, Event, SentMessage
from heron_env.lab.traces.lanes import Moment, Span, named, told_disturbance, word

MOST = 6
"""Things told of one moment; the others are counted."""


def seconds(ns: int) -> str:
    """`12.345` for 12,345,000,000 ns; tenths of a millisecond at most."""
    return f"{ns / 1e9:.4f}".rstrip("0").rstrip(".")


def numbers(values: list[Any], most: int = 4) -> str:
    """`0.15, -1, ...`."""
    shown = ", ".join(f"{x:.4g}" if isinstance(x, float) else str(x) for x in values[:most])
    return shown + (", ..." if len(values) > most else "")


def told_message(m: SentMessage) -> str:
    """`observation 3, proxy to battery_1, sent 4 s, arrived 4.2 s (0.2 s under way)`."""
    text = f"{word(m.kind)} {m.number}, {m.sender} to {m.receiver}, sent {seconds(m.sent)} s"
    if m.fate in ("lost", "in flight"):
        return f"{text}: {'lost' if m.fate == 'lost' else 'still under way at the end'}"
    assert m.arrives is not None
    second = ", a second copy, dropped" if m.fate == "second copy" else ""
    return f"{text}, arrived {seconds(m.arrives)} s ({seconds(m.arrives - m.sent)} s under way){second}"


def told_span(span: Span) -> str:
    """`battery_1, waiting 3: 4 to 4.2 s (0.2 s)`."""
    when = f"{seconds(span.start)} to {seconds(span.end)} s ({seconds(span.end - span.start)} s)"
    if span.doing == "disturbed":
        return f"{span.who}: {when}"
    whose = "" if span.who == span.lane else f" for {span.who}"
    return f"{span.lane}, {span.doing}{whose}, {span.number}: {when}"


def told_moment(moment: Moment, age: Age | None) -> str:
    """`4.2 s, battery_1: observation 3 from proxy (0.2 s under way); facts up to 0.4 s old; ...`."""
    parts = [_happening(each) for each in moment.happens]
    if age is not None:
        parts.append(f"facts up to {age.oldest:.4g} s old")
    parts += [_leaving(m) for m in moment.leaves]
    more = [f"and {len(parts) - MOST} more"] if len(parts) > MOST else []
    return f"{seconds(moment.t)} s, {moment.lane}: {'; '.join(parts[:MOST] + more)}"


def _happening(each: SentMessage | Event) -> str:
    if isinstance(each, Event):
        if each.kind == DISTURBED:
            return f"{told_disturbance(each.content)} {'ends' if each.content['ends'] else 'begins'}"
        values = each.content.get("values")
        return f"{named(each)} {each.number}" + (f" ({numbers(values)})" if values is not None else "")
    assert each.arrives is not None
    dropped = ", a second copy, dropped" if each.fate == "second copy" else ""
    who = each.agent if each.sender == each.receiver or each.sender == "proxy" else each.sender
    source = "the proxy" if each.sender == "proxy" else who
    return f"{word(each.kind)} {each.number} from {source} ({seconds(each.arrives - each.sent)} s under way{dropped})"


def _leaving(m: SentMessage) -> str:
    fate = {"lost": ", lost", "in flight": ", still under way at the end"}.get(m.fate, "")
    return f"sends {word(m.kind)} to {'the proxy' if m.receiver == 'proxy' else m.receiver}{fate}"


def told_lane(lane: str, found: list[Moment]) -> str:
    """`battery_1: 5 x tick, 5 x observation, 5 x effect`."""
    kinds = [named(each) for moment in found for each in moment.happens]
    counts = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
    return f"{lane}: {counts or 'nothing happens'}"
