"""A recorded episode drawn: a figure, and the document that ui.perfetto.dev opens.

Lanes are agents, bars what lasts, arrows messages, marks instants.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from heron_env.errors import ConfigError
from heron_env.lab.figure_style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION, house_style
from heron_env.lab.traces.episode import DISTURBED, OBSERVATIONS, Episode, Event, SentMessage
from heron_env.lab.traces.lanes import (
    OUTSIDE,
    Span,
    TraceMoment,
    arrived,
    disturbance_words,
    event_words,
    kind_word,
    lane_of,
    lanes,
    moments,
    spans,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_AGENTS = 12
OF_TITLE = 84
"""Letters of a line of the title."""
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
    names = lanes(episode)
    left_out = max(len(episode.world.agents) - MOST_AGENTS, 0)
    visible = names[: len(names) - left_out]
    part = _of_lanes(episode, set(visible))
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
    return Excerpt(part, visible, start, end, note)


def _of_lanes(episode: Episode, names: set[str]) -> Episode:
    return replace(
        episode,
        messages=[m for m in episode.messages if m.sender in names and m.receiver in names],
        events=[e for e in episode.events if lane_of(e) in names],
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


WIDTH, LANE, AGES, LEGEND = 10.6, 0.42, 1.1, 1.1
"""inches: of the picture; heights of a lane, of the ages below, and of legend and axis."""
BAR, WAYS = 0.17, 3
"""Height of a bar in lanes; how many overlapping ones lie below each other."""
LETTERS: Final = 120
"""Small letters that fit side by side into the lanes."""
BOUNDARIES: Final = 200
"""More ends of control steps would be grey."""


@dataclass(frozen=True)
class Family:
    """Messages that are drawn alike: colour, dashes, and what they are called."""

    colour: str
    dashes: Any
    words: str
    kinds: tuple[str, ...]


FAMILIES: Final = {
    "observations": Family(BLUE, "-", "observation: request, reply", ("ObservationRequest", *OBSERVATIONS)),
    "commands": Family(PURPLE, "-", "command", ("Command", "PushedCommand", "ActionCommand")),
    "reports": Family(GREEN, (0, (5, 2)), "state report, receipt", ("StateReport", "ReportReceived")),
    "shares": Family(INK, (0, (1.5, 1.5)), "shared with a neighbour, a letter", ("SharedState", "LetterUnderWay")),
    "cycle": Family("#B0B0B0", (0, (1, 2)), "physics cycle, scores", ()),
}
"""The last one takes all other kinds."""
FAMILY_OF: Final = {kind: family for family in FAMILIES.values() for kind in family.kinds}
SPANS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "waiting": ({"color": SKY}, "waiting for an observation"),
    "waiting in vain": ({"facecolor": "white", "edgecolor": SKY, "hatch": "/////"}, "waiting in vain"),
    "thinking": ({"color": GREEN}, "thinking"),
    "acting": ({"color": ORANGE}, "action under way"),
    "acting in vain": ({"facecolor": "white", "edgecolor": ORANGE, "hatch": "/////"}, "cancelled: its agent ended"),
    "gathering": ({"color": "#BDBDBD"}, "the proxy gathers (obs_delay)"),
    "disturbed": ({"color": "#F7D9C4"}, "a disturbance is in force"),
}
MARKS: Final[dict[str, tuple[dict[str, Any], str, tuple[str, ...]]]] = {
    "tick": ({"marker": "|", "s": 90, "color": INK, "linewidths": 2.2}, "tick: it asks what it sees", ("AgentTick",)),
    "seen": ({"marker": "o", "s": 24, "color": BLUE}, "its observation has come", OBSERVATIONS),
    "told": ({"marker": "v", "s": 34, "color": PURPLE}, "its command has come", ("Command", "PushedCommand")),
    "effect": ({"marker": "D", "s": 24, "color": VERMILION}, "effect: the set-point changes",
               ("ActionEffect", "PushedEffect", "ActionCommand")),
    "physics": ({"marker": "|", "s": 50, "color": INK, "linewidths": 1.0}, "physics", ("Simulation", "Boundary")),
    "begins": ({"marker": "|", "s": 300, "color": VERMILION, "linewidths": 1.8}, "a disturbance begins or ends",
               ("Disturbed",)),
    "lost": ({"marker": "x", "s": 30, "color": VERMILION, "linewidths": 1.8}, "a message that leaves here is lost", ()),
    "cancelled": ({"marker": "x", "s": 60, "color": GREY, "linewidths": 1.8}, "cancelled", ()),
    "other": ({"marker": ".", "s": 12, "color": GREY}, "anything else", ()),
}  # fmt: skip
"""How a mark looks, what it says, and of which kinds of messages and events it is."""
MARK_OF: Final = {kind: name for name, (_, _, kinds) in MARKS.items() for kind in kinds}
ABOVE, BELOW = -0.33, 0.2
"""Of lost messages, and of effects, from the middle of a lane: a tick and its effect may fall together."""


@dataclass
class Timeline:
    """What is in the picture of an excerpt: moments, spans and messages of its window."""

    excerpt: Excerpt
    moments: list[TraceMoment] = field(init=False)
    spans: list[Span] = field(init=False)
    messages: list[SentMessage] = field(init=False)

    def __post_init__(self) -> None:
        """Find what lies in the window."""
        s = self.excerpt
        self.moments = [m for m in moments(s.episode) if s.start <= m.t <= s.end]
        self.spans = [span for span in spans(s.episode) if span.start <= s.end and span.end >= s.start]
        self.messages = [m for m in s.episode.messages if m.sent <= s.end and (m.arrives or m.sent) >= s.start]

    def figure(self, about: str = "") -> Figure:
        """The picture; `about` stands below its title. Raises ConfigError where matplotlib is missing."""
        with house_style():
            from matplotlib.figure import Figure

            heights = [LANE * len(self.excerpt.lanes), AGES]
            figure = Figure((WIDTH, sum(heights) + LEGEND), layout="constrained")
            above, below = figure.subplots(2, 1, sharex=True, height_ratios=heights)
            self._frame(above)
            handles = [*self._bars(above), *self._arrows(above), *self._marks(above)]
            self._ages(below)
            figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8.5)
            setting = self.excerpt.episode.setting
            title = f"{setting.env_id}, {setting.policy.name or 'own policies'}, seed {setting.seed}"
            title = "\n".join([title, *textwrap.wrap(about, OF_TITLE)])
            figure.suptitle(title, x=0.01, ha="left", fontsize=10.0, color=GREY)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # which moves things a little whenever it is asked again
            return figure

    def _frame(self, axes: Axes) -> None:
        """Lanes with their names, and the ends of control steps."""
        s, world = self.excerpt, self.excerpt.episode.world
        for number in range(0, len(s.lanes), 2):
            axes.axhspan(number - 0.5, number + 0.5, color="#F6F6F6", linewidth=0, zorder=0)
        for end in self._boundaries():
            axes.axvline(end / NS, color="#B8B8B8", linewidth=0.9, zorder=0.5)
        axes.set_xlim(s.start / NS, s.end / NS)
        axes.set_ylim(len(s.lanes) - 0.5, -0.5)
        axes.grid(visible=False)
        axes.set_yticks(range(len(s.lanes)), [lane if len(lane) <= 18 else f"{lane[:17]}..." for lane in s.lanes])
        for lane, label in zip(s.lanes, axes.get_yticklabels(), strict=True):
            label.set(color=INK, weight="bold" if lane in world.decides else "normal", size=9.0)
        axes.tick_params(length=0)

    def _boundaries(self) -> Sequence[int]:
        s, dt = self.excerpt, self.excerpt.episode.world.dt_ns
        result = range(-(-s.start // dt) * dt, s.end + 1, dt)
        return result if len(result) <= BOUNDARIES else ()

    def _y(self, lane: str) -> int:
        return self.excerpt.lanes.index(lane)

    def _bars(self, axes: Axes) -> Iterator[Any]:
        """Spans, below each other where they overlap; a disturbance's says which it is. The legend's entries."""
        free, s = {lane: [0] * WAYS for lane in self.excerpt.lanes}, self.excerpt
        drawn: dict[str, Any] = {}
        for span in self.spans:
            if span.end <= span.start:
                continue
            ways = free[span.lane]
            way = next((w for w, until in enumerate(ways) if until <= span.start), WAYS - 1)
            ways[way] = span.end
            look, words = SPANS[span.doing]
            start, end = max(span.start, s.start) / NS, min(span.end, s.end) / NS
            y = self._y(span.lane) + (way - 0.5) * (BAR + 0.04) - (0.22 if span.lane == OUTSIDE else 0.0)
            bar = axes.barh(y, end - start, left=start, height=BAR, linewidth=0.8, zorder=2, **look)
            drawn.setdefault(words, bar).set_label(words)
            room = int((end - start) * NS / (s.end - s.start) * LETTERS)
            if span.lane == OUTSIDE and room > 7:
                name = span.who if len(span.who) <= room else f"{span.who[: room - 3]}..."
                axes.text(start, y, f" {name}", va="center", fontsize=7.0, clip_on=True, zorder=3)
        yield from drawn.values()

    def _arrows(self, axes: Axes) -> Iterator[Any]:
        """Messages that came, from lane to lane; the legend's entries."""
        from matplotlib.lines import Line2D

        used = list[Family]()
        for m in self.messages:
            if not arrived(m):
                continue
            assert m.arrives is not None
            family = FAMILY_OF.get(m.kind, FAMILIES["cycle"])
            used.append(family)
            arrow = axes.annotate(
                "", (m.arrives / NS, self._y(m.receiver)), (m.sent / NS, self._y(m.sender)), annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-|>,head_width=0.14,head_length=0.28", "color": family.colour, "linewidth": 0.9,
                    "linestyle": family.dashes, "shrinkA": 0, "shrinkB": 0, "zorder": 2.5, "clip_on": True,
                    "alpha": 0.9 if m.fate == "delivered" else 0.45,
                },
            ).arrow_patch  # fmt: skip
            assert arrow is not None
            arrow.set_clip_path(axes.patch)
        for family in FAMILIES.values():
            if family in used:
                yield Line2D([], [], color=family.colour, linestyle=family.dashes, linewidth=1.2, label=family.words)

    def _marks(self, axes: Axes) -> Iterator[Any]:
        """What happens at instants; the legend's entries."""
        at: dict[str, list[tuple[float, float]]] = {}
        for moment in self.moments:
            t, y = moment.t / NS, self._y(moment.lane)
            names = dict.fromkeys(MARK_OF[each.kind] for each in moment.happens if each.kind in MARK_OF)
            if any(isinstance(each, Event) and each.cancelled for each in moment.happens):
                names["cancelled"] = None
            if any(m.fate == "lost" for m in moment.leaves):
                names["lost"] = None
            for name in names or {"other": None}:
                at.setdefault(name, []).append((t, y + {"lost": ABOVE, "effect": BELOW}.get(name, 0.0)))
        for name, (look, words, _) in MARKS.items():
            if name in at:
                yield axes.scatter(*zip(*at[name], strict=True), label=words, zorder=3, **look)

    def _ages(self, axes: Axes) -> None:
        """How old the oldest fact was in each observation that came."""
        s = self.excerpt
        ages = [age for agent in s.episode.world.decides if agent in s.lanes for age in s.episode.ages(agent)]
        seen = [age for age in ages if s.start <= age.t <= s.end]
        axes.scatter([age.t / NS for age in seen], [age.oldest for age in seen], s=12, color=BLUE, alpha=0.7)
        axes.set_ylim(0.0, 1.15 * max((age.oldest for age in seen), default=0.0) or 1.0)
        axes.set_title("age of the oldest fact in each observation received, s", weight="normal", fontsize=9.0)
        axes.set_xlabel("virtual time, s")


