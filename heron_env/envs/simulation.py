"""The simulation: the truth array and everything that may change it. Both clocks drive this one object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.base import Agent, overrides
from heron_env.core.action import ActionSpec, Vector
from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.world import World
from heron_env.engine.binding import Binder
from heron_env.envs.bound import BoundAgent, bind_agent
from heron_env.envs.exchange import Exchange
from heron_env.envs.hooks import Hooks
from heron_env.envs.termination import TerminationConfig
from heron_env.errors import ConfigError, FeatureError, HierarchyError, RuleError
from heron_env.observability.noise import Moment
from heron_env.observability.plan import ObservationPlan
from heron_env.scheduling.timing import to_ns, to_seconds

if TYPE_CHECKING:
    from heron_env.observability.config import ObservabilityConfig

Floats = NDArray[np.float64]


CHILDLESS: Floats = np.zeros(0)
"""Rewards of no children."""


@dataclass(slots=True)
class StepOutcome:
    """Results of one control step, by rank; agents that ended before have reward 0 and False."""

    time: float
    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    infos: list[dict[str, float]]
    over: bool


class Simulation:
    """One world: reset, apply an action, advance a substep, close a step. Knows no clock but its own nominal one."""

    def __init__(
        self,
        system: Agent,
        hooks: Hooks,
        *,
        dt: float,
        substeps: int,
        global_features: tuple[type[FeatureProvider], ...],
        termination: TerminationConfig,
        observe_age: bool,
        observability: ObservabilityConfig | None = None,
    ) -> None:
        self.hooks, self.dt, self.substeps, self.termination = hooks, dt, substeps, termination
        self._dt_ns = to_ns(dt, "dt")
        self.hierarchy = Hierarchy.of(system)
        for agent in self.hierarchy.agents:
            agent.reset()
        self.specs: tuple[ActionSpec, ...] = tuple(agent.current_action.spec for agent in self.hierarchy.agents)
        self.layout = Layout.of(self.hierarchy, global_features)
        self.plan = ObservationPlan(self.hierarchy, self.layout, observe_age, observability)
        self.truth: Floats = np.zeros(self.layout.size)
        self.world = World(self.layout, self.truth)
        self.exchange = Exchange.of(self.hierarchy, self.layout)
        self.commanded = tuple(
            parent >= 0 and self.hierarchy.agents[parent].protocol is not None and spec.size > 0
            for parent, spec in zip(self.hierarchy.parent, self.specs, strict=True)
        )
        self.possible = tuple(r for r, spec in enumerate(self.specs) if spec.size and not self.commanded[r])
        if not self.possible:
            raise HierarchyError(
                "nobody acts: give an agent an `action`, or a coordinator a `protocol` over agents with one"
            )
        self._vectors = [Vector(spec.noop.tolist()) for spec in self.specs]
        self._global_features = global_features
        self._bound = self._bind()
        self._bottom_up = list(reversed(range(len(self.hierarchy))))
        self._advance = [b.advance for r in self._bottom_up if (b := self._bound[r]).advance is not None]
        self._by_hand = [a for a in self.hierarchy.agents if overrides(a, "init_state") or overrides(a, "init_action")]
        self._initial = self.truth.copy()
        self._bind_states()
        self.alive = [True] * len(self.hierarchy)
        self.step_index = 0
        self.last_rewards = [0.0] * len(self.hierarchy)
        self.over = True

    @property
    def time(self) -> float:
        """Nominal time of the last step boundary, s."""
        return to_seconds(self.step_index * self._dt_ns)

    @property
    def moment(self) -> Moment:
        """What keys the noise of an observation made now: seed, episode and step."""
        return Moment(self.world.seed, self.world.episode, self.step_index)

    def reset(self, seed: int, episode: int) -> None:
        """Start an episode: initial values, no-op actions, everyone alive, then the `begin` hook."""
        self.truth[:] = self._initial
        for agent in self._by_hand:
            agent.reset()
            self._rebind(self.hierarchy.index[agent.agent_id])
        for agent, vector, spec in zip(self.hierarchy.agents, self._vectors, self.specs, strict=True):
            agent.current_action._vector[:] = spec.noop
            vector._values = spec.noop.tolist()
        self.alive = [True] * len(self.hierarchy)
        self.last_rewards = [0.0] * len(self.hierarchy)
        self.step_index = 0
        self.over = False
        self.exchange.reset()
        self.begin(seed, episode)

    def begin(self, seed: int, episode: int) -> None:
        """Set the world's keys and call the `begin` hook."""
        world = self.world
        world.seed, world.episode, world.step, world.time = seed, episode, 0, 0.0
        self.hooks.begin(world)
        self._check("begin()")

    def apply(self, rank: int, values: Floats) -> None:
        """Make `values` (float64 `[size]`) the agent's current action and let it act on the truth."""
        agent, bound = self.hierarchy.agents[rank], self._bound[rank]
        agent.current_action._vector[:] = values
        self._vectors[rank]._values = values.tolist()
        for prepare in bound.before_apply:
            prepare(agent.current_action)
        if bound.apply is not None:
            bound.apply(self.dt, self.time)

    def acts_itself(self, rank: int) -> bool:
        """Does an action of this agent do anything to its own state?"""
        return self._bound[rank].apply is not None

    def substep(self, number: int) -> None:
        """Advance physics by dt / substeps; `number` counts from 0 within the step."""
        dt = self.dt / self.substeps
        time = self.time + number * dt
        if number == 0 and len(self.layout.per_step):
            self.truth[self.layout.per_step] = 0.0
        for advance in self._advance:
            advance(dt, time)
        world = self.world
        world.step, world.time = self.step_index, time
        self.hooks.advance(world, dt)
        if number + 1 < self.substeps:
            self.layout.clip(self.truth)

    def close_step(self, *, deliver: bool = True) -> StepOutcome:
        """Rewards and ends from the truth at this boundary (T4, T5), then the next exogenous values.

        Then agents that were in the step tell their neighbours, unless `deliver` is False: the event clock sends that.
        """
        members = self.alive
        self.step_index += 1
        time = self.time
        self._check("advance()")
        rewards = self._rewards(time)
        terminated, truncated = self._ends(time)
        infos = [{} if bound.info is None else bound.info(self.dt, time) for bound in self._bound]
        outcome = StepOutcome(time, rewards, terminated, truncated, infos, self.over)
        self.last_rewards = rewards
        world = self.world
        world.step, world.time = self.step_index, time
        self.hooks.finish(world)
        self._check("finish()")
        if deliver and self.exchange.edges:
            self.exchange.deliver(self.step_index - 1, members, self.truth)
        return outcome

    def info(self, rank: int) -> dict[str, float]:
        """The agent's own info numbers, from the truth."""
        bound = self._bound[rank].info
        return bound(self.dt, self.time) if bound is not None else {}

    def require_end(self, where: str) -> None:
        """Raise ConfigError unless something can end an episode."""
        limits = self.termination.max_steps or self.termination.max_sim_time
        if not limits and not any(b.terminated or b.truncated for b in self._bound):
            raise ConfigError(f"{where}: nothing ends this episode; give t_end, max_steps, or an is_terminated rule")

    def state(self) -> dict[str, Any]:
        """The running episode: plain arrays, lists and numbers."""
        return {
            "step": self.step_index,
            "truth": self.truth.copy(),
            "actions": [list(vector._values) for vector in self._vectors],
            "alive": list(self.alive),
            "over": self.over,
            "last_rewards": list(self.last_rewards),
            "exchange": self.exchange.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`, after `begin`."""
        self.step_index, self.over = state["step"], state["over"]
        self.truth[:] = state["truth"]
        self.alive, self.last_rewards = list(state["alive"]), list(state["last_rewards"])
        for agent, vector, values in zip(self.hierarchy.agents, self._vectors, state["actions"], strict=True):
            vector._values = list(values)
            agent.current_action._vector[:] = values
        self.world.step, self.world.time = self.step_index, self.time
        self.exchange.restore(state["exchange"])

    def _rewards(self, time: float) -> list[float]:
        rewards = [0.0] * len(self.alive)
        for rank in self._bottom_up:
            if not self.alive[rank]:
                continue
            children = self.hierarchy.children[rank]
            reward = self._bound[rank].reward
            if reward is not None:
                value = reward(
                    self.dt, time, np.array([rewards[child] for child in children]) if children else CHILDLESS
                )
                rewards[rank] = self._number(value, rank)
            elif children:
                rewards[rank] = sum(rewards[child] for child in children)
        return rewards

    def _number(self, value: Any, rank: int) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not math.isfinite(number):
            agent = self.hierarchy.agents[rank]
            raise RuleError(f"{agent!r}.compute_local_reward returned {value!r} at t={self.time} s; a number is needed")
        return number

    def _ends(self, time: float) -> tuple[list[bool], list[bool]]:
        """Who ends at this boundary; agents end for good, and with the last (or first) possible one the episode."""
        n, alive = len(self.alive), self.alive
        terminated = [
            alive[r] and (b := self._bound[r].terminated) is not None and bool(b(self.dt, time)) for r in range(n)
        ]
        truncated = [
            alive[r] and (b := self._bound[r].truncated) is not None and bool(b(self.dt, time)) for r in range(n)
        ]
        if self.termination.mode == "any":
            if any(terminated[r] for r in self.possible):
                terminated = list(alive)
            elif any(truncated[r] for r in self.possible):
                truncated = list(alive)
        if self.termination.reached(self.step_index, time):
            truncated = list(alive)
        self.alive = [alive[r] and not (terminated[r] or truncated[r]) for r in range(n)]
        if not any(self.alive[r] for r in self.possible):
            self.over = True
            watchers = [r for r in range(n) if self.alive[r]]
            for rank in watchers:
                terminated[rank], truncated[rank] = not any(truncated), any(truncated)
            self.alive = [False] * n
        return terminated, truncated

    def _check(self, where: str) -> None:
        """Clip the truth into its bounds; NaN is an error that names the column."""
        self.layout.clip(self.truth)
        if np.isnan(self.truth.sum()) and (bad := self.layout.bad_columns(self.truth)):
            raise RuleError(
                f"after {where} at t={self.time} s these quantities are nan: {', '.join(bad[:5])}; check the physics"
            )

    def _bind(self) -> list[BoundAgent]:
        binder = Binder(self.hierarchy, self.layout, self._global_features, self.truth, self._vectors)
        return [bind_agent(binder, rank, self.plan, self.truth) for rank in range(len(self.hierarchy))]

    def _bind_states(self) -> None:
        for rank in range(len(self.hierarchy)):
            self._rebind(rank)
        for feature in self._global_features:
            row = self.layout.rows[-1]
            row.window(self.truth, feature)._array[:] = feature()._array
        self._initial = self.truth.copy()

    def _rebind(self, rank: int) -> None:
        """Move the agent's state onto the truth; its values go with it."""
        agent, row = self.hierarchy.agents[rank], self.layout.rows[rank]
        classes = tuple(type(feature) for feature in agent.state.features)
        if classes != row.features:
            now, first = ([c.__name__ for c in kinds] for kinds in (classes, row.features))
            raise FeatureError(f"{agent!r}.init_state() built {now}, first it was {first}; build the same each time")
        for start, feature in zip(row.offsets, agent.state.features, strict=False):
            window = self.truth[start : start + feature.width]
            window[:] = feature._array
            feature._bind(window)
