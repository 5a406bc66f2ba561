"""The environments of a batch's lanes: to look at, for hooks called lane by lane, and for options of reset()."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.engine.arrays import Arrays
from heron_env.engine.lanes import Lanes
from heron_env.envs.base import HeronEnv
from heron_env.envs.disturbing import Courses
from heron_env.envs.lane import Lane
from heron_env.envs.simulation import NOBODY, Simulation
from heron_env.errors import ConfigError


class LaneViews:
    """The environment of each lane, made when it is first asked for: a shallow copy with a truth of its own.

    What hooks set on `self` is thus the lane's own. It can be looked at; only the batch moves it.
    """

    def __init__(self, env: HeronEnv, lanes: Lanes) -> None:
        self._env, self._lanes, self._arrays = env, lanes, lanes.arrays
        self._made: dict[int, HeronEnv] = {}
        self.courses: Courses | None = None

    def __getitem__(self, lane: int) -> HeronEnv:
        """As it is now."""
        env = self._made.get(lane) or self._make(lane)
        simulation, index = env.simulation, env.hierarchy.index
        self.at(lane, simulation.step_index, simulation.time)
        env.agents = [agent for agent in env.possible_agents if simulation.alive[index[agent]]]
        return env

    def simulation(self, lane: int) -> Simulation:
        """Its simulation, as it was left."""
        return (self._made.get(lane) or self._make(lane)).simulation

    def at(self, lane: int, step: int, time: float) -> tuple[HeronEnv, World]:
        """With its world at this step and time; all that hooks need."""
        env = self._made.get(lane) or self._make(lane)
        world = env.simulation.world
        world.seed, world.episode = int(self._arrays.seeds[lane]), int(self._arrays.episodes[lane])
        world.step, world.time = step, time
        return env, world

    def _make(self, lane: int) -> HeronEnv:
        env: HeronEnv = object.__new__(type(self._env))
        env.__dict__.update(self._env.__dict__)
        simulation = env.simulation = copy.copy(self._env.simulation)
        simulation.lane = Lane(simulation, self._lanes, lane)
        simulation.truth = simulation.lane.truth
        simulation.world, simulation.hooks = World(simulation.model.layout, simulation.truth), env
        simulation.world.lanes, simulation.course, simulation.down = lane, None, NOBODY
        simulation.courses = self.courses
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


def takes_options(env: HeronEnv) -> bool:
    """Does the class do anything with options?"""
    kind = type(env)
    return kind.reset is not HeronEnv.reset or kind.start_episode is not HeronEnv.start_episode


def reset_lane(env: HeronEnv, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What its own reset() returns; whether the batch's clock can follow its schedule, the batch has checked."""
    simulation = env.simulation
    simulation.is_lane = True
    try:
        return env.reset(**arguments)
    finally:
        simulation.is_lane = False


def begin_together(env: HeronEnv, options: Mapping[str, Any], begin: Callable[[], None]) -> None:
    """For classes with `batched = True`: reset() takes the options, and where it begins its episode, lanes begin."""
    env.simulation.begin_instead = begin
    try:
        reset_lane(env, seed=0, options=options)  # of no effect: each lane has a seed of its own
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
            reset_lane(view, options=options)
        finally:
            view.simulation, simulation.hooks = own, env
        own.truth[:] = simulation.truth
