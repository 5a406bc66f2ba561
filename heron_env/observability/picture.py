"""The picture of a visibility matrix: observers x columns, hidden, exact, or noisy by a factor.

Its look is that of the figures of an evaluation. Blue is exact, the ramp from yellow to brown is noise, pale grey is
hidden: they differ in hue and in lightness, so colour-blind readers and grey prints tell them apart.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.observability.visibility import VisibilityMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXACT_COLOUR, HIDDEN_COLOUR, INK, GREY = "#0072B2", "#ECECEC", "#222222", "#6B6B6B"
NOISE_COLOURS: Final = ("#F6D98B", "#E69F00", "#D55E00", "#6E2600")
STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": False,
    "xtick.color": GREY,
    "ytick.color": INK,
    "text.color": INK,
    "hatch.linewidth": 0.7,
    "svg.hashsalt": "heron_env",
}

MOST_OBSERVERS, MOST_COLUMNS, MOST_NAMED = 72, 420, 48
"""Larger matrices are drawn by groups; with more columns than MOST_NAMED their names stand below, once for a class."""
WIDEST, CELL, LINE, LETTER = 12.0, 0.22, 0.17, 0.072
"""inches: of all columns, of a column and of a row at their widest and narrowest, of a letter."""
FEW_FACTORS = 6
"""So many noise factors get a colour each; more share a colour bar."""


@contextmanager
def picture_style() -> Iterator[None]:
    """Draw in the house style, leaving the caller's settings alone. Raises ConfigError where matplotlib is missing."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ConfigError("pictures need matplotlib: pip install 'heron_env[plots]'") from error
    with mpl.rc_context(STYLE):
        yield


