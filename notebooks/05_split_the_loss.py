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
# # 5 Split the loss by cause
#
# **Goal.** A network does several things to a policy at once. Find out which of them costs how much, with intervals.
#
# The policy is a trained one that the library ships: PPO in Spread, three agents that cover three landmarks. It was
# trained without a network.
#
# It needs `pip install 'heron_env[plots]'`.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from itertools import combinations
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from heron_env import Condition, Sweep
from heron_env.lab import along

# %% [markdown]
# ## The network
#
# Commands take effect 0.2 s late (two steps), messages take 0.1 s, and one message in ten is lost. The sweep plays
# every subset of these causes, and longer delays of commands. Every condition has the same 20 cases, so differences are
# paired.

# %%
network = Condition(act_delay=0.2, msg_delay=0.1, loss=0.1)
subsets = [network.only(*some) for size in range(4) for some in combinations(network.causes, size)]
conditions = [*subsets, *along(act_delay=(0.0, 0.1, 0.4))]
sweep = Sweep.of("heron/Spread-v0", {"PPO": "shipped:heron/Spread-v0/ppo"}, conditions, cases=20)
result = sweep.run(Path(mkdtemp()) / "sweep")

# %% [markdown]
# ## Prediction
#
# **Which of the three causes costs most? Do the three losses, each measured alone, add up to the loss under the whole
# network?**

# %%
alone, shapley = result.decompositions
gap = shapley.gap.mean
print(f"whole network: {gap.value:.2f} [{gap.low:.2f}, {gap.high:.2f}]")
alone.plot(result.sweep.unit)

# %% [markdown]
# **Explanation.** Message delay costs most: a report, a request and its reply each take a message. The bars add one
# cause at a time. Alone they add up to less than the whole network takes, because causes interact. *Shapley values*
# share this interaction among the causes, so that the parts add up in every case:

# %%
shapley.plot(result.sweep.unit)

# %%
for part in shapley.parts:
    print(f"{part.cause:<10}{part.mean.value:6.2f} [{part.mean.low:6.2f}, {part.mean.high:6.2f}]")
assert np.allclose(np.sum([part.by_case for part in shapley.parts], axis=0), shapley.gap.by_case, atol=1e-9)

# %% [markdown]
# An interval that contains 0, as that of loss in the first figure, means: these 20 cases do not show that the cause
# costs anything.
#
# ## Return against one delay
#
# The upper panel has the gain over doing nothing, the lower one the loss; each dot is a case.

# %%
result.plot("act_delay")

# %% [markdown]
# ## Exercise
#
# 1. Play 80 cases. Which intervals become narrower, and by which factor?
# 2. Add a policy that was trained under constant delays, `"shipped:heron/Spread-v0/ppo-constant"`. Is it better
#    under this network?
# 3. Write a report: `heron_env.lab.write_report(folder, report_of(Sources(sweeps=[result])))`, or `heron report` from a
#    shell.
