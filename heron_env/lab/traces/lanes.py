"""Who did what when: a recorded episode as spans and moments on lanes: disturbances, physics, the proxy, each agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from heron_env.lab.traces.episode import ANSWERS, DISTURBED, EFFECTS, PHYSICS, PROXY, Age, Episode, Event, SentMessage

Doing = Literal["waiting", "waiting in vain", "thinking", "acting", "acting in vain", "gathering", "disturbed"]
OUTSIDE: Final = "disturbances"
"""The lane of what happens to the world from outside; it is there where there are any."""

WORDS: Final = {
    "AgentTick": "tick",
    "Deadline": "deadline",
    "ActionEffect": "effect",
    "Simulation": "physics",
    "CloseEpisode": "end of the episode",
    "ObservationRequest": "observation request",
    "ObservationReply": "observation",
    "Command": "command",
    "StateReport": "state report",
    "ReportReceived": "receipt",
    "CycleToken": "cycle token",
    "CycleCompletion": "cycle completion",
    "LocalStateRequest": "score request",
    "LocalStateReply": "score",
    "TickResultReport": "score noted",
    "SharedState": "shared state",
    "LetterUnderWay": "letter",
    "Answered": "answer",
    "PushedAnswer": "answer",
    "ObservationPush": "pushed observation",
    "PushedCommand": "command",
    "PushedEffect": "effect",
    "Disturbed": "disturbance",
    "Settle": "conditions",
    "Custom": "event",
    "CustomLetter": "message",
    "Boundary": "step",
    "ObservationCopy": "observation",
    "ActionCommand": "action",
}
"""What people call the kinds of messages and events; one without a word keeps its name."""


def kind_word(kind: str) -> str:
    """The kind of a message or event in words."""
    return WORDS.get(kind, kind)


def event_words(each: SentMessage | Event) -> str:
    """What it is in words: `tick`, `cancelled effect`, `masked effect`."""
    marks = [mark for mark in ("cancelled", "masked") if isinstance(each, Event) and getattr(each, mark)]
    return " ".join([*marks, kind_word(each.kind)])


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasts, ns: an agent waits from its tick for the observation, thinks from its observation to its
    answer, or acts from its decision to the effect (in vain if it has ended by then); the proxy gathers an observation;
    a disturbance is in force.

    Attributes:
        who: it is about, an agent or a disturbance in words.
    """

    lane: str
    doing: Doing
    start: int
    end: int
    number: int
    who: str


@dataclass(slots=True)
class TraceMoment:
    """All that happens on one lane at one instant, ns: what comes in and happens, and what leaves."""

    lane: str
    t: int
    happens: list[SentMessage | Event]
    leaves: list[SentMessage]

    @property
    def name(self) -> str:
        """`tick`, `observation, effect`, `3 state reports`; what leaves only where nothing happens."""
        names = [event_words(each) for each in self.happens]
        if not names:
            return f"sends {_counted([kind_word(m.kind) for m in self.leaves])}"
        return _counted(names)


def _counted(names: list[str]) -> str:
    many = {name: names.count(name) for name in dict.fromkeys(names)}
    return ", ".join(name if n == 1 else f"{n} x {name}" for name, n in many.items())


def lanes(episode: Episode) -> list[str]:
    """All lanes, top to bottom: disturbances if there are any, physics, the proxy if it is asked, agents by rank."""
    outside = [OUTSIDE] if any(event.kind == DISTURBED for event in episode.events) else []
    proxy = [] if any(event.kind == "Boundary" for event in episode.events) else [PROXY]
    return [*outside, PHYSICS, *proxy, *episode.world.agents]


def lane_of(event: Event) -> str:
    """Where an event is shown."""
    return OUTSIDE if event.kind == DISTURBED else event.agent


def disturbance_words(content: dict[str, Any]) -> str:
    """What a `Disturbed` event is about: `load_spike (zone zone_1, factor 1.5)`."""
    about = content["disturbance"]
    payload = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in about["payload"].items()
    )
    return f"{about['type']} ({payload})" if payload else str(about["type"])


def arrived(message: SentMessage) -> bool:
    """Did this copy reach its receiver?"""
    return message.fate in ("delivered", "second copy")


def moments(episode: Episode) -> list[TraceMoment]:
    """What happens on each lane, by time; where a message leaves or comes there is a moment."""
    at_place: dict[tuple[str, int], TraceMoment] = {}

    def at(lane: str, t: int) -> TraceMoment:
        return at_place.setdefault((lane, t), TraceMoment(lane, t, [], []))

    for each in sorted(episode.handled().items()):
        thing: Any = each[1]
        lane, t = (lane_of(thing), thing.t) if isinstance(thing, Event) else (thing.receiver, thing.arrives)
        at(lane, t).happens.append(thing)
    for message in episode.messages:
        at(message.sender, message.sent).leaves.append(message)
        if message.fate == "second copy":
            assert message.arrives is not None
            at(message.receiver, message.arrives).happens.append(message)
    return sorted(at_place.values(), key=lambda moment: moment.t)


def spans(episode: Episode) -> list[Span]:
    """What lasts, by start."""
    result = [
        *_disturbed(episode), *_waiting(episode), *_thinking(episode), *_acting(episode), *_gathering(episode)
    ]  # fmt: skip
    return sorted(result, key=lambda span: (span.start, -span.end))


