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
# # 2 Your own world
#
# **Goal.** Write a world with its own time, check it, and see what a network does to the controllers in it.
#
# Three rooms each have a heater. Each heater's controller keeps its room at 21 °C. Features say which numbers there are
# and who observes them; rules say how they change.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from heron_env import (
    Continuous, FeatureProvider, FieldAgent, HeronEnv, ScheduleConfig, SystemAgent, Vector, World, quantity, rule,
)  # fmt: skip
from heron_env.testing import check_env

# %% [markdown]
# ## Features
#
# A number has a default, bounds and a unit. `visibility` names its observers.


# %%
class Air(FeatureProvider):
    """The air of one room."""

    visibility = ("owner", "system")
    temperature: float = quantity(default=17.0, low=-20.0, high=60.0, unit="°C")


class Heater(FeatureProvider):
    """What the heater does until the next command takes effect."""

    visibility = ("owner",)
    power: float = quantity(default=0.0, low=0.0, high=2.0, unit="kW")


class Outside(FeatureProvider):
    """A global feature: all agents observe it."""

    visibility = ("public",)
    temperature: float = quantity(default=0.0, low=-30.0, high=40.0, unit="°C")


# %% [markdown]
# ## Agents and rules
#
# The parameters of a rule name what it reads, `writes` names what it changes. An action changes only the set-point. The
# physics, `advance`, changes the temperature. So deciding more often does not heat more.


# %%
class Room(FieldAgent):
    features = (Air, Heater)
    action = Continuous(0.0, 2.0, unit="kW")

    @staticmethod
    @rule(writes=Heater.power)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Air.temperature)
    def advance(air: Air, heater: Heater, outside: Outside, dt: float) -> float:
        flow = heater.power - 0.05 * (air.temperature - outside.temperature)  # kW
        return air.temperature + flow * dt / 300.0  # 300 kJ warm the room by one degree

    @staticmethod
    @rule
    def compute_local_reward(air: Air) -> float:
        return -abs(air.temperature - 21.0)


class House(HeronEnv):
    """Rooms with heaters on a windy day."""

    dt = 60.0  # s between two decisions
    physics_substeps = 6
    global_features = (Outside,)

    def finish(self, world: World) -> None:
        world.Outside.temperature[...] = 4.0 * world.draw("weather") - 2.0


def house(rooms: int = 3, **options: Any) -> HeronEnv:
    """A house of some rooms; an episode has 90 minutes."""
    options = {"max_steps": 90, **options}
    return House(SystemAgent("system_agent", *(Room(f"room_{i + 1}") for i in range(rooms))), **options)


# %% [markdown]
# ## Check it
#
# `check_env` is what `heron check my_module:house` runs: among others, that both clocks agree and that no hidden number
# is observed. Here are two of its checks; leave out `only` to run all.

# %%
report = check_env(house, steps=6, only=["parity", "no-leak"])
report.raise_if_failed()
print(report)

# %% [markdown]
# ## Run it on both clocks
#
# On the synchronous clock all rooms observe, decide and act at the same moment. On the event clock each message takes
# its time. Without delay both give the same, bit for bit.

# %%
env = house()
env.reset(seed=0)
print(env.observation_names("room_1"), env.action_space("room_1"))


def strong(observation):
    """2 kW for each degree that is missing."""
    return [np.clip(2.0 * (21.0 - observation[0]), 0.0, 2.0)]


def gentle(observation):
    """Just enough to hold 21 °C, and a little more while it is colder."""
    return [np.clip(1.05 + 0.2 * (21.0 - observation[0]), 0.0, 2.0)]


sync = env.run_synchronous({"*": strong}, seed=0)
event = env.run_event_driven({"*": strong}, seed=0)
assert event.same_course(sync)
print(sync.returns["room_1"], event.returns["room_1"])

# %% [markdown]
# ## Prediction
#
# The strong controller is a little better without a network. Now commands take five minutes to reach the heaters.
# **Which of the two controllers is better then? What will the temperature look like?**

# %%
late = ScheduleConfig(act_delay=300.0)
figure, panels = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained", sharey=True)
networks = {"without a network": ScheduleConfig(), "commands 5 minutes late": late}
for axes, (title, network) in zip(panels, networks.items(), strict=True):
    for policy in (strong, gentle):
        run = env.run_event_driven({"*": policy}, seed=0, schedule=network, record=("observations",))
        times, rows = zip(*run.observations["room_1"], strict=True)
        label = f"{policy.__name__}: return {run.returns['room_1']:.0f}"
        axes.plot(np.array(times) / 60.0, [row[0] for row in rows], label=label)
    axes.axhline(21.0, color="black", linewidth=0.6)
    axes.set(title=title, xlabel="time, minutes")
    axes.legend(frameon=False, loc="lower right")
panels[0].set_ylabel("room_1, °C")
plt.close(figure)
figure

# %% [markdown]
# **Explanation.** The strong controller goes on heating until a command of five minutes ago says stop. Then the room is
# too warm, and the next commands are late as well: the temperature swings. The gentle controller hardly reacts to its
# own past, so it hardly swings. A controller must be tuned for the delay that it will meet.
#
# ## Exercise
#
# 1. Find the factor (2.0 in `strong`) that earns most when commands are 5 minutes late. Keep the 1.05 of `gentle`.
# 2. Make the rooms differ: `Room("room_1", Air(temperature=12.0))` in `house`. Which room loses most under the network?
# 3. Train a policy: save the classes as `my_module.py`, then `heron train my_module:house`.
#
# **Next**: [3, who sees what](03_who_sees_what.ipynb).
