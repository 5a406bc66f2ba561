"""The environment of each lane of a batch: to look at, for its Python hooks, and for reset() with options."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.core.world import World
from heron_env.engine.arrays import Arrays
from heron_env.engine.lanes import Lanes
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_messages import LateLane, LateLanes
from heron_env.envs.batch.world import BatchWorld, SomeLanes
from heron_env.envs.lane import Lane
from heron_env.envs.simulation import Simulation
from heron_env.errors import ConfigError, RuleError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LaneViews:
    """The environment of each lane, made when it is first asked for: a shallow copy with a truth of its own.

    What hooks set on `self` is thus the lane's own. It can be looked at; only the batch moves it.
    `late`: the batch's training delays, if it has any.
    """

    late: LateLanes | None = None

    def __init__(self, env: HeronEnv, lanes: Lanes) -> None:
        self._env, self._lanes, self._arrays = env, lanes, lanes.arrays
        self._made: dict[int, HeronEnv] = {}

    def __getitem__(self, lane: int) -> HeronEnv:
        """As it is now."""
        env = self._made.get(lane) or self._make(lane)
        arrays, simulation = self._arrays, env.simulation
        simulation.over = bool(arrays.over[lane])
        simulation.step_index = int(arrays.steps[lane])
        self.at(lane, simulation.step_index, simulation.time)
        simulation.alive = simulation.lane.alive
        index = env.hierarchy.index
        env.agents = [agent for agent in env.possible_agents if simulation.alive[index[agent]]]
        return env

    def simulation(self, lane: int) -> Simulation:
        """Its simulation, as it was left."""
        return (self._made.get(lane) or self._make(lane)).simulation

    def at(self, lane: int, step: int, time: float) -> HeronEnv:
        """With its world at this step and time; all that hooks need."""
        env = self._made.get(lane) or self._make(lane)
        world = env.simulation.world
        world.seed, world.episode = int(self._arrays.seeds[lane]), int(self._arrays.episodes[lane])
        world.step, world.time = step, time
        return env

    def _make(self, lane: int) -> HeronEnv:
        env: HeronEnv = object.__new__(type(self._env))
        env.__dict__.update(self._env.__dict__)
        simulation = env.simulation = copy.copy(self._env.simulation)
        simulation.lane = Lane(simulation, self._lanes, lane)
        simulation.truth = simulation.lane.truth
        simulation.world, simulation.hooks = World(simulation.layout, simulation.truth), env
        simulation.world.lanes = lane
        env.__dict__.update(
            {name: partial(_refuse, name, "compiled batch") for name in ("step", "get_state", "set_state")}
        )
        if self.late is not None:
            env.__dict__["_late"] = LateLane(self.late, lane)
        self._made[lane] = env
        return env


class OwnLanes(LaneViews):
    """An environment of its own for each lane, its simulation on the lane's row of the truth; the batch moves it.

    Lane 0 is the environment that the batch was given, and whoever gave it may look at it there.
    """

    def __init__(self, envs: Sequence[HeronEnv], lanes: Lanes, late: LateLanes | None, closed: bool) -> None:
        """`closed`: does the batch alone move them?"""
        super().__init__(envs[0], lanes)
        self._made, self._delays = dict(enumerate(envs)), [env._late for env in envs]
        for lane, env in enumerate(envs):
            env.simulation.world.lanes = lane
            if closed and lane:
                _close(env, "batch")
            if late is not None:
                env.__dict__["_late"] = LateLane(late, lane)

    def __getitem__(self, lane: int) -> HeronEnv:
        """As it is now."""
        env = super().__getitem__(lane)
        env.proxy.time = env.simulation.time
        return env

    def at(self, lane: int, step: int, time: float) -> HeronEnv:
        """As in LaneViews; hooks may ask the simulation, too."""
        env = super().at(lane, step, time)
        env.simulation.step_index, env.simulation.alive = step, env.simulation.lane.alive
        return env

    def begin(self, lane: int, options: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let its own reset() begin the episode that the arrays say; what that returned."""
        env, arrays = self._made[lane], self._arrays
        env._seed, env._episode = int(arrays.seeds[lane]), int(arrays.episodes[lane]) - 1
        late, env._late = env._late, self._delays[lane]
        try:
            return env.reset(options=options)
        finally:
            env._late = late


def _close(env: HeronEnv, what: str) -> None:
    """Let only the batch move it."""
    env.__dict__.update({name: partial(_refuse, name, what) for name in ("step", "get_state", "set_state")})


def _refuse(name: str, what: str, *_: Any, **__: Any) -> NoReturn:
    raise ConfigError(
        f"{name}(): a lane of a {what} can only be looked at; "
        "build the environment with the lane's seed to have one of your own"
    )


