"""Carts with a throttle and a gear, and what the best driver earns: numbers and choices that only count together."""

from typing import Any

import numpy as np

from heron_env import (
    Continuous,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Mixed,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)


class Order(FeatureProvider):
    """The speed that a cart is to have, m/s, and whether its reverse gear is locked: new in each step."""

    speed: float = quantity(default=0.0, low=-1.0, high=1.0, unit="m/s", foreknown=True)
    locked: int = quantity(default=0, low=0, high=1, foreknown=True)


class Speed(FeatureProvider):
    """The speed that it has, m/s: the throttle times the gear's direction."""

    value: float = quantity(default=0.0, low=-1.0, high=1.0, unit="m/s", observed=False)


class Cart(FieldAgent):
    """Earns minus the square of how far its speed is from the one ordered."""

    features = (Order, Speed)
    action = Mixed(Continuous(0.0, 1.0), Discrete(3))  # the throttle; the gear: neutral, forward, reverse

    @staticmethod
    @rule
    def action_mask(order: Order) -> tuple[bool, bool, bool]:
        return True, True, order.locked == 0

    @staticmethod
    @rule(writes=Speed.value)
    def apply_action(action: Vector) -> float:
        gear = int(action[1])
        return action[0] if gear == 1 else -action[0] if gear == 2 else 0.0

    @staticmethod
    @rule
    def compute_local_reward(order: Order, speed: Speed) -> float:
        return -((speed.value - order.speed) ** 2)


class Carts(HeronEnv):
    """Draws new orders in each step; every second reverse gear is locked."""

    batched = True

    def begin(self, world: World) -> None:
        self.finish(world)

    def finish(self, world: World) -> None:
        orders = world[Cart].Order
        orders.speed[...] = 2.0 * world.draw("speed", orders.speed.shape[-1]) - 1.0
        orders.locked[...] = world.draw("locked", orders.locked.shape[-1]) < 0.5


def carts(n: int = 2, **options: Any) -> HeronEnv:
    """So many carts, 20 steps of 1 s."""
    return Carts(SystemAgent("depot", *(Cart(f"cart_{i + 1}") for i in range(n))), **{"max_steps": 20, **options})


def driven(order: float, locked: bool) -> np.ndarray:
    """The best action: in the order's direction as fast as it says; forward without throttle where that is locked."""
    back = order < 0.0
    return np.array([0.0 if back and locked else abs(order), 2.0 if back and not locked else 1.0])


def best(order: np.ndarray, locked: np.ndarray) -> np.ndarray:
    """What the best action earns in a step: all of an order backwards is missed where the reverse gear is locked."""
    return np.where((order < 0.0) & (locked > 0.5), -(order**2), 0.0)