def draw(episode: Episode, window: tuple[float, float] | None = None) -> Figure:
    """The timeline of a recorded episode.

    Args:
        episode: as `record_episode` gives it.
        window: start and end, s; None: as much as is legible.

    Returns:
        A figure of matplotlib: lanes with what agents do, and the ages of what they saw below.

    Raises:
        ConfigError: nothing happened in this window, or matplotlib is missing (extra `plots`).

    Example: `draw(record_episode("heron/BatteryGrid-v0", "random", t_end=5.0)).savefig("timeline.svg")`.
    """
    return Timeline(excerpt(episode, window)).figure()


PERFETTO: Final = "perfetto.json"
OF_LANES, OF_AGES = 1, 2
"""Process ids: of the lanes, and of the counters."""
MOMENT: Final = 1
"""us; how long an instant is shown."""
THREADS: Final = 1000
"""Thread ids of one agent: its own lane first, then those for what overlaps."""
SHOWN: Final = 8
"""Numbers of a vector that a slice tells, at most."""
ORDER: Final = {"M": 0, "X": 1, "C": 2, "i": 3, "s": 4, "f": 5}
"""Of events at one instant: an arrow's ends come after the slices that they lie in, its start before its end."""

Entry = dict[str, Any]


def perfetto_text(episode: Episode) -> str:
    """The episode in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open, an event a line.

    Virtual time is shown as if it were real, in whole microseconds; the record itself has the nanoseconds. A lane is a
    thread. At every instant at which a message leaves or comes there is a slice of 1 us on the lane, so that both ends
    of the message's arrow lie in one. Spans that overlap on a lane go to further lanes of the same agent, since slices
    of one thread must nest.
    """
    setting, outcome = episode.setting, episode.outcome
    facts = {
        "environment": setting.env_id,
        "options": setting.options,
        "policy": setting.policy.name or setting.policy.kind,
        "seed": setting.seed,
        "schedule": setting.schedule,
        "virtual time, s": outcome.end_time,
        "messages": episode.counts,
        "versions": setting.versions,
        "note": "time is the virtual time of the simulation",
    }
    entries = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in trace_events(episode))
    return f'{{"displayTimeUnit":"ms","otherData":{json.dumps(facts)},"traceEvents":[\n{entries}\n]}}\n'


