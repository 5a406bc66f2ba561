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
# You declare *features* (numbers with bounds, units and visibility), *agents* (which features, which action), and
# *rules* (how numbers change). You get a PettingZoo environment, a Gymnasium one, a Stable-Baselines3 one, and an
# event-driven clock with delays and loss.

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
# `visibility` says who sees them: the owner always, and here the agent above it. A *ledger* is bookkeeping: rules read
# it, nobody observes it, and `per_step` empties it at the start of each control step.


# %%
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
    """Money spent in the current step."""

    cost: float = quantity(default=0.0, low=-1e6, high=1e6, unit="EUR", per_step=True, observed=False)


class Price(FeatureProvider):
    """A global feature: it belongs to the environment, and all see it."""

    visibility = ("public",)
    value: float = quantity(default=0.3, low=0.0, high=2.0, unit="EUR/kWh", foreknown=True)  # known ahead


# %% [markdown]
# ## Agents and their rules
#
# A rule's parameters say what it reads, `writes` says what it stores. Actions write set-points; only physics moves
# time, so deciding more often does not act more. Chance comes from `world.draw`, keyed by seed, episode and step: the
# same on both clocks.


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
    protocol = VectorDecomposition()  # a zone's action is its batteries' set-points


class StorageEnv(HeronEnv):
    """Batteries under zones that trade on a price."""

    dt = 60.0  # s, control step
    physics_substeps = 60  # so that delays of seconds count
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
# ## Does it hold?
#
# The conformance kit runs the API tests of PettingZoo and everything this library asks of its own environments:
# determinism, equal clocks, no leak, bounds, pickling. Each failure says how to mend it. From a shell:
# `heron check my_module:storage`.

# %%
from heron_env.testing import check_env

report = check_env(storage, steps=12)
report.raise_if_failed()
print(report)

# %% [markdown]
# ## Use it
#
# Synchronously, as PettingZoo's `ParallelEnv`:

# %%
env = storage()
observations, infos = env.reset(seed=0)
observations, rewards, terminations, truncations, infos = env.step({"zone_0": [50.0, -50.0], "zone_1": [0.0, 0.0]})
for name, value in zip(env.observation_names("zone_0"), observations["zone_0"], strict=True):
    print(f"{name:<28}{value:8.3f}")

# %% [markdown]
# With a rule of thumb, on both clocks: buy below 0.2 EUR/kWh, sell above. Every action of a zone is two set-points.
# A price is worth knowing while it holds: acting a minute and more too late costs most of the gain.


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
print(f"zone_0: {late.returns['zone_0']:.3f} EUR with late actions")
print(f"age of what it knew: median {late.staleness['zone_0'].p50:g} s, p95 {late.staleness['zone_0'].p95:g} s")

# %% [markdown]
# As one Gymnasium environment (`gymnasium.make("my/Storage-v0")` after the registration above), or batched for
# Stable-Baselines3:

# %%
import gymnasium

from heron_env.adapters import HeronVecEnv

joint = gymnasium.make("my/Storage-v0", disable_env_checker=True)
print(joint.observation_space.shape, joint.action_space.shape)
vector_env = HeronVecEnv("my/Storage-v0", 8)
print(vector_env.num_envs, "slots:", vector_env.reset().shape)

# %% [markdown]
# ## Choices, an end, and two groups that learn
#
# Not all actions are numbers in a range, and not all episodes end with the clock. A boiler chooses a *stage*,
# `Discrete(3)`: rules read it as `action[0]`, a quantity with `categories` keeps it as an index. It *ends* when the
# water is cold: `is_terminated`, a rule like all others. Batteries decide for themselves here, so there are two groups
# with spaces of their own, and each learns a policy. Which names rules and hooks may have, and what they may take, says
# `help(FieldAgent)`; a name that is nearly one of them is an error, not silence.


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
        cooling = 0.03 * (water.temperature - 15.0)  # kW, showers among it
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
    """`n` batteries and as many boilers, which decide for themselves."""
    batteries = [Battery(f"battery_{i + 1}", Charge(soc=0.3)) for i in range(n)]
    boilers = [Boiler(f"boiler_{i + 1}") for i in range(n)]
    settings = {"dt": 900.0, "physics_substeps": 15, "max_steps": 96, **options}
    return StorageEnv(SystemAgent("system_agent", *batteries, *boilers), **settings)


register("my/Home-v0", home)
check_env(home, steps=8, only=["rules", "parity", "honest-score", "no-leak"]).raise_if_failed()

house = home()
house.reset(seed=0)
for group, agents in house.group_map.items():
    print(f"{group}: {agents}, {house.action_space(agents[0])}, sees {house.observation_names(agents[0])}")

# %% [markdown]
# A policy of a `Discrete` agent returns the choice, counted from 0. A thermostat keeps the water warm on both clocks;
# whoever never heats is ended by the rule after some hours, and its infos and rewards stop there.


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
# Training takes the groups one after the other, a PPO policy each (`heron train my_module:home` from a shell). Some
# seconds are enough to see both learn; notebook 04 says more.

# %%
import tempfile

from heron_env import train

with tempfile.TemporaryDirectory() as folder:
    run = train("my/Home-v0", folder, total_steps=12_000, seed=0, validations=0, validation_episodes=4, progress=False)
    for name, mean in run.config.validation.items():
        print(f"{name:<8} team return {mean:8.2f}")
    for group, kept in run.config.groups.items():
        print(f"{group}: {kept.model}, choices {kept.ncats or 'none, a number in a range'}")
