"""A recorded episode as a small figure: lanes are agents, bars what lasts, lines messages, marks instants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from heron_env.errors import ConfigError
from heron_env.lab.figure_style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, WIDTH, house_style
from heron_env.lab.traces.episode import DISTURBED, EFFECTS, OBSERVATIONS, PHYSICS, PROXY, Episode, SentMessage
from heron_env.lab.traces.lanes import arrived, lanes, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_AGENTS, MOST_MESSAGES = 12, 200
"""More would make a picture that nobody can read."""
NS = 1_000_000_000
CYCLE: Final = ("Cycle", "LocalState", "TickResult")
"""How the kinds of messages begin that belong to the physics cycle alone; they are left out."""
BARS: Final = {
    "waiting": ("waiting for an observation", SKY, -0.26),
    "thinking": ("computing the action", GREEN, 0.02),
    "acting": ("action delayed (act_delay)", ORANGE, 0.02),
    "disturbed": ("disturbance", "#F0B99C", -0.12),
}
"""By the first word of a span: what it says, its colour, and where its bar begins, in lanes from the middle."""


def draw(episode: Episode, window: tuple[float, float] | None = None) -> Figure:
    """Draw the timeline of a recorded episode; `heron trace` writes all of it for ui.perfetto.dev.

    Args:
        episode: as `record_episode` gives it.
        window: start and end, s; None: as much as is legible, from the start or the first disturbance.

    Returns:
        A figure of matplotlib: a lane for each of at most 12 agents, with its actions and messages.

    Raises:
        ConfigError: nothing happened in this window, or matplotlib is missing (extra `plots`).

    Example: `draw(record_episode("heron/BatteryGrid-v0", "random", t_end=5.0)).savefig("timeline.svg")`.
    """
    names, (start, end), setting = lanes(episode), legible(episode, window), episode.setting
    if PROXY in names:
        names.remove(PHYSICS)  # all its messages are of the physics cycle
    row = {name: y for y, name in enumerate(names[: len(names) - max(len(episode.world.agents) - MOST_AGENTS, 0)])}
    with house_style():
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure

        figure = Figure((WIDTH, 0.3 * len(row) + 1.6), layout="constrained")
        axes = figure.subplots()
        axes.set(xlim=(start / NS, end / NS), ylim=(len(row) - 0.5, -0.5), xlabel="virtual time, s")
        axes.set_yticks([*row.values()], [name if len(name) <= 18 else f"{name[:17]}..." for name in row])
        title = f"{setting.env_id}, {setting.policy.name or 'own policies'}, seed {setting.seed}"
        axes.set_title(title, fontsize=9.0, weight="normal", color=GREY)
        axes.tick_params(length=0, labelsize=8.5)
        within = [s for s in spans(episode) if s.lane in row and start <= s.end and s.start <= end]
        for doing, (label, colour, above) in BARS.items():
            if bars := [s for s in within if s.doing.startswith(doing)]:
                y, left, width = zip(
                    *((row[s.lane] + above, s.start / NS, (s.end - s.start) / NS) for s in bars), strict=True
                )
                axes.barh(y, width, 0.24, left, align="edge", color=colour, alpha=0.8, label=label, zorder=2)
        for label, colour, dashes, messages in _messages(episode, start, end):
            ends = [
                [(m.sent / NS, row[m.sender]), ((m.arrives or 0) / NS, row[m.receiver])]
                for m in messages
                if {m.sender, m.receiver} <= row.keys()
            ]
            if ends:
                lines = LineCollection(ends, colors=colour, linestyles=dashes, linewidths=0.8, alpha=0.8, label=label)
                axes.add_collection(lines, autolim=False)
        for label, marker, size, colour, instants in _instants(episode):
            places = [(t / NS, row[lane]) for t, lane in instants if lane in row and start <= t <= end]
            if places:
                x, y = zip(*places, strict=True)
                axes.scatter(x, y, s=size, color=colour, marker=marker, label=label, zorder=3)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8.5)
        return figure


def legible(episode: Episode, window: tuple[float, float] | None) -> tuple[int, int]:
    """`window`, or whole control steps without too many messages; start and end, ns. Raises ConfigError, see `draw`."""
    last, dt = round(episode.outcome.end_time * NS), episode.world.dt_ns
    if not last:
        raise ConfigError("the episode ended as it began: there is nothing to show; let it last longer (--until)")
    if window is None:
        first = 0
        if len(episode.messages) > MOST_MESSAGES:
            first = min((e.t // dt * dt for e in episode.events if e.kind == DISTURBED and e.t < last), default=0)
        sent = sorted(m.sent for m in episode.messages if m.sent >= first)
        after = sent[MOST_MESSAGES] if len(sent) > MOST_MESSAGES else last
        return first, min(last, first + max(1, -(-(after - first) // dt)) * dt)
    start, end = round(window[0] * NS), min(round(window[1] * NS), last)
    if start >= last:
        raise ConfigError(f"--window {start / NS:g},{window[1]:g}: the episode ended at {last / NS:g} s; start earlier")
    if start == end:
        raise ConfigError(f"--window {start / NS!r},{end / NS!r}: must be 1e-9 s long at least")
    return start, end


def _messages(episode: Episode, start: int, end: int) -> Iterator[tuple[str, str, str, list[SentMessage]]]:
    """Label, colour, dashes, and the messages that arrived, by what they are for."""
    arrivals = [m for m in episode.messages if arrived(m) and m.sent <= end and (m.arrives or 0) >= start]
    requests = ("ObservationRequest", *OBSERVATIONS)
    yield "observation: request, reply", BLUE, "-", [m for m in arrivals if m.kind in requests]
    yield "other message", GREY, ":", [m for m in arrivals if m.kind not in requests and not m.kind.startswith(CYCLE)]


def _instants(episode: Episode) -> Iterator[tuple[str, str, int, str, list[tuple[int, str]]]]:
    """Label, marker, size, colour, and of each instant when, ns, and on which lane."""
    events, messages = episode.events, episode.messages
    effects = [(e.t, e.agent) for e in events if e.kind in EFFECTS and not e.cancelled]
    effects += [(m.arrives or 0, m.agent) for m in messages if m.kind == "ActionCommand" and arrived(m)]
    yield "agent tick", "|", 80, INK, [(e.t, e.agent) for e in events if e.kind == "AgentTick"]
    yield "action takes effect", "D", 18, VERMILION, effects
    yield "sends a message that is lost", "x", 26, PURPLE, [(m.sent, m.sender) for m in messages if m.fate == "lost"]
