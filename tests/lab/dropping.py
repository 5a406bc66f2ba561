"""A world whose coordinators have rewards of their own, which leave out what their drones earn, and say so: they take
`child_rewards` and do not use it.
"""

from typing import Any

from heron_env import (
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    quantity,
    rule,
)


class Cargo(FeatureProvider):
    visibility = ("public",)
    push: float = quantity(default=0.0, low=-1.0, high=1.0)


class Fees(FeatureProvider):
    fee: float = quantity(default=0.0, low=-1.0, high=0.0)


class Drone(FieldAgent):
    """Earns 10 a step at full push."""

    features, action = (Cargo,), Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Cargo.push)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(cargo: Cargo) -> float:
        return 10.0 * cargo.push


class Mast(Drone):
    """Earns 2 a step at full push."""

    @staticmethod
    @rule
    def compute_local_reward(cargo: Cargo) -> float:
        return 2.0 * cargo.push


class Wing(CoordinatorAgent):
    """Counts nothing of what its drones earn."""

    @staticmethod
    @rule
    def compute_local_reward(time: float, child_rewards: Any) -> float:
        return 0.0 * time


class Tower(SystemAgent):
    """Pays a fee, and counts nothing else."""

    features = (Fees,)

    @staticmethod
    @rule
    def compute_local_reward(fees: Fees, child_rewards: Any) -> float:
        return fees.fee


def drones(fee: float = -1.0, max_steps: int = 3, **options: object) -> HeronEnv:
    """A tower with a wing of two drones, and a mast."""
    wing = Wing("wing", Drone("drone_1"), Drone("drone_2"))
    return HeronEnv(Tower("tower", Fees(fee=fee), wing, Mast("mast")), max_steps=max_steps, **options)
