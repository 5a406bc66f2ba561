"""The part of a report on one recorded episode: its timeline."""

from __future__ import annotations

from heron_env.lab.reports.document import Part, Picture
from heron_env.lab.traces.episode import Episode
from heron_env.lab.traces.timeline import draw

READING = (
    "Arrows are messages from lane to lane, bars are waiting and acting, and below is how old the oldest fact was in "
    "each observation when it came."
)


def trace_part(
    episode: Episode, window: tuple[float, float] | None = None, *, about: str = "", name: str = "timeline"
) -> Part:
    """`window` (s) of the episode, or as much as is legible; `about` says why this one is shown."""
    timeline = draw(episode, window)
    counts = ", ".join(f"{count} {fate}" for fate, count in episode.counts.items())
    told = f"{timeline.shown.note}. Messages: {counts}."
    return Part(
        "How an event-driven run works",
        [
            Picture(
                name,
                timeline.svg(),
                " ".join(text for text in (about, READING, told, "`heron trace` writes a page to explore.") if text),
                f"Timeline with lanes {', '.join(timeline.shown.lanes)}. {told}",
            )
        ],
    )
