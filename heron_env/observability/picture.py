"""The picture of a visibility matrix: observers x columns, hidden, exact, or noisy by a factor."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.core.notebook import html_table
from heron_env.errors import ConfigError
from heron_env.given import several
from heron_env.observability.palette import GREY, INK, Palette, picture_style
from heron_env.observability.telling import exchanged, told_cells
from heron_env.observability.visibility import VisibilityMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_OBSERVERS, MOST_COLUMNS, MOST_NAMED, MOST_OWNERS = 72, 420, 126, 24
"""Larger matrices are drawn by groups. With more columns than MOST_NAMED, or more owners than MOST_OWNERS, the columns
have no names of their own: they are listed below, once for a class."""
MOST_TOLD = 1_000
"""Cells of a table in a notebook."""
WIDEST, CELL, LINE, LETTER = 12.0, 0.22, 0.17, 0.072
"""inches: of all columns, of a column and of a row at their widest and narrowest, of a letter."""


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
        columns = max(1, self.columns)
        return max(LINE / narrowest, min(WIDEST / columns, max(CELL, min(0.45, 4.0 / columns))))

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
        self._name(axes)
        palette.legend(axes, [*own, *palette.dots(axes, self.told())], additive)

    def told(self) -> list[tuple[float, float]]:
        """Centres of the cells that neighbours tell their observer of."""
        place, at = np.argsort(self.order), {rank: y for y, rank in enumerate(self.agents)}
        cells = told_cells(self.matrix.tellings)
        return [(float(place[column]) + 0.5, at[rank] + 0.5) for rank, column in cells if rank in at]

    def _mesh(self, axes: Axes, values: NDArray[np.float64], top: float, palette: Palette) -> None:
        if not values.size:
            return
        y = top + np.arange(len(values) + 1)
        lines: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.25 if self.cell < 0.15 else 0.5}
        if self.columns > MOST_NAMED:
            lines = {}
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
        axes.set_yticks(heights, names, fontsize=8.5, parse_math=False)
        axes.set_xlim(0, max(1, self.columns))
        axes.set_ylim(self.lines, 0)
        axes.tick_params(length=0)
        axes.set_xticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        for block in self.blocks[1:]:
            axes.axvline(block.start, color="white", linewidth=2.4 if self.columns <= MOST_NAMED else 0.8, zorder=2)

    def _name(self, axes: Axes) -> None:
        cell = self.width / max(1, self.columns)
        self.letters = name_blocks(axes, [(block.owner, block.start, block.stop) for block in self.blocks], cell)
        names = self.matrix.layout.names
        owners: dict[tuple[str, ...], list[str]] = {}
        for block in self.blocks:
            owners.setdefault(tuple(names[i] for i in self.order[block.start : block.stop]), []).append(block.owner)
        bookkeeping = "Hidden within its own: bookkeeping, which no agent sees."
        told = [] if self.matrix.layout.observed.all() else [bookkeeping]
        if self.columns <= MOST_NAMED and len(self.blocks) <= MOST_OWNERS:
            short = all(map(_are_clear, owners))
            shown = [names[i].partition(".")[2] if short else names[i] for i in self.order]
            axes.set_xticks(
                np.arange(self.columns) + 0.5, shown, rotation=90, fontsize=min(7.5, 60.0 * cell), parse_math=False
            )
        else:
            told += [f"Columns of {_several(who)}: {', '.join(fields)}." for fields, who in owners.items()]
        told += exchanged(self.matrix.tellings, self.matrix.layout)
        note(axes, [*told, *known_ahead(self.matrix.layout)], self.width)


def name_blocks(axes: Axes, blocks: Sequence[tuple[str, int, int]], cell: float) -> float:
    """Names above runs of columns, (name, start, stop), upright where they are too long; their height in points."""
    flat = all(LETTER * len(name) + 0.1 <= (stop - start) * cell for name, start, stop in blocks)
    for name, start, stop in blocks:
        axes.annotate(
            name, ((start + stop) / 2.0, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 4),
            textcoords="offset points", ha="center", va="bottom", fontsize=8.5, rotation=0 if flat else 90,
            annotation_clip=False,
        )  # fmt: skip
    return 20.0 if flat else 12.0 + 72.0 * LETTER * max(len(name) for name, _, _ in blocks)


def _are_clear(names: Sequence[str]) -> bool:
    """Are the fields' names enough, without their features'?"""
    fields = {name.partition("[")[0] for name in names}
    return len({field.partition(".")[2] for field in fields}) == len(fields)


def _several(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} ... {names[-1]}"


def known_ahead(layout: Layout) -> list[str]:
    """Which quantities are marked as known ahead, in a sentence; nothing if there are none."""
    marked = dict.fromkeys(layout.names[i].partition("[")[0] for i in np.flatnonzero(layout.foreknown))
    return [f"Known ahead (foreknown): {', '.join(marked)}."] if marked else []


def note(axes: Axes, sentences: Sequence[str], width: float) -> None:
    """Small print below the axes, wrapped to `width` inches."""
    letters = max(40, int(width / 0.054))
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
        from matplotlib.axes import Axes

        if not isinstance(ax, Axes | None):
            raise ConfigError(f"plot(ax={ax!r:.60}): must be axes of matplotlib, or None for a new figure")
        if not isinstance(title, str | None):
            raise ConfigError(f"plot(title={title!r:.60}): must be a text, or None")
        drawing = drawing_of(matrix, None if observers is None else several(observers, "plot(observers)"))
        if ax is None:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(drawing.width + 3.4, drawing.height + 2.1), layout="constrained")
            ax = figure.subplots()
        drawing.draw(ax)
        if title is not None:
            ax.set_title(title, pad=drawing.letters)
        drawn = ax.get_figure(root=True)
        assert drawn is not None, "axes belong to a figure"
        return drawn


def matrix_table(matrix: VisibilityMatrix) -> str:
    """The matrix as HTML for notebooks, a row for each column of the state; of a large matrix its size alone."""
    if len(matrix.observers) * len(matrix.columns) > MOST_TOLD:
        return html_table(("matrix",), [(repr(matrix),)], note="row(observer) lists one row; plot() draws it by groups")
    told = [["hidden" if np.isnan(f) else f"{f:g}" if f else "exact" for f in row] for row in matrix.to_dense().T]
    rows = [(column, *cells) for column, cells in zip(matrix.columns, told, strict=True)]
    return html_table(("column", *matrix.observers), rows, note="a number is the factor of the noise")