def _waiting(episode: Episode) -> Iterator[Span]:
    """From the request of an observation to its coming; where it never comes, to the next request."""
    asked: dict[str, list[SentMessage]] = defaultdict(list)
    for m in episode.messages:
        if m.kind == "ObservationRequest" and m.fate != "second copy":
            asked[m.agent].append(m)
    got = {
        (m.agent, m.number): m.arrives for m in episode.messages if m.kind == "ObservationReply" and m.place is not None
    }
    end = round(episode.outcome.end_time * 1e9)
    for agent, requests in asked.items():
        first = {m.number: m.sent for m in reversed(requests)}
        starts = sorted(first.items())
        for (number, sent), (_, following) in zip(starts, [*starts[1:], (0, end)], strict=True):
            arrived = got.get((agent, number))
            if arrived is not None:
                yield Span(agent, "waiting", sent, arrived, number, agent)
            else:
                yield Span(agent, "waiting in vain", sent, max(sent, following), number, agent)


def _thinking(episode: Episode) -> Iterator[Span]:
    """From the question to the answer, of policies that know who asks and take time."""
    for event in episode.events:
        if event.kind in ANSWERS:
            yield Span(event.agent, "thinking", event.content["asked"], event.t, event.number, event.agent)


def _acting(episode: Episode) -> Iterator[Span]:
    """From the decision, which an observation, a command or a deadline causes, to its effect."""
    handled = episode.handled()
    for event in episode.events:
        if event.kind in EFFECTS:
            cause = handled.get(event.cause)
            start = event.t if cause is None else cause.t if isinstance(cause, Event) else cause.arrives
            doing: Doing = "acting in vain" if event.cancelled else "acting"
            yield Span(event.agent, doing, start or 0, event.t, event.number, event.agent)


def _gathering(episode: Episode) -> Iterator[Span]:
    """At the proxy: obs_delay, between gathering an observation and sending it."""
    for m in episode.messages:
        if m.kind == "ObservationReply" and m.fate != "second copy":
            yield Span(PROXY, "gathering", m.content["gathered"], m.sent, m.number, m.agent)


def _disturbed(episode: Episode) -> Iterator[Span]:
    """From the beginning of a disturbance that lasts to its end, or to that of the episode."""
    last = round(episode.outcome.end_time * 1e9)
    for event in episode.events:
        if event.kind == DISTURBED and not event.content["ends"]:
            duration = event.content["disturbance"]["duration"]
            end = event.t if duration is None else min(event.t + round(duration * 1e9), last)
            yield Span(OUTSIDE, "disturbed", event.t, end, event.number, disturbance_words(event.content))


MOST = 6
"""Things told of one moment; the others are counted."""


def seconds_text(ns: int) -> str:
    """`12.345` for 12,345,000,000 ns; tenths of a millisecond at most."""
    return f"{ns / 1e9:.4f}".rstrip("0").rstrip(".")


def numbers_text(values: list[Any], most: int = 4) -> str:
    """`0.15, -1, ...`."""
    text = ", ".join(f"{x:.4g}" if isinstance(x, float) else str(x) for x in values[:most])
    return text + (", ..." if len(values) > most else "")


def span_words(span: Span) -> str:
    """`battery_1, waiting 3: 4 to 4.2 s (0.2 s)`."""
    when = f"{seconds_text(span.start)} to {seconds_text(span.end)} s ({seconds_text(span.end - span.start)} s)"
    if span.doing == "disturbed":
        return f"{span.who}: {when}"
    for_whom = "" if span.who == span.lane else f" for {span.who}"
    return f"{span.lane}, {span.doing}{for_whom}, {span.number}: {when}"


def moment_words(moment: TraceMoment, age: Age | None) -> str:
    """`4.2 s, battery_1: observation 3 from proxy (0.2 s under way); facts up to 0.4 s old; ...`."""
    parts = [_happening_words(each) for each in moment.happens]
    if age is not None:
        parts.append(f"facts up to {age.oldest:.4g} s old")
    parts += [_leaving_words(m) for m in moment.leaves]
    more = [f"and {len(parts) - MOST} more"] if len(parts) > MOST else []
    return f"{seconds_text(moment.t)} s, {moment.lane}: {'; '.join(parts[:MOST] + more)}"


def _happening_words(each: SentMessage | Event) -> str:
    if isinstance(each, Event):
        if each.kind == DISTURBED:
            return f"{disturbance_words(each.content)} {'ends' if each.content['ends'] else 'begins'}"
        values = each.content.get("values")
        return f"{event_words(each)} {each.number}" + (f" ({numbers_text(values)})" if values is not None else "")
    assert each.arrives is not None
    dropped = ", a second copy, dropped" if each.fate == "second copy" else ""
    who = each.agent if each.sender == each.receiver or each.sender == "proxy" else each.sender
    source = "the proxy" if each.sender == "proxy" else who
    way = f"{seconds_text(each.arrives - each.sent)} s under way{dropped}"
    return f"{kind_word(each.kind)} {each.number} from {source} ({way})"


def _leaving_words(m: SentMessage) -> str:
    fate = {"lost": ", lost", "in flight": ", still under way at the end"}.get(m.fate, "")
    return f"sends {kind_word(m.kind)} to {'the proxy' if m.receiver == 'proxy' else m.receiver}{fate}"


def lane_words(lane: str, happened: list[TraceMoment]) -> str:
    """`battery_1: 5 x tick, 5 x observation, 5 x effect`."""
    kinds = [event_words(each) for moment in happened for each in moment.happens]
    counts = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
    return f"{lane}: {counts or 'nothing happens'}"
