"""The engine of environments that can't be compiled: B of them, each driven by its own step() and reset()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.masking import flat, noop_alone
from heron_env.engine.arrays import Published
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.deciders import Decider, begin_lanes
from heron_env.envs.batch.engine import Given, Lanes
from heron_env.envs.batch.groups import Group
from heron_env.envs.decisions import Source
from heron_env.envs.hooks import Hooks
from heron_env.errors import InvalidAction


class Copies:
    """See Engine. `envs[i]` is lane i."""

    compiled = direct = halfway = False

    def __init__(
        self, envs: Sequence[HeronEnv], groups: Mapping[str, Group], deciders: Sequence[Decider], final: bool
    ) -> None:
        self.envs = envs
        for lane, env in enumerate(envs):
            env.simulation.world.lanes = lane
        first, lanes = envs[0], len(envs)
        self._groups = [groups[name] for name in first.group_map]
        self._deciders = [decider for decider in deciders if decider.source is Source.EXPLICIT]
        self._observers = [rank for group in self._groups for rank in group.ranks]
        self._agents = [agent for group in self._groups for agent in group.agents]
        stops = np.cumsum([0, *(first.simulation.plan.size(rank) for rank in self._observers)]).tolist()
        self._spans = dict(zip(self._agents, map(slice, stops, stops[1:]), strict=False))
        self._gathers = [env.simulation.plan.gather(self._observers) for env in envs]
        self.final = np.zeros((lanes if final else 0, stops[-1]), dtype=np.float32)
        self._buffers = tuple(_blank(lanes, stops[-1], len(self._agents), self.final) for _ in range(2))
        self._turn = 0
        self.seeds, self.episodes = (np.zeros(lanes, dtype=np.uint64) for _ in range(2))
        self.steps, self.last_length = (np.zeros(lanes, dtype=np.int64) for _ in range(2))
        self.over = np.zeros(lanes, dtype=bool)
        everyone = (lanes, len(first.hierarchy))
        self.rewards, self.last_returns, self._returns = np.zeros(everyone), np.zeros(everyone), np.zeros(everyone)
        self._infos: list[dict[str, Any]] = [{} for _ in envs]
        self._seen: list[dict[str, Any]] = [{} for _ in envs]

    @property
    def published(self) -> Published:
        """What `observe` made last."""
        return self._buffers[self._turn]

    @property
    def truth(self) -> NDArray[np.float64]:
        """A copy, `[B, columns]`."""
        return np.stack([env.simulation.truth for env in self.envs])

    def step(self, given: Given) -> None:
        """Never called."""
        raise AssertionError("environments one by one have no step in one call")

    def move(self, given: Given, idle: Lanes | None) -> None:
        """All actions are checked, then each environment steps. Raises InvalidAction naming lane and agent."""
        for group, values in given:
            group.require_legal(values, self.alive(group) & ~_none(idle, len(self.envs))[:, None])
        asked = self._decide({group.name for group, _ in given}, idle)
        self.halfway = True
        ahead = self._buffers[1 - self._turn]
        for lane, env in enumerate(self.envs):
            self.over[lane] = False
            self.rewards[lane] = 0.0
            for part in (ahead.rewards, ahead.terminated, ahead.truncated):
                part[lane] = 0
            if idle is None or not idle[lane]:
                self._step(lane, env, [(group, values[lane]) for group, values in given], asked.get(lane, {}))
        self.halfway = False

    def _decide(self, taken: set[str], idle: Lanes | None) -> dict[int, dict[str, Any]]:
        """The actions of the batch's own policies, by lane and agent."""
        found: dict[int, dict[str, Any]] = {}
        for decider in self._deciders:
            group = decider.group
            if group.name in taken:
                continue
            active = [[env.is_active(group.ranks[place]) for place in decider.places] for env in self.envs]
            asked = np.array(active) & ~_none(idle, len(self.envs))[:, None]
            seen = self.published.observations[:, group.floats].reshape(len(self.envs), -1, group.width)
            turns = [[env.turn(group.ranks[place]) for place in decider.places] for env in self.envs]
            masks = self.infos(group).get("action_mask")
            values = decider.decide(seen, np.array(turns), asked, self.seeds, self.episodes, masks)
            for lane, column in np.argwhere(asked).tolist():
                agent = group.agents[decider.places[column]]
                found.setdefault(lane, {})[agent] = values[lane, column]
        return found

    def _step(self, lane: int, env: HeronEnv, given: Given, actions: dict[str, Any]) -> None:
        simulation, index = env.simulation, env.hierarchy.index
        for group, values in given:
            actions |= {a: values[i] for i, a in enumerate(group.agents) if simulation.alive[index[a]]}
        try:
            self._seen[lane], rewards, terminated, truncated, self._infos[lane] = env.step(actions)
        except InvalidAction as error:
            error.add_note(f"in lane {lane}; the lanes before it have stepped already: reset() all")
            raise
        ahead = self._buffers[1 - self._turn]
        for place, agent in enumerate(self._agents):
            if agent in rewards:
                ahead.rewards[lane, place] = rewards[agent]
                ahead.terminated[lane, place], ahead.truncated[lane, place] = terminated[agent], truncated[agent]
        self.rewards[lane] = simulation.last_rewards
        self._returns[lane] += self.rewards[lane]
        self.steps[lane] = simulation.step_index
        self.over[lane] = not env.agents
        if self.over[lane]:
            self.last_returns[lane], self.last_length[lane] = self._returns[lane], self.steps[lane]

    def goes_on(self) -> bool:
        """Never certain."""
        return False

    def start(self, lanes: Lanes, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Reset the environments in `lanes`."""
        for lane in np.flatnonzero(lanes).tolist():
            env = self.envs[lane]
            if len(self.final) and self.steps[lane]:
                self.final[lane] = self._vectors(lane)
            self._seen[lane], self._infos[lane] = env.reset(
                seed=None if seeds is None else int(seeds[lane]), options=options
            )
            self.seeds[lane], self.episodes[lane] = env.simulation.moment[:2]
            self.steps[lane], self._returns[lane] = 0, 0.0
        begin_lanes(self._deciders, np.flatnonzero(lanes), self.seeds, self.episodes)

    def observe(self) -> None:
        """Publish what each environment showed last."""
        self._turn = 1 - self._turn
        for lane in range(len(self.envs)):
            self.published.observations[lane] = self._vectors(lane)

    def _vectors(self, lane: int) -> NDArray[np.float32]:
        """What all observers see; ended ones, of whom step() is silent, go on looking."""
        seen, simulation = self._seen[lane], self.envs[lane].simulation
        if len(seen) == len(self._agents):
            return np.concatenate([seen[agent] for agent in self._agents])
        late = self.envs[lane]._late
        if late is None:
            row = np.concatenate(self._gathers[lane](simulation.truth, simulation.moment))
        else:
            row = np.concatenate([late.vector(rank) for rank in self._observers])
        for agent, vector in seen.items():
            row[self._spans[agent]] = vector
        return row

    def alive(self, group: Group) -> NDArray[np.bool_]:
        """Who has not ended, `[B, agents]`."""
        return np.array([[env.simulation.alive[rank] for rank in group.ranks] for env in self.envs])

    def infos(self, group: Group) -> dict[str, Any]:
        """Makers of the numbers by name; 0 for agents that have ended, and only the no-op is unmasked for them."""
        names: dict[str, Any] = next(
            (told[agent] for told in self._infos for agent in group.agents if agent in told), {}
        )
        likes = {name: flat(like) if name == "action_mask" else np.asarray(like) for name, like in names.items()}
        return {name: partial(self._info, group, name, like) for name, like in likes.items()}

    def _info(self, group: Group, name: str, like: NDArray[Any]) -> NDArray[Any]:
        table = np.zeros((len(self.envs), len(group.agents), *like.shape), dtype=like.dtype)
        if name == "action_mask":
            table[:] = noop_alone(group.spec)
        for lane, told in enumerate(self._infos):
            for place, agent in enumerate(group.agents):
                if agent in told:
                    table[lane, place] = flat(told[agent][name]) if name == "action_mask" else told[agent][name]
        return table

    def training_rewards(self) -> NDArray[np.float64] | None:
        """From `training_signal()`, where the class has its own."""
        kind = type(self.envs[0])
        if kind.training_signal is Hooks.training_signal and kind.training_rewards is Hooks.training_rewards:
            return None
        return np.array([list(env.training_signal().values()) for env in self.envs])

    def lane(self, number: int) -> HeronEnv:
        """The environment itself."""
        return self.envs[number]


def _blank(lanes: int, floats: int, observers: int, final: NDArray[np.float32]) -> Published:
    rewards = np.zeros((lanes, observers))
    terminated, truncated = rewards > 0.0, rewards > 0.0
    return Published(np.zeros((lanes, floats), dtype=np.float32), rewards, terminated, truncated, final)


def _none(idle: Lanes | None, lanes: int) -> NDArray[np.bool_]:
    return np.zeros(lanes, dtype=bool) if idle is None else idle
