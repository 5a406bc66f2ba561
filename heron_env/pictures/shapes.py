"""Shapes that the pictures of the worlds share: made once, then given new places and colours in every frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.pictures.palette import INK, SERIES, TOLD_COLOUR

Array = NDArray[np.float64]
BLUE, VERMILION, GREEN, _, ORANGE = SERIES
PALE: Final = "#F4F4F1"
GHOST: Final[dict[str, Any]] = {"edgecolor": TOLD_COLOUR, "linewidth": 1.8, "linestyle": (0, (3, 2))}
"""Of what an agent knows, dashed beside the truth."""
ACROSS: Final = 3.6
"""Points for a hundredth of a picture's width, about: what has room for letters follows from it."""


def shape_of(axes: Any) -> float:
    """Height of the room for a picture by its width, about: a title comes above it."""
    room = axes.get_window_extent()
    return float(0.95 * room.height / room.width)


def stage(axes: Any, width: float, height: float) -> tuple[Any, Any]:
    """Coordinates from (0, 0) to (width, height), equally long, without ticks; the title and the line at the foot."""
    axes.set(xlim=(0.0, width), ylim=(0.0, height), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    foot = axes.text(0.005, 0.005, "", transform=axes.transAxes, color=TOLD_COLOUR, fontsize=8.5, zorder=10.0)
    return axes.set_title("", y=1.0), foot


def known_text(observed: Any) -> str:
    """`dashed: what zone_1 knows, up to 30 s old`; nothing where nobody observes."""
    if observed is None:
        return ""
    if not observed.ages:
        return f"dashed: what {observed.agent} knows, nothing yet"
    age = max(observed.ages.values())
    return f"dashed: what {observed.agent} knows, up to {age:,.{0 if age >= 100.0 else 1}f} s old"


def polygons(axes: Any, verts: Any = (), **style: Any) -> Any:
    """A collection of polygons; `set_verts` moves them."""
    from matplotlib.collections import PolyCollection

    made = PolyCollection(verts, **{"linewidth": 1.0, "edgecolor": INK, "zorder": 2.0, **style})
    return axes.add_collection(made, autolim=False)


def segments(axes: Any, lines: Any = (), **style: Any) -> Any:
    """A collection of lines; `set_segments` moves them."""
    from matplotlib.collections import LineCollection

    return axes.add_collection(LineCollection(lines, **style), autolim=False)


def dots(axes: Any, marker: Any, size: float, colour: str, edge: str = "white") -> Any:
    """No markers yet: `set_data` places them."""
    return axes.plot([], [], marker=marker, ms=size, color=colour, ls="none", mec=edge, mew=0.8, zorder=4.0)[0]


def boxes(left: Any, bottom: Any, width: Any, height: Any) -> Array:
    """Corners `[n, 4, 2]` of rectangles."""
    left, bottom, width, height = np.broadcast_arrays(np.atleast_1d(left), bottom, width, height)
    right, top = left + width, bottom + height
    return np.stack([left, bottom, right, bottom, right, top, left, top], axis=-1).reshape(-1, 4, 2)


def rounds(middles: Any, radius: Any, points: int = 40) -> Array:
    """Corners `[n, points, 2]` around `middles` `[n, 2]`; a radius, or `[n, points]`: two in turn make stars."""
    first = np.pi / 4.0 if points == 4 else np.pi / 2.0  # squares stand on a side
    angles = first + np.arange(points) * 2.0 * np.pi / points
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return np.asarray(np.reshape(middles, (-1, 1, 2)) + np.asarray(radius)[..., None] * directions)


def packed(n: int, width: float, height: float, aspect: float = 1.0) -> tuple[Array, float, float]:
    """Middles `[n, 2]` of n cells in rows from the top left, width and height of one, as large as fits."""
    columns = max(range(1, n + 1), key=lambda columns: min(width / columns / aspect, height / -(-n // columns)))
    row, column = np.divmod(np.arange(n), columns)
    wide, high = width / columns, height / (row[-1] + 1)
    return np.stack([(column + 0.5) * wide, height - (row + 0.5) * high], axis=-1), wide, high


def nested(sizes: Sequence[int], corner: Array, room: Array, aspect: float, head: float) -> tuple[Array, Array, float]:
    """Zones with `sizes` members in the room from `corner` on: corners of their boxes, members' middles, their height.

    aspect: a member's width by its height; head: what a zone keeps free above them.
    """
    zones, wide, high = packed(len(sizes), *room)
    zones = zones + corner
    members, width, height = packed(max(sizes), wide - 2.0, high - head - 2.0, aspect)
    places = [zone - (wide / 2.0 - 1.0, high / 2.0 - 1.0) + members[:n] for zone, n in zip(zones, sizes, strict=True)]
    left, bottom = (zones - (wide / 2.0 - 0.5, high / 2.0 - 0.5)).T
    return boxes(left, bottom, wide - 1.0, high - 1.0), np.concatenate(places), min(width / aspect, height)


@lru_cache(4096)  # numbers are many
def word_shape(word: str, points: float, bold: bool, middle: bool) -> Any:
    """The outline of a word, inches, its left end or its middle at the origin."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    if not word:
        return Path(np.zeros((0, 2)))
    outline = TextPath((0.0, 0.0), word, points / 72.0, FontProperties(weight="bold" if bold else "normal"))
    right = outline.vertices[:, 0].max() if middle else 0.0
    return Path(outline.vertices - (right / 2.0, 0.36 * points / 72.0), outline.codes)


class Labels:
    """A word at each place `[n, 2]`, drawn as an outline: as many of matplotlib's texts take ten times as long."""

    def __init__(
        self, axes: Any, places: Any, words: Iterable[str] = (), *, points: float = 8.0, bold: bool = False,
        middle: bool = True, colour: str = INK,
    ) -> None:  # fmt: skip
        from matplotlib.collections import PathCollection

        self.points, self._style, self.count = points, (points, bold, middle), len(places)
        style: dict[str, Any] = {"offset_transform": axes.transData, "offsets": places, "zorder": 10.0}
        halo = PathCollection([], facecolor="none", edgecolor="white", linewidth=1.8 * (colour != "white"), **style)
        self.shapes = PathCollection([], facecolor=colour, linewidth=0.0, **style)
        self.layers = halo, self.shapes
        for layer in self.layers:
            axes.add_collection(layer, autolim=False).set_transform(axes.get_figure(root=True).dpi_scale_trans)
        self.show(words)

    def show(self, words: Iterable[str]) -> None:
        """These words, one a place; further ones have none."""
        self.words = [*words][: self.count]
        for layer in self.layers:
            layer.set_paths([word_shape(word, *self._style) for word in self.words])


class FillingCells:
    """Cells that fill (batteries, vaults), with their share in percent where there is room; dashed: knowledge.

    `middles` `[n, 2]`; `width`, `height`: of one, or `[n]`, in hundredths of a picture; `colour` "": of a battery.
    """

    def __init__(self, axes: Any, middles: Array, width: Any, height: Any, colour: str = "") -> None:
        (x, y), self.colours = middles.T, (colour or GREEN, colour or VERMILION)
        self.box = self.left, self.bottom, self.width, self.height = x - width / 2.0, y - height / 2.0, width, height
        polygons(axes, boxes(*self.box), facecolor="white")
        polygons(
            axes, boxes(x - 0.2 * width, y + height / 2.0, 0.4 * width, 0.06 * height * (not colour)), facecolor=INK
        )
        self.fills = polygons(axes, edgecolor="none", zorder=2.1)
        size = ACROSS * float(np.min(width))
        self.up, self.down = (dots(axes, marker, min(0.4 * size, 14.0), INK) for marker in "^v")
        self.ghosts = segments(axes, color=TOLD_COLOUR, linewidth=2.0, linestyle=(0, (2, 1)), zorder=3.0)
        low = np.stack([x, self.bottom + 0.14 * height], axis=-1)[: len(x) * (size > 22.0)]
        self.percents = Labels(axes, low, points=float(np.clip(0.2 * size, 8.0, 14.0)))

    def show(self, share: Array, change: Array, believed: Array | None) -> None:
        """Shares `[n]` in [0, 1]; who rises or sinks by `change`; what is believed, nan: nothing."""
        left, bottom, width, height = self.box
        self.fills.set_verts(boxes(left, bottom, width, share * height))
        self.fills.set_facecolor([self.colours[int(value < 0.2)] for value in share])
        for arrows, here in ((self.up, change > 1e-9), (self.down, change < -1e-9)):
            arrows.set_data((left + width / 2.0)[here], (bottom + 0.85 * height)[here])
        if believed is not None:
            dashes = boxes(left - 0.1 * width, bottom + believed * height, 1.2 * width, 0.0)[:, :2]
            self.ghosts.set_segments(dashes[np.isfinite(believed)])
        self.percents.show(f"{value:.0%}" for value in share)
