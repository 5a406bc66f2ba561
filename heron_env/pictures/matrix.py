"""The picture of a visibility matrix: observers x columns, hidden, exact, or noisy by a factor."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.pictures.palette import GREY, HIDDEN_COLOUR, INK, Palette, picture_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_OBSERVERS, MOST_COLUMNS, MOST_NAMED, MOST_OWNERS = 72, 420, 126, 24
"""Larger matrices are drawn by groups. With more columns than MOST_NAMED, or more owners than MOST_OWNERS, the columns
have no names of their own: they are listed below, once for a class."""
WIDEST, CELL, LINE, LETTER = 12.0, 0.22, 0.17, 0.072
"""inches: of all columns, of a column and of a row at their widest and narrowest, of a letter."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Who sees which columns, how clearly: a row for each observer, the critic's last.

    Attributes:
        observers: names of the agents among the rows.
        critic: name of the last row, which is set apart; None where it is not drawn.
        owners: (name, first column, last column + 1) of each owner with columns, side by side.
        columns: names `[columns]`, `Charge.soc`.
        values: float64 `[rows, columns]`: nan hidden, 0 exact, else the factor of the noise.
        additive: bool `[rows, columns]`: where noise is a share of the range.
        marked: (row, column) of what others tell the observer.
        bookkeeping: are there columns that no agent sees?
        notes: sentences below the picture.
    """

    observers: Sequence[str]
    critic: str | None
    owners: Sequence[tuple[str, int, int]]
    columns: Sequence[str]
    values: NDArray[np.float64]
    additive: NDArray[np.bool_]
    marked: Sequence[tuple[int, int]]
    bookkeeping: bool
    notes: Sequence[str]


def is_legible(observers: int, widths: Sequence[int]) -> bool:
    """Are so many observers, and owners with so many columns each, few enough to be drawn one by one?"""
    columns = sum(widths)
    fits = columns <= MOST_COLUMNS and max(1.2, column_width(widths) * columns) <= WIDEST + 1.0
    return fits and observers <= MOST_OBSERVERS


def column_width(widths: Sequence[int]) -> float:
    """Width of a column in inches: no owner's block is narrower than a line of letters."""
    columns = max(1, sum(widths))
    return max(LINE / min(widths, default=1), min(WIDEST / columns, max(CELL, min(0.45, 4.0 / columns))))


