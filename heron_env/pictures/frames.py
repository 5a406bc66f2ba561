"""Frames: the picture of a world at one moment, drawn once and updated; and what an agent knows at that moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.world import World
from heron_env.pictures.palette import EXACT_COLOUR, GREY, SERIES, picture_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes", World, "Observed | None", Any], Any]
"""(axes, world, observed, artists) -> artists: the hook `draw_frame`."""
SIZE = (6.4, 4.8)
"""inches of a picture, at 100 dots an inch."""


@dataclass(frozen=True, eq=False)
class Observed:
    """What one agent knows at a moment: its last observation.

    Attributes:
        agent: its id.
        values: by full name of the column, `battery_1.Charge.soc`, in the order of its observation.
        ages: by owner, an agent's id or "global": how old what is known of it is, s.
        world: the same values in the columns of the truth, `observed.world[Battery].Charge.soc`; nan: not known.
    """

    agent: str
    values: Mapping[str, float]
    ages: Mapping[str, float]
    world: World


class FramePicture:
    """The picture of a world alone, as `render_mode="rgb_array"` gives it: made once, then updated."""

    def __init__(self, draw: Draw) -> None:
        """Raises ConfigError where matplotlib is missing."""
        with picture_style():
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure

            self._figure = Figure(figsize=SIZE, dpi=100, layout="constrained")
            self._canvas: Any = FigureCanvasAgg(self._figure)
            self._axes = self._figure.subplots()
        self._draw, self._artists = draw, None

    def image(self, world: World) -> NDArray[np.uint8]:
        """uint8 `[height, width, 3]` of the world now."""
        with picture_style():
            self._artists = self._draw(self._axes, world, None, self._artists)
            self._canvas.draw()
            self._figure.set_layout_engine("none")  # the first frame's is kept: it costs more than the drawing
        return np.array(self._canvas.buffer_rgba())[..., :3].copy()


def draw_quantities(
    hierarchy: Hierarchy, layout: Layout, axes: Axes, world: World, observed: Observed | None, artists: Any
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
