"""The part of HeronEnv that says who sees what: spaces, names, the visibility matrix, the central critic's state."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.envs.simulation import Simulation
from heron_env.errors import ConfigError, DeclarationError
from heron_env.given import is_one_of
from heron_env.observability.plan import UNBOUNDED

if TYPE_CHECKING:
    from heron_env.observability.config import ObservabilityConfig
    from heron_env.observability.visibility import VisibilityMatrix

Observability = Union["ObservabilityConfig", Mapping[str, Any], str, "PathLike[str]", None]


def as_observability(given: Observability) -> ObservabilityConfig | None:
    """The configuration itself, from its fields, or from a YAML file. Raises ConfigError."""
    if given is None:
        return None
    from heron_env.observability.config import ObservabilityConfig, load_observability

    if isinstance(given, ObservabilityConfig):
        return given
    if isinstance(given, Mapping):
        return ObservabilityConfig.model_validate(given)
    if isinstance(given, str | PathLike):
        return load_observability(Path(given))
    raise ConfigError(
        f"observability={given!r}: give an ObservabilityConfig, a mapping of its fields, or the path of a YAML file"
    )


def located(error: DeclarationError, given: Observability) -> DeclarationError:
    """The same error, with file and line of each problem where the configuration came from a file."""
    if not isinstance(given, str | PathLike):
        return error
    from heron_env.files.yaml_file import YamlFile
    from heron_env.observability.config import section_of

    file = YamlFile.read(Path(given))
    return file.located(error, section_of(file))


class Seeing:
    """All of it derives from the plan; nothing here changes after the environment is built."""

    hierarchy: Hierarchy
    simulation: Simulation
    observation_spaces: dict[str, Any]
    _watchers_spaces: dict[int, spaces.Box]

    def observation_space(self, agent: str) -> spaces.Box:
        """float32 Box; the same object each time. Raises UnknownAgent."""
        if is_one_of(agent, self.observation_spaces):
            return cast(spaces.Box, self.observation_spaces[agent])
        rank = self.hierarchy.rank(agent, "observation_space() got")
        if rank not in self._watchers_spaces:
            self._watchers_spaces[rank] = self._observation_box(rank)
        return self._watchers_spaces[rank]

    def _observation_box(self, rank: int) -> spaces.Box:
        low, high = self.simulation.plan.bounds(rank)
        return spaces.Box(low, high, dtype=np.float32)

    def observation_names(self, agent: str) -> list[str]:
        """Names of the observation's elements: `Charge.soc`, `battery_2.Charge.soc`, `global.Price.value`."""
        return self.simulation.plan.names(self.hierarchy.rank(agent, "observation_names() got"))

    def observation_units(self, agent: str) -> list[str]:
        """Units of the observation's elements, "1" for none."""
        return self.simulation.plan.units(self.hierarchy.rank(agent, "observation_units() got"))

    def visibility_matrix(self) -> VisibilityMatrix:
        """Who sees what, how clearly and why: observers (the critic last) x columns, with a picture."""
        from heron_env.observability.visibility import VisibilityMatrix

        return VisibilityMatrix(self.simulation.plan, self.simulation.exchange.edges)

    def _describe_state(self) -> None:
        """Names and space of what `state()` gives."""
        layout = self.simulation.layout
        self.state_names = list(layout.full_names)
        low, high = np.maximum(layout.low, -UNBOUNDED), np.minimum(layout.high, UNBOUNDED)
        self.state_space = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def state(self) -> NDArray[np.float32]:
        """The whole truth, float32 `[state_space.shape]`: for a central critic, never for actors."""
        return np.clip(self.simulation.truth, -UNBOUNDED, UNBOUNDED).astype(np.float32)