class CellDrawing:
    """Observers x columns of the state; `width`, `height`: of the axes without letters around them, inches."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.agents, self.columns = len(cells.observers), len(cells.columns)
        apart = 0.6 if cells.critic is not None and self.agents else 0.0
        self.lines = len(cells.values) + apart
        self.column = column_width([stop - start for _, start, stop in cells.owners])
        self.width, self.height = max(1.2, self.column * self.columns), max(0.5, LINE * 1.25 * self.lines)

    def draw(self, axes: Axes) -> None:
        """Everything on these axes."""
        values = self.cells.values
        top = self.lines - 1 if self.cells.critic is not None else self.lines
        palette = Palette(values[: self.agents][np.isfinite(values[: self.agents])])
        self._mesh(axes, values[: self.agents], 0.0, palette)
        self._mesh(axes, values[self.agents :], top, palette)
        self._hatch(axes)
        own = self._outline(axes)
        self._frame(axes, [*range(self.agents), *([top] if self.cells.critic is not None else [])])
        self._name(axes)
        dots = palette.dots(axes, [(column + 0.5, row + 0.5) for row, column in self.cells.marked])
        palette.legend(axes, [*own, *dots], bool(self.cells.additive.any()))

    def _mesh(self, axes: Axes, values: NDArray[np.float64], top: float, palette: Palette) -> None:
        if not values.size:
            return
        y = top + np.arange(len(values) + 1)
        lines: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.25 if self.column < 0.15 else 0.5}
        if self.columns > MOST_NAMED:
            lines = {}
        axes.pcolormesh(
            np.arange(self.columns + 1), y, np.ma.masked_invalid(values), cmap=palette.colours, norm=palette.norm,
            rasterized=values.size > 4000, **lines,
        )  # fmt: skip

    def _hatch(self, axes: Axes) -> None:
        """Strokes over the runs of columns whose noise is relative to the range."""
        from matplotlib.patches import Rectangle

        for y, additive in enumerate(self.cells.additive):
            at = np.flatnonzero(additive)
            for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(at) else []:
                box = Rectangle(
                    (float(run[0]), y), len(run), 1, fill=False, edgecolor="white", hatch="////", linewidth=0
                )
                axes.add_patch(box)

    def _outline(self, axes: Axes) -> list[Any]:
        """A frame around each observer's own columns; the entry of the legend."""
        from matplotlib.patches import Patch, Rectangle

        row_of = {observer: y for y, observer in enumerate(self.cells.observers)}
        framed = [owner for owner in self.cells.owners if owner[0] in row_of]
        for name, start, stop in framed:
            corner = (start, row_of[name])
            axes.add_patch(Rectangle(corner, stop - start, 1, fill=False, edgecolor=INK, linewidth=1.3, zorder=3))
        return [Patch(facecolor="none", edgecolor=INK, linewidth=1.3, label="its own")] if framed else []

    def _frame(self, axes: Axes, tops: Sequence[float]) -> None:
        names = [*self.cells.observers, *critic_label(self.cells.critic)]
        axes.set_xlim(0, max(1, self.columns))
        axes.set_xticks([])
        frame_rows(axes, [top + 0.5 for top in tops], names, self.lines)
        for _, start, _ in self.cells.owners[1:]:
            axes.axvline(start, color="white", linewidth=2.4 if self.columns <= MOST_NAMED else 0.8, zorder=2)

    def _name(self, axes: Axes) -> None:
        cells, width = self.cells, self.width / max(1, self.columns)
        self.letters = name_blocks(axes, cells.owners, width)
        owners: dict[tuple[str, ...], list[str]] = {}
        for name, start, stop in cells.owners:
            owners.setdefault(tuple(cells.columns[start:stop]), []).append(name)
        notes = ["Hidden within its own: bookkeeping, which no agent sees."] if cells.bookkeeping else []
        if self.columns <= MOST_NAMED and len(cells.owners) <= MOST_OWNERS:
            short = all(map(_are_clear, owners))
            names = [name.partition(".")[2] if short else name for name in cells.columns]
            axes.set_xticks(
                np.arange(self.columns) + 0.5, names, rotation=90, fontsize=min(7.5, 60.0 * width), parse_math=False
            )
        else:
            notes += [f"Columns of {_first_names(who)}: {', '.join(fields)}." for fields, who in owners.items()]
        note(axes, [*notes, *cells.notes], self.width)


def frame_rows(axes: Axes, centres: Sequence[float], names: Sequence[str], lines: float) -> None:
    """Names of the rows at the left, the first row at the top, no frame around."""
    axes.set_yticks(centres, names, fontsize=8.5, parse_math=False)
    axes.set_ylim(lines, 0)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def critic_label(critic: str | None) -> list[str]:
    """The name of the critic's row, if there is one."""
    return [] if critic is None else [f"{critic}: state()"]


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


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} ... {names[-1]}"


def note(axes: Axes, sentences: Sequence[str], width: float) -> None:
    """Small print below the axes, wrapped to `width` inches."""
    letters = max(40, int(width / 0.054))
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, letters)]
    axes.set_xlabel("\n".join(lines), loc="left", fontsize=7.5, color=GREY)


MOST_ROWS, MOST_KEYS = 60, 60
CELL_WIDTH, CELL_HEIGHT, NARROWEST = 0.34, 0.3, 4.5
"""inches: of a cell at least, and of all of them."""
LEAST_WIDTH = 0.03
"""Of what is filled of a cell, so that it can be seen."""
BY_GROUPS = (
    "By groups of agents: single rows and columns would be too small. A cell is filled as far as the columns "
    "of its owners are seen; its colour is the greatest noise on them. Where a group looks at itself, the cell "
    "tells of its other members: what an agent sees of itself is left out."
)


@dataclass(frozen=True)
class GroupCells:
    """How much the agents of each group see of each quantity of other groups.

    Attributes:
        observers: (name of the group, number of its agents), a row each.
        critic: name of the last row, which is set apart; None where it is not drawn.
        quantities: (owners, `Charge.soc`), a column each.
        shares: (observers, owners, quantity) -> (share of the columns seen, greatest noise factor of them).
        marked: (observers, owners, quantity) of what others tell some observer.
        notes: sentences below the picture.
    """

    observers: Sequence[tuple[str, int]]
    critic: str | None
    quantities: Sequence[tuple[str, str]]
    shares: Mapping[tuple[str, str, str], tuple[float, float]]
    marked: Sequence[tuple[str, str, str]]
    notes: Sequence[str]


