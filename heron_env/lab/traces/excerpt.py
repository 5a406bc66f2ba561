"""The part of a recorded episode that fits into a picture: a few lanes, a window of time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heron_env.errors import ConfigError
from heron_env.lab.traces.episode import DISTURBED, Episode
from heron_env.lab.traces.lanes import lane_of, lanes

MOST_AGENTS = 12
MOST_MESSAGES = 400
"""More would make a picture that nobody can read, and a file that is slow to open."""
NS = 1_000_000_000


@dataclass(frozen=True)
class Excerpt:
    """What is shown.

    Attributes:
        episode: with the messages and events of the shown lanes only, of all times.
        lanes: top to bottom.
        start, end: ns.
        note: what is left out, in words.
    """

    episode: Episode
    lanes: list[str]
    start: int
    end: int
    note: str


def excerpt(episode: Episode, window: tuple[float, float] | None) -> Excerpt:
    """The first agents by rank, and `window` (s) or as many whole control steps as are legible, from the first one or
    the first disturbance on.

    Raises ConfigError for a window in which nothing happened.
    """
    found = lanes(episode)
    left_out = max(len(episode.world.agents) - MOST_AGENTS, 0)
    shown = found[: len(found) - left_out]
    part = _of_lanes(episode, set(shown))
    last = round(episode.outcome.end_time * NS)
    start, end = _legible(part, last) if window is None else (round(window[0] * NS), round(window[1] * NS))
    if not last:
        raise ConfigError("the episode ended as it began: there is nothing to show; let it last longer (--until)")
    if start >= last:
        raise ConfigError(f"--window {start / NS:g},{end / NS:g}: the episode ended at {last / NS:g} s; start earlier")
    end = min(end, last)
    if start == end:
        raise ConfigError(f"--window {start / NS!r},{end / NS!r}: must be 1e-9 s long at least")
    note = f"It shows {start / NS:g} to {end / NS:g} s of {last / NS:g} s"
    if left_out:
        note += f", and the first {MOST_AGENTS} of {len(episode.world.agents)} agents"
    return Excerpt(part, shown, start, end, note)


def _of_lanes(episode: Episode, shown: set[str]) -> Episode:
    return replace(
        episode,
        messages=[m for m in episode.messages if m.sender in shown and m.receiver in shown],
        events=[e for e in episode.events if lane_of(e) in shown],
    )


def _legible(episode: Episode, last: int) -> tuple[int, int]:
    """All of it where there are few messages, else whole control steps before there are too many; one step at least."""
    dt = episode.world.dt_ns
    if len(episode.messages) <= MOST_MESSAGES:
        return 0, last
    start = min((e.t // dt * dt for e in episode.events if e.kind == DISTURBED and e.t < last), default=0)
    departures = sorted(m.sent for m in episode.messages if m.sent >= start)
    if len(departures) <= MOST_MESSAGES:
        return start, last
    steps = max(1, (departures[MOST_MESSAGES] - start) // dt)
    return start, min(last, start + steps * dt)
