"""Environments without code: a SimulationConfig (a YAML file) becomes a HeronEnv."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from heron_env.agents.agent import FieldAgent, SystemAgent
from heron_env.core.action import Continuous, Vector
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.layout import GLOBAL
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.declared.configuration import BLOCK, AgentConfig, SimulationConfig
from heron_env.declared.engine import OF_ENGINES, Engine, Scene, built
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.envs.seeing import Values
from heron_env.envs.settings import Observability, read_observability, with_lines
from heron_env.errors import ConfigError, DeclarationError, Problem
from heron_env.files.yaml_file import YamlFile
from heron_env.observability.config import ObservabilityConfig, ObservabilityLevel, VariableVisibilityConfig, resolve
from heron_env.observability.state_models import (
    AGENT_FEATURE,
    GLOBAL_FEATURE,
    VariableDefinition,
    builder,
    create_agent_state_model,
    create_global_state_model,
)
from heron_env.registry import imported
from heron_env.trust import require_trust

Variables = tuple[tuple[str, VariableDefinition], ...]
PYTHON = {"float": float, "int": int, "bool": bool, "categorical": int}


class MadeFeature(type):
    """Class of the classes made here: pickle asks it how to find them again, since no module holds them."""

    declared_variables: Variables


def _remade(cls: MadeFeature) -> tuple[Any, ...]:
    return feature_class, (cls.__name__, cls.declared_variables)


copyreg.pickle(MadeFeature, _remade)


@lru_cache(maxsize=128)
def feature_class(name: str, variables: Variables) -> type[FeatureProvider]:
    """A feature called `name` with one quantity per variable; equal variables: the same class.

    External variables are public; internal ones their owner's, or, in the global feature, nobody's but an insider's.
    """
    hidden = () if name == GLOBAL_FEATURE else ("owner",)
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": f"Declared variables: {', '.join(field for field, _ in variables)}.",
        "__annotations__": {field: PYTHON[variable.type] for field, variable in variables},
        "visibility": ("public",),
    }
    for field, variable in variables:
        tags = hidden if variable.visibility == "internal" else None
        body[field] = quantity(
            default=number_of(variable, variable.checked(variable.default)),
            low=variable.min,
            high=variable.max,
            unit=variable.unit,
            categories=variable.categories,
            visibility=tags,
            foreknown=variable.foreknown,
        )
    made = MadeFeature(name, (FeatureProvider,), body)
    made.declared_variables = variables
    return made  # type: ignore[return-value]


def number_of(variable: VariableDefinition, value: Any) -> Any:
    """A checked value as the features hold it: the index of a category, else the value itself."""
    return variable.categories.index(value) if variable.type == "categorical" else value


def value_of(variable: VariableDefinition, number: Any) -> Any:
    """The other way round: the word of a category."""
    return variable.categories[number] if variable.type == "categorical" else number


SYSTEM = "system_agent"
Given = SimulationConfig | Mapping[str, Any] | str | PathLike[str]


class Conduct(FeatureProvider):
    """Bookkeeping of one agent, seen by nobody: its set-point, the range it is held to, what it earns, its end."""

    action: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)
    low: float = quantity(default=-1.0, low=-1.0, high=1.0, observed=False)
    high: float = quantity(default=1.0, low=-1.0, high=1.0, observed=False)
    rejects: bool = quantity(default=False, observed=False)
    income: float = quantity(default=0.0, per_step=True, observed=False)
    over: bool = quantity(default=False, observed=False)


class DeclaredAgent(FieldAgent):
    """An agent with declared variables; its one action, in [-1, 1], means what the engine says."""

    action = Continuous(-1.0, 1.0)

    def __init__(self, agent_id: str, variables: FeatureProvider, conduct: Conduct, policy: Any = None) -> None:
        self.features = (type(variables), Conduct)  # type: ignore[misc]  # each world's agents have its own
        super().__init__(agent_id, variables, conduct, policy=policy)

    @staticmethod
    @rule(writes=Conduct.action)
    def apply_action(conduct: Conduct, action: Vector) -> float:
        """The set-point: clipped into the limits, or, where they reject, 0 in place of what lies outside."""
        value = action[0]
        if conduct.low <= value <= conduct.high:
            return value
        if conduct.rejects:
            return 0.0
        return min(max(value, conduct.low), conduct.high)

    @staticmethod
    @rule
    def compute_local_reward(conduct: Conduct) -> float:
        """What the engine let it earn in this step."""
        return conduct.income

    @staticmethod
    @rule
    def is_terminated(conduct: Conduct) -> bool:
        """Has the variable of the termination rule left its range?"""
        return conduct.over > 0


class DeclaredEnv(HeronEnv):
    """Environment of a YAML configuration: agents side by side under a system agent that only watches.

    Args:
        config: the world.
        options: of HeronEnv; `max_steps`, `dt` and `observability` replace what the configuration says.
    """

    def __init__(self, config: SimulationConfig, **options: Any) -> None:
        given = options.pop("observability", None)
        if given is not None:
            config = _with_observability(config, given)
        self.config = config
        self.metadata = {**HeronEnv.metadata, "name": config.simulation.name}
        self.engine: Engine = built(config)
        self.batched = self.engine.batched
        variables = config.state_variables
        self._agent_feature = feature_class(AGENT_FEATURE, tuple(variables.agent_vars.items()))
        self.global_features = (feature_class(GLOBAL_FEATURE, tuple(variables.global_vars.items())),)
        if "max_steps" not in options and "termination" not in options:
            options["max_steps"] = config.simulation.max_turns
        options.setdefault("dt", config.simulation.dt)
        n = len(config.agents)
        policies = [_policy(index, agent, self.engine.policies(n)) for index, agent in enumerate(config.agents)]
        agents = [self._agent(agent, policy) for agent, policy in zip(config.agents, policies, strict=True)]
        super().__init__(SystemAgent(SYSTEM, *agents), observability=_qualified(config), **options)
        if config.agent_injection is not None:
            imported("heron_env.injection.agents:attach", BLOCK)(config.agent_injection, self)

    def _agent(self, agent: AgentConfig, policy: Any) -> DeclaredAgent:
        known = self.config.state_variables.agent_vars
        values = {name: number_of(known[name], value) for name, value in self.config.initial_state(agent).items()}
        validator, conduct = self.config.validator, Conduct()
        if validator is not None:
            conduct.low, conduct.high = validator.limits.action
            conduct.rejects = validator.type == "reject"
        return DeclaredAgent(agent.name, self._agent_feature(**values), conduct, policy)

    def _build(self) -> None:
        super()._build()
        self._over = self._termination()
        variables = self.config.state_variables
        self._models = {
            AGENT_FEATURE: create_agent_state_model(variables.agent_vars),
            GLOBAL_FEATURE: create_global_state_model(variables.global_vars),
        }

    def __getstate__(self) -> dict[str, Any]:
        """As in HeronEnv; the state models are made again."""
        state = super().__getstate__()
        del state["declared"]["_models"]
        return state

    def _termination(self) -> tuple[str, str, float, float] | None:
        """Feature, variable and range of the termination rule."""
        rule = self.config.simulation.termination
        if rule is None:
            return None
        feature, _, name = resolve(rule.variable, self.config.state_variables.visibility()).partition(".")
        return feature, name, -np.inf if rule.low is None else rule.low, np.inf if rule.high is None else rule.high

    def _scene(self, world: World) -> Scene:
        columns = world[DeclaredAgent]
        conduct = columns.Conduct
        return Scene(
            agents=columns.Variables,
            world=world.Globals,
            actions=conduct.action,
            income=conduct.income,
            active=conduct.over == 0.0,
            step=world.step,
            time=world.time,
            draw=world.draw,
        )

    def begin(self, world: World) -> None:
        """Begin the engine's episode."""
        self.engine.begin(self._scene(world))

    def advance(self, world: World, dt: float) -> None:
        """Run the engine's physics, then the termination rule."""
        scene = self._scene(world)
        self.engine.advance(scene, dt)
        if self._over is not None:
            feature, name, low, high = self._over
            value = getattr(scene.agents if feature == AGENT_FEATURE else scene.world, name)
            over = world[DeclaredAgent].Conduct.over
            over[...] = np.maximum(over, (value < low) | (value > high))

    def finish(self, world: World) -> None:
        """Set the engine's next exogenous values."""
        self.engine.finish(self._scene(world))

    def kpis(self) -> dict[str, float]:
        """Return the engine's figures."""
        return self.engine.kpis(self._scene(self.world))

    def benchmark(self) -> Benchmark:
        """The engine's."""
        return self.engine.benchmark(self)

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw the engine's picture, or every agent's quantities."""
        drawing = self.engine.drawing(axes, self.possible_agents) if artists is None else artists
        if hasattr(drawing, "show"):
            return drawing.show(world, observed)
        return super().draw_frame(axes, world, observed, artists)

    def training_defaults(self) -> TrainingDefaults:
        """The engine's."""
        return self.engine.training_defaults()

    def close(self) -> None:
        """Finish what external policies record, and close their connections."""
        for agent in self.hierarchy.agents:
            if agent.injected:
                agent.policy.close()

    def state_of(self, owner_id: str, values: Values) -> Any:
        """Make a state model with the variables in `values`; others are absent."""
        if owner_id == SYSTEM:
            return {}
        feature = GLOBAL_FEATURE if owner_id == GLOBAL else AGENT_FEATURE
        model = self._models[feature]
        known = dict(model.__variables__)
        seen = {name: value_of(known[name], value) for name, value in values.get(feature, {}).items()}
        return builder(model, seen)(seen)

    def shown_targets(self, rank: int) -> Sequence[int]:
        """Like HeronEnv's; with a matrix all agents of which the observer is not unaware."""
        matrix, ids = self.simulation.model.plan.matrix, self.hierarchy.ids
        if matrix is None:
            return super().shown_targets(rank)
        unaware = ObservabilityLevel.UNAWARE
        declared = (other for other, name in enumerate(ids) if name != SYSTEM)
        return [o for o in declared if o == rank or matrix.lookup(ids[rank], ids[o]).level is not unaware]


