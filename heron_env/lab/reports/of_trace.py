"""The part of a report on one recorded episode: its timeline, and the same in words; and a report of it alone."""

from __future__ import annotations

from collections.abc import Sequence

from heron_env.lab.reports.document import Grid, Part, Picture, Report
from heron_env.lab.traces.episode import Episode
from heron_env.lab.traces.excerpt import excerpt
from heron_env.lab.traces.lanes import word
from heron_env.lab.traces.telling import seconds, told_lane, told_moment
from heron_env.lab.traces.timeline import Timeline

MOST_ROWS = 600
READING = (
    "Arrows are messages from lane to lane, bars are waiting and acting, and below is how old the oldest fact was in "
    "each observation when it came."
)
EXPLORE = "`heron trace` writes the whole episode for ui.perfetto.dev, too."


def trace_part(
    episode: Episode,
    window: tuple[float, float] | None = None,
    *,
    about: str = "",
    name: str = "timeline",
    in_words: bool = False,
) -> Part:
    """`window` (s) of the episode, or as much as is legible.

    Args:
        about: why this one is shown.
        in_words: also tables of all that happens in the window, and of all messages?
    """
    drawn = Timeline(excerpt(episode, window))
    counts = ", ".join(f"{count} {fate}" for fate, count in episode.counts.items())
    told = f"{drawn.shown.note}. Messages: {counts}."
    lanes = [told_lane(lane, [m for m in drawn.moments if m.lane == lane]) for lane in drawn.shown.lanes]
    picture = Picture(
        name,
        drawn.figure(),
        " ".join(text for text in (about, READING, told, EXPLORE) if text),
        f"Timeline. {told} {'; '.join(lanes)}.",
    )
    return Part("How an event-driven run works", [picture, *(_tables(drawn) if in_words else ())])


def trace_report(episode: Episode, window: tuple[float, float] | None = None) -> Report:
    """A report of one episode alone."""
    setting = episode.setting
    part = trace_part(episode, window, in_words=True)
    heading = f"{setting.env_id}: {setting.policy.name or 'own policies'}, seed {setting.seed}"
    hint = "An event-driven episode in virtual time. `heron trace --window START,END` draws another part."
    return Report(heading, [hint], [part])


def _tables(drawn: Timeline) -> list[Grid]:
    ages = {(agent, age.t): age for agent in drawn.shown.episode.world.decides
            for age in drawn.shown.episode.ages(agent)}  # fmt: skip
    happened = [told_moment(m, ages.get((m.lane, m.t))).partition(": ") for m in drawn.moments]
    heard = [
        (
            seconds(m.sent), "" if m.arrives is None else seconds(m.arrives), f"{word(m.kind)} {m.number}", m.sender,
            m.receiver, m.fate,
        )
        for m in drawn.messages
    ]  # fmt: skip
    return [
        _folded("What happens, as a table", ("time and lane", "what"), [(when, what) for when, _, what in happened]),
        _folded("The messages, as a table", ("sent, s", "arrived, s", "message", "from", "to", "fate"), heard),
    ]


def _folded(caption: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Grid:
    more = len(rows) - MOST_ROWS
    note = f"And {more} more, all in the record." if more > 0 else ""
    return Grid(caption, head, rows[:MOST_ROWS], words=len(head), note=note, folded=True)
