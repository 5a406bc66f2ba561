"""Observations in object form: what one observer sees of a SimulationState, by the law of the vector form.

A variable's name in the keys of the noise is "Variables.<name>" for agents and "Globals.<name>" for the world, so both
forms of a world declared in YAML agree bit for bit. Who sees which variables of states of one shape is worked out once.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from itertools import accumulate, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import GLOBAL
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.files.models import formatted
from heron_env.observability.by_matrix import ObservabilityMatrix
from heron_env.observability.config import (
    DefaultObservability,
    ObservabilityConfig,
    external_among,
    full_observability,
    require_names,
)
from heron_env.observability.config import ObservabilityLevel as Level
from heron_env.observability.noise import ADDITIVE, Moment, keys_of_hashes
from heron_env.observability.object_view import NoiseTable, ObjectView, Portion, qualified, variables_of
from heron_env.observability.state_models import AGENT_FEATURE, SimulationState, StateModel, bounds_of
from heron_env.seeding import h

MOST_CONFIGS, MOST_PLANS, MOST_VALUES = 4, 4, 2**20
"""What a thread keeps: configurations, plans (shapes) of each, and values in all views of one plan."""
EXACT = DefaultObservability(level=Level.INSIDER)
Shape = list[tuple[str, type, tuple[str, ...]]]


def construct_observation(
    observer_id: str,
    truth: SimulationState,
    config: ObservabilityConfig | None,
    *,
    seed: int = 0,
    episode: int = 0,
    sight: Mapping[str, Collection[str]] | None = None,
) -> SimulationState:
    """Return what `observer_id` sees of `truth`: hidden agents and variables are absent, numbers have noise.

    Works on any state: models or mappings, whose values may be big ints, texts, None, or nested. Each leaf has its own
    noise; values that are not numbers are exact. The observer sees itself exactly. The turn is the same, the reasoning
    of agents is hidden, and nothing mutable is shared with the truth.

    Args:
        observer_id: the agent that observes.
        truth: the true state.
        config: the visibility; None or not enabled: everybody sees everything. Its rows may name agents that are not in
            this state; its variables must be in it.
        seed, episode: the key of the noise, together with `truth.turn` and the names.
        sight: by observer, the other agents in its sight (V11): all others are absent, unless the configuration is not
            enabled. None, or an observer that it does not name: nobody is out of sight.

    Returns:
        A new state, as the observer sees it.

    Raises:
        UnknownAgent: (a KeyError) no such observer in the state.
        DeclarationError: the configuration names a variable that no agent and no global state has.
        ConfigError: truth or config is none; a state is neither a model nor a mapping; or additive noise on a variable
            without finite bounds.

    >>> truth = SimulationState(turn=0, agents={"anna": {"reserves": 5.0}, "ben": {"reserves": 7.0}})
    >>> construct_observation("anna", truth, ObservabilityConfig(enabled=True)).agents
    {'anna': {'reserves': 5.0}}
    """
    if not isinstance(truth, SimulationState):
        raise ConfigError(f"construct_observation(truth={formatted(truth)}): must be a SimulationState")
    if not isinstance(config, ObservabilityConfig | None):
        raise ConfigError(f"construct_observation(config={formatted(config)}): must be an ObservabilityConfig or None")
    if observer_id not in truth.agents:
        ids = list(truth.agents)
        listed = f"{ids[:12]}{' and more' if len(ids) > 12 else ''}"
        near = did_you_mean(observer_id, ids)
        raise UnknownAgent(f"construct_observation(): Unknown observer {observer_id!r}; the state has {listed}.{near}")
    if config is not None and not config.enabled:
        check_names(truth, config)
    ruling = full_observability() if config is None else config.in_force()
    state = observe(observer_id, truth, ruling, Moment(seed, episode, truth.turn))
    if sight is None or observer_id not in sight or (config is not None and not config.enabled):
        return state
    visible = {observer_id, *sight[observer_id]}
    if unknown := sorted(visible - truth.agents.keys()):
        raise UnknownAgent(f"construct_observation(sight=...): {unknown[0]!r} is not in the state")
    return SimulationState.of(state.turn, {a: s for a, s in state.agents.items() if a in visible}, state.global_state)


def shape_of(truth: SimulationState) -> Shape:
    """Id, type and names of variables of each agent's state, "global" last. Raises ConfigError."""
    states = [*truth.agents.items(), (GLOBAL, truth.global_state)]
    return [(target, type(state), tuple(variables_of(target, state))) for target, state in states]


