"""Frames: the picture of a world at one moment, drawn once and updated; and what an agent knows at that moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.errors import RuleError
from heron_env.pictures.palette import picture_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DrawFrame = Callable[["Axes", World, "ObservedWorld | None", Any], Any]
"""The hook `draw_frame`: (axes, world, observed, artists) -> artists."""
SIZE: Final = (5.12, 5.76)
"""inches of each picture of a frame, at DPI: whole blocks of 16 pixels, as films want them."""
DPI: Final = 100
ON_TOP: Final = 10.0
"""Artists of this zorder and above are drawn over those that change."""


@dataclass(frozen=True, eq=False)
class ObservedWorld:
    """What one agent knows at a moment: its last observation.

    Attributes:
        agent: its id.
        values: by full name of the column, `battery_1.Charge.soc`, in the order of its observation; empty before the
            first observation has come.
        ages: by owner, an agent's id or "global": how old what is known of it is, s.
        world: the same values in the columns of the truth, `observed.world[Battery].Charge.soc`; nan: not known.
    """

    agent: str
    values: Mapping[str, float]
    ages: Mapping[str, float]
    world: World


class Canvas:
    """A figure as pixels; from the second time on only what has changed since the first is drawn.

    Text costs most, and most of them never change. What changes is drawn above what does not, in order of zorder;
    above both, what has a zorder of ON_TOP or more.
    """

    def __init__(self, figure: Figure) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._figure, self._canvas, self._background = figure, FigureCanvasAgg(figure), None
        self._limits: list[Any] = []

    def draw(self) -> NDArray[np.uint8]:
        """uint8 `[height, width, 3]` of the figure now."""
        figure, canvas = self._figure, cast("Any", self._canvas)
        limits = [axes.viewLim.frozen().bounds for axes in figure.axes]
        parts = [part for axes in figure.axes for part in axes.get_children() if part is not axes.patch]
        parts += [part for part in figure.get_children() if part is not figure.patch and part not in figure.axes]
        changed = [part for part in parts if (part.stale or part.get_zorder() >= ON_TOP) and not part.get_animated()]
        if not self._limits:
            canvas.draw()
            figure.set_layout_engine("none")  # the first frame's stays: it costs more than the drawing
        elif changed or limits != self._limits or any(axes.patch.stale for axes in figure.axes):
            for part in changed:
                part.set_animated(True)  # the figure leaves such ones out
            canvas.draw()
            self._background = canvas.copy_from_bbox(figure.bbox)
        self._limits = limits
        if self._background is not None:
            canvas.restore_region(self._background)
            for part in sorted((part for part in parts if part.get_animated()), key=lambda part: part.get_zorder()):
                part.draw(canvas.get_renderer())
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()


class WorldPicture:
    """The picture of a world alone, as `render_mode="rgb_array"` gives it: made once, then updated."""

    def __init__(self, draw_frame: DrawFrame) -> None:
        """Raises ConfigError where matplotlib is missing."""
        with picture_style():
            from matplotlib.figure import Figure

            figure = Figure(SIZE, DPI, layout="constrained")
            self._axes, self._time = figure.subplots(), figure.suptitle("", x=0.01, ha="left", fontsize=9.0)
            self._canvas, self._draw_frame, self._artists = Canvas(figure), draw_frame, None

    def image(self, world: World, observed: ObservedWorld | None = None, clock: str = "") -> NDArray[np.uint8]:
        """uint8 `[height, width, 3]` of the world now; `clock`: what a clock on the wall shows."""
        with picture_style():
            if self._artists is None:  # the second drawing finds out what changes
                self._time.set_text(" ")
                self._artists = self._draw_frame(self._axes, world, observed, None)
                self._canvas.draw()
                if self._artists is None:
                    raise RuleError("draw_frame() returned None; let it return the artists that later frames change")
            self._time.set_text(f"{world.time:.10g} s  {clock}")
            self._artists = self._draw_frame(self._axes, world, observed, self._artists)
            return self._canvas.draw()
