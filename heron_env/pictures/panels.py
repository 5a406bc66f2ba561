"""Beside the world in a film: messages on their way over the hierarchy, and what one agent knows beside the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.pictures.footage import Floats, Footage
from heron_env.pictures.frames import DPI, SIZE, Canvas, ObservedWorld
from heron_env.pictures.palette import EXACT_COLOUR, GREY, HIDDEN_COLOUR, INK, RED, SERIES, TOLD_COLOUR, picture_style
from heron_env.pictures.quantities import QuantityBars, draw_lines, lines_of, short_names, shortened_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS: Final = 12
"""Quantities that are shown of what an agent knows."""
NEAR: Final = 0.02
"""Share of a bound that something must come to once in a film; else it is drawn as if it had none."""
PORT, PROXY_AT = 0.42, 0.97
"""Where messages leave an agent's line, and where the proxy is, of the width."""
APART: Final = 0.05
"""Share of a line from one message that waits to the next."""
WAITS: Final = "waits to be sent"
FATES: Final = {
    "on its way": ("o", EXACT_COLOUR),
    WAITS: ("h", INK),
    "late: longer than a step": ("s", SERIES[4]),
    "arrived": ("^", SERIES[2]),
    "lost": ("X", RED),
}
"""Marker and colour of a message: both differ, and from those of what is known."""
LEGEND: Final = (*(colour for _, colour in FATES.values()), TOLD_COLOUR)
"""Colours that mean the same in each film."""


class NetworkPicture:
    """Messages above, knowledge below; where there are no messages knowledge alone."""

    def __init__(self, footage: Footage, agent: str, times: Sequence[float]) -> None:
        with picture_style():
            from matplotlib.figure import Figure

            figure, self._messages = Figure(SIZE, DPI), None
            title = shortened_name(footage.title or type(footage.env).__name__, 78)
            figure.text(0.97, 0.985, title, ha="right", va="top", fontsize=9.0)
            if footage.flights:
                self._messages = MessagePanel(figure.add_axes((0.03, 0.55, 0.94, 0.37)), footage, agent)
            below = figure.add_axes((0.36, 0.12, 0.61, 0.37 if footage.flights else 0.77))
            self._knowledge = KnowledgePanel(below, footage, agent, times)
            columns = 4 if any(flight.left > flight.sent for flight in footage.flights) else 3
            figure.legend(loc="lower center", ncols=columns, frameon=False, fontsize=8.0, columnspacing=1.5)
            self._canvas = Canvas(figure)
            self._canvas.draw()

    def image(self, since: float, time: float, truth: Floats, observed: ObservedWorld) -> NDArray[np.uint8]:
        """uint8 `[height, width, 3]` at `time`, with all messages under way `since` then, s."""
        with picture_style():
            if self._messages is not None:
                self._messages.update(since, time)
            self._knowledge.update(truth, observed)
            return self._canvas.draw()


