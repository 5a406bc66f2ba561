"""Shapes that the pictures of the worlds share: made once, then given new places and colours in every frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.pictures.palette import INK, SERIES, TOLD_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    from heron_env.pictures.frames import ObservedWorld

Array = NDArray[np.float64]
BLUE, VERMILION, GREEN, _, ORANGE = SERIES
GHOST: Final = TOLD_COLOUR
"""Of what an agent knows, dashed beside the truth."""
PALE: Final = "#F4F4F1"
ACROSS: Final = 430.0
"""Points across a picture, about: what has room for letters follows from it."""
LOW: Final = 0.2
"""A battery below this share is shown as nearly empty."""


def stage(axes: Axes, width: float, height: float) -> None:
    """Coordinates from (0, 0) to (width, height), equally long in both directions, without ticks and frame."""
    axes.set(xlim=(0.0, width), ylim=(0.0, height), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def polygons(axes: Axes, **style: Any) -> PolyCollection:
    """No polygons yet: `set_verts` places them."""
    from matplotlib.collections import PolyCollection

    made = PolyCollection([], **{"linewidth": 1.0, "edgecolor": INK, "zorder": 2.0, **style})
    axes.add_collection(made, autolim=False)
    return made


def segments(axes: Axes, **style: Any) -> LineCollection:
    """No lines yet: `set_segments` places them."""
    from matplotlib.collections import LineCollection

    made = LineCollection([], **style)
    axes.add_collection(made, autolim=False)
    return made


def dots(axes: Axes, marker: Any, size: float, colour: str, **style: Any) -> Line2D:
    """No markers yet: `set_data` places them."""
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.8, "zorder": 4.0}
    return axes.plot([], [], marker=marker, markersize=size, color=colour, linestyle="none", **{**edge, **style})[0]


def boxes(x: Any, y: Any, width: Any, height: Any) -> Array:
    """Corners `[n, 4, 2]` of rectangles whose lower left ones are at x, y."""
    x, y, width, height = np.broadcast_arrays(np.atleast_1d(x), y, width, height)
    right, top = x + width, y + height
    return np.stack([x, y, right, y, right, top, x, top], axis=-1).reshape(-1, 4, 2)


def rounds(x: Any, y: Any, radius: Any, points: int = 40) -> Array:
    """Corners `[n, points, 2]` around x, y; a radius for all, or `[n, points]`: two in turn make stars."""
    angles = np.pi / 2.0 + np.arange(points) * 2.0 * np.pi / points
    x, y = np.reshape(x, (-1, 1)), np.reshape(y, (-1, 1))
    return np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=-1)


def packed(n: int, width: float, height: float, aspect: float = 1.0) -> tuple[Array, Array, float]:
    """x and y `[n]` of the middles of n cells in rows from the top left, as large as fits, and the height of one.

    aspect: width of a cell by its height.
    """
    columns = max(range(1, n + 1), key=lambda columns: min(width / columns / aspect, height / -(-n // columns)))
    rows = -(-n // columns)
    row, column = np.divmod(np.arange(n), columns)
    cell = min(width / columns / aspect, height / rows)
    return (column + 0.5) * (width / columns), height - (row + 0.5) * (height / rows), cell


def nested(
    sizes: Sequence[int], width: float, height: float, *, aspect: float, head: float
) -> tuple[Array, Array, Array, float]:
    """Zones in rows from the top left, with their members in rows, as large as fits.

    Args:
        sizes: members of each zone.
        width, height: of the room for all.
        aspect: width of a member's cell by its height.
        head: height that a zone keeps free above its members.

    Returns left, bottom, width and height `[4, zones]` of the zones; x and y of the members' middles; a cell's height.
    """
    most = max(sizes)

    def cell(columns: int) -> float:
        return packed(most, width / columns - 2.0, height / -(-len(sizes) // columns) - head - 2.0, aspect)[2]

    columns = max(range(1, len(sizes) + 1), key=cell)
    row, column = np.divmod(np.arange(len(sizes)), columns)
    wide, high = width / columns, height / (row[-1] + 1)
    x, y, side = packed(most, wide - 2.0, high - head - 2.0, aspect)
    left, bottom = column * wide + 0.5, height - (row + 1.0) * high + 0.5
    zones = np.stack([left, bottom, np.full(len(sizes), wide - 1.0), np.full(len(sizes), high - 1.0)])
    members = [(left[zone] + 0.5 + x[:size], bottom[zone] + 0.5 + y[:size]) for zone, size in enumerate(sizes)]
    return zones, *np.concatenate(members, axis=1), side


def headings(axes: Axes) -> tuple[Text, Text]:
    """The title, whose place stays, and the line at the foot that says whose knowledge is dashed."""
    foot = axes.text(0.005, 0.005, "", transform=axes.transAxes, color=GHOST, fontsize=8.5, zorder=8.0)
    return axes.set_title("", y=1.0), foot


def known_text(observed: ObservedWorld | None) -> str:
    """`dashed: what zone_1 knows, up to 30 s old`."""
    if observed is None:
        return ""
    age = f"up to {max(observed.ages.values()):.3g} s old" if observed.ages else "nothing yet"
    return f"dashed: what {observed.agent} knows, {age}"


@cache
def word_shape(word: str, points: float, bold: bool, middle: bool) -> Any:
    """The outline of a word, inches, its left end or its middle at the origin."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    if not word:
        return Path(np.zeros((0, 2)))
    outline = TextPath((0.0, 0.0), word, points / 72.0, FontProperties(weight="bold" if bold else "normal"))
    right = outline.vertices[:, 0].max(initial=0.0)
    return outline.transformed(Affine2D().translate(-right / 2.0 if middle else 0.0, -0.36 * points / 72.0))


