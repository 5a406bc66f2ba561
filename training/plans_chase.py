"""A tracked target and position set-points, as arms have them; for plans.py."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

DT = 0.05


def target(phases: Any) -> float:
    """Where to be."""
    return math.sin(phases[0]) + 0.5 * math.sin(phases[1])


class Chase(gymnasium.Env[Any, Any]):
    """A stiff inner loop follows the set-point; a camera sees the target's phases with fresh noise."""

    def __init__(self) -> None:
        self.action_space = spaces.Box(-3.0, 3.0, (1,), np.float64)
        self.observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """On the target, at rest."""
        super().reset(seed=seed)
        self.phases, self.number = self.np_random.uniform(0.0, 2.0 * math.pi, 2), 0
        self.x, self.v = target(self.phases), 0.0
        return self._look(), {}

    def step(self, action: Any) -> Any:
        """The reward is -(distance from the target)^2."""
        for _ in range(5):
            self.v += (100.0 * (float(action[0]) - self.x) - 20.0 * self.v) * DT / 5.0
            self.x += self.v * DT / 5.0
        self.phases, self.number = self.phases + np.array([1.3, 2.9]) * DT, self.number + 1
        return self._look(), -((self.x - target(self.phases)) ** 2), False, self.number >= 200, {}

    def _look(self) -> Any:
        return np.array([self.x, self.v, *(self.phases + 0.3 * self.np_random.standard_normal(2))])


def follow(seen: Any, k: int = 50) -> Any:
    """Where the target will be, a lead of the inner loop ahead: set-points `[k, 1]`."""
    times = np.arange(k) * DT + 0.25
    return (np.sin(seen[2] + 1.3 * times) + 0.5 * np.sin(seen[3] + 2.9 * times))[:, None]
