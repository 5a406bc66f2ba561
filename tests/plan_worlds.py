"""Small Gymnasium environments with exact models, and policies that plan by rolling a rule out in the model."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, Vector, World, quantity, rule

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


# The same in an environment of ours


class Mass(FeatureProvider):
    """Place and speed; the push is not observed."""

    x: float = quantity(default=1.0, low=-1e6, high=1e6)
    v: float = quantity(default=0.0, low=-1e6, high=1e6)
    a: float = quantity(default=0.0, low=-3.0, high=3.0, observed=False)


class Cart(FieldAgent):
    features = (Mass,)
    action = Continuous(-3.0, 3.0)

    @staticmethod
    @rule(writes=Mass.a)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(mass: Mass) -> float:
        return -(mass.x * mass.x + 0.1 * mass.v * mass.v)


class Line(HeronEnv):
    """x'' = a."""

    @staticmethod
    @rule(writes=(Mass.x, Mass.v))
    def advance(world: World, dt: float) -> None:
        mass = world[Cart].Mass
        mass.x[:] += mass.v * dt
        mass.v[:] += mass.a * dt


def line(schedule: Any = None) -> Line:
    return Line(SystemAgent("system", Cart("cart")), dt=0.1, max_steps=30, compile=False, schedule=schedule)


def rolled_out_from(k: int) -> Callable[..., Any]:
    """k actions of a rule in the model, which all that is running enters."""

    def policy(seen: Any, running: Any) -> Any:
        x, v, rows = float(seen[0]), float(seen[1]), list[list[float]]()
        shift = 0.1 * (running.index + running.number + running.age + running.prefix + running.left)
        shift += 0.1 * sum(float(row[0]) for row in running.remaining)
        for j in range(k):
            rows.append([float(np.clip(-2.0 * x - 1.5 * v + 0.3 * np.sin(j + shift), -3.0, 3.0))])
            x, v = x + 0.1 * v, v + 0.1 * rows[-1][0]
        return np.array(rows)

    return policy
