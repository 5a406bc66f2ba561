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
# # Four ways to train on one environment
#
# 1. Stable-Baselines3 with a shared policy; 2. the same with a central critic (CTDE); 3. a training loop of your own
# over PettingZoo's interface; 4. one controller for all agents through Gymnasium's interface. The environment, its
# rules, its seeds and its rewards are the same each time. The first three give a policy for each agent, which runs on
# both clocks.
#
# It needs `pip install 'heron_env[train]'`. For longer trainings use `heron train` (or `heron_env.train`). It also
# scales observations, can correct a rule, and writes a run folder.

# %%
import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import CombinedExtractor, MlpExtractor

import heron_env
from heron_env import ScheduleConfig
from heron_env.adapters import HeronVecEnv
from heron_env.lab import benchmark
from heron_env import team_return

ENV = "heron/BatteryGrid-v0"
env = heron_env.make(ENV)
names = env.observation_names("battery_1")
print(f"{env.possible_agents} observe {names} and choose from {env.action_space('battery_1')}")

# %% [markdown]
# A policy is a function from an observation vector to an action. Each policy is evaluated in the same way: by the team
# return on four held-out seeds, on the synchronous clock and on the event-driven clock. There actions take effect three
# steps late.

# %%
TEST = [case.seed for case in benchmark.cases(env, 4)]
LATE = ScheduleConfig(act_delay=3.0)
scores = {}


def evaluate(name, policies):
    """Print and keep the mean returns on both clocks."""
    sync = np.mean([team_return(env, env.run_synchronous(policies, seed=s)) for s in TEST])
    late = np.mean([team_return(env, env.run_event_driven(policies, seed=s, schedule=LATE)) for s in TEST])
    scores[name] = sync, late
    print(f"{name:<28}{sync:8.1f}   actions three steps late {late:8.1f}")


for name, policies in benchmark.baselines(env).items():
    evaluate(name, policies)

# %% [markdown]
# ## 1 Stable-Baselines3: one policy, one slot for each agent
#
# `HeronVecEnv` steps 16 environments in one compiled loop. Each battery of each environment is a slot of the vectorised
# environment. So PPO trains one policy that all batteries share.

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
evaluate("shared policy (SB3)", {"*": lambda vector: shared.predict(vector, deterministic=True)[0]})

# %% [markdown]
# ## 2 CTDE: the critic observes the whole state
#
# With `critic="central"` an observation has two parts: the agent's own observation and the state of the world. The
# policy class passes the state to the critic only. So the actor needs nothing that is not available after deployment.
# Here the state is replaced by zeros.


# %%
class CentralCritic(MultiInputActorCriticPolicy):
    """The critic reads both parts of an observation, the actor `obs` alone."""

    def _build_mlp_extractor(self):
        self.pi_features_extractor = CombinedExtractor(self.observation_space)
        del self.pi_features_extractor.extractors["state"]
        nets = {"net_arch": self.net_arch, "activation_fn": self.activation_fn, "device": self.device}
        self.mlp_extractor = MlpExtractor(self.observation_space["obs"].shape[0], **nets)
        self.mlp_extractor.value_net = MlpExtractor(self.vf_features_extractor.features_dim, **nets).value_net


venv = HeronVecEnv(ENV, 16, seed=0, critic="central")
central = PPO(CentralCritic, venv, policy_kwargs={"share_features_extractor": False}, **PPO_OPTIONS).learn(16_000)
no_state = np.zeros(venv.observation_space["state"].shape, dtype=np.float32)
print({part: space.shape for part, space in venv.observation_space.items()})
evaluate(
    "central critic (CTDE)",
    {"*": lambda vector: central.predict({"obs": vector, "state": no_state}, deterministic=True)[0]},
)

# %% [markdown]
# ## 3 PettingZoo: a loop of your own
#
# The environment itself is a `ParallelEnv`, with dictionaries by agent as input and output. Here random search improves
# the weights of a linear policy that all batteries share: it changes them a little and keeps the change if the return
# is higher.

# %%
rng = np.random.default_rng(0)
low, high = env.action_space("battery_1").low, env.action_space("battery_1").high


def linear(weights):
    """A policy: weights `[actions, observations + 1]`."""
    return lambda vector: np.clip(weights @ np.append(vector, 1.0), low, high)


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
    candidate = best + rng.normal(size=best.shape) * 0.3
    earned = np.mean([episode(linear(candidate), seed) for seed in range(2)])
    if earned > most:
        best, most = candidate, earned
evaluate("linear policy (PettingZoo)", {"*": linear(best)})

# %% [markdown]
# ## 4 Gymnasium: one controller with all actions
#
# `gymnasium.make` gives the view of a single controller. It observes what any agent observes and sets all actions.
# `gymnasium.make_vec` steps many environments in one loop. Here 64 controllers run at once, each with its own weights.
# The best eighth of them defines the distribution of the next 64 (the cross-entropy method).

# %%
vector = gymnasium.make_vec(f"heron_env:{ENV}", num_envs=64)
observes, acts = vector.single_observation_space.shape[0], vector.single_action_space.shape[0]
mean, spread = np.zeros((acts, observes + 1)), np.ones((acts, observes + 1))
bounds = vector.single_action_space.low, vector.single_action_space.high


def play(weights, seed):
    """Returns `[64]` of one episode of 64 controllers with weights `[64, acts, observes + 1]`."""
    observations, _ = vector.reset(seed=seed)
    total, running = np.zeros(64), np.ones(64, dtype=bool)
    while running.any():
        inputs = np.concatenate([observations, np.ones((64, 1))], axis=1)
        actions = np.clip(np.einsum("eas,es->ea", weights, inputs), *bounds)
        observations, rewards, terminated, truncated, _ = vector.step(actions.astype(np.float32))
        total += rewards * running
        running &= ~(terminated | truncated)
    return total


for generation in range(20):
    weights = mean + spread * rng.normal(size=(64, *mean.shape))
    elite = weights[np.argsort(play(weights, seed=1000 * generation))[-8:]]
    mean, spread = elite.mean(axis=0), elite.std(axis=0) + 0.05
controller = np.repeat(mean[None], 64, axis=0)
print(f"one controller for all agents: {play(controller, seed=TEST[0]).mean():.1f} on 64 held-out seeds")

# %% [markdown]
# This controller needs all observations in one place at one time. It is no policy for each agent. So no battery can run
# it, and this notebook does not run it event-driven. The other three policies use what each battery observes.

# %%
print(f"{'policy':<28}{'synchronous':>14}{'actions late':>14}")
for name, (sync, late) in scores.items():
    print(f"{name:<28}{sync:>14.1f}{late:>14.1f}")

# %% [markdown]
# **Next**: [05](05_gap_report.ipynb) measures how much of a policy's return remains under a network, and which cause
# costs how much.
