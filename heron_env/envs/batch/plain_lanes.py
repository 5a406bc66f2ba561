"""Lanes in plain Python, with an environment each: for rules and agents in Python, and for a step() of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.core.masking import flat, noop_alone
from heron_env.engine.arrays import DISABLED, NEXT_STEP, SAME_STEP
from heron_env.engine.python_law import PythonLanes
from heron_env.engine.python_rules import PythonRules
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Decider, Group, GroupActions
from heron_env.envs.batch.lanes import LaneEngine, exchange_for, model_for
from heron_env.envs.batch.views import LaneViews, only_look_at, reset_lane
from heron_env.envs.decisions import Source
from heron_env.envs.disturbing import Courses
from heron_env.envs.hooks import links_compiled
from heron_env.envs.lane_hooks import LaneHooks
from heron_env.errors import InvalidAction

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class OwnLanes(LaneViews):
    """An environment of its own for each lane, its simulation on the lane's row of the truth; the batch moves it.

    Lane 0 is the environment that the batch was given, and whoever gave it may look at it there.
    """

    def __init__(self, envs: Sequence[HeronEnv], lanes: PythonLanes, closed: bool) -> None:
        """`closed`: does the batch alone move them?"""
        super().__init__(envs[0], lanes)
        self._made = dict(enumerate(envs))
        for lane, env in enumerate(envs):
            env.simulation.world.lanes = lane
            if closed and lane:
                only_look_at(env, "batch")

    def __getitem__(self, lane: int) -> HeronEnv:
        """As it is now."""
        env = super().__getitem__(lane)
        env.proxy.time = env.simulation.time
        return env

    def begin(self, lane: int, options: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let its own reset() begin the episode that the arrays say; what that returned."""
        env, arrays = self._made[lane], self._arrays
        env._seed, env._episode = int(arrays.seeds[lane]), int(arrays.episodes[lane]) - 1
        return reset_lane(env, options=options)