class MessagePanel:
    """A line for each agent, the proxy at the right; a message travels from end to end while it is on its way."""

    def __init__(self, axes: Axes, footage: Footage, agent: str) -> None:
        lines = lines_of(footage.env.hierarchy, footage.env.groups)
        line_of = {rank: y for y, (_, _, ranks) in enumerate(lines) for rank in ranks}
        draw_lines(axes, footage.env.hierarchy, lines, list(range(len(lines))), agent)
        axes.set_ylim(len(lines) - 0.4, -1.2)
        axes.set_title("Messages")
        axes.plot([PROXY_AT, PROXY_AT], [-0.5, len(lines) - 0.5], color=INK, linewidth=3.0)
        axes.text(1.0, -0.6, footage.hub, ha="right", fontsize=8.0)
        axes.hlines(range(len(lines)), PORT, PROXY_AT, color=HIDDEN_COLOUR, linewidth=1.0)
        self._dt, flights = footage.env.dt, [f for f in footage.flights if {f.sender, f.receiver} <= {*line_of, -1}]
        sender, receiver, self._sent, self._arrives, self._left = np.array(flights, dtype=np.float64).reshape(-1, 5).T
        hidden = set() if (self._left > self._sent).any() else {WAITS}  # of the legend
        self._dots = {
            fate: axes.plot([], [], marker, color=colour, markersize=6.5, markeredgecolor="white",
                            label=f"_{fate}" if fate in hidden else fate)[0]
            for fate, (marker, colour) in FATES.items()
        }  # fmt: skip
        from_line, to_line = (np.array([line_of.get(rank, 0) for rank in ranks]) for ranks in (sender, receiver))
        up, down = receiver < 0, sender < 0
        aside = 0.18 * down - 0.18 * up  # above the line to the proxy, below it back
        start = np.where(down, PROXY_AT, PORT), np.where(down, to_line, from_line) + aside
        end = np.where(up, PROXY_AT, PORT), np.where(up, from_line, to_line) + aside
        self._start, self._end = np.stack(start, axis=1), np.stack(end, axis=1)

    def update(self, since: float, time: float) -> None:
        """Show what was under way in (since, time]; what was lost stays for three times as long, so that it is seen."""
        sent, arrives, left = self._sent, self._arrives, self._left
        lost, gone = np.isnan(arrives), left <= time
        waits = (sent <= time) & ~gone
        away = gone & (arrives > time)
        late = away & (time - sent > self._dt)
        shown = [
            away & ~late,
            waits,
            late,
            gone & (arrives > since) & (arrives <= time),
            lost & gone & (left >= 3 * since - 2 * time),
        ]
        share = np.clip((time - left) / np.maximum(arrives - left, 1e-12), 0.0, 1.0)
        share = np.where(waits, self._in_line(waits), np.where(lost, 0.5, share))
        for dots, which in zip(self._dots.values(), shown, strict=True):
            places = self._start[which] + share[which, None] * (self._end - self._start)[which]
            dots.set_data(*places.T)

    def _in_line(self, waits: NDArray[np.bool_]) -> Floats:
        """How far along the line each stands that waits: one after another, the first at its sender."""
        places, before = np.zeros(len(waits)), Counter[tuple[float, ...]]()
        for number in np.flatnonzero(waits):
            sender = tuple(self._start[number])
            places[number] = min(APART * before[sender], 0.5)
            before[sender] += 1
        return places


class KnowledgePanel:
    """Of the quantities that an agent observes: the truth as a bar, what it knows as a mark, and how old that is.

    Where they are many, those in which knowledge and truth differ most in the film, of its shown `times`.
    """

    def __init__(self, axes: Axes, footage: Footage, agent: str, times: Sequence[float]) -> None:
        layout, columns = copy(footage.env.simulation.model.layout), footage.columns[agent]
        truths, known, _ = footage.course(agent, times)
        least, most = np.fmin(truths, known).min(axis=0), np.fmax(truths, known).max(axis=0)
        far = np.maximum(-least, most) < NEAR * np.maximum(np.abs(layout.low), np.abs(layout.high))
        far &= most > least  # what such bounds guard against would leave nothing to see
        layout.low, layout.high = np.where(far, -np.inf, layout.low), np.where(far, np.inf, layout.high)
        span = np.where(most > least, most - least, 1.0)
        apart = (np.nan_to_num(np.abs(truths - known)).mean(axis=0) / span + 1e-6 * (most > least))[columns]
        shown = columns[np.sort(np.argsort(-apart, kind="stable")[:MOST_BARS])]
        owners, short = [layout.rows[row].owner_id for row in layout.owner_of[shown]], short_names(layout)
        names = [shortened_name(f"{owner} {short[i]}", 28) for owner, i in zip(owners, shown, strict=True)]
        y = np.arange(len(shown), dtype=np.float64)
        names += [f"+ {len(columns) - len(shown)} more"] * (len(columns) > len(shown))
        axes.set(xlim=(-0.05, 1.95), ylim=(max(len(names), 4) - 0.3, -0.9), xticks=[])
        axes.spines[:].set_visible(False)
        axes.set_yticks(range(len(names)), names, fontsize=8.0)
        axes.tick_params(length=0)
        axes.set_title(f"What {shortened_name(agent, 20)} knows")
        self._bars = QuantityBars(axes, np.stack([0.0 * y, y], axis=1), 1.0, shown[:, None].tolist(), layout)
        for extreme in (least, most):  # of the film, for what has no bounds
            self._bars.update(extreme, None)
        first = {owner: owners.index(owner) for owner in owners}
        self._ages = {owner: axes.text(1.6, place, "", va="center", fontsize=8.0) for owner, place in first.items()}
        axes.text(1.6, -0.75, "age", fontsize=8.0, color=GREY)

    def update(self, truth: Floats, observed: ObservedWorld) -> None:
        """Show them at one moment."""
        self._bars.update(truth, observed)
        for owner, text in self._ages.items():
            text.set_text(f"{observed.ages[owner]:.3g} s" if owner in observed.ages else "unknown")
