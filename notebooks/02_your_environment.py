# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own environment in 60 lines
#
# You declare *features* (numbers with bounds, units and visibility), *agents* (their features and actions), and *rules*
# (how numbers change). From one definition you get a PettingZoo environment, a Gymnasium environment, a vectorised
# environment for Stable-Baselines3, and an event-driven clock with delays and loss.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from typing import Any

import numpy as np

from heron_env import (
    Continuous, CoordinatorAgent, FeatureProvider, FieldAgent, HeronEnv, ScheduleConfig, SystemAgent, Vector,
    VectorDecomposition, World, quantity, register, rule,
)  # fmt: skip

# %% [markdown]
# ## Features
#
# `visibility` lists the observers of a feature: always its owner, and here also the agent above it. The `Ledger` is
# internal bookkeeping: rules read it and no agent observes it. `per_step` resets it at the start of each control step.


# %%
class Charge(FeatureProvider):
    """Energy stored in one battery."""

    visibility = ("owner", "upper_level")
    soc: float = quantity(default=0.5, low=0.0, high=1.0, unit="1")
    capacity: float = quantity(default=100.0, low=1.0, high=1e4, unit="kWh", noisy=False)


class Setpoint(FeatureProvider):
    """Set-point of the battery's power; positive values charge it."""

    visibility = ("owner", "upper_level")
    power: float = quantity(default=0.0, low=-50.0, high=50.0, unit="kW")


class Ledger(FeatureProvider):
    """Money spent in the current step."""

    cost: float = quantity(default=0.0, low=-1e6, high=1e6, unit="EUR", per_step=True, observed=False)


class Price(FeatureProvider):
    """A global feature: it belongs to the environment, and all agents observe it."""

    visibility = ("public",)
    value: float = quantity(default=0.3, low=0.0, high=2.0, unit="EUR/kWh", foreknown=True)  # known ahead


# %% [markdown]
# ## Agents and their rules
#
# The parameters of a rule name what it reads. `writes` names what it changes. Actions write set-points, and only the
# physics changes stored energy. So more frequent decisions do not move more energy. Random numbers come from
# `world.draw`. They depend on the seed, the episode and the step only, so they are the same on both clocks.


# %%
class Battery(FieldAgent):
    features = (Charge, Setpoint, Ledger)
    action = Continuous(-50.0, 50.0, unit="kW")

    @staticmethod
    @rule(writes=Setpoint.power)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Charge.soc, Ledger.cost))
    def advance(charge: Charge, setpoint: Setpoint, ledger: Ledger, price: Price, dt: float) -> tuple[float, float]:
        energy = setpoint.power * dt / 3600.0
        stored = energy * 0.95 if energy > 0 else energy / 0.95
        return charge.soc + stored / charge.capacity, ledger.cost + energy * price.value

    @staticmethod
    @rule
    def compute_local_reward(ledger: Ledger) -> float:
        return -ledger.cost


class Zone(CoordinatorAgent):
    protocol = VectorDecomposition()  # a zone's action holds the set-points of its batteries


class StorageEnv(HeronEnv):
    """Zones of batteries that buy and sell energy at a price."""

    dt = 60.0  # s, control step
    physics_substeps = 60  # one second each, so delays of seconds have an effect
    global_features = (Price,)

    def finish(self, world: World) -> None:
        world.Price.value[...] = 0.2 + 0.1 * np.sin(world.time / 43200.0 * np.pi) + 0.2 * (world.draw("price") - 0.5)