class PlainLanes(LaneEngine):
    """The rules in plain Python. Each lane begins by its environment's own reset(), with whatever options it takes."""

    lanes: PythonLanes
    _views: OwnLanes
    moves_itself = False
    """Is it the environments that move, and the arrays follow?"""

    def __init__(
        self, env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], envs: Sequence[HeronEnv],
        final: bool,
    ) -> None:  # fmt: skip
        """`envs`: the lanes', which nobody else uses from here on."""

        def rules(lanes: PythonLanes, number: int) -> PythonRules:
            return envs[number].simulation.move_to(lanes, number)

        self._exchange, self._envs = exchange_for(env, len(envs)), envs
        self._options, self._beginning = cast(Mapping[str, Any] | None, None), False
        model = model_for(env, groups, self._exchange.natives())
        lanes = PythonLanes(model, len(envs), None if self.moves_itself else rules, final=final)
        views = OwnLanes(envs, lanes, not self.moves_itself)
        names = env.called_in_python(compiled=False) - {"begin"}  # an environment calls that at its own reset()
        names |= {"link"} if links_compiled(env) else set()
        hooks = LaneHooks(env, env.simulation.model, lanes, views.at, names)
        mine = () if self.moves_itself else (*hooks.natives(), lanes.called.native("begin", self._begin))
        lanes.attach(replace(model, native=(*model.native, *mine)))
        if not self.moves_itself:
            views.courses = Courses(lanes, views.__getitem__)
            for one in envs:
                one.simulation.courses = views.courses
            views.courses.splitting += [one.simulation for one in envs if one.simulation.splits]
        super().__init__(env, groups, deciders, lanes, views, hooks)

    def start(self, lanes: Bools, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin episodes in `lanes`."""
        self._options = options
        try:
            super().start(lanes, seeds, options)
        finally:
            self._options = None

    def _begin(self, first: int, last: int) -> None:
        """Every environment resets."""
        if self._beginning:  # an environment's own reset(), below: it begins its lane's episode
            return
        arrays, self._beginning = self.arrays, True
        chosen, ended = arrays.chosen.copy(), arrays.ended.copy()
        arrays.ended[:] = 0  # what was seen last is kept already
        try:
            for lane in (first + np.flatnonzero(chosen[first:last])).tolist():
                self._views.begin(lane, self._options)
        finally:
            self._beginning = False
        arrays.chosen[:], arrays.ended[:] = chosen, ended

    def _own_infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """By the names that the first agent told that has any."""
        infos = self.lanes.infos_in_python
        numbers = (of_lane[rank] for of_lane in infos if of_lane for rank in group.ranks)
        return {name: partial(self._numbers, group, name) for name in next(filter(None, numbers), {})}

    def _numbers(self, group: Group, name: str) -> NDArray[np.float64]:
        rows = self.lanes.infos_in_python
        return np.array([[row[rank].get(name, 0.0) if row else 0.0 for rank in group.ranks] for row in rows])


Five = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


class OwnSteps(PlainLanes):
    """What reset() and step() return is handed out; the arrays are for bookkeeping."""

    moves_itself = True

    def __init__(
        self, env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], envs: Sequence[HeronEnv],
        final: bool,
    ) -> None:  # fmt: skip
        self._returned: list[Five] = [({}, {}, {}, {}, {}) for _ in envs]
        super().__init__(env, groups, [one for one in deciders if one.source is Source.EXPLICIT], envs, final)

    def step(self, by_group: GroupActions, idle: Bools | None) -> None:
        """All actions are checked, then each environment steps. Raises InvalidAction naming lane and agent."""
        self._take(by_group)
        self._ask(by_group)
        self.lanes.check()
        self.lanes.halfway = True
        for lane, env in enumerate(self._envs):
            observations, *_, infos = self._returned[lane]
            self.arrays.ended[lane], self._returned[lane] = 0, (observations, {}, {}, {}, infos)
            if idle is None or not idle[lane]:
                try:
                    self._returned[lane] = env.step(self._actions(by_group, lane))
                except InvalidAction as error:
                    error.add_note(f"in lane {lane}; the lanes before it have stepped already: reset() all")
                    raise
                self._keep(lane, env)
        for look in self._looks:
            look()
        anew = {SAME_STEP: self.over.copy(), NEXT_STEP: idle, DISABLED: None}[self.restarts]
        if anew is not None and anew.any():
            self.start(anew, None, None)
        self.publish()

    def _actions(self, by_group: GroupActions, lane: int) -> dict[str, Any]:
        """Of a lane's agents; the caller's as they were given."""
        explicit = np.flatnonzero(self.arrays.source_in[lane, self.position] == Source.EXPLICIT).tolist()
        ids, row = self._env.hierarchy.ids, self.arrays.actions[lane]
        actions = {ids[rank]: row[self.lanes.action_slice(rank)].copy() for rank in explicit}
        for group, values in by_group:
            actions |= {agent: values[lane, i] for i, agent in enumerate(group.agents) if agent in actions}
        return actions

    def _keep(self, lane: int, env: HeronEnv) -> None:
        """Where an environment stands after its step."""
        arrays, simulation, place = self.arrays, env.simulation, self.position
        self.truth[lane], arrays.alive[lane, place] = simulation.truth, simulation.alive
        arrays.rewards[lane, place], arrays.steps[lane] = simulation.last_rewards, simulation.step_index
        arrays.returns[lane] += arrays.rewards[lane]
        arrays.ended[lane] = arrays.over[lane] = not env.agents
        if not env.agents:
            arrays.last_returns[lane], arrays.last_length[lane] = arrays.returns[lane], arrays.steps[lane]

    def start(self, lanes: Bools, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin episodes in `lanes`: every environment resets."""
        last = self._observed(np.flatnonzero(lanes & self.over)) if self.final.size else {}
        super().start(lanes, seeds, options)
        for lane, vectors in last.items():
            self.final[lane] = vectors
        for lane in np.flatnonzero(lanes).tolist():
            observations, infos = self._views.begin(lane, options)
            self._returned[lane] = (observations, *self._returned[lane][1:4], infos)
            simulation = self._envs[lane].simulation
            self.truth[lane], self.arrays.steps[lane] = simulation.truth, simulation.step_index

    def look_at_close(self, looks: list[Callable[[], None]]) -> None:
        """As in LaneEngine."""
        self._looks = looks

    def publish(self) -> None:
        """Publish what each environment told last."""
        self.published = out = self.lanes.observe()
        ids = self._env.hierarchy.ids
        agents = [ids[rank] for rank in self.lanes.model.observers]
        for lane, vectors in self._observed(np.arange(len(self._envs))).items():
            out.observations[lane] = vectors
            out.rewards[lane], out.terminated[lane], out.truncated[lane] = (
                [mine.get(agent, 0) for agent in agents] for mine in self._returned[lane][1:4]
            )

    def _observed(self, lanes: Ints) -> dict[int, NDArray[np.float32]]:
        """What all observers see; ended ones, of whom step() is silent, go on looking."""
        return {lane: self._vectors(self._envs[lane], self._returned[lane][0]) for lane in lanes.tolist()}

    def _vectors(self, env: HeronEnv, observations: Mapping[str, Any]) -> NDArray[np.float32]:
        ranks = {self._env.hierarchy.ids[rank]: rank for rank in self.lanes.model.observers}
        return np.concatenate([observations[a] if a in observations else env.seen_by(ranks[a]) for a in ranks])

    def active(self, group: Group) -> Bools:
        """Whose action will count in the coming step, by each environment itself."""
        return np.array([[env.is_active(rank) for rank in group.ranks] for env in self._envs])

    def infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Makers of the numbers by name; 0 for agents that have ended, and only the no-op is unmasked for them."""
        of_agents = (infos[agent] for *_, infos in self._returned for agent in group.agents if agent in infos)
        return {name: partial(self._info, group, name, like) for name, like in next(of_agents, {}).items()}

    def _info(self, group: Group, name: str, like: Any) -> NDArray[Any]:
        form, nothing = (flat, noop_alone(group.spec)) if name == "action_mask" else (np.asarray, np.zeros_like(like))
        rows = [[form(infos[a][name]) if a in infos else nothing for a in group.agents] for *_, infos in self._returned]
        return np.array(rows, dtype=form(like).dtype)

    def lane(self, number: int) -> HeronEnv:
        """The environment itself."""
        return self._envs[number]
