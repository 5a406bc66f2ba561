"""The engine of a batch: actions go into the lanes, which step, and what they publish comes out."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.proxy import ProxyAgent
from heron_env.core.layout import span_of
from heron_env.engine.arrays import Published
from heron_env.engine.lanes import Lanes
from heron_env.engine.model import Model, Native
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Decider, Group, GroupActions, begin_lanes
from heron_env.envs.batch.views import LaneViews, begin_one_by_one, begin_together, takes_options
from heron_env.envs.decisions import Source
from heron_env.envs.disturbing import Course, Courses
from heron_env.envs.exchange import Exchange
from heron_env.envs.hooks import Hooks, has_training_rewards, trains_compiled
from heron_env.envs.lane_hooks import LaneHooks
from heron_env.envs.masking import GroupMasks
from heron_env.envs.seeing import show_truth
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.ticks import ticks_at
from heron_env.scheduling.timing import require_before_the_end

Bools = NDArray[np.bool_]
FEW_LANES = 256
"""Fewer lanes than this are not worth a second thread."""
FIRST = np.uint64(2**64 - 1)
"""The episode before the first."""


class LaneEngine(ABC):
    """B environments that go through the phases of a step together.

    A reset is `start`, then `publish`; a `step` begins episodes by itself, as `restarts` say.

    Attributes:
        lanes: the engine's.
        hooks: those of the environment that are Python.
        compiled: do rules run compiled?
        seeds, episodes: keys of each lane's episode, uint64 `[B]`; steps: of it, int64 `[B]`.
        over: lanes whose episode ended in the last step, bool `[B]`.
        last_length: steps of each lane's last complete episode, int64 `[B]`.
        truth: float64 `[B, columns]`.
        published: what was published last.
        final: observations before lanes began anew, float32 `[B, floats]`; kept if asked for at construction.
    """

    compiled = False

    def __init__(
        self, env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], lanes: Lanes, views: LaneViews,
        hooks: LaneHooks,
    ) -> None:  # fmt: skip
        simulation, arrays = env.simulation, lanes.arrays
        arrays.initial[:] = simulation.initial
        self.lanes, self.arrays, self._env, self._deciders, self._count = lanes, arrays, env, deciders, lanes.count
        self._views, self.hooks, self.courses = views, hooks, views.courses
        self.position = np.asarray(lanes.position, dtype=np.int64)
        self.truth = arrays.truth[:, : simulation.model.layout.size]
        self.seeds, self.episodes, self.steps = arrays.seeds, arrays.episodes, arrays.steps
        self.over: Bools = arrays.ended.view(np.bool_)
        self.last_length = arrays.last_length
        self._all_live = not lanes.ends
        self._spans = {name: self._elements(group.ranks) for name, group in groups.items()}
        self._agents = {name: span_of(self.position[list(group.ranks)]) for name, group in groups.items()}
        self._turns = {n: np.broadcast_to(self.steps[:, None], group.shape[:2]) for n, group in groups.items()}
        self._clocks = {name: self._ticks(group.ranks) for name, group in groups.items()}
        self._decided = {one: (self._elements(one.ranks), span_of(self.position[one.ranks])) for one in deciders}
        self._room = {name: self._view(group) for name, group in groups.items()}
        self._masks = {name: self._offered(groups[name]) for name in env._publisher.offers.groups}
        self._rows: dict[str | tuple[str, ...], NDArray[np.uint8]] = {}
        self._taken, self._most_steps = 0, simulation.most_steps
        self._acting_groups: str | tuple[str, ...] | None = None
        self._looks: list[Callable[[], None]] = []
        self.published: Published = lanes.published
        self.final = self.published.final

    def restart_when_over(self, when: int) -> None:
        """What a step does with a lane whose episode is over: arrays.SAME_STEP, NEXT_STEP or DISABLED."""
        self.restarts = when
        self.lanes.restart_when_over(when)

    def look_at_close(self, looks: list[Callable[[], None]]) -> None:
        """From now on these are called in each step when rewards and next values are known, before lanes begin anew."""
        self._looks = looks
        self.lanes.follow([self.lanes.called.native("at_close", self._look)])

    def _look(self, first: int, last: int) -> None:
        for look in self._looks:
            look()

    def _elements(self, ranks: Sequence[int]) -> slice | NDArray[np.int64]:
        """Where these agents' actions lie: a slice if they are neighbours."""
        spans = map(self.lanes.action_slice, ranks)
        return span_of(np.concatenate([np.arange(span.start, span.stop) for span in spans]))

    def _ticks(self, ranks: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Interval and phase of these agents' clocks, ns."""
        timings = [self._env.timings[rank] for rank in ranks]
        return np.array([one.tick for one in timings]), np.array([one.phase for one in timings])

    def _view(self, group: Group) -> NDArray[np.float64] | None:
        """A group's actions in the lanes' memory, `[B, agents, elements]`, if they are neighbours."""
        span = self._spans[group.name]
        if not isinstance(span, slice):
            return None
        return self.arrays.actions[:, span].reshape(self._count, len(group.ranks), -1)

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Of all agents in the last `move`, by rank."""
        return self.arrays.rewards[:, self.position]

    @property
    def last_returns(self) -> NDArray[np.float64]:
        """Of each lane's last complete episode, by rank."""
        return self.arrays.last_returns[:, self.position]

    # Moving

    def step(self, by_group: GroupActions, idle: Bools | None) -> None:
        """A control step with restarts and observations, of all lanes but those that are `idle`: these begin anew.

        Raises InvalidAction naming lane and agent; nothing has changed then, unless `lanes.halfway`.
        """
        self._take(by_group, self._all_live and idle is None)
        if self._deciders:
            self._ask(by_group)
        self.published = published = self.lanes.step()
        self.final = published.final
        if self._deciders:
            began = self.over if idle is None else idle
            begin_lanes(self._deciders, np.flatnonzero(began), self.seeds, self.episodes)

    def _take(self, by_group: GroupActions, all_live: bool = False) -> None:
        """Write the actions; of agents that have ended none counts. Raises ScheduleError where time ends."""
        self._taken, self.lanes.halfway = self._taken + 1, False
        if self._taken > self._most_steps:  # else no lane can be there yet
            require_before_the_end((int(self.steps.max()) + 1) * self._env.dt_ns, "step(): the end of a lane's step")
        for group, values in by_group:
            room = self._room[group.name]
            if room is None:
                self.arrays.actions[:, self._spans[group.name]] = values.reshape(self._count, -1)
            else:
                room[...] = values
        names = by_group[0][0].name if len(by_group) == 1 else tuple([group.name for group, _ in by_group])
        if all_live and names == self._acting_groups:  # policies that were asked are asked again
            return
        arrays, self._acting_groups = self.arrays, names if all_live else None
        if names not in self._rows:
            row = self._rows[names] = np.zeros_like(arrays.source_in)
            for group, _ in by_group:
                row[:, self.position[list(group.ranks)]] = int(Source.EXPLICIT)
        np.multiply(self._rows[names], arrays.alive, out=arrays.source_in)

    def _ask(self, by_group: GroupActions) -> None:
        """Let policies decide for the groups that the caller says nothing of. Raises InvalidAction."""
        for decider in self._deciders:
            if all(decider.group is not group for group, _ in by_group):
                self._decide(decider)

    def _decide(self, decider: Decider) -> None:
        """Ask one of the batch's policies about the agents whose turn it is."""
        group, columns, (elements, agents) = decider.group, decider.columns, self._decided[decider]
        observations, turns = self._observations(group)[:, columns], self._turns[group.name][:, columns]
        active = self.active(group)[:, columns]
        values = decider.decide(observations, turns, active, self.seeds, self.episodes, self._masks.get(group.name))
        self.arrays.actions[:, elements] = values.reshape(self._count, -1)
        self.arrays.source_in[:, agents] = active * int(decider.source)

    def _observations(self, group: Group) -> NDArray[np.float32]:
        """What was published last of a group's observations, `[B, agents, d]`."""
        return self.published.observations[:, group.floats].reshape(self._count, -1, group.width)

    def start(self, lanes: Bools, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin episodes in `lanes`."""
        if seeds is not None:
            self.arrays.seeds[lanes] = seeds[lanes]
            self.arrays.episodes[lanes] = FIRST
        self.lanes.restart(lanes.view(np.uint8))
        self.final = self.lanes.published.final  # publish() hands out the other set
        begin_lanes(self._deciders, np.flatnonzero(lanes), self.seeds, self.episodes)

    def publish(self) -> None:
        """Publish observations of now, and rewards and ends of the last `move`."""
        self.published = self.lanes.observe()

    # Looking

    def alive(self, group: Group) -> Bools:
        """Who has not ended, `[B, agents]`."""
        return self.arrays.alive[:, self._agents[group.name]].astype(np.bool_)

    def active(self, group: Group) -> Bools:
        """Whose action will count in the coming step? (T10)"""
        now = (self.arrays.steps * self._env.dt_ns)[:, None]
        active: Bools = ticks_at(now, *self._clocks[group.name]) & self.alive(group)
        for lane, course in self.courses.of.items() if self.courses is not None else ():
            if down := course.simulation.down:
                active[lane] &= [rank not in down for rank in group.ranks]
        return active

    def ages(self, group: Group) -> NDArray[np.float64]:
        """How old is what each agent sees of each of its sources, s? Of now, but for sensors that fail."""
        ages = np.zeros((self._count, len(group.ranks), self._env.simulation.model.plan.age_counts[group.ranks[0]]))
        for lane, course in self.courses.of.items() if self.courses is not None else ():
            if course.muted:
                for place, rank in enumerate(group.ranks):
                    old = course.ages(rank)
                    ages[lane, place, : len(old)] = old
        return ages

    def infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Makers of the numbers by name."""
        arrays, places = self.arrays, self.position[list(group.ranks)]
        makers: dict[str, Callable[[], NDArray[Any]]] = {
            "is_active": lambda: self.active(group).astype(np.int8),
            "decision": lambda: arrays.source[:, places].astype(np.int8),
            "aoi": lambda: self.ages(group),
        }
        makers |= self._own_infos(group)
        disturbed = self.courses is not None and bool(self.courses.of)
        if group.name in self._masks or (disturbed and group.spec.dim_d):  # who is down may only do nothing
            makers["action_mask"] = self._masks.get(group.name) or self._offered(group)
        return makers

    @abstractmethod
    def _own_infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Those of `get_local_info`."""

    def _offered(self, group: Group) -> Callable[[], NDArray[np.int8]]:
        """What makes the masks of a group."""
        masks = GroupMasks(self._env.simulation, group.ranks)
        return lambda: masks.offered(self.lanes, self._observations(group), self.active(group))

    @property
    def trains_compiled(self) -> bool:
        """Are the training rewards of the last step in the arrays?"""
        return self.compiled and trains_compiled(self._env)

    def training_rewards(self, lanes: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Of these lanes: the class's own `training_rewards`, batched or lane by lane, or its `training_signal`."""
        if not has_training_rewards(self._env):
            return None
        if self.trains_compiled:
            return self.arrays.training[lanes]
        if type(self._env).training_signal is not Hooks.training_signal:
            return np.array([list(self.lane(b).training_signal().values()) for b in lanes])
        if not self.hooks.together:
            views = map(self.lane, lanes)
            return np.array([env.training_rewards(env.simulation.world) for env in views])
        rewards: list[NDArray[np.float64] | None] = []
        self.hooks.over(lanes, self.hooks.times(), lambda world: rewards.append(self._env.training_rewards(world)))
        return rewards[0]

    def lane(self, number: int) -> HeronEnv:
        """The environment in one lane, to look at."""
        return self._views[number]


class CompiledLanes(LaneEngine):
    """The rules in compiled loops."""

    compiled = True

    def __init__(
        self, env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], lanes: int,
        threads: int | None, final: bool,
    ) -> None:  # fmt: skip
        self._exchange = exchange_for(env, lanes)
        model = model_for(env, groups, (*env.native_loops(lanes), *self._exchange.natives()))
        engine = Lanes(model, lanes, threads or threads_for(lanes), final=final, later=True)
        engine.always_shared = threads is not None
        views = LaneViews(env, engine)
        hooks = LaneHooks(env, env.simulation.model, engine, views.at, type(env).python_hooks(), env.batched)
        engine.attach(replace(model, native=(*model.native, *hooks.natives())))
        super().__init__(env, groups, deciders, engine, views, hooks)

    def start(self, lanes: Bools, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin episodes in `lanes`."""
        disturbances, options = taken_out(options, "disturbances")
        if not (options and takes_options(self._env)):
            super().start(lanes, seeds, options)
        elif self._env.batched:
            begin_together(self._env, options, partial(super().start, lanes, seeds, None))
        else:
            with self.hooks.begun_otherwise():
                super().start(lanes, seeds, options)
            numbers = np.flatnonzero(lanes)
            begin_one_by_one(self._env, options, self._views, self.arrays, numbers)
            for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1):
                self.lanes.inform(range(int(run[0]), int(run[-1]) + 1))
        if checked := self._env._checked(disturbances or ()):
            self._disturb(np.flatnonzero(lanes).tolist(), checked)

    def _disturb(self, lanes: list[int], disturbances: Sequence[Disturbance]) -> None:
        """Let these happen in the episodes that begin in `lanes`."""
        if self.courses is None:
            self.courses = self._views.courses = Courses(self.lanes, self._views.__getitem__)
        for lane in lanes:
            env = self._views[lane]
            env.simulation.courses, env.proxy = self.courses, ProxyAgent()
            env.proxy.serve(env.hierarchy, env.simulation.model.layout, env.simulation.model.plan, env.dt_ns)
            show_truth(env.proxy, env.simulation.facts, env.hierarchy)
            Course(env.simulation, env.proxy, disturbances).begin()

    def _own_infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Columns of the engine's."""
        starts = np.array([self.lanes.info_slice(rank).start for rank in group.ranks])
        fields = enumerate(self.lanes.info_fields(group.ranks[0]))
        return {name: partial(_columns, self.arrays.infos, starts + number) for number, name in fields}


def taken_out(options: Mapping[str, Any] | None, name: str) -> tuple[Any, Mapping[str, Any] | None]:
    """The option of this name, or None, and the others."""
    rest = dict(options or {})
    return rest.pop(name, None), rest


def model_for(env: HeronEnv, groups: Mapping[str, Group], native: Sequence[Native]) -> Model:
    """Of a batch that publishes what these groups see."""
    observers = tuple(rank for name in env.group_map for rank in groups[name].ranks)
    return replace(env.simulation.model, observers=observers, native=tuple(native))


def exchange_for(env: HeronEnv, lanes: int) -> Exchange:
    """What neighbours tell each other in so many lanes; whoever runs it holds it."""
    return Exchange(env.simulation.exchange.edges, env.simulation.model.layout, env.hierarchy, lanes)


def threads_for(lanes: int) -> int:
    """As many as there are cores for us, or one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if lanes < FEW_LANES else cores


def _columns(table: NDArray[Any], columns: NDArray[np.int64]) -> NDArray[Any]:
    return table[:, columns]
