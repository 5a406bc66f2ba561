"""The picture of a world that does not draw itself: its agents' quantities as bars between their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.world import World
from heron_env.pictures.frames import ObservedWorld
from heron_env.pictures.palette import EXACT_COLOUR, GREY, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_quantities(
    hierarchy: Hierarchy, layout: Layout, axes: Axes, world: World, observed: ObservedWorld | None, artists: Any
) -> Any:
    """Bars of all bounded quantities, each between its bounds."""
    columns = np.flatnonzero(layout.observed & np.isfinite(layout.high - layout.low))
    truth = (world.rows[0][columns] - layout.low[columns]) / np.maximum(layout.high - layout.low, 1e-300)[columns]
    if artists is None:
        axes.set(xlim=(0, 1), ylim=(len(columns) - 0.5, -0.5), xticks=[0, 1], xticklabels=["low", "high"])
        axes.set_yticks(range(len(columns)), [layout.full_names[i] for i in columns])
        axes.barh(range(len(columns)), np.ones(len(columns)), color=GREY, alpha=0.15)
        artists = axes.barh(range(len(columns)), truth, color=EXACT_COLOUR), axes.plot([], [], "|", color=SERIES[1])[0]
    for bar, value in zip(artists[0], truth, strict=True):
        bar.set_width(value)
    if observed is not None:
        known = (observed.world.rows[0][columns] - layout.low[columns]) / (layout.high - layout.low)[columns]
        artists[1].set_data(known, range(len(columns)))
    return artists
