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
# # 4 Train under a network
#
# **Goal.** Train one policy without a network and one under it, watch both learn, and compare them where each was
# trained and where it was not.
#
# It needs `pip install 'heron_env[train,plots]'`, and takes less than a minute of one core.
#
# ## The task
#
# A trolley starts somewhere on a rail and must stop at 0. Its distance from 0 is the cost of each step.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import heron_env
from heron_env import (
    Continuous, FeatureProvider, FieldAgent, HeronEnv, ScheduleConfig, SystemAgent, Vector, World, mean_interval,
    quantity, rule,
)  # fmt: skip


class Trolley(FeatureProvider):
    """Where it is, and how fast."""

    visibility = ("owner",)
    position: float = quantity(default=0.0, low=-5.0, high=5.0, unit="m")
    speed: float = quantity(default=0.0, low=-10.0, high=10.0, unit="m/s")


class Motor(FeatureProvider):
    """Its push, until the next command takes effect."""

    push: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)


class Driver(FieldAgent):
    features = (Trolley, Motor)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Motor.push)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Trolley.position, Trolley.speed))
    def advance(trolley: Trolley, motor: Motor, dt: float) -> tuple[float, float]:
        speed = trolley.speed + (8.0 * motor.push - trolley.speed) * dt  # friction slows it
        return trolley.position + speed * dt, speed

    @staticmethod
    @rule
    def compute_local_reward(trolley: Trolley) -> float:
        return -abs(trolley.position)


class Rail(HeronEnv):
    """One trolley on a rail, for 5 s."""

    dt = 0.1  # s between two decisions
    physics_substeps = 10

    def begin(self, world: World) -> None:
        world[Driver].Trolley.position[...] = 4.0 * world.draw("start") - 2.0


def rail(**options: Any) -> HeronEnv:
    """A trolley."""
    return Rail(SystemAgent("system_agent", Driver("driver_1")), max_steps=50, **options)


heron_env.register("my/Rail-v0", rail)

# %% [markdown]
# ## The network
#
# Observations are 0.1 s old, commands take about 0.15 s, with jitter, and one message in ten is lost. Two controllers
# written by hand show what this costs: each pushes against its distance and its speed.

# %%
network = ScheduleConfig(
    obs_delay=0.1, act_delay=0.15, jitter_type="lognormal", jitter_ratio=0.3, loss=0.1
)  # s; a step is 0.1 s
env = rail()


def evaluate(policy, cases=range(100, 116)):
    """Mean returns without the network and under it, with 95 % intervals over the cases."""
    runs = {
        "without": [env.run_synchronous(policy, seed=seed) for seed in cases],
        "under it": [env.run_event_driven(policy, seed=seed, schedule=network) for seed in cases],
    }
    return {name: mean_interval([run.returns["driver_1"] for run in some]) for name, some in runs.items()}


def show(name, policy):
    """One line of a table."""
    cells = (f"{one.mean:7.1f} [{one.low:6.1f}, {one.high:6.1f}]" for one in evaluate(policy).values())
    print(f"{name:<26}", *cells)


def push(position, speed):
    """A controller with these two weights."""
    return {"*": lambda state: [np.clip(-position * state[0] - speed * state[1], -1.0, 1.0)]}


print(f"{'':<26} without the network       under it")
show("do nothing", push(0.0, 0.0))
show("strong: weights 2, 0.5", push(2.0, 0.5))
show("gentle: weights 0.5, 0.3", push(0.5, 0.3))

# %% [markdown]
# ## Prediction
#
# PPO now learns twice, with the same seed and the same number of decisions: without the network, and under it. **Which
# of the two will be better under the network? Will the other be better without it? And is PPO better than the best
# controller written by hand?**

# %%
folder = Path(mkdtemp())
settings = {"total_steps": 80_000, "seed": 0, "validations": 6, "validation_episodes": 4, "progress": False}
plain = heron_env.train("my/Rail-v0", folder / "plain", **settings)
under = heron_env.train("my/Rail-v0", folder / "under", schedule=network, **settings)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for run, column, label in (
    (plain, "validation_return", "trained and played without the network"),
    (under, "validation_return", "trained under it, played without"),
    (under, "return_under_schedule", "trained and played under it"),
):
    rows = [row for row in run.curve() if row["validation_return"] != "nan"]
    axes.plot([int(row["transitions"]) for row in rows], [float(row[column]) for row in rows], "o-", label=label)
axes.set(xlabel="decisions", ylabel="return in validation")
axes.legend(frameon=False, loc="lower right")
plt.close(figure)
figure

# %% [markdown]
# Validation has four episodes, so curves are rough. The next table compares both policies in the same 16 new cases.

# %%
print(f"{'':<26} without the network       under it")
show("trained without", heron_env.load_policy(plain.path))
show("trained under it", heron_env.load_policy(under.path))

# %% [markdown]
# **Explanation.** Each policy is better where it was trained. Without the network, strong pushes are right. Under it
# they come late and overshoot, as the controller `strong` shows.
#
# **PPO beats no one yet**: two weights chosen by hand are better than both policies, `strong` without the network and
# `gentle` under it. 80,000 decisions are few, and two numbers are easy to find. PPO pays where a controller has more
# than two.
#
# ## Exercise
#
# 1. Train a second seed of each. Do the differences remain? One seed is not a result.
# 2. Search the two weights of `push` at random, 60 tries under the network. Does PPO beat the best of them?
# 3. Train under a drawn network: `heron_env.DrawnSchedule`. Is that policy good under both networks?
#
# **Next**: [5, split the loss by cause](05_split_the_loss.ipynb).
