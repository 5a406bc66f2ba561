"""The user program of the design notes, word for word: the README's example grows from it."""

# ruff: noqa
# fmt: off
from typing import Any
import numpy as np
from heron_env import (Continuous, CoordinatorAgent, FeatureProvider, FieldAgent, HeronEnv, ScheduleConfig, SystemAgent,
                       Vector, VectorDecomposition, World, quantity, register, rule)

class Charge(FeatureProvider):
    """Energy held by one battery."""
    visibility = ("owner", "upper_level")
    soc: float = quantity(default=0.5, low=0.0, high=1.0, unit="1")
    capacity: float = quantity(default=100.0, low=1.0, high=1e4, unit="kWh", noisy=False)

class Setpoint(FeatureProvider):
    """Power the battery is asked for; positive charges."""
    visibility = ("owner", "upper_level")
    power: float = quantity(default=0.0, low=-50.0, high=50.0, unit="kW")

class Ledger(FeatureProvider):
    """Money spent in the current step: set to 0 before its first substep, seen by nobody."""
    cost: float = quantity(default=0.0, low=-1e6, high=1e6, unit="EUR", per_step=True, observed=False)

class Price(FeatureProvider):                     # a global feature: belongs to the environment
    visibility = ("public",)
    value: float = quantity(default=0.3, low=0.0, high=2.0, unit="EUR/kWh")

class Battery(FieldAgent):
    features = (Charge, Setpoint, Ledger)
    action = Continuous(-50.0, 50.0, unit="kW")   # no-op: 0

    @staticmethod
    @rule(writes=Setpoint.power)                  # parameters say what is read, `writes` what is written
    def apply_action(setpoint: Setpoint, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Charge.soc, Ledger.cost))       # one physics substep of dt seconds
    def advance(charge: Charge, setpoint: Setpoint, ledger: Ledger, price: Price, dt: float) -> tuple[float, float]:
        energy = setpoint.power * dt / 3600.0
        stored = energy * 0.95 if energy > 0 else energy / 0.95
        return charge.soc + stored / charge.capacity, ledger.cost + energy * price.value

    @staticmethod
    @rule
    def compute_local_reward(ledger: Ledger) -> float:
        return -ledger.cost

class Zone(CoordinatorAgent):
    protocol = VectorDecomposition()              # a zone's action is its batteries' set-points; without a protocol a zone only watches

class StorageEnv(HeronEnv):
    dt = 60.0                                     # s, control step
    physics_substeps = 60                         # delays of seconds count
    global_features = (Price,)

    def finish(self, world: World) -> None:       # once per step, after the rewards: the next exogenous values
        world.Price.value[...] = 0.2 + 0.1 * np.sin(world.time / 43200.0 * np.pi)

def storage(n: int = 4, **options: Any) -> HeronEnv:
    zones = [Zone(f"zone_{z}", *(Battery(f"battery_{2 * z + i}", Charge(soc=0.3)) for i in (1, 2))) for z in range(n // 2)]
    return StorageEnv(SystemAgent("system_agent", *zones), max_steps=1440, **options)

register("my/Storage-v0", storage)                # or "package.module:storage"; into PettingZoo's and Gymnasium's registries too
env = storage()
obs, infos = env.reset(seed=0)
obs, rewards, terminations, truncations, infos = env.step({a: env.action_space(a).sample() for a in env.agents})
result = env.run_event_driven({"*": lambda vector: np.zeros(2)}, t_end=3600.0, seed=0,
                              schedule=ScheduleConfig(tick_interval=60.0, msg_delay=2.0, act_delay=5.0, loss=0.01))
print(result.returns, result.staleness["zone_0"].p95)