def percent(part: float) -> str:
    """A share as it is written into a cell: `5%`, never 0% or 100% for what is only nearly so."""
    return "<1%" if part < 0.005 else f"{min(99, round(100 * part))}%"


class GroupDrawing:
    """Groups of observers x quantities of groups; cells are filled by the share seen. `width`, `height`: inches."""

    def __init__(self, cells: GroupCells) -> None:
        self.cells = cells
        self.rows, self.keys = cells.observers[:MOST_ROWS], cells.quantities[:MOST_KEYS]
        self.lines = len(self.rows) + (1.6 if cells.critic is not None else 0.0)
        self.cell = max(CELL_WIDTH, NARROWEST / max(1, len(self.keys)))
        self.width, self.height = self.cell * len(self.keys), max(0.5, CELL_HEIGHT * self.lines)

    def draw(self, axes: Axes) -> None:
        """Everything on these axes."""
        palette = Palette(np.array([factor for _, factor in self.cells.shares.values()]))
        tops = {group: float(y) for y, (group, _) in enumerate(self.rows)}
        if self.cells.critic is not None:
            tops[self.cells.critic] = len(self.rows) + 0.6
        for group, y in tops.items():
            for x, key in enumerate(self.keys):
                self._cell(axes, x, y, self.cells.shares.get((group, *key)), palette)
        names = [f"{group} ({count})" if count > 1 else group for group, count in self.rows]
        frame_rows(axes, [y + 0.5 for y in tops.values()], [*names, *critic_label(self.cells.critic)], self.lines)
        axes.set_xlim(0, len(self.keys))
        self._name(axes)
        palette.legend(axes, palette.dots(axes, self._dots()), False)
        self._note(axes)

    def _dots(self) -> list[tuple[float, float]]:
        """Centres of the dots in the cells that are marked."""
        rows = {group: y for y, (group, _) in enumerate(self.rows)}
        keys = {key: x for x, key in enumerate(self.keys)}
        return [
            (keys[owners, name] + 0.5, rows[group] + 0.85)
            for group, owners, name in self.cells.marked
            if (owners, name) in keys and group in rows
        ]

    def _cell(self, axes: Axes, x: int, y: float, share: tuple[float, float] | None, palette: Palette) -> None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=HIDDEN_COLOUR, edgecolor="white", linewidth=0.8))
        if share is None:
            return
        part, colour = share[0], palette.of(share[1])
        filled = max(LEAST_WIDTH, part)
        axes.add_patch(Rectangle((x, y), filled, 1, facecolor=colour, edgecolor="white", linewidth=0.8 * (part == 1)))
        if part < 1.0:
            axes.text(x + 0.5, y + 0.5, percent(part), ha="center", va="center", fontsize=6.5, color=INK)

    def _name(self, axes: Axes) -> None:
        owners = [owner for owner, _ in self.keys]
        centres = np.arange(len(self.keys)) + 0.5
        flat = all(LETTER * len(name) < self.cell for _, name in self.keys)
        axes.set_xticks(
            centres, [name for _, name in self.keys], rotation=0 if flat else 90, fontsize=7.5, parse_math=False
        )
        starts = [i for i, owner in enumerate(owners) if i == 0 or owners[i - 1] != owner]
        blocks = list(zip(starts, [*starts[1:], len(owners)], strict=True))
        self.letters = name_blocks(axes, [(owners[a], a, b) for a, b in blocks], self.cell)
        for a, _ in blocks[1:]:
            axes.axvline(a, color="white", linewidth=3.0)

    def _note(self, axes: Axes) -> None:
        notes = [BY_GROUPS]
        rows, keys = len(self.cells.observers) - len(self.rows), len(self.cells.quantities) - len(self.keys)
        if rows or keys:
            notes.append(f"{rows} more groups of observers and {keys} more quantities are not drawn.")
        note(axes, [*notes, *self.cells.notes], self.width)


Drawing = CellDrawing | GroupDrawing


def figure_of(drawing: Drawing, ax: Axes | None, title: str | None) -> Figure:
    """The figure of a drawing: its own, or that of the axes `ax`. Raises ConfigError where matplotlib is missing."""
    with picture_style():
        from matplotlib.axes import Axes

        if not isinstance(ax, Axes | None):
            raise ConfigError(f"plot(ax={ax!r:.60}): must be axes of matplotlib, or None for a new figure")
        if not isinstance(title, str | None):
            raise ConfigError(f"plot(title={title!r:.60}): must be a text, or None")
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
