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
# # The gap report: how much return does a network cost, and which cause takes how much?
#
# A policy that is good in the simulator meets delays, loss and jitter after deployment. A *sweep* evaluates it under
# such conditions. The held-out days and the random draws are the same as on the synchronous clock. So every difference
# is an effect of the condition. This notebook splits that difference, the *gap*, by cause and writes a report.
#
# From a shell, run `heron sweep --out runs/mine` and then `heron report runs/mine`.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from itertools import combinations
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from heron_env.lab import along
from heron_env import Condition
from heron_env import Sweep
from heron_env.lab import finding
from heron_env.lab import write_report
from heron_env.lab import Sources, report_of

# %% [markdown]
# ## 1 Conditions
#
# A condition lists all faults of the network. Here messages take fifteen seconds, actions take effect half a control
# step late, and one message in twenty is lost. The sweep gets every subset of these three causes. `along`
# varies one cause alone.

# %%
realistic = Condition(msg_delay=15.0, act_delay=30.0, loss=0.05)
subsets = [realistic.only(*some) for size in range(4) for some in combinations(realistic.causes, size)]
conditions = [*subsets, *along(act_delay=(0.0, 60.0))]
for condition in conditions:
    print(condition.words)

# %% [markdown]
# ## 2 The sweep
#
# The sweep uses two held-out days, only until 13 h to save time, and one rule-based policy. The path of a run folder
# can take the place of the policy. The physics runs in steps of two seconds, so delays of seconds have an effect. State
# reports leave every ten seconds.

# %%
rule = "grid-friendly with zone feedback"
options = {"max_steps": 780}
sweep = Sweep.of("heron/EnergyManagement-v1", {rule: rule}, conditions, cases=2, options=options)
folder = Path(mkdtemp()) / "sweep"
result = sweep.run(folder)
for sentence in finding(result):
    print(sentence)

# %% [markdown]
# A sweep stores every episode as soon as it ends. If interrupted, run the same sweep again: it resumes. A complete
# sweep runs no episode again.

# %%
runs = []
sweep.run(folder, progress=runs.append)
print(f"{runs[0].done} of {runs[0].total} episodes were there already")

# %% [markdown]
# ## 3 Return against one delay
#
# The upper panel shows the gain over doing nothing. The dashed line is the synchronous clock. The gain of perfect
# foresight is shown too if it is known for these options. The lower panel shows the gap: the return on the synchronous
# clock minus the return under the delay, on the same day. Each dot is a day. The band is a t interval over the days.
# Two days are enough for a picture, but not for a conclusion.

# %%
result.plot("act_delay")

# %% [markdown]
# ## 4 The gap by cause
#
# The first figure adds one cause at a time. The sum of the single causes differs from the gap, by their interaction.
# Shapley values, in the second figure, share the interaction among the causes. They add up to the gap in every case.

# %%
alone, shapley = result.decompositions
alone.plot(result.sweep.unit)

# %%
shapley.plot(result.sweep.unit)

# %%
parts = np.sum([part.by_case for part in shapley.parts], axis=0)
assert np.allclose(parts, shapley.gap.by_case, rtol=0.0, atol=1e-9)
print("parts: ", parts)
print("gap:   ", np.array(shapley.gap.by_case))

# %% [markdown]
# ## 5 The report
#
# The report is one HTML file that needs no other file, for a browser or a phone. Its figures are written beside it as
# SVG and PNG. Besides the figures above they show a day on both clocks, the messages of a few minutes, the hierarchy,
# and the observability.

# %%
report = report_of(Sources(sweeps=[result]))
files = write_report(folder.parent / "report", report)
for name, path in files.items():
    print(f"{name:<20}{path.stat().st_size / 1000:>7.0f} kB")

# %% [markdown]
# This figure of the report shows one day on both clocks: the batteries, the price, and how late messages change the
# power through a transformer.

# %%
next(picture.drawing for picture in report.pictures if picture.name == "one_case")
