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
# # A tour: from a hierarchy of agents to the cost of a late message
#
# In most simulators, policies are trained with complete, exact and current observations. After deployment they get late
# messages, lost messages, noise and hidden variables. This notebook trains a policy on the *synchronous* clock and
# evaluates it on the *event-driven* clock. Without delay both runs are equal, bit for bit. So every difference between
# the two returns is an effect of the network.
#
# The tour takes a few minutes. It needs `pip install 'heron_env[train,plots]'`.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import heron_env
from heron_env import team_return
from heron_env.lab import describe_environment
from heron_env import record_episode
from heron_env.lab import draw
from heron_env.lab.benchmark import baselines
from heron_env import train

# %% [markdown]
# ## 1 A hierarchy
#
# Homes with batteries share transformers of small capacity. The homes behind one transformer form a zone. The grid
# operator is at the top. One episode is one day of real load and weather data.

# %%
env = heron_env.make("heron/EnergyManagement-v1", day=100)
describe_environment("heron/EnergyManagement-v1", {"day": 100})[0].plot()

# %% [markdown]
# The batteries choose their power. The zones and the operator only observe. One control step is a minute. The physics
# runs in thirty substeps of two seconds. Each meter reports a new value every ten seconds.

# %%
print(env.possible_agents)
print(f"dt = {env.dt:g} s, {env.physics_substeps} substeps; {env.action_space('battery_1')}")

# %% [markdown]
# ## 2 One observation
#
# A learner gets an observation as a float32 vector. Each entry has a name, bounds and a unit. The meter values are
# means over the last complete interval of ten seconds. No agent observes the coming interval. Forecasts, prices and the
# time of day are marked as known ahead.

# %%
observations, infos = env.reset(seed=0)
space = env.observation_space("battery_1")
names, units = env.observation_names("battery_1"), env.observation_units("battery_1")
for name, unit, value, low, high in zip(names, units, observations["battery_1"], space.low, space.high, strict=True):
    print(f"{name:<28}{value:>10.3f} {unit:<8} in [{low:g}, {high:g}]")

# %% [markdown]
# ## 3 Who observes what
#
# Each feature declares its visibility. A battery's charge is visible to the battery and to its zone, and a price is
# visible to all agents. The picture shows the result: one row for each observer, one column for each number. The last
# row is the critic. It may observe the whole state during training. No actor does.

# %%
matrix = env.visibility_matrix()
matrix.plot()

# %% [markdown]
# ## 4 Baselines
#
# A policy is a function from an observation vector to an action. The environment ships some policies as baselines. The
# team return is the sum of all rewards: the money of one day in EUR.

# %%
shipped = baselines(env)
for name in ("random", "do nothing", env.benchmark().strongest):
    result = env.run_synchronous(shipped[name], seed=0)
    print(f"{name:<36}{team_return(env, result):8.2f} EUR")

# %% [markdown]
# ## 5 A trained policy
#
# This cell trains with 100,000 transitions, in about ten seconds on one core. That is enough for this tour. `make demo`
# trains longer.

# %%
run = train(
    "heron/EnergyManagement-v1", Path(mkdtemp()) / "run", total_steps=100_000, progress=False,
    validations=0, validation_episodes=2,
)  # fmt: skip
trained = heron_env.load_policy(run.path)
sync = env.run_synchronous(trained, seed=0, record=("rewards", "actions", "observations"))
print(f"trained, synchronous: {team_return(env, sync):.2f} EUR")

# %% [markdown]
# ## 6 The same policy on the event-driven clock
#
# At each tick an agent requests its observation from the proxy and then decides. Actions and state reports travel as
# messages. Without delay the two clocks agree in every bit of the rewards, actions and observations.

# %%
record = ("rewards", "actions", "observations")
event = env.run_event_driven(trained, seed=0, record=record)
assert event.same_course(sync)
assert all(
    np.array_equal(mine, theirs)
    for agent in sync.observations
    for (_, mine), (_, theirs) in zip(sync.observations[agent], event.observations[agent], strict=True)
)
print(f"event-driven, no delay: {team_return(env, event):.2f} EUR, identical; {event.messages.delivered:,} messages")

# %% [markdown]
# ## 7 A delay
#
# Now every action takes effect about a minute late, every message takes about five seconds, and 2 % of the messages are
# lost. The policy, the weather and the random draws are the same as before.

# %%
late = heron_env.ScheduleConfig(msg_delay=5.0, act_delay=60.0, jitter_type="lognormal", jitter_ratio=0.1, loss=0.02)
delayed = env.run_event_driven(trained, seed=0, schedule=late)
print(f"event-driven, actions a minute late: {team_return(env, delayed):.2f} EUR")
print(f"cost of the network: {team_return(env, sync) - team_return(env, delayed):.2f} EUR")
age = delayed.staleness["battery_1"]
print(f"age of the information in the observations of battery_1: median {age.p50:.1f} s, p95 {age.p95:.1f} s")
print(f"messages: {delayed.messages}")

# %% [markdown]
# ## 8 The reason: a timeline
#
# The picture shows two minutes of the delayed run. A battery requests an observation at its tick and receives one that
# is seconds old. Its decision changes the set-point a minute later. By then the load has changed. The battery makes its
# next decision without an observation of that effect. `heron trace` records a run, draws it, and writes a file for
# ui.perfetto.dev.

# %%
recorded = record_episode(
    "heron/EnergyManagement-v1", trained, seed=0, t_end=36_300.0, schedule=late, options={"day": 100}
)
timeline = draw(recorded, (36_000.0, 36_120.0))
timeline.set_dpi(70)  # a smaller picture
timeline

# %% [markdown]
# **Next**: [02](02_your_environment.ipynb) writes an environment of your own in 60 lines,
# [03](03_matrix_and_noise.ipynb) hides variables and adds noise, [04](04_training.ipynb) trains in four ways,
# [05](05_gap_report.ipynb) splits the cost of a network by cause.