def storage(n: int = 4, **options: Any) -> HeronEnv:
    """`n` batteries, two to a zone."""
    zones = [
        Zone(f"zone_{z}", *(Battery(f"battery_{2 * z + i}", Charge(soc=0.3)) for i in (1, 2))) for z in range(n // 2)
    ]
    return StorageEnv(SystemAgent("system_agent", *zones), max_steps=1440, **options)


register("my/Storage-v0", storage)

# %% [markdown]
# ## Check the environment
#
# The conformance kit runs PettingZoo's API tests and all checks that this library applies to its own environments:
# determinism, equal clocks, no information leak, bounds, pickling. Each failure says how to fix it. From a shell, run
# `heron check my_module:storage`.

# %%
from heron_env.testing import check_env

report = check_env(storage, steps=12)
report.raise_if_failed()
print(report)

# %% [markdown]
# ## Use it
#
# On the synchronous clock it is a PettingZoo `ParallelEnv`:

# %%
env = storage()
observations, infos = env.reset(seed=0)
observations, rewards, terminations, truncations, infos = env.step({"zone_0": [50.0, -50.0], "zone_1": [0.0, 0.0]})
for name, value in zip(env.observation_names("zone_0"), observations["zone_0"], strict=True):
    print(f"{name:<28}{value:8.3f}")

# %% [markdown]
# Here a simple rule runs on both clocks: buy below 0.2 EUR/kWh and sell above. The action of a zone has two set-points.
# The price has a new random part every minute. So an action that takes effect a minute late responds to an old price.


# %%
def trade(vector: np.ndarray) -> np.ndarray:
    """Charge while the price is low."""
    price = vector[-1]
    return np.full(2, 20.0 if price < 0.2 else -20.0)


sync = env.run_synchronous({"*": trade}, seed=0)
same = env.run_event_driven({"*": trade}, seed=0)
assert same.same_course(sync)
late = env.run_event_driven({"*": trade}, seed=0, schedule=ScheduleConfig(msg_delay=10.0, act_delay=60.0, loss=0.1))
print(f"zone_0: {sync.returns['zone_0']:.3f} EUR synchronous, {same.returns['zone_0']:.3f} event-driven without delay")
print(f"zone_0: {late.returns['zone_0']:.3f} EUR with late messages and actions")
print(f"age of its information: median {late.staleness['zone_0'].p50:g} s, p95 {late.staleness['zone_0'].p95:g} s")

# %% [markdown]
# After the registration above, `gymnasium.make("my/Storage-v0")` gives one Gymnasium environment. `HeronVecEnv` gives a
# batch for Stable-Baselines3:

# %%
import gymnasium

from heron_env.adapters import HeronVecEnv

joint = gymnasium.make("my/Storage-v0", disable_env_checker=True)
print(joint.observation_space.shape, joint.action_space.shape)
vector_env = HeronVecEnv("my/Storage-v0", 8)
print(vector_env.num_envs, "slots, one for each zone; observations", vector_env.reset().shape)

# %% [markdown]
# ## Discrete actions, termination, and two groups that learn
#
# A boiler chooses a *stage* with `Discrete(3)`. Rules read the choice as `action[0]`. A quantity with `categories`
# stores it as an index. The boiler's episode *terminates* when the water is cold, by the rule `is_terminated`. Here the
# batteries decide for themselves. So there are two groups with different spaces, and each group learns its own policy.
# `help(FieldAgent)` lists the names of rules and their parameters. A name that almost matches one of them raises an
# error.


# %%
from heron_env import Discrete


class Water(FeatureProvider):
    """Hot water of one home."""

    visibility = ("owner", "upper_level")
    temperature: float = quantity(default=55.0, low=0.0, high=95.0, unit="°C")
    stage: int = quantity(categories=("off", "low", "high"))


class Boiler(FieldAgent):
    features = (Water, Ledger)
    action = Discrete(3)  # no-op: 0, off

    @staticmethod
    @rule(writes=Water.stage)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Water.temperature, Ledger.cost))
    def advance(water: Water, ledger: Ledger, price: Price, dt: float) -> tuple[float, float]:
        power = 3.0 * water.stage  # kW
        cooling = 0.03 * (water.temperature - 15.0)  # kW, showers included
        energy = power * dt / 3600.0
        return water.temperature + 4.0 * (energy - cooling * dt / 3600.0), ledger.cost + energy * price.value

    @staticmethod
    @rule
    def compute_local_reward(water: Water, ledger: Ledger) -> float:
        return 0.2 - ledger.cost - (5.0 if water.temperature < 40.0 else 0.0)

    @staticmethod
    @rule
    def is_terminated(water: Water) -> bool:
        return water.temperature < 40.0


def home(n: int = 2, **options: Any) -> HeronEnv:
    """`n` batteries and `n` boilers; each decides for itself."""
    batteries = [Battery(f"battery_{i + 1}", Charge(soc=0.3)) for i in range(n)]
    boilers = [Boiler(f"boiler_{i + 1}") for i in range(n)]
    settings = {"dt": 900.0, "physics_substeps": 15, "max_steps": 96, **options}
    return StorageEnv(SystemAgent("system_agent", *batteries, *boilers), **settings)


register("my/Home-v0", home)
check_env(home, steps=8, only=["rules", "parity", "honest-score", "no-leak"]).raise_if_failed()

house = home()
house.reset(seed=0)
for group, agents in house.group_map.items():
    print(f"{group}: {agents}, {house.action_space(agents[0])}, observes {house.observation_names(agents[0])}")

# %% [markdown]
# A policy of a `Discrete` agent returns the number of its choice, counted from 0. A thermostat keeps the water warm on
# both clocks. A boiler that never heats is terminated after some hours, and gets no more rewards and infos.


# %%
def thermostat(vector: np.ndarray) -> int:
    """High below 50 °C, low below 60, else off."""
    temperature = vector[0]
    return 2 if temperature < 50.0 else 1 if temperature < 60.0 else 0


idle = {"battery": lambda vector: 0.0}
warm = house.run_synchronous({**idle, "boiler": thermostat}, seed=0)
assert house.run_event_driven({**idle, "boiler": thermostat}, seed=0).same_course(warm)
cold = house.run_synchronous({**idle, "boiler": lambda vector: 0}, seed=0)
for name, result in (("thermostat", warm), ("never heats", cold)):
    steps = len(result.rewards["boiler_1"])
    print(
        f"{name:<12} boiler_1: {steps} steps, return {result.returns['boiler_1']:.2f}, "
        f"terminated: {result.terminated['boiler_1']}"
    )

# %% [markdown]
# Training takes one group after the other and trains one PPO policy for each. From a shell, run
# `heron train my_module:home`. Notebook 04 shows other ways to train.

# %%
import tempfile

from heron_env import train

with tempfile.TemporaryDirectory() as folder:
    run = train("my/Home-v0", folder, total_steps=24_000, seed=0, validations=0, validation_episodes=4, progress=False)
    for name, mean in run.config.validation.items():
        print(f"{name:<8} team return {mean:8.2f}")
    for group, kept in run.config.groups.items():
        print(f"{group}: {kept.model}, choices {kept.ncats or 'none: a continuous action'}")
