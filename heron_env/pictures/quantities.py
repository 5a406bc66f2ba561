"""The picture of a world that does not draw itself: the tree of its agents, and their quantities between bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.quantity import unit_text
from heron_env.core.world import World
from heron_env.pictures.frames import DPI, ObservedWorld
from heron_env.pictures.palette import EXACT_COLOUR, GREY, HIDDEN_COLOUR, INK, TOLD_COLOUR
from heron_env.pictures.shapes import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
MOST_LINES: Final = 20
"""Agents, or groups, that have a line each."""
MOST_ROWS: Final = 26
"""Of bars below each other."""
ACROSS: Final = 2
"""Bars beside each other."""
NAMES, LABEL, NUMBER = 0.28, 0.12, 0.13
"""Shares of the width: of the names, of a bar's label, of its number."""
EMPTY: Final = 0.55
"""Rows that the name of an agent without quantities takes."""
Line = tuple[str, int, list[int]]
"""Name, depth in the tree, ranks."""


def lines_of(hierarchy: Hierarchy, groups: Mapping[str, list[str]]) -> list[Line]:
    """What has a line: each agent or, where they are many, each group of agents."""
    if len(hierarchy) <= MOST_LINES:
        return [(agent, hierarchy.depth(rank), [rank]) for rank, agent in enumerate(hierarchy.ids)]
    members = sorted(([hierarchy.index[agent] for agent in agents], name) for name, agents in groups.items())
    return [
        (f"{name} x {len(ranks)}" if len(ranks) > 1 else hierarchy.ids[ranks[0]], hierarchy.depth(ranks[0]), ranks)
        for ranks, name in members[:MOST_LINES]
    ]


