"""What Python is shown of a batch's lanes: the world of all or some, each one's environment, and the calls of hooks.

Hooks of a class with `batched = True` see the BatchWorld, the others one lane after the other. Each lane has an
environment to look at, for its hooks, and for reset() with options.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.core.quantity import clip
from heron_env.core.world import CohortColumns, Columns, World
from heron_env.engine.arrays import Arrays
from heron_env.engine.lanes import Lanes
from heron_env.envs.base import HeronEnv
from heron_env.envs.hooks import require_numbers
from heron_env.envs.lane import Lane
from heron_env.envs.simulation import Simulation
from heron_env.errors import ConfigError, RuleError
from heron_env.seeding import keys, uniform_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]


class BatchWorld(World):
    """World with a leading axis: columns `[B, n]`, globals `[B, 1]`; what hooks write is clipped afterwards.

    Attributes:
        lanes: which lanes these are, int64 `[B]`; in `begin` only those that start, else those that run.
        seed, episode: of each, uint64 `[B]`.
        step: control steps of each, int64 `[B]`.
        time: nominal, s, float64 `[B, 1]`.
        touched: may a hook have written anything that is not yet within its bounds? It has if it asked for columns,
            and has not if it only used `get` and `put`. Columns are for the call in which they were asked for.
    """

    lanes: Any
    seed: Any
    episode: Any
    step: Any
    time: Any

    def __init__(self, layout: Layout, truth: Floats, lanes: Ints, seeds: Keys, episodes: Keys) -> None:
        self._array, self._layout, self.touched = truth, layout, False
        self.lanes, self.seed, self.episode = lanes, seeds, episodes
        self.step, self.time = np.zeros(len(truth), dtype=np.int64), np.zeros((len(truth), 1))
        self._classes = [cohort.cls for cohort in layout.cohorts[:-1]]
        self._known = {}

    @cached_property
    def _cohorts(self) -> list[CohortColumns]:  # type: ignore[override]
        """Made where somebody looks: many hooks use `get` and `put` alone."""
        return [CohortColumns(cohort, self._array) for cohort in self._layout.cohorts[:-1]]

    @cached_property
    def _globals(self) -> CohortColumns:  # type: ignore[override]
        return CohortColumns(self._layout.cohorts[-1], self._array)

    def draw(self, name: str, shape: int | tuple[int, ...] = 1) -> Floats:
        """Uniforms in [0, 1), `[B, *shape]`: each lane's are those that its own World draws."""
        return uniform_rows(keys("world", self.seed, self.episode, self.step.astype(np.uint64), name), shape)

    @property
    def rows(self) -> Floats:
        """As in World, `[B, columns]`."""
        self.touched = True
        return self._array

    def __getitem__(self, cls: type) -> CohortColumns:
        """As in World, `[B, n]`."""
        self.touched = True
        return super().__getitem__(cls)

    def __getattr__(self, name: str) -> Columns:
        """As in World, `[B, 1]`."""
        columns = super().__getattr__(name)
        self.touched = True
        return columns

    def get(self, columns: Ints) -> Floats:
        """As in World, `[B, k]`."""
        return self._array.take(columns, axis=1)

    def put(self, columns: Ints, values: Floats) -> None:
        """Write `values` `[B, k]` into `columns` `[k]` of every lane's truth, within their bounds."""
        if np.shape(values) != (shape := (len(self.lanes), len(columns))):
            raise RuleError(f"world.put(columns, values): values have the shape {np.shape(values)}, expected {shape}")
        low, high, whole = (of[columns] for of in (self._layout.low, self._layout.high, self._layout.whole))
        bounded, (array, rows) = clip(np.asarray(values, dtype=np.float64), low, high, whole=whole), self._target()
        array[rows[:, None], columns] = bounded
        self.touched |= bool(np.isnan(bounded.sum()))

    def _target(self) -> tuple[Floats, Ints]:
        """Whose rows `put` writes, and which."""
        return self._array, np.arange(len(self._array))


class SomeLanes(BatchWorld):
    """The world of some `lanes` of a whole one: a compacted copy, made where somebody looks, for `write_back`.

    What is only put goes straight to the whole.
    """

    def __init__(self, whole: BatchWorld, lanes: Ints) -> None:
        self._whole, self._layout, self.touched = whole, whole._layout, False
        self._classes, self._known = whole._classes, {}
        self.lanes, self.seed, self.episode = lanes, whole.seed[lanes], whole.episode[lanes]

    @cached_property
    def _array(self) -> Floats:  # type: ignore[override]
        rows: Floats = self._whole._array[self.lanes]
        return rows

    def _target(self) -> tuple[Floats, Ints]:
        return super()._target() if "_array" in self.__dict__ else (self._whole._array, self.lanes)

    def write_back(self) -> None:
        """Into the whole, what may have been changed in the copy."""
        if "_array" in self.__dict__:
            self._whole._array[self.lanes] = self._array


class LaneViews:
    """The environment of each lane, made when it is first asked for: a shallow copy with a truth of its own.

    What hooks set on `self` is thus the lane's own. It can be looked at; only the batch moves it.
    """

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
        only_look_at(env, "compiled batch")
        self._made[lane] = env
        return env


def only_look_at(env: HeronEnv, what: str) -> None:
    """Let nobody but `what`, a batch, move it."""
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
        self._layout.clip_columns(rows)
        if rows.base is not self._truth.base:
            self._truth[lanes] = rows
        if check and np.isnan(rows.sum()) and (bad := np.isnan(rows).any(axis=1)).any():
            place = int(np.argmax(bad))
            where = f"lane {lanes[place]}: after" if len(self._truth) > 1 else "after"
            require_numbers(self._layout, rows[place], f"{where} {name}()", time[lanes[place]])


def takes_options(env: HeronEnv) -> bool:
    """Does the class do anything with options?"""
    kind = type(env)
    return kind.reset is not HeronEnv.reset or kind.start_episode is not HeronEnv.start_episode


def begin_together(env: HeronEnv, options: Mapping[str, Any], begin: Callable[[], None]) -> None:
    """For classes with `batched = True`: reset() takes the options, and where it begins its episode, lanes begin."""
    env.simulation.begin_instead = begin
    try:
        env.reset(seed=0, options=options)  # of no effect: each lane has a seed of its own
    finally:
        env.simulation.begin_instead = None


def begin_one_by_one(
    env: HeronEnv, options: Mapping[str, Any], views: LaneViews, arrays: Arrays, lanes: NDArray[np.int64]
) -> None:
    """For other classes: each lane's environment resets on the one simulation, and the lane takes over its truth."""
    simulation = env.simulation
    for lane in lanes.tolist():
        view = views[lane]
        own = view.simulation
        view.simulation, simulation.hooks = simulation, view
        view._seed, view._episode = int(arrays.seeds[lane]), int(arrays.episodes[lane]) - 1
        try:
            view.reset(options=options)
        finally:
            view.simulation, simulation.hooks = own, env
        own.truth[:] = simulation.truth
