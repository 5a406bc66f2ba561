"""The picture of a large visibility matrix, by groups of agents: how much of each quantity is seen, how clearly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heron_env.pictures.matrix import LETTER, critic_label, frame_rows, name_blocks, note
from heron_env.pictures.palette import HIDDEN_COLOUR, INK, Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    """Groups of observers x quantities of groups of owners; a cell is filled as far as its columns are seen.

    Attributes:
        width, height: what the axes need, inches; letters around them not counted.
    """

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
