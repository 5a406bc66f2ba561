"""The picture of a large visibility matrix, by groups of agents: how much of each quantity is seen, how clearly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron_env.core.hierarchy import name_stem
from heron_env.observability.group_views import ITSELF, Share, by_stem, label, shares
from heron_env.observability.palette import HIDDEN_COLOUR, INK, Palette
from heron_env.observability.picture import LETTER, known_ahead, name_blocks, note
from heron_env.observability.telling import exchanged, told_cells
from heron_env.observability.visibility import VisibilityMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS, MOST_KEYS = 60, 60
CELL_WIDTH, CELL_HEIGHT, NARROWEST = 0.34, 0.3, 4.5
"""inches: of a cell at least, and of all of them."""
LEAST_WIDTH = 0.03
"""Of what is filled of a cell, so that it can be seen."""


def percent(part: float) -> str:
    """A share as it is written into a cell: `5%`, never 0% or 100% for what is only nearly so."""
    return "<1%" if part < 0.005 else f"{min(99, round(100 * part))}%"


class GroupDrawing:
    """Groups of observers x quantities of groups of owners; a cell is filled as far as its columns are seen.

    Attributes:
        width, height: what the axes need, inches; letters around them not counted.
    """

    def __init__(self, matrix: VisibilityMatrix, observers: Sequence[str] | None = None) -> None:
        self.matrix = matrix
        groups = by_stem(matrix.hierarchy.ids)
        agents = None if observers is None else {name: [name] for name in observers if name != matrix.critic}
        self.members = {
            label(group, matrix.critic): ids for group, ids in (groups if agents is None else agents).items()
        }
        self.alone = {ids[0] for ids in groups.values() if len(ids) == 1}
        told = shares(matrix, groups, agents)
        keys = list(dict.fromkeys((share.owners, share.name) for share in told if share.observers == matrix.critic))
        order = {label(group, matrix.critic): i for i, group in enumerate(groups)}
        keys.sort(key=lambda key: order.get(key[0], len(order)))
        self.left_out = max(0, len(self.members) - MOST_ROWS), max(0, len(keys) - MOST_KEYS)
        self.keys, self.rows = keys[:MOST_KEYS], list(self.members)[:MOST_ROWS]
        self.has_critic = observers is None or matrix.critic in observers
        self.cells = self._cells(told)
        self.lines = len(self.rows) + (1.6 if self.has_critic else 0.0)
        self.cell = max(CELL_WIDTH, NARROWEST / max(1, len(self.keys)))
        self.width, self.height = self.cell * len(self.keys), max(0.5, CELL_HEIGHT * self.lines)

    def _cells(self, told: Sequence[Share]) -> dict[tuple[str, str, str], Share]:
        """By observers, owners and quantity; what an agent sees of itself only where its group has no other member."""
        found = {}
        for share in told:
            if share.owners != ITSELF:
                found[share.observers, share.owners, share.name] = share
            elif self.members[share.observers][0] in self.alone:
                owners = label(name_stem(self.members[share.observers][0]), self.matrix.critic)
                found[share.observers, owners, share.name] = share
        return found

    def draw(self, axes: Axes) -> None:
        """Everything on these axes."""
        palette = Palette(np.array([share.high for share in self.cells.values()]))
        heights = {group: float(y) for y, group in enumerate(self.rows)}
        if self.has_critic:
            heights[self.matrix.critic] = len(self.rows) + 0.6
        for group, y in heights.items():
            for x, (owners, name) in enumerate(self.keys):
                self._cell(axes, x, y, self.cells.get((group, owners, name)), palette)
        self._frame(axes, heights)
        self._name(axes)
        palette.legend(axes, palette.dots(axes, self.told()), False)
        self._note(axes)

    def told(self) -> list[tuple[float, float]]:
        """Centres of the cells of which some observer is told by some other owner."""
        names = self.matrix.layout.names
        ids, critic, owner_of = self.matrix.hierarchy.ids, self.matrix.critic, self.matrix.layout.owner_of
        group_of = {agent: group for group, agents in self.members.items() for agent in agents}
        rows = {group: y for y, group in enumerate(self.rows)}
        keys = {key: x for x, key in enumerate(self.keys)}
        found: dict[tuple[float, float], None] = {}
        for rank, column in told_cells(self.matrix.tellings):
            owners = label(name_stem(ids[owner_of[column]]), critic)
            key, group = (owners, names[column].partition("[")[0]), group_of.get(ids[rank])
            if key in keys and group in rows:
                found[keys[key] + 0.5, rows[group] + 0.85] = None
        return list(found)

    def _cell(self, axes: Axes, x: int, y: float, share: Share | None, palette: Palette) -> None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=HIDDEN_COLOUR, edgecolor="white", linewidth=0.8))
        if share is None or not share.seen:
            return
        part, colour = share.seen / share.of, palette.of(share.high)
        filled = max(LEAST_WIDTH, part)
        axes.add_patch(Rectangle((x, y), filled, 1, facecolor=colour, edgecolor="white", linewidth=0.8 * (part == 1)))
        if part < 1.0:
            axes.text(x + 0.5, y + 0.5, percent(part), ha="center", va="center", fontsize=6.5, color=INK)

    def _frame(self, axes: Axes, heights: dict[str, float]) -> None:
        names = [f"{g} ({len(ids)})" if len(ids := self.members[g]) > 1 else g for g in self.rows]
        names += [f"{self.matrix.critic}: state()"] if self.has_critic else []
        axes.set_yticks([y + 0.5 for y in heights.values()], names, fontsize=8.5, parse_math=False)
        axes.set_xlim(0, len(self.keys))
        axes.set_ylim(self.lines, 0)
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)

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
        told = [
            "By groups of agents: single rows and columns would be too small. A cell is filled as far as the columns "
            "of its owners are seen; its colour is the greatest noise on them. Where a group looks at itself, the cell "
            "tells of its other members: what an agent sees of itself is left out."
        ]
        rows, keys = self.left_out
        if rows or keys:
            told.append(f"{rows} more groups of observers and {keys} more quantities are not drawn.")
        told += exchanged(self.matrix.tellings, self.matrix.layout)
        note(axes, [*told, *known_ahead(self.matrix.layout)], self.width)