def draw_lines(axes: Axes, hierarchy: Hierarchy, lines: list[Line], places: Sequence[float], bold: str = "") -> None:
    """The tree at the left: names, each at its place, and what joins it to its parent."""
    place_of = {rank: y for (_, _, ranks), y in zip(lines, places, strict=True) for rank in ranks}
    for (name, depth, ranks), y in zip(lines, places, strict=True):
        x = 0.02 * depth
        if ranks and (above := place_of.get(hierarchy.parent[ranks[0]])) is not None:
            axes.plot([x - 0.012, x - 0.012, x - 0.002], [above + 0.25, y, y], color=GREY, linewidth=0.8)
        weight = "bold" if bold in (hierarchy.ids[rank] for rank in ranks) else "normal"
        axes.text(x, y, shortened_name(name, 21 - depth), va="center", fontsize=8.0, weight=weight)
    axes.set(xlim=(-0.01, 1.01), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def shortened_name(name: str, most: int) -> str:
    """Its end counts."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def short_names(layout: Layout) -> list[str]:
    """Of each column: `x`, or `Place.x` where its owner has several; with a * where a bound is missing."""
    fields = [*zip(layout.owner_of.tolist(), (name.partition(".")[2] for name in layout.names), strict=True)]
    times, bounded = Counter(fields), np.isfinite(layout.low) & np.isfinite(layout.high)
    names = [name if times[of] > 1 else of[1] for name, of in zip(layout.names, fields, strict=True)]
    return [name + "*" * (not within) for name, within in zip(names, bounded.tolist(), strict=True)]


class QuantityBars:
    """Bars of quantities between their bounds, from 0 or the bound next to it; a mark is what an agent knows.

    Where there is no bound, the least or greatest value so far is one. A category is named instead.

    Args:
        places: where bars begin, `[bars, 2]`.
        width: of a bar that is full; its number follows.
        columns: of the truth, by bar: of several the mean, with a line from the least to the most.
    """

    def __init__(
        self, axes: Axes, places: Floats, width: float, columns: Sequence[Sequence[int]], layout: Layout
    ) -> None:
        from matplotlib.collections import LineCollection

        self._places, self._width = places, width
        self._counts = np.array([*map(len, columns)], np.int64)
        self._starts = self._counts.cumsum() - self._counts
        self._columns = np.array([i for some in columns for i in some], np.int64)
        self._words = [(layout.categories[some[0]], unit_text(layout.units[some[0]])) for some in columns]
        self._measured = np.array([not names for names, _ in self._words], bool)
        low, high = layout.low[self._columns], layout.high[self._columns]
        self._open_low, self._open_high = ~np.isfinite(low), ~np.isfinite(high)
        self._low, self._high = np.where(self._open_low, 0.0, low), np.where(self._open_high, 0.0, high)
        if (self._open_low | self._open_high).any():
            axes.set_xlabel("* scaled to the values shown", fontsize=7.5, color=GREY)
        rows = float(np.ptp(axes.get_ylim()))
        thick = min(0.55 * axes.get_window_extent().height * 72.0 / DPI / rows, 20.0)
        full = self._bars(np.zeros(len(columns)), np.ones(len(columns)))[self._measured]
        axes.add_collection(LineCollection(list(full), colors=HIDDEN_COLOUR, linewidths=thick), autolim=False)
        self._truth = LineCollection([], colors=EXACT_COLOUR, linewidths=thick, capstyle="butt")
        self._spread = LineCollection([], colors=INK, linewidths=1)
        for collection in (self._truth, self._spread):
            axes.add_collection(collection, autolim=False)
        axes.plot([], [], color=EXACT_COLOUR, linewidth=6.0, label="truth")
        (self._known,) = axes.plot([], [], "D", color=TOLD_COLOUR, ms=5.0, mec="white", label="known")
        after = width + 0.013 * np.ptp(axes.get_xlim())  # clear of a mark
        aside = np.stack([after * self._measured, np.zeros(len(columns))], axis=1)
        self._texts = Labels(axes, places + aside, points=7.0, middle=False)

    def _bars(self, start: Floats, end: Floats) -> Floats:
        """From share to share of each bar, `[bars, 2, 2]`."""
        ends = self._places[:, None, :].repeat(2, axis=1)
        ends[:, :, 0] += self._width * np.stack([start, end], axis=1)
        return ends

    def _shares(self, values: Floats) -> Floats:
        shares: Floats = (values - self._low) / np.maximum(self._high - self._low, 1e-300)
        return np.clip(shares, 0.0, 1.0)

    def update(self, truth: Floats, observed: ObservedWorld | None) -> None:
        """Show the truth, `[columns]`, and what one agent knows of it."""
        values = truth[self._columns]
        known = np.full(len(values), np.nan) if observed is None else observed.world.rows[0][self._columns]
        both = np.stack([values, known])
        self._low = np.where(self._open_low, np.fmin(np.fmin(*both), self._low), self._low)
        self._high = np.where(self._open_high, np.fmax(np.fmax(*both), self._high), self._high)
        shares, zero = self._shares(values), self._shares(np.zeros(len(values)))[self._starts]
        least, most = np.minimum.reduceat(shares, self._starts), np.maximum.reduceat(shares, self._starts)
        ends, measured = np.add.reduceat(shares, self._starts) / self._counts, self._measured
        self._truth.set_segments(list(self._bars(zero, ends)[measured]))
        self._spread.set_segments(list(self._bars(least, most)[measured & (self._counts > 1)]))
        x, y = self._places.repeat(self._counts, axis=0).T
        self._known.set_data((x + self._width * self._shares(known))[of := measured.repeat(self._counts)], y[of])
        self._texts.show(self._said(values, known))

    def _said(self, values: Floats, known: Floats) -> Iterator[str]:
        """Number and unit of each bar; or the name of the category, and behind the mark that which is known."""
        for (names, unit), start, count in zip(self._words, self._starts, self._counts, strict=True):
            some, seen = values[start : start + count], known[start : start + count]
            if not names:
                mean = float(some.mean()) + 0.0
                yield (f"{mean:.0f}" if 1e3 <= abs(mean) < 1e6 else f"{mean:.3g}") + unit
                continue
            true, other = ({names[round(value)] for value in part[np.isfinite(part)]} for part in (some, seen))
            words = [words.pop() if len(words) == 1 else "several" for words in (true, other) if words]
            yield " \N{BLACK DIAMOND} ".join(words)


def agent_bars(axes: Axes, hierarchy: Hierarchy, layout: Layout, groups: Mapping[str, list[str]]) -> QuantityBars:
    """The tree of the agents, or groups, and beside each the bars of what it has."""
    lines = [*lines_of(hierarchy, groups), *([(GLOBAL, 0, [])] if layout.rows[-1].width else [])]
    owners = [[layout.rows[rank] for rank in ranks] or [layout.rows[-1]] for _, _, ranks in lines]
    drawn = [np.flatnonzero(layout.observed[rows[0].slice]).tolist() for rows in owners]
    across, names = min(ACROSS, max(map(len, drawn)) or 1), short_names(layout)
    cell, spare = (1.0 - NAMES) / across, MOST_ROWS - len(lines)
    bars, columns, heights, top = list[tuple[float, float]](), list[list[int]](), list[float](), 0.0
    for rows, numbers in zip(owners, drawn, strict=True):
        tall = 1.0 if numbers else EMPTY
        heights.append(top + tall / 2.0)
        more = min(max(-(-len(numbers) // across) - 1, 0), spare)
        room, left = across * (more + 1), len(numbers)
        for place, i in enumerate(numbers[:room]):
            x, y = NAMES + cell * (place % across) + LABEL, heights[-1] + place // across
            if place == room - 1 and left > room:
                axes.text(x, y, f"+ {left - place} more", va="center", fontsize=7.5, color=GREY)
                break
            bars.append((x, y))
            columns.append([row.offset + i for row in rows])
            label = shortened_name(names[columns[-1][0]], 11)
            axes.text(x - 0.014, y, label, ha="right", va="center", fontsize=7.5, color=GREY)
        spare -= more
        top += tall + more
    draw_lines(axes, hierarchy, lines, heights)
    axes.set_ylim(max(top, 3.0), 0.0)
    places = np.array(bars, np.float64).reshape(-1, 2)
    return QuantityBars(axes, places, cell - LABEL - NUMBER, columns, layout)


def draw_quantities(env: Any, axes: Axes, world: World, observed: ObservedWorld | None, artists: Any) -> QuantityBars:
    """The hook `draw_frame` of an environment that has none of its own."""
    bars: QuantityBars = artists or agent_bars(axes, env.hierarchy, env.simulation.model.layout, env.groups)
    bars.update(world.rows[0], observed)
    return bars
