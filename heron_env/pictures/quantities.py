"""The picture of a world that does not draw itself: the tree of its agents, and their quantities between bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.world import World
from heron_env.pictures.frames import ObservedWorld
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
    """A bar for each quantity, from 0 or the bound next to it; of a group the mean, with a line from least to most.

    Where a quantity has no bound, the least or greatest value so far stands for it.
    """

    def __init__(self, axes: Axes, hierarchy: Hierarchy, layout: Layout, groups: Mapping[str, list[str]]) -> None:
        from matplotlib.collections import LineCollection

        lines = [*lines_of(hierarchy, groups), *([(GLOBAL, 0, [])] if layout.rows[-1].width else [])]
        owners = [[layout.rows[rank] for rank in ranks] or [layout.rows[-1]] for _, _, ranks in lines]
        drawn = [np.flatnonzero(layout.observed[rows[0].slice]).tolist() for rows in owners]
        across = min(ACROSS, max(map(len, drawn)) or 1)
        spare = MOST_ROWS - len(lines)
        cells: list[tuple[int, int, list[int]]] = []
        places, y = list[int](), 0
        for rows, numbers in zip(owners, drawn, strict=True):
            places.append(y)
            more = min(max(-(-len(numbers) // across) - 1, 0), spare)
            spare -= more
            for place, i in enumerate(numbers[: across * (more + 1)]):
                cells.append((place % across, y + place // across, [row.offset + i for row in rows]))
            y += 1 + more
        draw_lines(axes, hierarchy, lines, places)
        axes.set_ylim(max(y, 7) - 0.4, -0.6)
        cell = (1.0 - NAMES) / across
        self._width = cell - LABEL - 0.012
        self._x = np.array([NAMES + cell * right + LABEL for right, _, _ in cells])
        self._y = np.array([down for _, down, _ in cells], np.float64)
        for x, down, (_, _, columns) in zip(self._x, self._y, cells, strict=True):
            label = shortened_name(layout.names[columns[0]].partition(".")[2], 11)
            axes.text(x - 0.008, down, label, ha="right", va="center", fontsize=7.5, color=GREY)
        self._columns = np.array([i for _, _, columns in cells for i in columns], np.int64)
        counts = [len(columns) for _, _, columns in cells]
        self._starts, self._counts = np.cumsum([0, *counts])[:-1], np.array(counts)
        self._low, self._high = layout.low[self._columns], layout.high[self._columns]
        self._open_low, self._open_high = ~np.isfinite(self._low), ~np.isfinite(self._high)
        self._low[self._open_low], self._high[self._open_high] = 0.0, 0.0
        thick = min(170.0 / y, 20.0)
        ground = LineCollection([*self._bars(np.zeros(len(cells)), 1.0)], colors=HIDDEN_COLOUR, linewidths=thick)
        self._truth = LineCollection([], colors=EXACT_COLOUR, linewidths=thick, capstyle="butt")
        self._spread = LineCollection([], colors=INK, linewidths=1)
        for collection in (ground, self._truth, self._spread):
            axes.add_collection(collection, autolim=False)
        self._known = axes.plot([], [], "D", color=SERIES[1], markersize=4.5, markeredgecolor="white")[0]

    def _bars(self, start: Floats, end: Any) -> Floats:
        """From share to share of each cell's bar, `[cells, 2, 2]`."""
        ends = self._x[:, None] + self._width * np.stack(np.broadcast_arrays(start, end), axis=1)
        return np.stack([ends, np.stack([self._y, self._y], axis=1)], axis=2)

    def _shares(self, values: Floats) -> Floats:
        shares: Floats = (values - self._low) / np.maximum(self._high - self._low, 1e-300)
        return np.clip(shares, 0.0, 1.0)

    def update(self, truth: Floats, observed: ObservedWorld | None) -> None:
        """Show the truth, `[columns]`, and what one agent knows of it."""
        if not len(self._columns):
            return
        values = truth[self._columns]
        self._low = np.where(self._open_low, np.minimum(self._low, values), self._low)
        self._high = np.where(self._open_high, np.maximum(self._high, values), self._high)
        shares, zero = self._shares(values), self._shares(np.zeros(len(values)))[self._starts]
        least, most = np.minimum.reduceat(shares, self._starts), np.maximum.reduceat(shares, self._starts)
        self._truth.set_segments(list(self._bars(zero, np.add.reduceat(shares, self._starts) / self._counts)))
        self._spread.set_segments(list(self._bars(least, most)[self._counts > 1]))
        if observed is not None:
            known = self._shares(observed.world.rows[0][self._columns])
            which = np.repeat(np.arange(len(self._starts)), self._counts)
            self._known.set_data(self._x[which] + self._width * known, self._y[which])


def draw_quantities(env: Any, axes: Axes, world: World, observed: ObservedWorld | None, artists: Any) -> QuantityBars:
    """The hook `draw_frame` of an environment that has none of its own."""
    if artists is None:
        artists = QuantityBars(axes, env.hierarchy, env.simulation.layout, env.groups)
    bars: QuantityBars = artists
    bars.update(world.rows[0], observed)
    return bars
