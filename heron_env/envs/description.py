"""What an environment says of itself: how it is judged and trained on, what it was built from, and how it looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.policy import Policies
from heron_env.envs.hooks import require_parameters
from heron_env.pictures.notebook import counted, html_table

if TYPE_CHECKING:
    from heron_env.core.feature import FeatureProvider
    from heron_env.envs.simulation import Simulation
    from heron_env.scheduling.disturbances import Disturbance

MOST_ROWS = 40
"""Agents that a notebook shows."""
INDENT = "\u2003"
DESCRIPTIONS = (
    "kpis",
    "training_defaults",
    "benchmark",
    "data_files",
    "local_time",
    "scene",
    "disturbance_sets",
)
"""Everything of `Described` that an environment may override, but for its looks."""


@dataclass(frozen=True)
class TrainingDefaults:
    """How an environment is best trained on; who trains can say otherwise.

    Attributes:
        options: of `make()` while training, say a coarser control step.
        base: name of the baseline that the trained policy corrects; None: it decides alone.
        hyperparameters: of PPO with these options, those that should be other than `heron_env.lab.learning`'s own.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    base: str | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """What an environment offers to be judged by; any part may be missing.

    Attributes:
        baselines: seed -> {name: policies}, policies as `run_synchronous` takes them.
        tuned: (name, constants by name, seed) -> the policies of that baseline with these constants instead of its own.
        strongest: name of the strongest baseline.
        cases: (split, number, repeats) -> held-out cases, [(options of `make()`, seed)].
        optima: () -> [(a case's options, its seed, the best possible team return)].
        neutral: options of `make()` that leave the optima as they are.
        at_reset: options of `make()` in cases that `reset(options=)` takes as well, for the same episode; baselines do
            not depend on them. Cases that differ in nothing else can be run side by side.
        unit: of team returns, for axes and sentences.
    """

    baselines: Callable[[int], Mapping[str, Policies]] | None = None
    tuned: Callable[[str, Mapping[str, float], int], Policies] | None = None
    strongest: str | None = None
    cases: Callable[[str, int, int], list[tuple[dict[str, Any], int]]] | None = None
    optima: Callable[[], Sequence[tuple[Mapping[str, Any], int, float]]] | None = None
    neutral: frozenset[str] = frozenset()
    at_reset: frozenset[str] = frozenset()
    unit: str = ""


class Described:
    """How an environment is judged and trained on, what it was built from, and how it looks: override what there is."""

    hierarchy: Hierarchy
    simulation: Simulation
    possible_agents: list[str]
    dt: float
    physics_substeps: int
    global_features: tuple[type[FeatureProvider], ...]
    render_mode: str | None
    action_space: Any
    observation_space: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Can what the class overrides be called as it is here?"""
        super().__init_subclass__(**kwargs)
        for name in DESCRIPTIONS:
            require_parameters(cls, name, Described)

    def kpis(self) -> dict[str, float]:
        """Figures of the episode so far, read from the truth."""
        return {}

    def benchmark(self) -> Benchmark:
        """Baselines, held-out cases and optima; where there are none, chance, no-ops and plain seeds serve."""
        return Benchmark()

    def training_defaults(self) -> TrainingDefaults:
        """How to train here."""
        return TrainingDefaults()

    def data_files(self) -> Mapping[str, str]:
        """SHA-256 by name of each file that this environment was built from, for those who run an episode again."""
        return {}

    def local_time(self, time: float) -> str:
        """What a clock on the wall shows `time` s after the episode began; "" where there is none."""
        return ""

    def scene(self, agent: str) -> Mapping[str, Any]:
        """What the page of a person's seat draws: nothing but what this agent may know, and where its vector has it.

        `{"kind": "table"}`: numbers by name, a field for each part of the action. `{"kind": "graph"}`: as
        GraphColoring's; see `docs/external_agents.md`.
        """
        return {"kind": "table", "title": agent}

    def disturbance_sets(self) -> Mapping[str, Callable[[int], list[Disturbance]]]:
        """Sets that a sweep or a trace can ask for, by name: seed -> the disturbances of one episode.

        One called "all" is what `heron sweep --preset faults` asks for.
        """
        return {}

    def render(self) -> Any:
        """Text for "ansi", uint8 `[height, width, 3]` for "rgb_array", None without a render mode."""
        from heron_env.pictures.notebook import truth_image, truth_text

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