class Labels:
    """A word at each place, drawn as an outline: a frame with as many of matplotlib's texts takes ten times as long.

    Args:
        x, y: places `[n]`; the words' middles, or their left ends.
        points: size of letters.
    """

    def __init__(
        self, axes: Axes, x: Any, y: Any, words: Iterable[str] = (), *, points: float = 8.0, bold: bool = False,
        middle: bool = True, colour: str = INK,
    ) -> None:  # fmt: skip
        from matplotlib.collections import PathCollection

        self._style = points, bold, middle
        style: dict[str, Any] = {
            "offset_transform": axes.transData,
            "offsets": np.stack([x, y], axis=-1),
            "zorder": 6.0,
        }
        halo = PathCollection([], facecolor="none", edgecolor="white", linewidth=1.8 * (colour != "white"), **style)
        self.shapes = PathCollection([], facecolor=colour, linewidth=0.0, **style)
        self._layers = halo, self.shapes
        for layer in self._layers:
            layer.set_transform(axes.get_figure(root=True).dpi_scale_trans)
            axes.add_collection(layer, autolim=False)
        self.show(words)

    def show(self, words: Iterable[str]) -> None:
        """These words, one a place."""
        self.words = [*words]
        for layer in self._layers:
            layer.set_paths([word_shape(word, *self._style) for word in self.words])


class Cells:
    """Batteries, vaults: cells that fill. Their share in percent where there is room; a dash where an agent believes.

    Args:
        x, y: middles `[n]`.
        width, height: of one, or `[n]`.
        across: width of the stage.
        colour: of what is in them; None: green, or red below LOW, as a battery, which has a pole.
    """

    def __init__(
        self, axes: Axes, x: Array, y: Array, width: Any, height: Any, *, across: float, colour: str | None = None
    ) -> None:
        self.colours = (GREEN, VERMILION) if colour is None else (colour, colour)
        self.left, self.bottom, self.width, self.height = x - width / 2.0, y - height / 2.0, width, height
        self.frames = polygons(axes, facecolor="white", linewidth=0.8)
        self.frames.set_verts(boxes(self.left, self.bottom, width, height))
        pole = 0.06 * height if colour is None else 0.0
        polygons(axes, facecolor=INK).set_verts(boxes(x - 0.2 * width, self.bottom + height, 0.4 * width, pole))
        self.fills = polygons(axes, edgecolor="none", zorder=2.1)
        size = ACROSS * float(np.min(width)) / across
        arrow = min(0.4 * size, 14.0)
        self.up, self.down = dots(axes, "^", arrow, INK), dots(axes, "v", arrow, INK)
        self.ghosts = segments(axes, color=GHOST, linewidth=2.0, linestyle=(0, (2, 1)), zorder=3.0)
        points = float(np.clip(0.2 * size, 8.0, 14.0))
        self.shares = Labels(axes, x, self.bottom + 0.14 * height, points=points) if size > 22.0 else None

    def show(self, share: Array, change: Array, believed: Array | None) -> None:
        """Shares `[n]` in [0, 1]; who rises or sinks by `change`; what is believed, nan: nothing."""
        left, bottom, width, height = self.left, self.bottom, self.width, self.height
        self.fills.set_verts(boxes(left, bottom, width, share * height))
        self.fills.set_facecolor([self.colours[int(value < LOW)] for value in share])
        for arrows, here in ((self.up, change > 1e-9), (self.down, change < -1e-9)):
            arrows.set_data((left + width / 2.0)[here], (bottom + 0.85 * height)[here])
        known = np.full(len(share), np.nan) if believed is None else believed
        level, here = bottom + known * height, np.isfinite(known)
        ends = np.stack([left - 0.1 * width, level, left + 1.1 * width, level], axis=-1).reshape(-1, 2, 2)
        self.ghosts.set_segments(list(ends[here]))
        if self.shares is not None:
            self.shares.show(f"{value:.0%}" for value in share)
