"""The engine of a batch: lanes that go through the phases, with Python hooks, policies and exchange in between."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import span_of
from heron_env.engine.arrays import Published
from heron_env.engine.blueprint import Blueprint, Native
from heron_env.engine.lanes import Lanes
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Decider, Given, Group, begin_lanes
from heron_env.envs.batch.views import LaneHooks, LaneViews, begin_one_by_one, begin_together, takes_options
from heron_env.envs.decisions import Source
from heron_env.envs.exchange import Exchange
from heron_env.envs.hooks import Hooks, has_training_rewards
from heron_env.envs.lane import blueprint_of
from heron_env.envs.masking import GroupMasks
from heron_env.errors import ConfigError
from heron_env.scheduling.ticks import ticks_at
from heron_env.scheduling.timing import SECOND, require_before_the_end

Bools = NDArray[np.bool_]
FEW_LANES = 256
"""Fewer lanes than this are not worth a second thread."""
FIRST = np.uint64(2**64 - 1)
"""The episode before the first."""


class LaneEngine(ABC):
    """B environments that go through the phases of a step together.

    A step is `move`, then `start` for lanes that begin anew, then `publish`; a reset is `start`, then `publish`.

    Attributes:
        lanes: the engine's.
        hooks: those of the environment that are Python.
        compiled: do rules run compiled?
        direct: is nothing of a control step Python once all actions are known, so that it can run in one call, `step`?
        halfway: had some lanes moved when the last `move` ended in an error? Else nothing has changed.
        seeds, episodes: keys of each lane's episode, uint64 `[B]`; steps: of it, int64 `[B]`.
        over: lanes whose episode ended in the last `move`, bool `[B]`.
        last_length: steps of each lane's last complete episode, int64 `[B]`.
        truth: float64 `[B, columns]`.
        published: what was published last.
        final: observations before the last `start`, float32 `[B, floats]`; kept if asked for at construction.
    """

    compiled = direct = halfway = False

    def __init__(
        self, env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], lanes: Lanes, views: LaneViews,
        hooks: LaneHooks,
    ) -> None:  # fmt: skip
        simulation, arrays = env.simulation, lanes.arrays
        arrays.initial[:] = simulation.initial
        self.lanes, self.arrays, self._env, self._deciders, self._count = lanes, arrays, env, deciders, lanes.count
        self._views, self.hooks = views, hooks
        self.position = np.asarray(lanes.position, dtype=np.int64)
        self.truth = arrays.truth[:, : simulation.layout.size]
        self.seeds, self.episodes, self.steps = arrays.seeds, arrays.episodes, arrays.steps
        self.over: Bools = arrays.ended.view(np.bool_)
        self.last_length = arrays.last_length
        self._all_live, self._last_step = not lanes.ends, 0 if lanes.ends else lanes.blueprint.last_step
        self._spans = {name: self._elements(group.ranks) for name, group in groups.items()}
        self._agents = {name: span_of(self.position[list(group.ranks)]) for name, group in groups.items()}
        self._turns = {n: np.broadcast_to(self.steps[:, None], group.shape[:2]) for n, group in groups.items()}
        self._clocks = {name: self._ticks(group.ranks) for name, group in groups.items()}
        self._decided = {one: (self._elements(one.ranks), span_of(self.position[one.ranks])) for one in deciders}
        self._room = {name: self._view(group) for name, group in groups.items()}
        self._masks = {name: self._offered(groups[name]) for name in env._publisher.offers.groups}
        self._rows: dict[str | tuple[str, ...], NDArray[np.uint8]] = {}
        self._all = np.arange(lanes.count)
        self._taken, self._most_steps = 0, simulation.most_steps
        self._given_by: str | tuple[str, ...] | None = None
        self.published: Published = lanes.published
        self.final = self.published.final

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

    def step(self, given: Given) -> None:
        """A whole step with restarts and observations in one call, for engines that are `direct`."""
        self._take(given, self._all_live)
        if self._deciders:
            self._ask(given)
        self.published = published = self.lanes.step()
        self.final = published.final
        if self._deciders:
            self.halfway = True
            begin_lanes(self._deciders, np.flatnonzero(self.over), self.seeds, self.episodes)
            self.halfway = False

    def goes_on(self) -> bool:
        """Is it certain that no episode ends in the coming step: no rule ends agents, and no limit is near?"""
        return bool(np.maximum.reduce(self.steps) + 1 < self._last_step)

    def move(self, given: Given, idle: Bools | None) -> None:
        """A control step up to its boundary. Raises InvalidAction naming lane and agent: nothing has changed then."""
        self._take(given)
        self._ask(given)
        lanes, simulation = self.lanes, self._env.simulation
        running = self._all if idle is None else np.flatnonzero(~idle)
        self._decide_all()
        lanes.affect()
        dt, substeps = simulation.dt / simulation.substeps, simulation.substeps
        for number in range(substeps):
            lanes.substep(number)
            if "advance" in self.hooks.names:
                start = self._time() + number * dt
                self.hooks.call("advance", running, start, dt, check=number + 1 == substeps)
        lanes.close()
        if "finish" in self.hooks.names:
            self.hooks.call("finish", running, self._time())
        self.conclude(running)

    def _decide_all(self) -> None:
        """Into `source` and `applied`."""
        self.lanes.check()
        self.lanes.decide()

    def conclude(self, running: NDArray[np.int64]) -> None:
        """Neighbours hear what they are told."""
        self.lanes.deliver()

    def _time(self) -> NDArray[np.float64]:
        return self.arrays.steps * self._env.dt_ns / SECOND

    def _take(self, given: Given, all_live: bool = False) -> None:
        """Write the actions; of agents that have ended none counts. Raises ScheduleError where time ends."""
        self._taken += 1
        if self._taken > self._most_steps:  # else no lane can be there yet
            require_before_the_end((int(self.steps.max()) + 1) * self._env.dt_ns, "step(): the end of a lane's step")
        for group, values in given:
            room = self._room[group.name]
            if room is None:
                self.arrays.actions[:, self._spans[group.name]] = values.reshape(self._count, -1)
            else:
                room[...] = values
        names = given[0][0].name if len(given) == 1 else tuple([group.name for group, _ in given])
        if all_live and names == self._given_by:  # policies that were asked are asked again
            return
        arrays, self._given_by = self.arrays, names if all_live else None
        if names not in self._rows:
            row = self._rows[names] = np.zeros_like(arrays.given)
            for group, _ in given:
                row[:, self.position[list(group.ranks)]] = int(Source.EXPLICIT)
        np.multiply(self._rows[names], arrays.alive, out=arrays.given)

    def _ask(self, given: Given) -> None:
        """Let policies decide for the groups that the caller says nothing of. Raises InvalidAction."""
        for decider in self._deciders:
            if all(decider.group is not group for group, _ in given):
                self._decide(decider)

    def _decide(self, decider: Decider) -> None:
        """Ask one of the batch's policies about the agents whose turn it is."""
        group, columns, (elements, agents) = decider.group, decider.columns, self._decided[decider]
        seen, turns, asked = (
            self._seen(group)[:, columns],
            self._turns[group.name][:, columns],
            self.active(group)[:, columns],
        )
        values = decider.decide(seen, turns, asked, self.seeds, self.episodes, self._masks.get(group.name))
        self.arrays.actions[:, elements] = values.reshape(self._count, -1)
        self.arrays.given[:, agents] = asked * int(decider.source)

    def _seen(self, group: Group) -> NDArray[np.float32]:
        """What was published last of a group's observations, `[B, agents, d]`."""
        return self.published.observations[:, group.floats].reshape(self._count, -1, group.width)

    def start(self, lanes: Bools, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin episodes in `lanes`."""
        if seeds is not None:
            self.arrays.seeds[lanes] = seeds[lanes]
            self.arrays.episodes[lanes] = FIRST
        self.lanes.restart(lanes.view(np.uint8))
        self.final = self.lanes.published.final  # publish() hands out the other set
        numbers = np.flatnonzero(lanes)
        begin_lanes(self._deciders, numbers, self.seeds, self.episodes)
        if self._begin(numbers, options):
            for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1):
                self.lanes.inform(range(int(run[0]), int(run[-1]) + 1))

    @abstractmethod
    def _begin(self, lanes: NDArray[np.int64], options: Mapping[str, Any] | None) -> bool:
        """What Python does at the beginning of an episode; may infos have changed by it?"""

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
        return active

    def ages(self, group: Group) -> NDArray[np.float64]:
        """How old is what each agent sees of each of its sources, s?"""
        plan = self._env.simulation.plan
        return np.zeros((self._count, len(group.ranks), plan.told_sources[group.ranks[0]]))

    def infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Makers of the numbers by name."""
        arrays, places = self.arrays, self.position[list(group.ranks)]
        makers: dict[str, Callable[[], NDArray[Any]]] = {
            "is_active": lambda: self.active(group).astype(np.int8),
            "decision": lambda: arrays.source[:, places].astype(np.int8),
            "aoi": lambda: self.ages(group),
        }
        makers |= self._own_infos(group)
        if group.name in self._masks:
            makers["action_mask"] = self._masks[group.name]
        return makers

    @abstractmethod
    def _own_infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Those of `get_local_info`."""

    def _offered(self, group: Group) -> Callable[[], NDArray[np.int8]]:
        """What makes the masks of a group."""
        masks = GroupMasks(self._env.simulation, group.ranks)
        return lambda: masks.offered(self.lanes, self._seen(group), self.active(group))

    def training_rewards(self, lanes: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Of these lanes: the class's own `training_rewards`, batched or lane by lane, or its `training_signal`."""
        if not has_training_rewards(self._env):
            return None
        if type(self._env).training_signal is not Hooks.training_signal:
            return np.array([list(self.lane(b).training_signal().values()) for b in lanes])
        if not self.hooks.together:
            views = map(self.lane, lanes)
            return np.array([env.training_rewards(env.simulation.world) for env in views])
        found: list[NDArray[np.float64] | None] = []
        self.hooks.over(lanes, self._time(), lambda world: found.append(self._env.training_rewards(world)))
        return found[0]

    def lane(self, number: int) -> HeronEnv:
        """The environment in one lane, to look at."""
        return self._views[number]


class CompiledLanes(LaneEngine):
    """The rules in compiled loops, with Python hooks in between."""

    compiled = True

    def __init__(
        self, env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], lanes: int,
        threads: int | None, final: bool,
    ) -> None:  # fmt: skip
        self._exchange = exchange_for(env, lanes)
        native = (*env.native_loops(lanes), *self._exchange.natives())
        engine = Lanes(blueprint_for(env, groups, native), lanes, threads or threads_for(lanes), final=final)
        engine.always_shared = threads is not None
        views = LaneViews(env, engine)
        hooks = LaneHooks(env, engine.arrays, views, type(env).python_hooks(), env.batched)
        super().__init__(env, groups, deciders, engine, views, hooks)
        self.direct = not self.hooks.names

    def start(self, lanes: Bools, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin episodes in `lanes`. Raises ConfigError for disturbances."""
        if options and options.get("disturbances"):
            raise ConfigError(
                "reset(options={'disturbances': ...}): disturbances act in single environments and in batches of "
                "environments that are not compiled; build the environment with compile=False"
            )
        if options and takes_options(self._env) and self._env.batched:
            begin_together(self._env, options, partial(super().start, lanes, seeds, None))
        else:
            super().start(lanes, seeds, options)

    def _begin(self, lanes: NDArray[np.int64], options: Mapping[str, Any] | None) -> bool:
        """The hook `begin`, and options of reset()."""
        if not (options and takes_options(self._env)):
            self.hooks.call("begin", lanes, np.zeros(self._count))
        else:
            begin_one_by_one(self._env, options, self._views, self.arrays, lanes)
        return bool(self.arrays.infos.shape[1]) and (bool(options) or "begin" in self.hooks.names)

    def _own_infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Columns of the engine's."""
        starts = np.array([self.lanes.info_slice(rank).start for rank in group.ranks])
        fields = enumerate(self.lanes.info_fields(group.ranks[0]))
        return {name: partial(_columns, self.arrays.infos, starts + number) for number, name in fields}


def blueprint_for(env: HeronEnv, groups: Mapping[str, Group], native: Sequence[Native]) -> Blueprint:
    """Of a batch that publishes what these groups see."""
    observers = [rank for name in env.group_map for rank in groups[name].ranks]
    return blueprint_of(env.simulation, observers, native=native)


def exchange_for(env: HeronEnv, lanes: int) -> Exchange:
    """What neighbours tell each other in so many lanes; whoever runs it holds it."""
    return Exchange(env.simulation.exchange.edges, env.simulation.layout, env.hierarchy, lanes)


def threads_for(lanes: int) -> int:
    """As many as there are cores for us, or one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if lanes < FEW_LANES else cores


def _columns(table: NDArray[Any], columns: NDArray[np.int64]) -> NDArray[Any]:
    return table[:, columns]
