"""The state of an environment without any graphics library: as text, and as a map of coloured cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout

CELL = 16
GROUND = (245, 245, 245)
LOW, HIGH = np.array([68, 1, 84]), np.array([253, 231, 37])
"""Both ends of the colour scale: distinguishable for colour-blind readers, and in grey."""


def truth_text(hierarchy: Hierarchy, layout: Layout, truth: NDArray[np.float64], time: float) -> str:
    """The tree with all values, one agent a line."""
    lines = [f"t = {time:g} s"]
    for row in layout.rows:
        depth = hierarchy.depth(hierarchy.index.get(row.owner_id, -1))
        values = [
            f"{layout.names[i]}={truth[i]:.4g}" for i in range(row.offset, row.offset + row.width) if layout.observed[i]
        ]
        if values or row.owner_id in hierarchy.index:
            lines.append(f"{'  ' * depth}{row.owner_id}  {'  '.join(values)}".rstrip())
    return "\n".join(lines)


def truth_image(layout: Layout, truth: NDArray[np.float64]) -> NDArray[np.uint8]:
    """uint8 `[height, width, 3]`: a row for each owner, a cell for each observed bounded quantity; dark is low."""
    drawn = layout.observed & np.isfinite(layout.high - layout.low)
    rows = [np.flatnonzero(drawn[row.slice]) + row.offset for row in layout.rows]
    rows = [columns for columns in rows if len(columns)] or [np.zeros(0, dtype=np.int64)]
    width = max(1, *(len(columns) for columns in rows))
    image = np.full((CELL * len(rows), CELL * width, 3), GROUND, dtype=np.uint8)
    for y, columns in enumerate(rows):
        for x, i in enumerate(columns.tolist()):
            share = (truth[i] - layout.low[i]) / max(layout.high[i] - layout.low[i], 1e-300)
            cell = image[y * CELL + 1 : (y + 1) * CELL - 1, x * CELL + 1 : (x + 1) * CELL - 1]
            cell[...] = (LOW + np.clip(share, 0, 1) * (HIGH - LOW)).astype(np.uint8)
    return image
