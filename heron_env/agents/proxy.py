"""The proxy: what the control system knows of the world, kept as State objects on one cache array.

In the synchronous clock the cache is the truth itself; in the event-driven clock it is an array of its own that only
state reports change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.state import FeatureVector, Observation, State
from heron_env.errors import UnknownAgent, did_you_mean
from heron_env.given import is_one_of, require_type
from heron_env.observability.noise import Moment
from heron_env.observability.plan import ObservationPlan, ObserverView
from heron_env.scheduling.timing import to_ns

StepResults = tuple[dict[str, Any], ...]
"""Observations, rewards, terminated, truncated, infos."""


class ProxyAgent:
    """Caches states, answers observations. It works alone with free States, or serves an environment (`serve`)."""

    def __init__(self) -> None:
        self.state_cache: dict[str, Any] = {"agents": {}, GLOBAL: State(GLOBAL, 0)}
        self.agent_levels: dict[str, int] = {}
        self.time = 0.0
        self.seed, self.episode = 0, 0
        self.dt_ns = 1
        self.cache: NDArray[np.float64] = np.zeros(0)
        self.version: NDArray[np.int64] = np.zeros(0, np.int64)
        self.as_of: NDArray[np.int64] = np.zeros(0, np.int64)
        self._layout: Layout | None = None
        self._views: dict[str, ObserverView] = {}
        self.step_results: StepResults | Callable[[], StepResults] = ({}, {}, {}, {}, {})

    def serve(self, hierarchy: Hierarchy, layout: Layout, plan: ObservationPlan, dt_ns: int) -> None:
        """Take over an environment's agents; `keep` then says on which array. `dt_ns`: the control step."""
        self._layout = layout
        self.dt_ns = dt_ns
        self.agent_levels = dict(zip(hierarchy.ids, hierarchy.level, strict=True))
        self._views = dict(zip(hierarchy.ids, plan.views, strict=True))
        self.version = np.zeros(len(layout.rows), np.int64)
        self.as_of = np.zeros(len(layout.rows), np.int64)

    def open(self, seed: int, episode: int) -> None:
        """Begin an episode: time 0, no results, new keys of noise."""
        self.time, self.seed, self.episode = 0.0, seed, episode
        self.set_step_result({}, {}, {}, {}, {})

    @property
    def moment(self) -> Moment:
        """Return the key of the noise in an observation made now."""
        return Moment(self.seed, self.episode, to_ns(self.time, "time") // self.dt_ns)

    def keep(self, array: NDArray[np.float64], states: Mapping[str, State] | None = None) -> None:
        """Use `array` (float64 `[layout.width]`) as the cache; `states` are windows on it, made anew if not given."""
        assert self._layout is not None, "serve() comes first"
        self.cache = array
        self.version[:] = 0
        self.as_of[:] = 0
        for row in self._layout.rows:
            if states is not None and row.owner_id in states:
                state = states[row.owner_id]
            else:
                kind = State.registry.get(row.state_type, State)
                state = kind(row.owner_id, row.level, [row.window(array, feature) for feature in row.features])
            state._view = self._observed_of
            self._store(row.owner_id, state)

    def _store(self, owner_id: str, state: State) -> None:
        if owner_id == GLOBAL:
            self.state_cache[GLOBAL] = state
        else:
            self.state_cache["agents"][owner_id] = state

    def register_agent(self, agent_id: str, agent_state: State) -> None:
        """Register an agent by its State object (an environment registers its agents itself)."""
        require_type(f"register_agent({agent_id!r:.60}, {agent_state!r:.60})", agent_state, State, "a State")
        self.agent_levels[agent_id] = agent_state.owner_level
        self.state_cache["agents"][agent_id] = agent_state

    def receive(self, row: int, version: int, as_of: int, values: NDArray[np.float64]) -> bool:
        """Store a state report (T12) if it is newer than the present one; return whether it was."""
        if version <= self.version[row]:
            return False
        assert self._layout is not None
        self.cache[self._layout.rows[row].reported.where] = values
        self.version[row] = version
        self.as_of[row] = as_of
        return True

    def set_local_state(self, agent_id: str, state: State) -> None:
        """Store a State object; in an environment its values go into the agent's row of the cache."""
        stored = self._state(agent_id, "set_local_state()")
        require_type(f"set_local_state({agent_id!r}, {state!r:.60})", state, State, "a State")
        if self._layout is None:
            self.state_cache["agents"][agent_id] = state
        elif stored is not state:
            stored.update(state.to_dict())

    def get_local_state(self, agent_id: str) -> dict[str, FeatureVector]:
        """Return what an agent sees of itself: {feature: float64 vector}."""
        state = self._state(agent_id, "get_local_state()")
        if self._layout is None:
            return state.observed_by(agent_id, self.agent_levels[agent_id])
        view = self._views[agent_id]
        return view.local(self.cache[view.columns])

    def get_global_states(self, agent_id: str) -> dict[str, dict[str, FeatureVector]]:
        """Return what an agent sees of others: {agent id or "global": {feature: float64 vector}}."""
        self._state(agent_id, "get_global_states()")
        if self._layout is not None:
            view = self._views[agent_id]
            received = view.receive(self.cache, self.moment)
            return view.others(view.as_differences(received), view.unseen(received))
        level = self.agent_levels[agent_id]
        others = {**self.state_cache["agents"], GLOBAL: self.state_cache[GLOBAL]}
        visible = {i: state.observed_by(agent_id, level) for i, state in others.items() if i != agent_id}
        return {i: features for i, features in visible.items() if features}

    def set_global_state(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Set global features: `{"Price": {"value": 0.3}}`."""
        self.state_cache[GLOBAL].update(values)

    def get_observation(self, agent_id: str) -> Observation:
        """Return an agent's present observation, in object form."""
        self._state(agent_id, "get_observation()")
        order = self._views[agent_id].order if self._layout is not None else None
        return Observation(self.get_local_state(agent_id), self.get_global_states(agent_id), self.time, order)

    def set_step_result(
        self,
        obs: dict[str, Any],
        rewards: dict[str, float],
        terminateds: dict[str, bool],
        truncateds: dict[str, bool],
        infos: dict[str, Any],
    ) -> None:
        """Keep a step's results, of all agents."""
        self.step_results = (obs, rewards, terminateds, truncateds, infos)

    def get_step_results(self) -> StepResults:
        """Return the last step's five dictionaries, of all agents; observations as float32 vectors."""
        if callable(self.step_results):
            self.step_results = self.step_results()
        obs, *rest = self.step_results
        return ({agent: np.asarray(o, dtype=np.float32) for agent, o in obs.items()}, *rest)

    def _state(self, agent_id: str, where: str) -> State:
        agents: dict[str, State] = self.state_cache["agents"]
        if not is_one_of(agent_id, agents):
            raise UnknownAgent(
                f"{where} got {agent_id!r:.60}; this proxy knows {list(agents)}.{did_you_mean(agent_id, agents)}"
            )
        return agents[agent_id]

    def _observed_of(self, owner_id: str, requestor_id: str) -> dict[str, FeatureVector]:
        """What `requestor` sees of `owner`, by the plan."""
        if owner_id == requestor_id:
            return self.get_local_state(owner_id)
        return self.get_global_states(requestor_id).get(owner_id, {})
