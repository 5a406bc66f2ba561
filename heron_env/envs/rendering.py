"""How an environment shows itself: rendered, in one line, and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.notebook import counted, html_table

if TYPE_CHECKING:
    from heron_env.core.feature import FeatureProvider
    from heron_env.envs.simulation import Simulation

MOST_ROWS = 40
"""Agents that a notebook shows."""
INDENT = "\u2003"


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
        from heron_env.pictures.truth import truth_image, truth_text

        now = self.simulation
        if self.render_mode == "ansi":
            return truth_text(self.hierarchy, now.layout, now.truth, now.time)
        return truth_image(now.layout, now.truth) if self.render_mode == "rgb_array" else None

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
