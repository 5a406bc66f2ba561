"""A recorded episode as a picture: lanes, spans, arrows, marks; SVG without a library, to be looked at offline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from heron_env.lab.figure_style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION
from heron_env.lab.traces import svg
from heron_env.lab.traces.episode import OBSERVATIONS, Episode, Event
from heron_env.lab.traces.excerpt import NS, Excerpt, excerpt
from heron_env.lab.traces.glyphs import LANE, MARKS, SMALL, fitting, shape
from heron_env.lab.traces.lanes import OUTSIDE, Moment, Span, came, moments, spans
from heron_env.lab.traces.telling import seconds, told_lane, told_message, told_moment, told_span
from heron_env.lab.traces.timeline_page import page

WIDTH, LEFT, RIGHT, TOP = 1180.0, 138.0, 18.0, 14.0
PANEL, LEGEND = 78.0, 74.0
BAR, NAMED, WAYS = 9.0, 12.0, 3
"""Heights of a span and of one with its name in it; how many overlapping ones are drawn below each other."""


@dataclass(frozen=True)
class Family:
    """Messages that are drawn alike: colour, dashes, and what they are called."""

    colour: str
    dashes: str | None
    words: str
    kinds: tuple[str, ...]


FAMILIES: Final = {
    "observations": Family(BLUE, None, "observation: asked for, sent", ("ObservationRequest", *OBSERVATIONS)),
    "commands": Family(PURPLE, None, "command of a coordinator", ("Command", "PushedCommand")),
    "reports": Family(GREEN, "7 3", "state report, receipt", ("StateReport", "ReportReceived")),
    "shares": Family(INK, "2 2", "shared with a neighbour, a letter", ("SharedState", "LetterUnderWay")),
    "cycle": Family(GREY, "1.5 3", "physics cycle, scores", ()),
}
"""The last one takes all other kinds."""
FAMILY_OF: Final = {kind: name for name, family in FAMILIES.items() for kind in family.kinds}
SPANS: Final = {
    "waiting": (SKY, "waiting for an observation"),
    "waiting in vain": ("url(#vain)", "waiting in vain"),
    "thinking": (GREEN, "thinking"),
    "acting": (ORANGE, "action under way"),
    "acting in vain": ("url(#cancelled)", "cancelled: its agent ended"),
    "gathering": ("#BDBDBD", "the proxy gathers (obs_delay)"),
}
EDGES: Final = {"url(#vain)": SKY, "url(#cancelled)": ORANGE}
"""Of hatched spans."""
PEACH: Final = "#F7D9C4"
"""Light vermilion, of disturbances: their bars bear words."""


@dataclass
class Timeline:
    """The picture of an excerpt."""

    shown: Excerpt
    moments: list[Moment] = field(init=False)
    spans: list[Span] = field(init=False)

    def __post_init__(self) -> None:
        """Find what lies in the window."""
        s = self.shown
        self.moments = [m for m in moments(s.episode) if s.start <= m.t <= s.end]
        self.spans = [span for span in spans(s.episode) if span.start <= s.end and span.end >= s.start]
        self.messages = [m for m in s.episode.messages if m.sent <= s.end and (m.arrives or m.sent) >= s.start]
        self.number = {(m.lane, m.t): i for i, m in enumerate(self.moments)}
        self.ages = {
            (agent, age.t): age
            for agent in s.episode.world.decides
            if agent in s.lanes
            for age in s.episode.ages(agent)
        }

    def svg(self) -> str:
        """A picture that stands for itself."""
        caption = svg.label(10.0, self.height + 8.0, f"{self._heading()}. {self.shown.note}.", fill=GREY)
        named = svg.tag("title", svg.words(f"{self._heading()}: timeline"), id="heading")
        return self._document(
            named, caption=caption, height=self.height + 20.0, role="img", aria_labelledby="heading described"
        )

    def page(self) -> str:
        """The same in a page of its own, to be explored with pointer or keys."""
        drawn = self._document(height=self.height, role="group", aria_label="Timeline", aria_describedby="described")
        return page(self.shown, drawn, self.messages)

    @property
    def lanes_end(self) -> float:
        """y below the last lane."""
        return TOP + LANE * len(self.shown.lanes)

    @property
    def height(self) -> float:
        """Of the whole picture."""
        return self.lanes_end + 40.0 + PANEL + LEGEND

    def x(self, ns: int) -> float:
        """Where a time is."""
        s = self.shown
        return LEFT + (ns - s.start) / (s.end - s.start) * (WIDTH - LEFT - RIGHT)

    def y(self, lane: str) -> float:
        """The middle of a lane."""
        return TOP + LANE * (self.shown.lanes.index(lane) + 0.5)

    def _heading(self) -> str:
        setting = self.shown.episode.setting
        return f"{setting.env_id}, {setting.policy.name or 'own policies'}, seed {setting.seed}"

    def _document(self, *first: str, caption: str = "", height: float, **attributes: object) -> str:
        parts = [
            *first,
            svg.tag("desc", svg.words(f"{self.shown.note}. {self._summary()}"), id="described"),
            svg.tag("defs", *self._definitions()),
            svg.tag("rect", width=WIDTH, height=height, fill="#fff"),
            *self._grid(),
            *(self._lane(lane) for lane in self.shown.lanes),
            svg.tag("g", *self._arrows(), clip_path="url(#window)", class_="arrows", aria_hidden="true"),
            svg.tag("g", *self._panel(), aria_hidden="true"),
            svg.tag("g", *self._legend(), aria_hidden="true"),
            caption,
        ]
        return svg.tag(
            "svg", *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", width=WIDTH,
            height=height, font_family="system-ui, 'DejaVu Sans', sans-serif", font_size="12", fill=INK, **attributes,
        )  # fmt: skip

    def _summary(self) -> str:
        lost = sum(not came(m) and m.fate == "lost" for m in self.messages)
        return f"{len(self.messages)} messages, {lost} of them lost, on lanes {', '.join(self.shown.lanes)}."

    def _definitions(self) -> Iterator[str]:
        height = self.lanes_end - TOP
        yield svg.tag(
            "clipPath", svg.tag("rect", x=LEFT, y=TOP, width=WIDTH - LEFT - RIGHT + 1.0, height=height), id="window"
        )
        for name, colour in (("vain", SKY), ("cancelled", ORANGE)):
            yield svg.tag(
                "pattern", svg.tag("rect", width=6, height=6, fill="#fff"),
                svg.tag("path", d="M0 6 6 0", stroke=colour), id=name, width=6, height=6, patternUnits="userSpaceOnUse",
            )  # fmt: skip
        for name, family in FAMILIES.items():
            yield svg.tag(
                "marker", svg.tag("path", d="M0 0 7 3 0 6z", fill=family.colour), id=f"to-{name}", markerWidth=7,
                markerHeight=6, refX=7, refY=3, orient="auto", markerUnits="userSpaceOnUse",
            )  # fmt: skip

    def _grid(self) -> Iterator[str]:
        """Bands, ends of control steps, and the axis of time."""
        s, end = self.shown, self.lanes_end
        for number in range(0, len(s.lanes), 2):
            yield svg.tag("rect", x=0.0, y=TOP + LANE * number, width=WIDTH, height=LANE, fill="#F6F6F6")
        dt = s.episode.world.dt_ns
        boundaries = range(-(-s.start // dt) * dt, s.end + 1, dt)
        if len(boundaries) <= 200:
            path = "".join(f"M{self.x(t):.1f} {TOP}V{end:.1f}" for t in boundaries)
            yield svg.tag("path", d=path, stroke="#B8B8B8", stroke_width="1")
        step = max(svg.nice_step((s.end - s.start) / NS), 1.0 / NS)
        first = -(-s.start // round(step * NS))
        for k in range(first, int(s.end / NS / step + 1e-9) + 1):
            x = self.x(round(k * step * NS))
            yield svg.tag("path", d=f"M{x:.1f} {end:.1f}v5", stroke=GREY)
            yield svg.label(x, end + 17.0, f"{k * step:.10g}", text_anchor="middle", fill=GREY)
        yield svg.label(WIDTH - RIGHT, end + 31.0, "virtual time, s", text_anchor="end", fill=GREY)

    def _lane(self, lane: str) -> str:
        mine = [(number, m) for number, m in enumerate(self.moments) if m.lane == lane]
        world = self.shown.episode.world
        depth, above = 0, world.parents.get(lane, "")
        while above:
            depth, above = depth + 1, world.parents[above]
        y, name = self.y(lane), lane if len(lane) <= 16 else f"{lane[:15]}..."
        band = svg.tag(
            "rect", class_="band", x=1.0, y=y - LANE / 2 + 1, width=WIDTH - 2.0, height=LANE - 2, fill="none"
        )
        parts = [
            band,
            svg.label(10.0 + 9.0 * depth, y + 4.0, name, font_weight="600" if lane in world.decides else None),
        ]
        inside = [*self._bars(lane), *(self._mark(number, m) for number, m in mine)]
        parts.append(svg.tag("g", *inside, clip_path="url(#window)"))
        return svg.tag(
            "g", *parts, class_="lane", tabindex=0, role="listbox", aria_orientation="horizontal",
            aria_label=told_lane(lane, [m for _, m in mine]),
        )  # fmt: skip

    def _bars(self, lane: str) -> Iterator[str]:
        """Spans; those that overlap lie below each other. A disturbance's says which one it is."""
        free, named = [0] * WAYS, lane == OUTSIDE
        height, top = (NAMED, LANE / 2 - 2.0) if named else (BAR, BAR / 2)
        for span in self.spans:
            if span.lane != lane or span.end <= span.start:
                continue
            way = next((w for w, until in enumerate(free) if until <= span.start), WAYS - 1)
            free[way] = span.end
            x, end = self.x(max(span.start, self.shown.start)), self.x(min(span.end, self.shown.end))
            colour, y = PEACH if named else SPANS[span.doing][0], self.y(lane) - top + way * (height + 2.0)
            yield svg.tag(
                "rect", svg.title(told_span(span)), x=x, y=y, width=max(end - x, 0.5), height=height, fill=colour,
                stroke=EDGES.get(colour),
            )  # fmt: skip
            if named and (name := fitting(span.who, end - x - 8.0)):
                yield svg.label(x + 4.0, y + 9.5, name, font_size=SMALL, pointer_events="none")

    def _mark(self, number: int, moment: Moment) -> str:
        """The shapes of what happens at one instant."""
        x, y = self.x(moment.t), self.y(moment.lane)
        shapes = [shape(kind, x, y) for kind in dict.fromkeys(each.kind for each in moment.happens)]
        if any(m.fate == "lost" for m in moment.leaves):
            shapes.append(svg.tag("path", d=svg.cross(x, y - 15.0, 4.0), stroke=VERMILION, stroke_width="2"))
        if any(isinstance(each, Event) and each.cancelled for each in moment.happens):
            shapes.append(svg.tag("path", d=svg.cross(x, y, 5.0), stroke=GREY, stroke_width="2"))
        if not any(shapes):
            shapes.append(svg.tag("circle", cx=x, cy=y, r=1.8, fill=GREY))
        told = told_moment(moment, self.ages.get((moment.lane, moment.t)))
        return svg.tag("g", svg.title(told), *shapes, id=f"m{number}", class_="mark", role="option")

    def _arrows(self) -> Iterator[str]:
        for m in self.messages:
            if not came(m):
                continue
            assert m.arrives is not None
            name = FAMILY_OF.get(m.kind, "cycle")
            family = FAMILIES[name]
            ends = [self.number.get((m.sender, m.sent)), self.number.get((m.receiver, m.arrives))]
            yield svg.tag(
                "path", svg.title(told_message(m)), class_=f"arrow {name}",
                d=f"M{self.x(m.sent):.1f} {self.y(m.sender):.1f}L{self.x(m.arrives):.1f} {self.y(m.receiver):.1f}",
                stroke=family.colour, stroke_dasharray=family.dashes, marker_end=f"url(#to-{name})",
                opacity="0.35" if name == "cycle" else "0.8" if m.fate == "delivered" else "0.4", fill="none",
                data_ends=" ".join(f"m{end}" for end in ends if end is not None),
            )  # fmt: skip

    def _panel(self) -> Iterator[str]:
        """How old the oldest fact was in each observation that came."""
        top, bottom = self.lanes_end + 58.0, self.lanes_end + 40.0 + PANEL
        seen = [(agent, age) for (agent, t), age in self.ages.items() if self.shown.start <= t <= self.shown.end]
        most = max((age.oldest for _, age in seen), default=0.0) or 1.0
        yield svg.label(LEFT, top - 12.0, "age of the oldest fact in each observation received, s")
        yield svg.tag("path", d=f"M{LEFT} {top}V{bottom}H{WIDTH - RIGHT}", stroke=GREY, fill="none")
        for value, y in ((most, top), (0.0, bottom)):
            yield svg.label(LEFT - 5.0, y + 4.0, f"{value:.3g}", text_anchor="end", fill=GREY)
        for agent, age in seen:
            y = bottom - age.oldest / most * (bottom - top)
            told = f"{agent} at {seconds(age.t)} s: {age.oldest:.4g} s"
            yield svg.tag("circle", svg.title(told), cx=self.x(age.t), cy=y, r=3.0, fill=BLUE, fill_opacity="0.7")

    def _legend(self) -> Iterator[str]:
        thought = any(span.doing == "thinking" for span in self.spans)
        bars = [bar for doing, bar in SPANS.items() if thought or doing != "thinking"]
        top, column = self.height - LEGEND + 22.0, (WIDTH - 20.0) / len(bars)
        for number, (colour, text) in enumerate(bars):
            x = 10.0 + column * number
            yield svg.tag("rect", x=x, y=top - 9.0, width=22, height=BAR, fill=colour, stroke=EDGES.get(colour))
            yield svg.label(x + 30.0, top, text)
        column = (WIDTH - 20.0) / 4
        for number, (kind, text) in enumerate(MARKS.items()):
            x = 10.0 + column * number
            yield shape(kind, x + 11.0, top + 16.0, small=True)
            yield svg.label(x + 30.0, top + 20.0, text)
        used = {FAMILY_OF.get(m.kind, "cycle") for m in self.messages}
        column = (WIDTH - 20.0) / max(4, len(used))
        for number, name in enumerate(name for name in FAMILIES if name in used):
            x, family = 10.0 + column * number, FAMILIES[name]
            yield svg.tag(
                "path", d=f"M{x} {top + 36.0}h22", stroke=family.colour, stroke_dasharray=family.dashes,
                marker_end=f"url(#to-{name})",
            )  # fmt: skip
            yield svg.label(x + 30.0, top + 40.0, family.words)


def draw(episode: Episode, window: tuple[float, float] | None = None) -> Timeline:
    """The timeline of `window` (s), or of as much as is legible. Raises ConfigError for an impossible window."""
    return Timeline(excerpt(episode, window))
