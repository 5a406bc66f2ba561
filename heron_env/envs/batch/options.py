"""Options of reset() in a compiled batch: the class's own reset() takes them, and the lanes begin where it would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import Arrays
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.hooks import LaneViews


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
