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
    VectorDecomposition,
    World,
    quantity,
    register,
    rule,
)


class Order(FeatureProvider):
    """The speed that a cart is to have, m/s, and whether its reverse gear is locked: new in each step."""

    visibility = ("owner", "upper_level")
    speed: float = quantity(default=0.0, low=-1.0, high=1.0, unit="m/s", foreknown=True)
    locked: int = quantity(default=0, low=0, high=1, foreknown=True)


class Speed(FeatureProvider):
    """The gear, and the speed, m/s: the throttle times the gear's direction."""

    value: float = quantity(default=0.0, low=-1.0, high=1.0, unit="m/s", observed=False)
    gear: int = quantity(default=0, low=0, high=2, observed=False)


class Cart(FieldAgent):
    """Pays the square of how far its speed is from the one ordered, and a fifth for being out of gear."""

    features = (Order, Speed)
    action = Mixed(Continuous(0.0, 1.0), Discrete(3))  # the throttle; the gear: neutral, forward, reverse

    @staticmethod
    @rule
    def action_mask(order: Order) -> tuple[bool, bool, bool]:
        return True, True, order.locked == 0

    @staticmethod
    @rule(writes=(Speed.value, Speed.gear))
    def apply_action(action: Vector) -> tuple[float, float]:
        gear = int(action[1])
        return (action[0] if gear == 1 else -action[0] if gear == 2 else 0.0), gear

    @staticmethod
    @rule
    def compute_local_reward(order: Order, speed: Speed) -> float:
        miss = speed.value - order.speed
        return -miss * miss - (0.2 if speed.gear == 0 else 0.0)


class Carts(HeronEnv):
    """Draws new orders in each step; every second reverse gear is locked."""

    batched = True

    def begin(self, world: World) -> None:
        self.finish(world)

    def finish(self, world: World) -> None:
        orders = world[Cart].Order
        orders.speed[...] = 2.0 * world.draw("speed", orders.speed.shape[-1]) - 1.0
        orders.locked[...] = world.draw("locked", orders.locked.shape[-1]) < 0.5


def carts(n: int = 2, commanded: bool = False, **options: Any) -> HeronEnv:
    """So many carts, each its own driver or all driven by the depot, 20 steps of 1 s."""
    protocol: dict[str, Any] = {"protocol": VectorDecomposition()} if commanded else {}
    depot = SystemAgent("depot", *(Cart(f"cart_{i + 1}") for i in range(n)), **protocol)
    return Carts(depot, **{"max_steps": 20, **options})


CARTS = "test/Carts-v0"
register(CARTS, "mixed_world:carts")


def driven(vector: np.ndarray) -> np.ndarray:
    """The best action for what a cart sees: as fast as it is ordered; forward at rest where it can't go back."""
    order, locked = float(vector[0]), vector[1] > 0.5
    return np.array([0.0 if order < 0.0 and locked else abs(order), 2.0 if order < 0.0 and not locked else 1.0])


def best(vectors: np.ndarray) -> np.ndarray:
    """What the best action earns, by what carts see `[..., 2]`: an order back is missed where the gear is locked.

    Its mean is -1/12: an order back, locked, one in four, of which the square is 1/3 on average.
    """
    order, locked = np.asarray(vectors[..., 0], dtype=np.float64), vectors[..., 1] > 0.5
    return np.where((order < 0.0) & locked, -(order**2), 0.0)
