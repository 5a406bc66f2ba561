"""A small world whose rules use everything that compiled rules may: the tests run it in both executions."""

import enum
import math
from typing import Any, NamedTuple

import numpy as np
import rule_kit_constants as constants

from heron_env import (
    Children,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    Parent,
    SystemAgent,
    Vector,
    quantity,
    rule,
)

TABLE = np.array([1.0, 0.5, 0.25, 0.125])
PAIR = (0.1, 0.2)


class Season(enum.IntEnum):
    WINTER = 0
    SUMMER = 1


class Store(FeatureProvider):
    level: float = quantity(default=0.5, low=0.0, high=2.0)
    mode: int = quantity(default=1, low=0, high=3)
    open: bool = quantity(default=True)
    season: int = quantity(default=1, categories=("winter", "summer"))


class Trail(FeatureProvider):
    cells: np.ndarray = quantity(default=(1.0, 2.0, 3.0), shape=(3,), low=-5.0, high=5.0)


class Count(FeatureProvider):
    ticks: int = quantity(default=0, low=0, high=7)
    steps: np.ndarray = quantity(default=(0, 0), shape=(2,), low=-9.0, high=9.0)
    count: float = 0.0


class Plan(FeatureProvider):
    target: float = quantity(default=0.4, low=-3.0, high=3.0)
    spread: float = 0.0


class Sun(FeatureProvider):
    visibility = ("public",)
    shine: float = quantity(default=0.7, low=0.0, high=1.0)
    hours: np.ndarray = quantity(default=(1.0, 2.0), shape=(2,))


class Facts(NamedTuple):
    level: float
    double: float
    mode: int


def clamp(x: float) -> float:
    return max(0.0, min(1.0, x))


def twice(store: Any) -> Any:
    """A helper that takes a feature and calls a helper."""
    return 2.0 * clamp(store.level)


def pulled(gain: float) -> Any:
    """A rule that closes over a number and a function."""

    def scale(x: float) -> float:
        return gain * x

    @rule(writes=(Plan.target,))
    def advance(stores: Children[Store], plan: Plan, dt: float) -> tuple[float]:
        return (scale(plan.target) + 0.01 * dt * float(np.max(stores.level)),)

    return advance


class Tank(FieldAgent):
    features = (Count, Store, Trail)
    action = Continuous(-1.0, 1.0, size=2)

    @staticmethod
    @rule(writes=(Store.level, Store.mode, Count.ticks))
    def apply_action(store: Store, count: Count, action: Vector) -> tuple[float, float, float]:
        if store.season == Season.SUMMER and store.open:
            return store.level + PAIR[1] * action[0] * TABLE[store.mode], 3.0 * abs(action[1]), count.ticks + 0.5
        return store.level - PAIR[0] * len(action), store.mode, count.ticks + 1.5

    @staticmethod
    @rule(writes=(Trail.cells, Count.steps, Store.season, Count.count))
    def advance(
        store: Store, count: Count, trail: Trail, plan: Parent[Plan], sun: Sun, dt: float, time: float
    ) -> tuple[Any, Any, float, float]:
        moved = trail.cells * 0.9 + plan.target * dt  # allocates
        season = 1.0 if 0 < sun.shine + 0.3 * math.sin(time) < 0.9 else 0.0
        return moved, (count.steps[0] + 1, time * sun.hours[1]), season, constants.GAIN * twice(store)

    @staticmethod
    @rule
    def compute_local_reward(store: Store, count: Count, trail: Trail) -> float:
        if store.level > constants.LIMIT:
            return -1.0
        return count.count - sum([x * x for x in trail.cells])  # allocates

    @staticmethod
    @rule
    def is_terminated(store: Store, time: float) -> bool:
        return store.level >= 2.0 and time > 0.0

    @staticmethod
    @rule
    def is_truncated(count: Count) -> int:
        return count.ticks // 5

    @staticmethod
    @rule
    def get_local_info(store: Store) -> Facts:
        return Facts(store.level, twice(store), store.mode)


class Valve(FieldAgent):
    """Lies between the tanks, so that a station's columns are scattered; has a choice."""

    features = (Plan, Store, Trail)
    action = Discrete(3)

    @staticmethod
    @rule(writes=Trail.cells)
    def apply_action(store: Store, action: Vector) -> Any:
        trail = np.zeros(3)
        trail[int(action[0])] = store.level
        return trail

    @staticmethod
    @rule(writes=Store.level)
    def advance(store: Store, dt: float) -> float:
        return store.level + 0.1 * dt * (1.0 - store.level**3)


class Station(CoordinatorAgent):
    features = (Plan,)

    advance = staticmethod(pulled(0.9))

    @staticmethod
    @rule
    def compute_local_reward(stores: Children[Store], plan: Plan, child_rewards: Any) -> float:
        above = stores.level[stores.level > plan.target]
        return float(3.0 * stores.level[0] + child_rewards.sum() + above.sum() + np.exp(stores.level * 2).mean())


class Head(SystemAgent):
    features = (Plan,)

    @staticmethod
    @rule(writes=(Plan.spread, Plan.target))
    def advance(plans: Children[Plan], sun: Sun) -> tuple[float, float]:
        return float(plans.target.std()), np.tanh(plans.target[0]) * sun.shine