def trace_events(episode: Episode) -> list[Entry]:
    """All trace events, by time."""
    place = {lane: THREADS * (number + 1) for number, lane in enumerate(lanes(episode))}
    drawn = list(_slices(spans(episode), place))
    result = [
        *_names(episode, place, {entry["tid"] for entry in drawn}),
        *drawn,
        *(_moment(moment, place) for moment in moments(episode)),
        *_ages(episode),
        *_messages(episode.messages, place),
    ]
    return sorted(result, key=lambda e: (e["ph"] != "M", e["ts"], ORDER[e["ph"]], -e.get("dur", 0)))


def _us(ns: int) -> int:
    return ns // 1000


def _names(episode: Episode, place: dict[str, int], used: set[int]) -> Iterator[Entry]:
    for pid, name in (
        (OF_LANES, f"{episode.setting.env_id}, virtual time"),
        (OF_AGES, "age of the oldest fact seen, s"),
    ):
        yield _meta("process_name", pid, 0, name=name)
        yield _meta("process_sort_index", pid, 0, sort_index=pid)
    of_lane = {first: lane for lane, first in place.items()}
    for tid in sorted({*place.values(), *used}):
        first = tid - tid % THREADS
        way = tid - first
        yield _meta("thread_name", OF_LANES, tid, name=of_lane[first] + (f" ({way + 1})" if way else ""))
        yield _meta("thread_sort_index", OF_LANES, tid, sort_index=tid)


