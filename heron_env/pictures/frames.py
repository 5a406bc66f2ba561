"""Frames: the picture of a world at one moment, drawn once and updated; and what an agent knows at that moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.errors import RuleError
from heron_env.pictures.palette import picture_style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
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

        self._figure, self._canvas = figure, FigureCanvasAgg(figure)
        self._background: Any = None
        self._limits: list[Any] = []

    def draw(self) -> NDArray[np.uint8]:
        """uint8 `[height, width, 3]` of the figure now."""
        canvas: Any = self._canvas
        if self._background is None:
            canvas.draw()
            self._figure.set_layout_engine("none")  # the first frame's stays: it costs more than the drawing
            self._background = ()
        else:
            self._draw_changes(canvas)
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def _draw_changes(self, canvas: Any) -> None:
        artists = list(self._artists())
        limits = [axes.viewLim.frozen().bounds for axes in self._figure.axes]
        changed = [a for a in artists if (a.stale or a.get_zorder() >= ON_TOP) and not a.get_animated()]
        if changed or limits != self._limits or any(axes.patch.stale for axes in self._figure.axes):
            for artist in changed:
                artist.set_animated(True)  # the figure leaves such ones out
            canvas.draw()
            self._background, self._limits = canvas.copy_from_bbox(self._figure.bbox), limits
        canvas.restore_region(self._background)
        for artist in sorted((a for a in artists if a.get_animated()), key=lambda a: a.get_zorder()):
            artist.draw(canvas.get_renderer())

    def _artists(self) -> Iterator[Artist]:
        """Of the figure and its axes, but the axes themselves and what lies behind everything."""
        holders: list[Any] = [self._figure, *self._figure.axes]
        for holder in holders:
            yield from (a for a in holder.get_children() if a is not holder.patch and a not in self._figure.axes)


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