class LaneHooks:
    """Calls `begin`, `advance` and `finish`: those of `names`.

    Attributes:
        together: for all lanes at once, or one lane after the other?
    """

    def __init__(self, env: HeronEnv, arrays: Arrays, views: LaneViews, names: Iterable[str], together: bool) -> None:
        self._env, self._arrays, self._views = env, arrays, views
        self.names, self.together = frozenset(names), together
        self._layout: Layout = env.simulation.layout
        self._truth = arrays.truth[:, : self._layout.size]
        self._bounded = np.flatnonzero(np.isfinite(self._layout.low) | np.isfinite(self._layout.high))
        self._whole = np.flatnonzero(self._layout.whole)
        everyone = np.arange(len(self._truth))
        self.world = BatchWorld(self._layout, self._truth, everyone, arrays.seeds, arrays.episodes)

    def call(self, name: str, lanes: Ints, time: Floats, *more: float, check: bool = True) -> None:
        """Call the hook for `lanes`, at the times `[B]` of all lanes; then bring the truth into its bounds.

        Raises RuleError where `check` finds a quantity that is nan.
        """
        if name not in self.names or not len(lanes):
            return
        if self.together:
            if not self._together(name, lanes, time, *more):
                return
        else:
            for lane in lanes.tolist():
                env = self._views.at(lane, int(self._arrays.steps[lane]), float(time[lane]))
                try:
                    env.run_hook(name, env.simulation.world, *more)
                except Exception as error:
                    error.add_note(f"in {name}() of lane {lane}")
                    raise
        everyone = len(lanes) == len(self._truth)
        self._settle(name, self._truth if everyone else self._truth[lanes], lanes, time, check)

    def over(self, lanes: Ints, time: Floats, call: Callable[[BatchWorld], None]) -> None:
        """Let `call` see and change the world of `lanes`: that of the batch, or of them alone, written back."""
        arrays = self._arrays
        if len(lanes) == len(self._truth):
            self.world.step, self.world.time = arrays.steps.copy(), time[:, None]
            call(self.world)
            return
        world = SomeLanes(self.world, lanes)
        world.step, world.time = arrays.steps[lanes], time[lanes, None]
        call(world)
        world.write_back()

    def _together(self, name: str, lanes: Ints, time: Floats, *more: float) -> bool:
        """Call the hook once. May what it wrote lie outside its bounds?"""
        hook, touched = getattr(type(self._env), name), True

        def call(world: BatchWorld) -> None:
            nonlocal touched
            world.touched = False
            hook(self._env, world, *more)
            touched = world.touched

        try:
            self.over(lanes, time, call)
        except Exception as error:
            error.add_note(f"in {name}() of all lanes: columns are [lanes, agents], globals [lanes, 1]")
            raise
        return touched

    def _settle(self, name: str, rows: Floats, lanes: Ints, time: Floats, check: bool) -> None:
        """Clip, round and check; `rows` are the lanes' truth, or a copy that is written back."""
        np.clip(rows, self._layout.low, self._layout.high, out=rows)
        if len(self._whole):
            rows[:, self._whole] = np.round(rows[:, self._whole])
        if rows.base is not self._truth.base:
            self._truth[lanes] = rows
        if check and np.isnan(rows.sum()):
            bad = int(np.argmax(np.isnan(rows).any(axis=1)))
            names = ", ".join(self._layout.bad_columns(rows[bad])[:5])
            where = f"lane {lanes[bad]}: " if len(self._truth) > 1 else ""
            raise RuleError(
                f"{where}after {name}() at t={time[lanes[bad]]} s these quantities are nan: {names}; check the physics"
            )


def takes_options(env: HeronEnv) -> bool:
    """Does the class do anything with options?"""
    kind = type(env)
    return kind.reset is not HeronEnv.reset or kind.start_episode is not HeronEnv.start_episode


def begin_together(env: HeronEnv, options: Mapping[str, Any], begin: Callable[[], None]) -> None:
    """For classes with `batched = True`: reset() takes the options, and calls `begin`, which begins lanes."""
    env.__dict__["begin"] = lambda world: begin()
    try:
        env.reset(options=options)
    finally:
        del env.__dict__["begin"]


def begin_one_by_one(
    env: HeronEnv, options: Mapping[str, Any], views: LaneViews, arrays: Arrays, lanes: NDArray[np.int64]
) -> None:
    """For other classes: each lane's environment resets on the one simulation, and the lane takes over its truth."""
    simulation = env.simulation
    for lane in lanes.tolist():
        view = views[lane]
        own = view.simulation
        view.simulation, simulation.hooks = simulation, view
        late, view._late = view._late, env._late
        view._seed, view._episode = int(arrays.seeds[lane]), int(arrays.episodes[lane]) - 1
        try:
            view.reset(options=options)
        finally:
            view.simulation, simulation.hooks, view._late = own, env, late
        own.truth[:] = simulation.truth