def _meta(what: str, pid: int, tid: int, **args: Any) -> Entry:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _slices(given_spans: Iterable[Span], place: dict[str, int]) -> Iterator[Entry]:
    """Each on the first way of its lane that is free; what is over at once has its moment only."""
    free: dict[str, list[int]] = {}
    for span in given_spans:
        start, end = _us(span.start), _us(span.end)
        if end <= start:
            continue
        ways = free.setdefault(span.lane, [])
        way = next((number for number, until in enumerate(ways) if until <= start), len(ways))
        ways[way : way + 1] = [end]
        name = span.who if span.doing == "disturbed" else span.doing
        yield {
            "ph": "X", "cat": "span", "name": name, "pid": OF_LANES, "tid": place[span.lane] + way,
            "ts": start, "dur": end - start, "args": {"number": span.number, "who": span.who},
        }  # fmt: skip


def _moment(moment: TraceMoment, place: dict[str, int]) -> Entry:
    args: dict[str, Any] = {}
    for each in moment.happens:
        args[f"{event_words(each)} {each.number} of {each.agent}"] = _shown(each)
    if moment.leaves:
        args["sends"] = ", ".join(f"{kind_word(m.kind)} to {m.receiver}" for m in moment.leaves[:SHOWN])
    return {
        "ph": "X", "cat": "moment", "name": moment.name, "pid": OF_LANES, "tid": place[moment.lane],
        "ts": _us(moment.t), "dur": MOMENT, "args": args,
    }  # fmt: skip


def _shown(each: SentMessage | Event) -> str:
    """The numbers that say something to people, in short."""
    content = each.content
    if each.kind == DISTURBED:
        return f"{'end' if content['ends'] else 'beginning'} of {disturbance_words(content)}"
    for name in ("vector", "values"):
        if name in content:
            numbers = [f"{x:.4g}" if isinstance(x, float) else str(x) for x in content[name]]
            return f"{name} {', '.join(numbers[:SHOWN])}{', ...' if len(numbers) > SHOWN else ''}"
    return ", ".join(f"{name} {value}" for name, value in content.items())


def _ages(episode: Episode) -> Iterator[Entry]:
    for agent in episode.world.decides:
        for age in episode.ages(agent):
            yield {"ph": "C", "name": agent, "pid": OF_AGES, "ts": _us(age.t), "args": {"s": age.oldest}}


def _messages(sent: Iterable[SentMessage], place: dict[str, int]) -> Iterator[Entry]:
    """An arrow for each copy that came, a mark where it left for each that did not."""
    for number, m in enumerate(sent):
        common = {"cat": "message", "name": kind_word(m.kind), "pid": OF_LANES}
        start = {"tid": place[m.sender], "ts": _us(m.sent)}
        if arrived(m):
            assert m.arrives is not None
            yield {"ph": "s", "id": number, **common, **start}
            yield {"ph": "f", "bp": "e", "id": number, **common, "tid": place[m.receiver], "ts": _us(m.arrives)}
        else:
            values = {"to": m.receiver, "number": m.number}
            name = f"{m.fate}: {kind_word(m.kind)}"
            yield {"ph": "i", "s": "t", **common, **start, "name": name, "args": values}
