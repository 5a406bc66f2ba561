"""The tables: where each agent's columns, action, children and references lie, as the arrays that generated code reads.

Positions are breadth first, so children are neighbours and their rewards a slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.engine.binding import row_of_parent, starts_of_children
from heron_env.engine.source import (
    ACTION,
    ACTION_END,
    CHILD,
    CHILDREN,
    INFO,
    KIND,
    MASK,
    MASK_END,
    OFFSET,
    REFERENCES,
    Kind,
    Source,
)

Ints = NDArray[np.uint32]


class AgentTables:
    """One row per agent, by position.

    position: of each rank; rank_of: of each position. tab: uint32 `[n, columns]`. seg: uint32 `[segments, 3]`, kind,
    first and one past the last position of neighbours in one depth, of one kind. gather: uint32, of scattered children.
    global_offset: first column of the global features. scratch: columns that the truth needs behind `layout.size`.
    infos: numbers in all infos (`number_infos`). elements: numbers in all actions; `slices`: the agents' by rank.
    choices: numbers in all masks, likewise.
    """

    def __init__(
        self, source: Source | None, hierarchy: Hierarchy, layout: Layout, specs: Sequence[ActionSpec]
    ) -> None:
        """`source`: None where nothing is generated; `specs`: each rank's action."""
        self._hierarchy, self._layout = hierarchy, layout
        order, depth = [0], {0: 0}
        for rank in order:
            order.extend(hierarchy.children[rank])
            depth.update((child, depth[rank] + 1) for child in hierarchy.children[rank])
        self.rank_of = tuple(order)
        self.position = np.argsort(order)
        kinds, kind_of = ([], [0] * len(order)) if source is None else (source.kinds, source.kind_of)
        self._kinds, self._kind_of = kinds, kind_of
        self.seg = _segments([kind_of[rank] for rank in order], [depth[rank] for rank in order])
        columns = max((kind.columns for kind in kinds), default=REFERENCES)
        self.tab = np.zeros((len(order), columns), dtype=np.uint32)
        ends = np.cumsum([0, *(spec.size for spec in specs)]).tolist()
        self.slices = tuple(slice(a, b) for a, b in pairwise(ends))
        self.elements, self.infos, self.choices, self.scratch = ends[-1], 0, 0, 0
        self.global_offset = layout.rows[-1].offset
        self._gather: list[int] = []
        for rank, kind_number in enumerate(kind_of):
            row, children = self.tab[self.position[rank]], hierarchy.children[rank]
            row[[OFFSET, ACTION, ACTION_END, KIND]] = layout.rows[rank].offset, *ends[rank : rank + 2], kind_number
            row[[CHILD, CHILDREN]] = self.position[children[0]] if children else 0, len(children)
            row[MASK] = self.choices
            masked = hasattr(type(hierarchy.agents[rank]), "action_mask")
            self.choices += int(specs[rank].ncats.sum()) if masked else 0
            row[MASK_END] = self.choices
            if kinds:
                self._refer(row, rank, kinds[kind_number])
        self.gather: Ints = np.asarray(self._gather or [0], dtype=np.uint32)

    def number_infos(self, infos: Mapping[str, tuple[str, ...]]) -> None:
        """Say where each agent's info numbers begin; `infos`: their names by kind."""
        self.infos = 0
        for rank, kind in enumerate(self._kind_of):
            self.tab[self.position[rank], INFO] = self.infos
            self.infos += len(infos.get(self._kinds[kind].name, ())) if self._kinds else 0

    def first_info(self, rank: int) -> int:
        """Where the agent's numbers begin among all infos."""
        return int(self.tab[self.position[rank], INFO])

    def choices_of(self, rank: int) -> slice:
        """The agent's part of all masks."""
        first, end = self.tab[self.position[rank], [MASK, MASK_END]].tolist()
        return slice(first, end)

    def _refer(self, row: Ints, rank: int, kind: Kind) -> None:
        at = REFERENCES
        for role, feature in kind.references:
            where = self._reader(kind, role, feature)
            if role == "parent":
                row[at] = self._of_parent(rank, feature, where)
                at += 1
            else:
                row[at : at + 3] = self._of_children(rank, feature, where)
                at += 3

    def _reader(self, kind: Kind, role: str, feature: type[FeatureProvider]) -> str:
        """The first rule that reads it, for messages."""
        return next(
            f"{kind.cls.__name__}.{name}"
            for name, found in kind.rules.items()
            if any((parameter.role, parameter.feature) == (role, feature) for parameter in found)
        )

    def _of_parent(self, rank: int, feature: type[FeatureProvider], where: str) -> int:
        row = row_of_parent(self._hierarchy, self._layout, rank, feature, where)
        position = row.find(feature)
        assert position is not None
        return row.offsets[position]

    def _of_children(self, rank: int, feature: type[FeatureProvider], where: str) -> tuple[int, int, int]:
        starts, step = starts_of_children(self._hierarchy, self._layout, rank, feature, where)
        if step:
            return starts[0], step, len(starts)
        first = len(self._gather)
        self._gather += [self._layout.size + self.scratch, *starts]
        self.scratch += len(starts) * feature.width
        return first, 0, len(starts)


def _segments(kinds: Sequence[int], depths: Sequence[int]) -> Ints:
    """Runs of neighbours in one depth and of one kind: kind, first position, one past the last."""
    runs: list[list[int]] = []
    for i, place in enumerate(zip(kinds, depths, strict=True)):
        if i and place == (kinds[i - 1], depths[i - 1]):
            runs[-1][2] = i + 1
        else:
            runs.append([place[0], i, i + 1])
    return np.asarray(runs, dtype=np.uint32)
