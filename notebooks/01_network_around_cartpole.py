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
# # 1 A network around CartPole
#
# **Goal.** Put a network between a controller and an environment that you know, and measure what it costs. No training,
# three lines of new code.
#
# It needs `pip install 'heron_env[plots]'`.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from pathlib import Path
from tempfile import mkdtemp

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

from heron_env import ScheduleConfig, under_network
from heron_env.lab import margin

# %% [markdown]
# ## A controller that is perfect without a network
#
# CartPole's observation has four numbers. The last two are the pole's angle and its angular velocity. This rule pushes
# the cart to the side to which the pole falls. An episode ends when the pole falls, or after 500 steps.


# %%
def act(observation):
    """1: push to the right; 0: to the left."""
    return int(observation[2] + 0.3 * observation[3] > 0)


env = under_network(gymnasium.make("CartPole-v1"), ScheduleConfig(), noop=0)


def returns(policy, episodes=15, **network):
    """The return of each episode under a network; its delays are in steps."""
    schedule = ScheduleConfig(**network)
    runs = (env.run_event_driven({"*": policy}, seed=seed, schedule=schedule) for seed in range(episodes))
    return [run.returns["agent"] for run in runs]


print(returns(act))

# %% [markdown]
# ## Prediction
#
# Now observations arrive late, by 1 to 6 steps of 0.02 s. **Before you run the cell: at which delay does the return
# begin to fall? And does it fall slowly, or at once?**

# %%
delays = range(7)
late = np.array([returns(act, obs_delay=float(delay)) for delay in delays])
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(delays, late, ".", color="tab:grey", alpha=0.5)
axes.plot(delays, late.mean(axis=1), "o-", label="mean of 15 episodes (grey)")
axes.set(xlabel="delay of observations, steps", ylabel="return", ylim=(0, 520))
axes.legend(frameon=False)
plt.close(figure)
figure

# %% [markdown]
# **Explanation.** One step costs nothing. Then some episodes end early, and at six steps all of them do. The pole is
# unstable: an error grows by a constant factor in each step. A late push meets a larger error, and from some delay on
# the error grows faster than the pushes can reduce it. The curve need not fall everywhere: here 3 steps cost less than
# 2. So measure several delays, not one.
#
# ## Prediction
#
# **Is a late action better or worse than a late observation of the same delay?** Both are 4 steps late below.

# %%
print("observations late:", np.mean(returns(act, obs_delay=4.0)))
print("actions late:     ", np.mean(returns(act, act_delay=4.0)))

# %% [markdown]
# **Explanation.** They are equal: for a controller without memory, only the time from measurement to effect counts.
# Random losses are different. A lost action is replaced by the no-op, here action 0 (push to the left):

# %%
for loss in (0.0, 0.1, 0.3):
    print(f"loss {loss:.0%}: {np.mean(returns(act, loss=loss)):6.1f}")

# %% [markdown]
# ## How much delay does the controller tolerate?
#
# `margin` answers with an interval. A gain is the return above that of doing nothing (always action 0). From a shell:
# `heron margin gymnasium:CartPole-v1 policy.py:act --fault obs_delay -o noop=0`.

# %%
file = Path(mkdtemp()) / "policy.py"
file.write_text("def act(observation):\n    return int(observation[2] + 0.3 * observation[3] > 0)\n")
found = margin(
    "gymnasium:CartPole-v1", f"{file}:act", name="act", fault="obs_delay", largest=8.0, cases=32, options={"noop": 0},
)  # fmt: skip
print(found)

# %% [markdown]
# The seconds of this answer are steps, because `under_network` takes a step as one second unless you set `dt`.
#
# ## Exercise
#
# 1. Replace 0.3 by 0.2 and by 1.0, and repeat the first figure. Which weight tolerates the longest delay? Why?
# 2. Give the network jitter: `ScheduleConfig(obs_delay=2.0, jitter_type="lognormal", jitter_ratio=0.5)`.
# 3. Put the network around an environment of your own: `under_network(your_env, ScheduleConfig(...), noop=...)`.
#
# **Next**: [2, your own world](02_your_own_world.ipynb), or [4, train under a
# network](04_train_under_a_network.ipynb).
