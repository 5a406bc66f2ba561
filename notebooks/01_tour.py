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
# # A tour: from a hierarchy to the price of a late message
#
# Policies are trained in simulators where everyone sees everything, at once, exactly. Deployed, they meet delayed
# messages, loss, noise and hidden variables. Here one environment is trained *synchronously* and evaluated
# *event-driven*: with zero delay both runs are equal bit for bit, so every difference that remains is the network's
# doing.
#
# The tour takes under a minute. It needs `pip install 'heron_env[train,plots]'`.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import heron_env
from heron_env import team_return
from heron_env.lab import describe_environment
from heron_env.lab import hierarchy_figure
from heron_env import record_episode
from heron_env.lab import draw
from heron_env.lab.benchmark import baselines
from heron_env import train

# %% [markdown]
# ## 1 A hierarchy
#
# Homes with batteries stand behind tight transformers (zones); a grid operator is at the top. One episode is one day
# of real load and weather data.

# %%
env = heron_env.make("heron/EnergyManagement-v1", day=100)
hierarchy_figure(describe_environment("heron/EnergyManagement-v1", {"day": 100})[0])

# %% [markdown]
# Batteries decide their power; zones and the operator watch. The control step is a minute, physics runs in thirty
# substeps of two seconds, and every ten seconds a meter has a new value and reports it.

# %%
print(env.possible_agents)
print(f"dt = {env.dt:g} s, {env.physics_substeps} substeps; {env.action_space('battery_1')}")

# %% [markdown]
# ## 2 One observation, read
#
# An observation is a float32 vector for the learner and a list of named, bounded quantities with units for you. The
# meter tells the last ten seconds that have ended; what the coming ones bring is seen by nobody. Forecasts, prices and
# the clock are marked as known ahead.

# %%
observations, infos = env.reset(seed=0)
space = env.observation_space("battery_1")
names, units = env.observation_names("battery_1"), env.observation_units("battery_1")
for name, unit, value, low, high in zip(names, units, observations["battery_1"], space.low, space.high, strict=True):
    print(f"{name:<28}{value:>10.3f} {unit:<8} in [{low:g}, {high:g}]")

# %% [markdown]
# ## 3 Who sees what
#
# Features declare their visibility: a battery's charge is seen by itself and its zone, a price by all. The rules are
# compiled into one plan, and this is its picture. The last row is the critic, which may see the whole truth while a
# policy is trained; no actor does.

# %%
matrix = env.visibility_matrix()
matrix.plot()

# %% [markdown]
# ## 4 Baselines
#
# Every policy is a function from a vector to an action. These come with the environment; the sum of all rewards is
# the day's money, in EUR.

# %%
offered = baselines(env)
for name in ("random", "do nothing", env.benchmark().strongest):
    result = env.run_synchronous(offered[name], seed=0)
    print(f"{name:<36}{team_return(env, result):8.2f} EUR")

# %% [markdown]
# ## 5 A trained policy
#
# Twenty seconds on one core, set-up and baselines among them: too short for a good policy, long enough for the story.
# `make demo` trains longer.

# %%
run = train(
    "heron/EnergyManagement-v1", Path(mkdtemp()) / "run", total_steps=10**7, time_limit=20, progress=False,
    validations=0, validation_episodes=2,
)  # fmt: skip
trained = heron_env.load_policy(run.path)
sync = env.run_synchronous(trained, seed=0, record=("rewards", "actions", "observations"))
print(f"trained, synchronous: {team_return(env, sync):.2f} EUR")

# %% [markdown]
# ## 6 The same policy on the event-driven clock
#
# Agents tick, ask the proxy for what is known, decide; effects and state reports travel as messages. With zero delay
# the two clocks agree in every bit: rewards, actions, observations.

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
# Now every action takes a minute to show, messages take five seconds and some are lost. The policy is the same, the
# weather is the same, the random draws are the same.

# %%
late = heron_env.ScheduleConfig(msg_delay=5.0, act_delay=60.0, jitter_type="lognormal", jitter_ratio=0.1, loss=0.02)
delayed = env.run_event_driven(trained, seed=0, schedule=late)
print(f"event-driven, a minute late: {team_return(env, delayed):.2f} EUR")
print(f"lost by it: {team_return(env, sync) - team_return(env, delayed):.2f} EUR")
age = delayed.staleness["battery_1"]
print(f"age of what battery_1 knew when it decided: median {age.p50:.1f} s, p95 {age.p95:.1f} s")
print(f"messages: {delayed.messages}")

# %% [markdown]
# ## 8 Why: the timeline
#
# Two minutes of that run, recorded. A battery asks at its tick, gets an observation that is seconds old, decides, and
# a minute later the set-point changes: by then the load it answered has moved on, and the next decisions were made
# without knowing it. `heron trace` records a run, draws it as a page, and writes it for ui.perfetto.dev to be explored.

# %%
recorded = record_episode(
    "heron/EnergyManagement-v1", trained, seed=0, t_end=36_300.0, schedule=late, options={"day": 100}
)
timeline = draw(recorded, (36_000.0, 36_120.0))
timeline.set_dpi(64)  # a smaller picture
timeline

# %% [markdown]
# **Next**: [02](02_your_environment.ipynb) writes an environment of your own in 60 lines,
# [03](03_matrix_and_noise.ipynb) hides variables and blurs them, [04](04_training.ipynb) trains in four ways,
# [05](05_gap_report.ipynb) takes the price of a network apart.
