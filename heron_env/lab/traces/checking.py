"""Is what was read back an episode? Its parts must fit each other: whoever draws or repeats it relies on that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from heron_env.errors import HeronError
from heron_env.lab.traces.episode import (
    ANSWERS,
    DISTURBED,
    OBSERVATIONS,
    PHYSICS,
    PROXY,
    Episode,
    Event,
    SentMessage,
)  # fmt: skip
from heron_env.lab.traces.identity import happenings_of, schedule_of

FARTHEST: Final = 2**62
"""ns; no clock goes farther, and no count."""


def require_whole(episode: Episode) -> None:
    """Raise ValueError with the first thing that does not fit."""
    fault = next(_faults(episode), None)
    if fault is not None:
        raise ValueError(fault)


def _faults(episode: Episode) -> Iterator[str]:
    world, outcome = episode.world, episode.outcome
    if not world.agents or len(set(world.agents)) < len(world.agents):
        yield "world.agents: must name each agent once"
    if not set(world.parents) == set(world.agents) >= set(world.decides) == set(world.columns) == set(world.sources):
        yield "world: parents, decides, columns and sources must be of its agents"
    if not (0 < world.dt_ns < FARTHEST and 0 < world.substeps < FARTHEST):
        yield "world.dt_ns, world.substeps: must be above 0"
    if not set(outcome.rewards) == set(world.agents) >= set(outcome.actions):
        yield "outcome: rewards and actions must be of the world's agents"
    if not set(outcome.terminated) == set(outcome.truncated) == set(world.agents) >= set(outcome.masked):
        yield "outcome: terminated, truncated and masked must be of the world's agents"
    if not 0.0 <= outcome.end_time * 1e9 < FARTHEST:
        yield "outcome.end_time: must be a time"
    yield from _of_setting(episode)
    known = {*world.agents, PROXY, PHYSICS}
    for number, message in enumerate(episode.messages):
        yield from (f"messages[{number}]: {fault}" for fault in _of_message(message, known, episode))
    for number, event in enumerate(episode.events):
        yield from (f"events[{number}]: {fault}" for fault in _of_event(event, known))


def _of_setting(episode: Episode) -> Iterator[str]:
    setting = episode.setting
    if not (setting.seed >= 0 and _counts(setting.seed)):
        yield "setting.seed: must be a whole number >= 0"
    for what, time in (("t_end", setting.t_end), ("wait", setting.wait)):
        if time is not None and not 0.0 <= time * 1e9 < FARTHEST:
            yield f"setting.{what}: must be a time"
    try:
        schedule_of(setting.schedule)
        happenings_of(setting)
    except (HeronError, TypeError, ValueError, KeyError, AttributeError) as error:
        yield f"setting: what happened and when can't be understood ({error})"


def _of_message(m: SentMessage, known: set[str], episode: Episode) -> Iterator[str]:
    if not {m.agent, m.sender, m.receiver} <= known:
        yield "is of nobody"
    if not all(map(_counts, (m.id, m.number, m.sent, m.cause, m.arrives or 0, m.place or 0))):
        yield "has a number that is none"
    if (m.arrives is None) != (m.fate == "lost") or (m.fate == "delivered" and m.place is None):
        yield f"has a fate, {m.fate}, that does not fit when it arrived"
    yield from _of_vectors(m.content)
    if m.kind in OBSERVATIONS:
        as_of = m.content.get("as_of")
        if not isinstance(as_of, list) or not all(map(_counts, as_of)):
            yield "has no as-of times"
        elif m.agent in episode.world.sources and len(as_of) != len(episode.world.sources[m.agent]):
            yield "has not an as-of time for each source"
        if m.kind == "ObservationReply" and not _counts(m.content.get("gathered")):
            yield "was gathered at no time"


def _of_event(event: Event, known: set[str]) -> Iterator[str]:
    if event.agent not in known:
        yield "is of nobody"
    if not all(map(_counts, (event.place, event.t, event.number, event.cause))):
        yield "has a number that is none"
    yield from _of_vectors(event.content)
    if event.kind in ANSWERS and not _counts(event.content.get("asked")):
        yield "answers what was asked at no time"
    if event.kind == DISTURBED:
        about = event.content.get("disturbance")
        if not isinstance(event.content.get("ends"), bool) or not isinstance(about, dict):
            yield "is a disturbance without a beginning or end"
        elif not isinstance(about.get("type"), str) or not isinstance(about.get("payload"), dict):
            yield "is a disturbance of no type"
        elif not _lasts(about.get("duration")):
            yield "is a disturbance without a duration"


def _of_vectors(content: dict[str, Any]) -> Iterator[str]:
    for name in ("vector", "values"):
        if name in content and not isinstance(content[name], list):
            yield f"has no numbers in its {name}"


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < FARTHEST


def _lasts(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and 0.0 < float(str(value)) * 1e9 < FARTHEST)
