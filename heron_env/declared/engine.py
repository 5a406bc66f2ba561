"""Engines: what moves a world that is declared in YAML. They are written in Python once and registered by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy
from heron_env.core.world import Columns
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.errors import ConfigError, DeclarationError, Problem, did_you_mean
from heron_env.files.models import ConfigModel
from heron_env.observability.config import remedy
from heron_env.registry import engine

if TYPE_CHECKING:
    from heron_env.declared.configuration import SimulationConfig
    from heron_env.envs.base import HeronEnv

OF_ENGINES = (("engine",), ("agents",), ("state_variables",))
"""Sections of a configuration in which an engine may find fault."""


@dataclass(slots=True, frozen=True)
class Scene:
    """The world as an engine sees it; whatever it writes is clipped to the declared bounds afterwards.

    Attributes:
        agents: the agents' variables by name, float64 views `[n]` in the order of the configuration.
        world: the global variables by name, float64 views `[1]`.
        actions: set-points in force, float64 `[n]` in [-1, 1].
        income: what `advance` adds to it is the reward of the step, float64 view `[n]`.
        active: bool `[n]`; False for agents that have ended.
        step, time: control step, and nominal time in s.
        draw: (name, shape) -> uniforms in [0, 1) keyed by seed, episode, step and name.

    An engine with `batched = True` gets all environments of a batch at once: `[B, n]`, `[B, 1]`, draws `[B, *shape]`.
    """

    agents: Columns
    world: Columns
    actions: NDArray[np.float64]
    income: NDArray[np.float64]
    active: NDArray[np.bool_]
    step: int
    time: float
    draw: Callable[..., NDArray[np.float64]]


class Engine(ConfigModel):
    """Base of all engines. A subclass's fields are its parameters, checked as all configuration is.

    Class attributes: `agent_variables` and `global_variables`, the numbers that it needs; `meaning`, what an action
    means; `batched`, can `begin`, `advance` and `finish` take many environments at once?
    """

    agent_variables: ClassVar[tuple[str, ...]] = ()
    global_variables: ClassVar[tuple[str, ...]] = ()
    meaning: ClassVar[str] = ""
    batched: ClassVar[bool] = False

    def require(self, config: SimulationConfig) -> None:
        """Raise DeclarationError unless the world has the variables that this engine moves, and policies it offers."""
        problems = []
        offered = list(self.policies(len(config.agents)))
        for index, agent in enumerate(config.agents):
            if agent.policy is not None and ":" not in agent.policy and agent.policy not in offered:
                near = did_you_mean(agent.policy, offered)
                words = f"policy of {agent.name!r}: Unknown policy {agent.policy!r}; the engine offers {offered}.{near}"
                problems.append(Problem(("agents", index, "policy"), words))
        for section, needed in (("agent_vars", self.agent_variables), ("global_vars", self.global_variables)):
            declared = getattr(config.state_variables, section)
            for name in needed:
                needs = f"the engine {config.engine.type!r} needs"
                if name not in declared:
                    words = f"{needs} {name!r}; declare it.{remedy(name, declared, declared)}"
                    problems.append(Problem(("state_variables", section), words))
                elif declared[name].type not in ("float", "int"):
                    words = f"{needs} a number, but it is {declared[name].type}; declare it as float"
                    problems.append(Problem(("state_variables", section, name), words))
        if problems:
            raise DeclarationError(problems)

    def begin(self, scene: Scene) -> None:
        """At reset: whatever is drawn anew each episode."""

    def advance(self, scene: Scene, dt: float) -> None:
        """Each substep of `dt` s: what moves, and what it earns."""

    def finish(self, scene: Scene) -> None:
        """Once a step, after rewards and ends: what the world does by itself."""

    def policies(self, agents: int) -> Mapping[str, AnyPolicy]:
        """What `agents: [{policy: ...}]` may name, new objects each time, for a world of so many agents."""
        return {}

    def kpis(self, scene: Scene) -> dict[str, float]:
        """Figures of the episode."""
        return {}

    def benchmark(self, env: HeronEnv) -> Benchmark:
        """What the environment is judged by."""
        return Benchmark()

    def drawing(self, axes: Any, names: Sequence[str]) -> Any:
        """An object whose `show(world, observed)` draws a moment and returns it; None: every agent's quantities."""
        return None

    def training_defaults(self) -> TrainingDefaults:
        """How to train with this engine."""
        return TrainingDefaults()


def built(config: SimulationConfig) -> Engine:
    """The engine of a configuration.

    Raises DeclarationError: not registered, wrong parameters, missing variables, policies that it does not offer.
    """
    try:
        kind: type[Engine] = engine(config.engine.type)
    except ConfigError as error:
        raise DeclarationError([Problem(("engine", "type"), str(error))]) from error
    try:
        made = kind(**config.engine.params)
    except DeclarationError as error:
        raise DeclarationError(p._replace(path=("engine", "params", *p.path)) for p in error.problems) from None
    made.require(config)
    return made
