"""The picture of a large visibility matrix, by groups of agents: how much of each quantity is seen, how clearly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron_env.observability.picture import HIDDEN_COLOUR, INK, LETTER, Palette, note
from heron_env.observability.shares import ITSELF, Share, by_stem, shares
from heron_env.observability.visibility import VisibilityMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS, MOST_KEYS = 60, 60
CELL_WIDTH, CELL_HEIGHT = 0.24, 0.3
"""inches."""


class GroupDrawing:
    """Groups of observers x quantities of groups of owners; a cell is filled as far as its columns are seen.

    Attributes:
        width, height: what the axes need, inches; letters around them not counted.
    """

    def __init__(self, matrix: VisibilityMatrix, observers: Sequence[str] | None = None) -> None:
        self.matrix = matrix
        ids = matrix.hierarchy.ids if observers is None else [name for name in observers if name != matrix.critic]
        groups = by_stem(matrix.hierarchy.ids)
        kept = dict.fromkeys(ids)
        self.sizes = {group: len(agents) for group, agents in groups.items()}
        told = shares(matrix, groups)
        wanted = {group for group, agents in groups.items() if any(agent in kept for agent in agents)}
        rows = [group for group in groups if group in wanted]
        keys = list(dict.fromkeys((share.owners, share.name) for share in told if share.observers == matrix.critic))
        order = {group: i for i, group in enumerate(groups)}
        keys.sort(key=lambda key: order.get(key[0], len(order)))
        self.left_out = max(0, len(rows) - MOST_ROWS), max(0, len(keys) - MOST_KEYS)
        self.keys, self.rows = keys[:MOST_KEYS], rows[:MOST_ROWS]
        self.has_critic = observers is None or matrix.critic in observers
        self.cells = self._cells(told)
        self.lines = len(self.rows) + (1.6 if self.has_critic else 0.0)
        self.width, self.height = CELL_WIDTH * len(self.keys), CELL_HEIGHT * self.lines

    def _cells(self, told: Sequence[Share]) -> dict[tuple[str, str, str], Share]:
        """By observers, owners and quantity; of a group of one what it sees of itself."""
        found = {}
        for share in told:
            owners = share.observers if share.owners == ITSELF else share.owners
            if share.owners != ITSELF or self.sizes[share.observers] == 1:
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
        palette.legend(axes, [], False)
        self._note(axes)

    def _cell(self, axes: Axes, x: int, y: float, share: Share | None, palette: Palette) -> None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=HIDDEN_COLOUR, edgecolor="white", linewidth=0.8))
        if share is not None and share.seen:
            part = max(0.12, share.seen / share.of)
            axes.add_patch(
                Rectangle(
                    (x, y + 1 - part), 1, part, facecolor=palette.of(share.high), edgecolor="white", linewidth=0.8
                )
            )

    def _frame(self, axes: Axes, heights: dict[str, float]) -> None:
        names = [f"{g} ({self.sizes[g]})" if self.sizes.get(g, 1) > 1 else g for g in heights]
        names = [f"{g}: state()" if g == self.matrix.critic else g for g in names]
        axes.set_yticks([y + 0.5 for y in heights.values()], names, fontsize=8.5)
        axes.set_xlim(0, len(self.keys))
        axes.set_ylim(self.lines, 0)
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)

    def _name(self, axes: Axes) -> None:
        owners = [owner for owner, _ in self.keys]
        centres = np.arange(len(self.keys)) + 0.5
        axes.set_xticks(centres, [name for _, name in self.keys], rotation=90, fontsize=7.5)
        starts = [i for i, owner in enumerate(owners) if i == 0 or owners[i - 1] != owner]
        blocks = list(zip(starts, [*starts[1:], len(owners)], strict=True))
        flat = all(LETTER * len(owners[a]) + 0.1 <= (b - a) * CELL_WIDTH for a, b in blocks)
        for a, b in blocks:
            axes.annotate(
                owners[a], ((a + b) / 2.0, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 4),
                textcoords="offset points", ha="center", va="bottom", fontsize=8.5, rotation=0 if flat else 90,
                annotation_clip=False,
            )  # fmt: skip
            if a:
                axes.axvline(a, color=INK, linewidth=0.8)

    def _note(self, axes: Axes) -> None:
        told = [
            "Drawn by groups, because single rows and columns would be too small. A cell is filled as far as the "
            "columns of its owners are seen; its colour is the greatest noise among them. Where a group looks at "
            "itself, the cell tells of the other members: what an agent sees of itself is left out."
        ]
        rows, keys = self.left_out
        if rows or keys:
            told.append(f"{rows} more groups of observers and {keys} more quantities are not drawn.")
        note(axes, told, max(self.width, 5.0))
