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
# # One environment, four ways to train on it
#
# Stable-Baselines3 with a shared policy, the same with a central critic (CTDE), a loop of one's own over PettingZoo's
# interface, and one controller for all agents through Gymnasium's. It is the same environment each time, with the same
# rules, seeds and rewards. Whatever comes out as a policy per agent runs on both clocks.
#
# It needs `pip install 'heron_env[train]'`. To train seriously, use `heron train` (or `heron_env.train`),
# which also scales observations, corrects a rule and leaves a run folder.

# %%
import gymnasium
import numpy as np
from stable_baselines3 import PPO

import heron_env
from heron_env import ScheduleConfig
from heron_env.adapters import CentralCriticPolicy
from heron_env.adapters import HeronVecEnv
from heron_env.lab import benchmark
from heron_env import team_return

ENV = "heron/BatteryGrid-v0"
env = heron_env.make(ENV)
names = env.observation_names("battery_1")
print(f"{env.possible_agents} see {names} and choose from {env.action_space('battery_1')}")

# %% [markdown]
# A policy is a function from a vector to an action. This is how all of them are judged: the team's return on four
# held-out seeds, on the synchronous clock, and event-driven with actions that take three steps to show.

# %%
TEST = [case.seed for case in benchmark.cases(env, 4)]
LATE = ScheduleConfig(act_delay=3.0)
scores = {}


def judge(name, policies):
    """Mean returns on both clocks."""
    sync = np.mean([team_return(env, env.run_synchronous(policies, seed=s)) for s in TEST])
    late = np.mean([team_return(env, env.run_event_driven(policies, seed=s, schedule=LATE)) for s in TEST])
    scores[name] = sync, late
    print(f"{name:<28}{sync:8.1f}   three steps late {late:8.1f}")


for name, policies in benchmark.baselines(env).items():
    judge(name, policies)

# %% [markdown]
# ## 1 Stable-Baselines3: one policy, a slot for each agent
#
# `HeronVecEnv` steps 16 environments in one compiled loop. Each battery of each of them is a slot of the vector
# environment, so PPO trains one policy that all batteries share.

# %%
PPO_OPTIONS = {
    "n_steps": 100,
    "batch_size": 320,
    "n_epochs": 8,
    "learning_rate": 3e-3,
    "gamma": 0.95,
    "seed": 0,
    "device": "cpu",
}

venv = HeronVecEnv(ENV, 16, seed=0)
print(f"{venv.num_envs} slots: {venv.agents_per_env} agents in each of 16 environments")
shared = PPO("MlpPolicy", venv, **PPO_OPTIONS).learn(16_000)
judge("shared policy (SB3)", {"*": lambda seen: shared.predict(seen, deterministic=True)[0]})

# %% [markdown]
# ## 2 CTDE: the critic sees the whole state
#
# With `critic="central"` an observation is what the agent sees and, besides, the state of the world. The policy class
# gives the state to the critic alone, so the actor needs nothing it would not have when deployed: here it gets zeros.

# %%
venv = HeronVecEnv(ENV, 16, seed=0, critic="central")
central = PPO(CentralCriticPolicy, venv, **PPO_OPTIONS).learn(16_000)
no_state = np.zeros(venv.observation_space["state"].shape, dtype=np.float32)
print({part: space.shape for part, space in venv.observation_space.items()})
judge(
    "central critic (CTDE)",
    {"*": lambda seen: central.predict({"obs": seen, "state": no_state}, deterministic=True)[0]},
)

# %% [markdown]
# ## 3 PettingZoo: a loop of your own
#
# The environment itself is a `ParallelEnv`: dictionaries by agent in and out. Here random search improves the weights
# of a linear policy that all batteries share: change them a little, keep what earns more.

# %%
rng = np.random.default_rng(0)
low, high = env.action_space("battery_1").low, env.action_space("battery_1").high


def linear(weights):
    """A policy: weights `[actions, observations + 1]`."""
    return lambda seen: np.clip(weights @ np.append(seen, 1.0), low, high)


def episode(policy, seed):
    """The team's return, through PettingZoo's interface."""
    observations, _ = env.reset(seed=seed)
    total = 0.0
    while env.agents:
        observations, rewards, *_ = env.step({agent: policy(observations[agent]) for agent in env.agents})
        total += sum(rewards[agent] for agent in rewards)
    return total


best = np.zeros((len(low), len(names) + 1))
most = np.mean([episode(linear(best), seed) for seed in range(2)])
for _ in range(60):
    tried = best + rng.normal(size=best.shape) * 0.3
    earned = np.mean([episode(linear(tried), seed) for seed in range(2)])
    if earned > most:
        best, most = tried, earned
judge("linear policy (PettingZoo)", {"*": linear(best)})

# %% [markdown]
# ## 4 Gymnasium: one controller with all actions
#
# `gymnasium.make` gives the view of a single controller that sees what any agent sees and sets all actions;
# `gymnasium.make_vec` steps many in one loop. Here 64 controllers play at once, each with weights of its own, and the
# best eighth of them breeds the next 64 (the cross-entropy method).

# %%
vector = gymnasium.make_vec(f"heron_env:{ENV}", num_envs=64)
sees, acts = vector.single_observation_space.shape[0], vector.single_action_space.shape[0]
mean, spread = np.zeros((acts, sees + 1)), np.ones((acts, sees + 1))
bounds = vector.single_action_space.low, vector.single_action_space.high


def play(weights, seed):
    """Returns `[64]` of an episode by 64 controllers `[64, acts, sees + 1]`."""
    observations, _ = vector.reset(seed=seed)
    total, running = np.zeros(64), np.ones(64, dtype=bool)
    while running.any():
        seen = np.concatenate([observations, np.ones((64, 1))], axis=1)
        actions = np.clip(np.einsum("eas,es->ea", weights, seen), *bounds)
        observations, rewards, terminated, truncated, _ = vector.step(actions.astype(np.float32))
        total += rewards * running
        running &= ~(terminated | truncated)
    return total


for generation in range(20):
    weights = mean + spread * rng.normal(size=(64, *mean.shape))
    elite = weights[np.argsort(play(weights, seed=1000 * generation))[-8:]]
    mean, spread = elite.mean(axis=0), elite.std(axis=0) + 0.05
controller = np.repeat(mean[None], 64, axis=0)
print(f"one controller for all: {play(controller, seed=TEST[0]).mean():.1f} on 64 held-out seeds")

# %% [markdown]
# This controller needs every observation in one place at one time. That is no policy per agent, so there is nothing to
# deploy at the batteries, and no event-driven run of it: what a network does to what it must gather is not asked. The
# other three act on what each battery sees.

# %%
print(f"{'policy':<28}{'synchronous':>12}{'late':>8}")
for name, (sync, late) in scores.items():
    print(f"{name:<28}{sync:>12.1f}{late:>8.1f}")

# %% [markdown]
# **Next**: [05](05_gap_report.ipynb) asks how much of a policy survives a real network, and what eats the rest.
