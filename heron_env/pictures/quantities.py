"""The picture of a world that does not draw itself: the tree of its agents, and their quantities between bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.world import World
from heron_env.pictures.frames import DPI, ObservedWorld
from heron_env.pictures.palette import EXACT_COLOUR, GREY, HIDDEN_COLOUR, INK, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
MOST_LINES: Final = 20
"""Agents, or groups, that have a line each."""
MOST_ROWS: Final = 26
"""Of bars below each other."""
ACROSS: Final = 3
"""Bars beside each other."""
NAMES, LABEL = 0.34, 0.11
"""Shares of the width: of the names, of a bar's label."""
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


def draw_lines(axes: Axes, hierarchy: Hierarchy, lines: list[Line], places: list[int], bold: str = "") -> None:
    """The tree at the left: names, each at its place, and what joins it to its parent."""
    place_of = {rank: y for (_, _, ranks), y in zip(lines, places, strict=True) for rank in ranks}
    for (name, depth, ranks), y in zip(lines, places, strict=True):
        x = 0.02 * depth
        if ranks and (above := place_of.get(hierarchy.parent[ranks[0]])) is not None:
            axes.plot([x - 0.012, x - 0.012, x - 0.002], [above + 0.4, y, y], color=GREY, linewidth=0.8)
        weight = "bold" if bold in (hierarchy.ids[rank] for rank in ranks) else "normal"
        axes.text(x, y, shortened_name(name, 21 - depth), va="center", fontsize=8.0, weight=weight)
    axes.set(xlim=(-0.01, 1.01), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def shortened_name(name: str, most: int) -> str:
    """Its end counts."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


class QuantityBars:
    """Bars of quantities between their bounds, from 0 or the bound next to it; a mark is what an agent knows.

    Args:
        places: where bars begin, `[bars, 2]`.
        width: of a bar that is full.
        columns: of the truth, by bar: of several the mean, with a line from the least to the most.
        low, high: of each column of the truth; where there is no bound, the least or greatest value so far is one.
    """

    def __init__(
        self, axes: Axes, places: Floats, width: float, columns: Sequence[Sequence[int]], low: Floats, high: Floats
    ) -> None:
        from matplotlib.collections import LineCollection

        self._places, self._width = places, width
        self._counts = np.array([*map(len, columns)], np.int64)
        self._starts = self._counts.cumsum() - self._counts
        self._columns = np.array([i for some in columns for i in some], np.int64)
        low, high = low[self._columns], high[self._columns]
        self._open_low, self._open_high = ~np.isfinite(low), ~np.isfinite(high)
        self._low, self._high = np.where(self._open_low, 0.0, low), np.where(self._open_high, 0.0, high)
        rows = float(np.ptp(axes.get_ylim()))
        thick = min(0.55 * axes.get_window_extent().height * 72.0 / DPI / rows, 20.0)
        full = self._bars(np.zeros(len(columns)), np.ones(len(columns)))
        axes.add_collection(LineCollection(list(full), colors=HIDDEN_COLOUR, linewidths=thick), autolim=False)
        self._truth = LineCollection([], colors=EXACT_COLOUR, linewidths=thick, capstyle="butt", label="truth")
        self._spread = LineCollection([], colors=INK, linewidths=1)
        for collection in (self._truth, self._spread):
            axes.add_collection(collection, autolim=False)
        (self._known,) = axes.plot([], [], "D", color=SERIES[1], ms=4.5, mec="white", label="known")

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
        self._low = np.where(self._open_low, np.minimum(self._low, values), self._low)
        self._high = np.where(self._open_high, np.maximum(self._high, values), self._high)
        shares, zero = self._shares(values), self._shares(np.zeros(len(values)))[self._starts]
        least, most = np.minimum.reduceat(shares, self._starts), np.maximum.reduceat(shares, self._starts)
        self._truth.set_segments(list(self._bars(zero, np.add.reduceat(shares, self._starts) / self._counts)))
        self._spread.set_segments(list(self._bars(least, most)[self._counts > 1]))
        if observed is not None:
            known = self._shares(observed.world.rows[0][self._columns])
            x, y = self._places.repeat(self._counts, axis=0).T
            self._known.set_data(x + self._width * known, y)


def agent_bars(axes: Axes, hierarchy: Hierarchy, layout: Layout, groups: Mapping[str, list[str]]) -> QuantityBars:
    """The tree of the agents, or groups, and beside each the bars of what it has."""
    lines = [*lines_of(hierarchy, groups), *([(GLOBAL, 0, [])] if layout.rows[-1].width else [])]
    owners = [[layout.rows[rank] for rank in ranks] or [layout.rows[-1]] for _, _, ranks in lines]
    drawn = [np.flatnonzero(layout.observed[rows[0].slice]).tolist() for rows in owners]
    across = min(ACROSS, max(map(len, drawn)) or 1)
    cell, spare = (1.0 - NAMES) / across, MOST_ROWS - len(lines)
    bars, columns, heights, y = list[tuple[float, float]](), list[list[int]](), list[int](), 0
    for rows, numbers in zip(owners, drawn, strict=True):
        heights.append(y)
        more = min(max(-(-len(numbers) // across) - 1, 0), spare)
        for place, i in enumerate(numbers[: across * (more + 1)]):
            bars.append((NAMES + cell * (place % across) + LABEL, y + place // across))
            columns.append([row.offset + i for row in rows])
            label = shortened_name(layout.names[columns[-1][0]].partition(".")[2], 11)
            axes.text(bars[-1][0] - 0.008, bars[-1][1], label, ha="right", va="center", fontsize=7.5, color=GREY)
        spare -= more
        y += 1 + more
    draw_lines(axes, hierarchy, lines, heights)
    axes.set_ylim(max(y, 7) - 0.4, -0.6)
    places = np.array(bars, np.float64).reshape(-1, 2)
    return QuantityBars(axes, places, cell - LABEL - 0.012, columns, layout.low, layout.high)


def draw_quantities(env: Any, axes: Axes, world: World, observed: ObservedWorld | None, artists: Any) -> QuantityBars:
    """The hook `draw_frame` of an environment that has none of its own."""
    bars: QuantityBars = artists or agent_bars(axes, env.hierarchy, env.simulation.layout, env.groups)
    bars.update(world.rows[0], observed)
    return bars