class Palette:
    """Which colour a factor has: one each, or a logarithmic scale where there are many."""

    def __init__(self, factors: NDArray[np.float64]) -> None:
        from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap, LogNorm, Normalize

        self.factors = np.unique(factors[factors > 0.0])
        self.few = len(self.factors) <= FEW_FACTORS
        colours = LinearSegmentedColormap.from_list("noise", NOISE_COLOURS)
        self.norm: Normalize
        if self.few:
            edges = np.concatenate([[0.0], self.factors, [2.0 * self.factors[-1] if len(self.factors) else 1.0]])
            middles = (edges[1:] + edges[:-1]) / 2.0
            colours = colours.resampled(max(2, len(self.factors)))
            self.norm = BoundaryNorm(middles, len(self.factors)) if len(self.factors) else Normalize(1.0, 2.0)
        else:
            self.norm = LogNorm(self.factors[0], self.factors[-1])
        self.colours = colours.with_extremes(under=EXACT_COLOUR, bad=HIDDEN_COLOUR)

    def of(self, factor: float) -> Any:
        """The colour of one factor."""
        return EXACT_COLOUR if factor == 0.0 else self.colours(self.norm(factor))

    def legend(self, axes: Axes, extra: Sequence[Any], additive: bool) -> None:
        """What the colours mean, right of the axes; many factors as a colour bar below it."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.patches import Patch

        handles = [Patch(facecolor=EXACT_COLOUR, label="exact")]
        if self.few:
            handles += [Patch(facecolor=self.of(f), label=f"noise {f:g}") for f in self.factors.tolist()]
        if additive:
            handles.append(Patch(facecolor=GREY, edgecolor="white", hatch="////", label="noise: share of the range"))
        handles.append(Patch(facecolor=HIDDEN_COLOUR, label="hidden"))
        axes.legend(
            handles=[*handles, *extra], loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8.5,
            handlelength=1.1, handleheight=1.0, borderaxespad=0.4,
        )  # fmt: skip
        if not self.few:
            figure = axes.get_figure()
            assert figure is not None, "axes belong to a figure"
            bar = figure.colorbar(
                ScalarMappable(self.norm, self.colours), ax=axes, orientation="horizontal", fraction=0.04, aspect=40,
                shrink=0.6, anchor=(0.0, 1.0), pad=0.02,
            )  # fmt: skip
            bar.set_label("noise factor", fontsize=8.5, loc="left")
            bar.ax.tick_params(labelsize=8.0)


@dataclass(frozen=True)
class Block:
    """The columns of one owner in the picture: `[start, stop)`."""

    owner: str
    rank: int
    start: int
    stop: int


class CellDrawing:
    """Every observer a row, every column of the state a column; owners in registration order.

    Attributes:
        order: columns of the state as the picture has them, int64 `[columns]`.
        width, height: what the axes need, inches; letters around them not counted.
    """

    def __init__(self, matrix: VisibilityMatrix, ranks: Sequence[int]) -> None:
        self.matrix = matrix
        self.agents = [rank for rank in ranks if rank < len(matrix.hierarchy)]
        self.has_critic = len(self.agents) < len(ranks)
        rows = matrix.layout.rows
        self.order = np.concatenate([np.arange(row.slice.start, row.slice.stop) for row in rows])
        stops = np.cumsum([row.width for row in rows]).tolist()
        self.blocks = [
            Block(row.owner_id, rank, stop - row.width, stop)
            for rank, (row, stop) in enumerate(zip(rows, stops, strict=True))
            if row.width
        ]
        self.columns = len(self.order)
        self.lines = len(ranks) + (0.6 if self.has_critic and self.agents else 0.0)
        self.cell = self._cell()
        self.width, self.height = max(1.2, self.cell * self.columns), max(0.5, LINE * 1.25 * self.lines)

    def _cell(self) -> float:
        """Width of a column in inches: no owner's block is narrower than a line of letters."""
        narrowest = min((block.stop - block.start for block in self.blocks), default=1)
        return max(LINE / narrowest, min(CELL, WIDEST / max(1, self.columns)))

    @property
    def is_legible(self) -> bool:
        """Is the environment small enough to be drawn like this?"""
        fits = self.columns <= MOST_COLUMNS and self.width <= WIDEST + 1.0
        return fits and len(self.agents) <= MOST_OBSERVERS

    def values(self, ranks: Sequence[int]) -> NDArray[np.float64]:
        """Rows of the dense form, columns in the picture's order: float64 `[ranks, columns]`."""
        found = np.full((len(ranks), self.columns), np.nan)
        for row, rank in zip(found, ranks, strict=True):
            columns, factors, _ = self.matrix.seen(rank)
            row[columns] = factors
        return found[:, self.order]

    def draw(self, axes: Axes) -> None:
        """Everything on these axes."""
        critic = [len(self.matrix.hierarchy)] if self.has_critic else []
        values, top = self.values(self.agents), self.lines - len(critic)
        palette = Palette(values[np.isfinite(values)])
        self._mesh(axes, values, 0.0, palette)
        self._mesh(axes, self.values(critic), top, palette)
        additive = self._hatch(axes)
        own = self._outline(axes)
        self._frame(axes, [*(i + 0.5 for i in range(len(self.agents))), *(top + 0.5 for _ in critic)])
        self._name_owners(axes)
        self._name_columns(axes)
        palette.legend(axes, own, additive)

    def _mesh(self, axes: Axes, values: NDArray[np.float64], top: float, palette: Palette) -> None:
        if not values.size:
            return
        y = top + np.arange(len(values) + 1)
        lines: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.5} if self.columns <= MOST_NAMED else {}
        axes.pcolormesh(
            np.arange(self.columns + 1), y, np.ma.masked_invalid(values), cmap=palette.colours, norm=palette.norm,
            rasterized=values.size > 4000, **lines,
        )  # fmt: skip

    def _hatch(self, axes: Axes) -> bool:
        """Strokes over the runs of columns whose noise is relative to the range; are there any?"""
        from matplotlib.patches import Rectangle

        place = np.argsort(self.order)
        found = False
        for y, rank in enumerate(self.agents):
            columns, _, additive = self.matrix.seen(rank)
            at = np.sort(place[columns[additive]])
            for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(at) else []:
                box = Rectangle(
                    (float(run[0]), y), len(run), 1, fill=False, edgecolor="white", hatch="////", linewidth=0
                )
                axes.add_patch(box)
                found = True
        return found

    def _outline(self, axes: Axes) -> list[Any]:
        """A frame around each observer's own columns; the entry of the legend."""
        from matplotlib.patches import Patch, Rectangle

        at = {rank: y for y, rank in enumerate(self.agents)}
        framed = [block for block in self.blocks if block.rank in at]
        for block in framed:
            corner = (block.start, at[block.rank])
            axes.add_patch(
                Rectangle(corner, block.stop - block.start, 1, fill=False, edgecolor=INK, linewidth=1.3, zorder=3)
            )
        return [Patch(facecolor="none", edgecolor=INK, linewidth=1.3, label="its own")] if framed else []

    def _frame(self, axes: Axes, heights: Sequence[float]) -> None:
        names = [self.matrix.hierarchy.ids[rank] for rank in self.agents]
        names += [f"{self.matrix.critic}: state()"] if self.has_critic else []
        axes.set_yticks(heights, names, fontsize=8.5)
        axes.set_xlim(0, max(1, self.columns))
        axes.set_ylim(self.lines, 0)
        axes.tick_params(length=0)
        axes.set_xticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        for block in self.blocks[1:]:
            axes.axvline(block.start, color="white", linewidth=2.4 if self.columns <= MOST_NAMED else 0.8, zorder=2)

    def _name_owners(self, axes: Axes) -> None:
        flat = all(LETTER * len(b.owner) + 0.1 <= (b.stop - b.start) * self.width / self.columns for b in self.blocks)
        for block in self.blocks:
            axes.annotate(
                block.owner, ((block.start + block.stop) / 2.0, 1.0), xycoords=("data", "axes fraction"),
                xytext=(0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=8.5,
                rotation=0 if flat else 90, annotation_clip=False,
            )  # fmt: skip

    def _name_columns(self, axes: Axes) -> None:
        names = self.matrix.layout.names
        if self.columns <= MOST_NAMED:
            centres = np.arange(self.columns) + 0.5
            axes.set_xticks(centres, [names[i] for i in self.order], rotation=90, fontsize=7.5)
            return
        owners: dict[tuple[str, ...], list[str]] = {}
        for block in self.blocks:
            owners.setdefault(tuple(names[i] for i in self.order[block.start : block.stop]), []).append(block.owner)
        told = [f"Columns of {_several(who)}: {', '.join(fields)}." for fields, who in owners.items()]
        note(axes, told, self.width)


def _several(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} ... {names[-1]}"


def note(axes: Axes, sentences: Sequence[str], width: float) -> None:
    """Small print below the axes, wrapped to `width` inches."""
    letters = max(40, int(width / 0.062))
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, letters)]
    axes.set_xlabel("\n".join(lines), loc="left", fontsize=7.5, color=GREY)


def drawing_of(matrix: VisibilityMatrix, observers: Sequence[str] | None = None) -> Any:
    """The drawing that suits the size of the environment, with `draw(axes)`, `width` and `height`."""
    from heron_env.observability.group_picture import GroupDrawing

    chosen = matrix.observers if observers is None else observers
    drawing = CellDrawing(matrix, [matrix.rank(observer) for observer in chosen])
    return drawing if drawing.is_legible else GroupDrawing(matrix, observers)


def matrix_figure(
    matrix: VisibilityMatrix,
    ax: Axes | None = None,
    observers: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """The figure of `VisibilityMatrix.plot()`."""
    with picture_style():
        drawing = drawing_of(matrix, observers)
        if ax is None:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(drawing.width + 3.4, drawing.height + 2.1), layout="constrained")
            ax = figure.subplots()
        drawing.draw(ax)
        if title is not None:
            ax.set_title(title, pad=30.0)
        figure = ax.get_figure(root=True)
        return figure
