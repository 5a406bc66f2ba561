"""Tanks whose rules divide, look up and assert: with the right action each of these fails. Not a test module, in which
pytest rewrites `assert`.
"""

import math
from typing import Any

import numpy as np

from heron_env import FeatureProvider, FieldAgent, HeronEnv, World, quantity, rule
from heron_env.core.action import Continuous, Vector

TABLE = np.array([1.0, 2.0, 4.0])


class Tank(FeatureProvider):
    level: float = quantity(default=1.0, low=-1e6, high=1e6)
    size: float = quantity(default=2.0, low=-10.0, high=10.0)
    shares: np.ndarray = quantity(default=(1.0, 2.0), shape=(2,), low=-9.0, high=9.0)


class Keeper(FieldAgent):
    features = (Tank,)
    action = Continuous(-5.0, 5.0)

    @staticmethod
    @rule(writes=Tank.size)
    def apply_action(tank: Tank, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Tank.level, Tank.shares))
    def advance(tank: Tank, time: float) -> Any:
        at = int(abs(tank.size))
        unused = 1.0 / (tank.size + 1.0)
        if tank.level > 1e5:
            unused += 1.0
        assert tank.size < 4.0
        total = 0.0
        for k in range(3):
            total += TABLE[k]
        level = tank.level / tank.size * total / total if tank.size != 0.25 else math.inf
        return level, (tank.shares[at] if time > 0.0 else 0.5, tank.level)

    @staticmethod
    @rule
    def compute_local_reward(tank: Tank) -> float:
        return tank.level

    @staticmethod
    @rule
    def is_terminated(tank: Tank) -> bool:
        return tank.level > 50.0


class Tanks(HeronEnv):
    """Two keepers of a tank each."""


class Wave(HeronEnv):
    """A world rule with whole columns, which vectors don't know."""

    @staticmethod
    @rule
    def advance(world: World, dt: float) -> None:
        world[Keeper].Tank.level[:] = np.sort(world[Keeper].Tank.level)
