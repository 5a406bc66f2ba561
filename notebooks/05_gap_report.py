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
# # How much survives the network, and what eats the rest?
#
# A policy that is good in the simulator meets delays, loss and jitter when it is deployed. A *sweep* runs it under such
# conditions, on the same held-out days and with the same random draws as on the synchronous clock, so that every
# difference is the condition's doing. Then the gap is taken apart by cause, and written up as a report.
#
# The same from a shell: `heron sweep --out runs/mine`, then `heron report runs/mine`.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from heron_env.lab import waterfall_figure
from heron_env.lab import sweep_figure
from heron_env.lab import along, coalitions
from heron_env import Condition
from heron_env import Sweep
from heron_env.lab import finding
from heron_env.lab import write_report
from heron_env.lab import Sources, report_of

# %% [markdown]
# ## 1 Conditions
#
# A condition says what is wrong, and nothing else is: here messages that take fifteen seconds, actions that take half a
# control step, and one message in twenty that is lost. `coalitions` gives every subset of the three; `along` varies one
# cause alone.

# %%
realistic = Condition(msg_delay=15.0, act_delay=30.0, loss=0.05)
conditions = [*coalitions(realistic), *along(act_delay=(0.0, 60.0))]
for condition in conditions:
    print(condition.words)

# %% [markdown]
# ## 2 The sweep
#
# Two held-out days until 13 h, to save time, and one rule-based policy (a run folder's path would do as well). Physics
# goes in steps of two seconds, so that delays of seconds can show, and reports leave every ten.

# %%
rule = "grid-friendly with zone feedback"
options = {"max_steps": 780}
sweep = Sweep.of("heron/EnergyManagement-v1", {rule: rule}, conditions, cases=2, options=options)
folder = Path(mkdtemp()) / "sweep"
result = sweep.run(folder)
for sentence in finding(result):
    print(sentence)

# %% [markdown]
# Every episode is written down as soon as it is done: a sweep that was stopped goes on where it was, and a finished one
# runs nothing at all.

# %%
runs = []
sweep.run(folder, progress=runs.append)
print(f"{runs[0].done} of {runs[0].total} episodes were there already")

# %% [markdown]
# ## 3 Return against one delay
#
# Above, the gain over doing nothing, with the synchronous level and what perfect foresight would gain, where that is
# known for these options; below, the difference to the synchronous clock on the same day. Dots are days, the band is a
# t interval over them: two days are enough for a picture, not for a claim.

# %%
sweep_figure(result, "act_delay")

# %% [markdown]
# ## 4 What causes it
#
# One cause at a time leaves a rest: what the causes do together. Shapley values share that rest out, and add up to the
# gap, case by case.

# %%
alone, shapley = result.decompositions
waterfall_figure(alone, result.sweep.unit)

# %%
waterfall_figure(shapley, result.sweep.unit)

# %%
parts = np.sum([part.by_case for part in shapley.parts], axis=0)
assert np.allclose(parts, shapley.gap.by_case, rtol=0.0, atol=1e-9)
print("parts: ", parts)
print("gap:   ", np.array(shapley.gap.by_case))

# %% [markdown]
# ## 5 The report
#
# One HTML file that needs nothing else, for a browser or a phone, and its figures as SVG and PNG beside it: besides
# those above, a day on both clocks, the messages of a few minutes, the hierarchy, and who sees what.

# %%
report = report_of(Sources(sweeps=[result]))
files = write_report(folder.parent / "report", report)
for name, path in files.items():
    print(f"{name:<20}{path.stat().st_size / 1000:>7.0f} kB")

# %% [markdown]
# A day on both clocks, from that report: what the delays do to the power through a transformer.

# %%
next(picture.drawing for picture in report.pictures if picture.name == "one_case")
