"""Small Gymnasium environments with exact models, and policies that plan by rolling a rule out in the model."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

DT, LENGTH = 0.05, 120


def integrate(state: Any, push: float) -> Any:
    """One step of x'' = a."""
    speed = state[1] + min(max(push, -3.0), 3.0) * DT
    return np.array([state[0] + speed * DT, speed])


def feedback(state: Any) -> float:
    return float(min(max(-6.0 * state[0] - 4.0 * state[1], -3.0), 3.0))


class Integrator(gymnasium.Env[Any, Any]):
    """x'' = a; a gust `wind` strong, which the model does not know."""

    def __init__(self, wind: float = 0.0, rest: bool = False) -> None:
        self.action_space = spaces.Box(-3.0, 3.0, (1,), np.float64)
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.wind, self.rest = wind, rest

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = np.zeros(2) if self.rest else self.np_random.uniform(-2.0, 2.0, 2)
        self.number, self.pushes = 0, list[float]()
        return self.state.copy(), {}

    def step(self, action: Any) -> Any:
        x, v = self.state
        self.pushes.append(float(action[0]))
        gust = self.wind * self.np_random.standard_normal() if self.wind else 0.0
        self.state, self.number = integrate(self.state, float(action[0]) + gust), self.number + 1
        reward = -(x * x + 0.1 * v * v + 0.01 * float(action[0]) ** 2)
        return self.state.copy(), reward, False, self.number >= LENGTH, {}


class Switch(gymnasium.Env[Any, Any]):
    """Discrete(3) and a number; choice 1 is forbidden at odd steps."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(0.0, 1e3, (1,), np.float64)

    def _shown(self) -> Any:
        allowed = np.array([1, self.number % 2 == 0, 1], dtype=np.int8)
        return np.array([float(self.number)]), {"action_mask": allowed}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.number, self.taken = 0, list[int]()
        return self._shown()

    def step(self, action: Any) -> Any:
        self.taken.append(int(action))
        self.number += 1
        observation, info = self._shown()
        return observation, 0.0, False, self.number >= 12, info


def rolled_out(k: int) -> Callable[[Any], Any]:
    """k actions of the rule, in a model without wind."""

    def policy(seen: Any) -> Any:
        state, rows = np.asarray(seen, np.float64), []
        for _ in range(k):
            rows.append([feedback(state)])
            state = integrate(state, rows[-1][0])
        return np.array(rows)

    return policy


def with_prefix(k: int) -> Callable[..., Any]:
    """The same, where what is carried out before the answer can be is known."""

    def policy(seen: Any, running: Any = None) -> Any:
        state, rows = np.asarray(seen, np.float64), []
        fixed = [float(action[0]) for action in running.remaining[: running.prefix]]
        fixed += [0.0] * (running.prefix - len(fixed))
        for i in range(k):
            rows.append([fixed[i] if i < len(fixed) else feedback(state)])
            state = integrate(state, rows[-1][0])
        return np.array(rows)

    return policy
