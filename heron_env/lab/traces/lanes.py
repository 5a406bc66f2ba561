"""Who did what when: a recorded episode as spans on lanes: disturbances, physics, the proxy, each agent."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from heron_env.lab.traces.episode import ANSWERS, DISTURBED, EFFECTS, PHYSICS, PROXY, Episode, Event, SentMessage

Doing = Literal["waiting", "waiting in vain", "thinking", "acting", "acting in vain", "gathering", "disturbed"]
OUTSIDE: Final = "disturbances"
"""The lane of what happens to the world from outside; it is there where there are any."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasts, ns: an agent waits from its tick for the observation, thinks from its observation to its
    answer, or acts from its decision to the effect (in vain if it has ended by then); the proxy gathers an observation;
    a disturbance is in force.

    Attributes: who: it is about, an agent or a disturbance in words.
    """

    lane: str
    doing: Doing
    start: int
    end: int
    number: int
    who: str


def lanes(episode: Episode) -> list[str]:
    """All lanes, top to bottom: disturbances if there are any, physics, the proxy if it is asked, agents by rank."""
    outside = [OUTSIDE] if any(event.kind == DISTURBED for event in episode.events) else []
    proxy = [] if any(event.kind == "Boundary" for event in episode.events) else [PROXY]
    return [*outside, PHYSICS, *proxy, *episode.world.agents]


def lane_of(event: Event) -> str:
    """Where an event is shown."""
    return OUTSIDE if event.kind == DISTURBED else event.agent


def kind_words(each: SentMessage | Event) -> str:
    """What it is in words: `agent tick`, `cancelled action effect`, `observation reply`."""
    marks = [mark for mark in ("cancelled", "masked") if isinstance(each, Event) and getattr(each, mark)]
    return " ".join([*marks, re.sub(r"\B(?=[A-Z])", " ", each.kind).lower()])


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


def spans(episode: Episode) -> list[Span]:
    """What lasts, by start."""
    result = [
        *disturbed(episode), *_waiting(episode), *_thinking(episode), *_acting(episode), *_gathering(episode)
    ]  # fmt: skip
    return sorted(result, key=lambda span: (span.start, -span.end))


def disturbed(episode: Episode) -> Iterator[Span]:
    """From the beginning of a disturbance that lasts to its end, or to that of the episode."""
    last = round(episode.outcome.end_time * 1e9)
    for event in episode.events:
        if event.kind == DISTURBED and not event.content["ends"]:
            duration = event.content["disturbance"]["duration"]
            end = event.t if duration is None else min(event.t + round(duration * 1e9), last)
            yield Span(OUTSIDE, "disturbed", event.t, end, event.number, disturbance_words(event.content))


def _waiting(episode: Episode) -> Iterator[Span]:
    """From the request of an observation to its coming; where it never comes, to the next request."""
    requests: dict[str, dict[int, int]] = defaultdict(dict)
    for m in episode.messages:
        if m.kind == "ObservationRequest" and m.fate != "second copy":
            requests[m.agent].setdefault(m.number, m.sent)
    replies = {
        (m.agent, m.number): m.arrives for m in episode.messages if m.kind == "ObservationReply" and m.place is not None
    }
    end = round(episode.outcome.end_time * 1e9)
    for agent, sent_at in requests.items():
        starts = sorted(sent_at.items())
        for (number, sent), (_, following) in zip(starts, [*starts[1:], (0, end)], strict=True):
            arrives = replies.get((agent, number))
            if arrives is not None:
                yield Span(agent, "waiting", sent, arrives, number, agent)
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