def _qualified(config: SimulationConfig) -> ObservabilityConfig | None:
    """Who sees what, with full names for the variables: `action` shall not be confused with the bookkeeping's."""
    given, known = config.observability, config.state_variables.visibility()
    if given is None:
        return None
    listed = given.variable_visibility
    external, internal = (tuple(resolve(name, known) for name in names) for names in (listed.external, listed.internal))
    return given.model_copy(
        update={"variable_visibility": VariableVisibilityConfig(external=external, internal=internal)}
    )


def _with_observability(config: SimulationConfig, given: Observability) -> SimulationConfig:
    """The same world with another observability. Raises DeclarationError, with file and line if it is from a file."""
    try:
        return SimulationConfig(**{**dict(config), "observability": read_observability(given)})
    except DeclarationError as error:
        if isinstance(given, str | PathLike) and not any(problem.source for problem in error.problems):
            error = DeclarationError(problem._replace(path=problem.path[1:]) for problem in error.problems)
            raise with_lines(error, given) from None
        raise


def _policy(index: int, agent: AgentConfig, offered: Mapping[str, Any]) -> Any:
    """What `policy` names: one that the engine offers, or "module:attribute"; a class is instantiated."""
    if agent.policy is None or agent.policy in offered:
        return None if agent.policy is None else offered[agent.policy]
    require_trust(agent.policy)
    try:
        found = imported(agent.policy, f"policy of {agent.name!r}")
    except ConfigError as error:
        raise DeclarationError([Problem(("agents", index, "policy"), str(error))]) from error
    return found() if isinstance(found, type) else found


def from_config(config: Given, **options: Any) -> DeclaredEnv:
    """Build the environment that a YAML file (a path), a mapping or a SimulationConfig declares.

    Args:
        config: the declaration.
        options: of HeronEnv: max_steps, dt, observability, schedule, observe_age, pad, render_mode, ...

    Returns:
        The environment.

    Raises:
        ConfigError: the declaration, with file and line of every mistake; or an option.

    >>> from importlib.resources import files
    >>> path = files("heron_env.worlds.economy") / "economy.yaml"
    >>> from_config(str(path), max_steps=10).possible_agents
    ['country_1', 'country_2', 'country_3', 'country_4']
    """
    match config:
        case SimulationConfig():
            return DeclaredEnv(config, **options)
        case Mapping():
            return DeclaredEnv(SimulationConfig.model_validate(config), **options)
        case str() | PathLike():
            file = YamlFile.read(Path(config))
            world = file.build(SimulationConfig)
            with file.locating(*OF_ENGINES):
                return DeclaredEnv(world, **options)
    raise ConfigError(
        f"from_config({config!r}): give a SimulationConfig, a mapping of its fields, or a YAML file's path"
    )