class ObjectPlan:
    """All observers' views of states of one shape, under one configuration.

    Raises DeclarationError: the configuration names variables that are not there, or against their definitions.
    """

    def __init__(self, config: ObservabilityConfig, shape: Shape) -> None:
        self.ids = [target for target, *_ in shape[:-1]]
        self._shape = shape
        self._matrix, self._common_noise = ObservabilityMatrix.of(config), config.common_noise
        external_names = _external(config, shape)
        kinds: dict[tuple[bool, type, tuple[str, ...]], tuple[Any, Any, Any]] = {}
        columns = []
        for target, kind, names in shape:  # most agents are of one kind
            sort = (target == GLOBAL, kind, names)
            if sort not in kinds:
                labels = [qualified(target, name) for name in names]
                bounds = np.array([bounds_of(kind, name) for name in names], dtype=np.float64).reshape(-1, 2)
                external = np.array([label in external_names for label in labels], dtype=bool)
                kinds[sort] = (_hashes(labels), bounds, external)
            columns.append(kinds[sort])
        fields, limits, flags = zip(*columns, strict=True)
        self._fields, self._external = np.concatenate(fields), np.concatenate(flags)
        self._low, self._high = np.concatenate(limits).T.copy()
        self._targets = _hashes([target for target, *_ in shape])
        self._owner = np.repeat(np.arange(len(shape)), [len(names) for *_, names in shape])
        self._starts = list(accumulate((len(names) for *_, names in shape), initial=0))
        self._portions: dict[tuple[int, Level], Portion] = {}
        self._views: dict[str, ObjectView] = {}
        self._stored = 0

    def view(self, observer: str) -> ObjectView:
        """The view of one observer."""
        view = self._views.get(observer)
        if view is None:
            view = self._view(observer)
            self._stored += len(view.table.keys)
            if self._stored > MOST_VALUES:
                self._views.clear()
                self._stored = len(view.table.keys)
            self._views[observer] = view
        return view

    def _view(self, observer: str) -> ObjectView:
        lookup = self._matrix.lookup
        sources = [EXACT if target == observer else lookup(observer, target) for target, *_ in self._shape]
        levels = [source.level for source in sources]
        factors = [source.factor + (self._common_noise if source is not EXACT else 0.0) for source in sources]
        insider = np.array([level is Level.INSIDER for level in levels])
        aware = np.array([level is not Level.UNAWARE for level in levels])
        visible = insider[self._owner] | (aware[self._owner] & self._external)
        last = len(levels) - 1
        portions = [
            self._portion(i, level) for i, level in enumerate(levels) if level is not Level.UNAWARE or i == last
        ]
        at = np.flatnonzero(visible)
        owner = self._owner[at]
        table = NoiseTable(
            factors=np.array(factors)[owner],
            additive=np.array([source.law == ADDITIVE for source in sources])[owner],
            keys=keys_of_hashes(_hashes([observer]), self._targets[owner], self._fields[at]),
            low=self._low[at],
            high=self._high[at],
        )
        return ObjectView(observer, portions, table)

    def _portion(self, index: int, level: Level) -> Portion:
        """What a level shows of one target; all observers share it."""
        if (index, level) not in self._portions:
            target, kind, every = self._shape[index]
            external = self._external[self._starts[index] : self._starts[index + 1]].tolist()
            names = {Level.INSIDER: every, Level.EXTERNAL: tuple(compress(every, external))}.get(level, ())
            self._portions[index, level] = Portion(target, kind, every, names)
        return self._portions[index, level]


def _hashes(names: list[str]) -> NDArray[np.uint64]:
    return np.array([h(name) for name in names], dtype=np.uint64)


def _external(config: ObservabilityConfig, shape: Shape) -> set[str]:
    """The external variables, as "Variables.x" and "Globals.x". Raises DeclarationError for names that do not fit."""
    declared: dict[str, str | None] = {}
    sorts = {(target == GLOBAL, kind, names): (target, kind, names) for target, kind, names in shape}
    for target, kind, names in sorts.values():
        variables = dict(kind.__variables__) if issubclass(kind, StateModel) else {}
        for name in names:
            declared.setdefault(qualified(target, name), variables[name].visibility if name in variables else None)
    ids = {target for target, *_ in shape[:-1]}
    rows = {name for row in config.matrix for name in (row.observer, row.target)} - {GLOBAL}
    of_agents = {name: said for name, said in declared.items() if name.startswith(f"{AGENT_FEATURE}.")}
    of_world = {name: said for name, said in declared.items() if name not in of_agents}
    require_names(config, agents=[*ids | rows], agent_variables=of_agents, global_variables=of_world)
    return external_among({name: said != "internal" for name, said in declared.items()}, config.variable_visibility)


class _Cache(threading.local):
    """What a thread has used last, by itself: views remember the shape and the episode that they last looked at."""

    def __init__(self) -> None:
        self.plans: OrderedDict[int, tuple[ObservabilityConfig, list[ObjectPlan]]] = OrderedDict()

    def of(self, config: ObservabilityConfig) -> list[ObjectPlan]:
        """Plans of a configuration, which is known by its identity (it can't change), the last used first."""
        _, plans = self.plans.setdefault(id(config), (config, []))
        self.plans.move_to_end(id(config))
        if len(self.plans) > MOST_CONFIGS:
            self.plans.popitem(last=False)
        return plans


_cache = _Cache()


def observe(observer: str, truth: SimulationState, config: ObservabilityConfig, moment: Moment) -> SimulationState:
    """What `observer`, who is in the state, sees of it under `config`, enabled or not."""
    plans, ids = _cache.of(config), list(truth.agents)
    for place, plan in enumerate(plans):
        if plan.ids == ids and (values := plan.view(observer).gather(truth)) is not None:
            plans.insert(0, plans.pop(place))
            return plan.view(observer).observe(values, moment)
    plan = ObjectPlan(config, shape_of(truth))
    plans.insert(0, plan)
    del plans[MOST_PLANS:]
    values = plan.view(observer).gather(truth)
    assert values is not None
    return plan.view(observer).observe(values, moment)


def check_names(truth: SimulationState, config: ObservabilityConfig) -> None:
    """Raise DeclarationError where the configuration does not fit the state."""
    _external(config, shape_of(truth))
