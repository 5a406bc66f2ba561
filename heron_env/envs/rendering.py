"""Pictures of an environment without any graphics library: text, a map of coloured cells, a table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.notebook import counted, html_table

if TYPE_CHECKING:
    from heron_env.core.feature import FeatureProvider
    from heron_env.envs.simulation import Simulation

CELL = 16
MOST_ROWS = 40
"""Agents that a notebook shows."""
INDENT = "\u2003"
GROUND = (245, 245, 245)
LOW, HIGH = np.array([68, 1, 84]), np.array([253, 231, 37])
"""Both ends of the colour scale: distinguishable for colour-blind readers, and in grey."""


def render_text(hierarchy: Hierarchy, layout: Layout, truth: NDArray[np.float64], time: float) -> str:
    """The tree with all values, one agent a line."""
    lines = [f"t = {time:g} s"]
    for row in layout.rows:
        depth = hierarchy.depth(hierarchy.index.get(row.owner_id, -1))
        shown = [
            f"{layout.names[i]}={truth[i]:.4g}" for i in range(row.offset, row.offset + row.width) if layout.observed[i]
        ]
        if shown or row.owner_id in hierarchy.index:
            lines.append(f"{'  ' * depth}{row.owner_id}  {'  '.join(shown)}".rstrip())
    return "\n".join(lines)


def render_image(layout: Layout, truth: NDArray[np.float64]) -> NDArray[np.uint8]:
    """uint8 `[height, width, 3]`: a row for each owner, a cell for each observed bounded quantity; dark is low."""
    rows = [
        [
            i
            for i in range(r.offset, r.offset + r.width)
            if layout.observed[i] and np.isfinite(layout.high[i] - layout.low[i])
        ]
        for r in layout.rows
    ]
    rows = [columns for columns in rows if columns] or [[]]
    width = max(1, *(len(columns) for columns in rows))
    image = np.full((CELL * len(rows), CELL * width, 3), GROUND, dtype=np.uint8)
    for y, columns in enumerate(rows):
        for x, i in enumerate(columns):
            share = (truth[i] - layout.low[i]) / max(layout.high[i] - layout.low[i], 1e-300)
            cell = image[y * CELL + 1 : (y + 1) * CELL - 1, x * CELL + 1 : (x + 1) * CELL - 1]
            cell[...] = (LOW + np.clip(share, 0, 1) * (HIGH - LOW)).astype(np.uint8)
    return image


class Pictured:
    """How an environment shows itself: rendered, in one line, and in a notebook."""

    hierarchy: Hierarchy
    simulation: Simulation
    possible_agents: list[str]
    dt: float
    physics_substeps: int
    global_features: tuple[type[FeatureProvider], ...]
    render_mode: str | None
    action_space: Any
    observation_space: Any

    def render(self) -> Any:
        """Text for "ansi", uint8 `[height, width, 3]` for "rgb_array", None without a render mode."""
        if self.render_mode == "ansi":
            return render_text(self.hierarchy, self.simulation.layout, self.simulation.truth, self.simulation.time)
        return render_image(self.simulation.layout, self.simulation.truth) if self.render_mode == "rgb_array" else None

    def __repr__(self) -> str:
        """One line: `<StorageEnv: 7 agents, 2 decide; dt 60 s in 60 substeps; 29 state columns>`."""
        agents, deciding = counted(len(self.hierarchy), "agent"), len(self.possible_agents)
        substeps = "" if self.physics_substeps == 1 else f" in {self.physics_substeps} substeps"
        size = counted(self.simulation.layout.size, "state column")
        return f"<{type(self).__name__}: {agents}, {deciding} decide; dt {self.dt:g} s{substeps}; {size}>"

    def _repr_html_(self) -> str:
        """The tree of agents, for notebooks."""
        tree = self.hierarchy
        rows = [self._row_of(rank) for rank in range(min(len(tree), MOST_ROWS))]
        more = "" if len(tree) <= MOST_ROWS else f"and {len(tree) - MOST_ROWS} more agents. "
        shared = ", ".join(feature.feature_name for feature in self.global_features)
        note = f"{more}{repr(self)[1:-1]}.{f' Global: {shared}.' if shared else ''}"
        return html_table(("agent", "class", "features", "decides", "observes"), rows, words=4, note=note)

    def _row_of(self, rank: int) -> list[str]:
        tree = self.hierarchy
        agent, row = tree.ids[rank], self.simulation.layout.rows[rank]
        decides = agent in self.possible_agents
        return [
            f"{INDENT * tree.depth(rank)}{agent}",
            type(tree.agents[rank]).__name__,
            ", ".join(feature.feature_name for feature in row.features),
            str(self.action_space(agent)) if decides else "",
            counted(self.observation_space(agent).shape[0], "number") if decides else "",
        ]
