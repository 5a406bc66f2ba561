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
# # Observability and noise
#
# Real controllers observe a part of the world, with noise. An *observability matrix* sets what each observer sees of
# each target: nothing, the external variables, or all variables. It also sets the noise. The matrix applies to every
# environment, on both clocks and in every adapter. This notebook uses an economy that is declared in YAML, without
# code.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
import matplotlib.pyplot as plt
import numpy as np

import heron_env
from heron_env.worlds.economy import WORLD
from heron_env import mean_interval

print(WORLD.read_text())

# %% [markdown]
# Countries trade in a currency. Its yield depends on the reserves of all countries and of the central bank. These
# reserves are internal variables, so only insiders observe them.

# %%
env = heron_env.make("heron/Economy-v0")
observations, infos = env.reset(seed=0)
matrix = env.visibility_matrix()
matrix.plot()

# %% [markdown]
# (`Conduct` is bookkeeping of the engine, and no agent observes it. A critic may use the whole state during training.)
# Each cell of the picture has a reason, and you can print it:

# %%
sights = [sight for sight in matrix.row("country_1", hidden=True) if sight.reason != "bookkeeping"]
for sight in sights:
    visible = "hidden" if sight.hidden else "exact" if sight.factor == 0 else f"noise {sight.factor:g}"
    print(f"{sight.column:<40}{visible:<12}{sight.reason}")

# %% [markdown]
# ## One observation
#
# This is one observation of country_1 beside the true values. Its own numbers are exact. The strengths of the other
# countries have noise of up to 10 %. Hidden variables are not in the vector at all.

# %%
truth = dict(zip(env.state_names, env.state(), strict=True))
for name, value in zip(env.observation_names("country_1"), observations["country_1"], strict=True):
    full = name if name.startswith(("country_", "global.")) else f"country_1.{name}"
    print(f"{full:<42}{value:>10.3f}   truth {truth[full]:>10.3f}")

# %% [markdown]
# A policy can also use the same observation as an object, with names in place of positions. Hidden variables are
# absent.

# %%
env.observed_state("country_1").agents["country_2"]

# %% [markdown]
# ## How the noise is drawn
#
# An observed value is `value * (1 + noise * u)`, clipped to the declared bounds. The uniform `u` in [-1, 1) is a pure
# function of observer, target, variable, seed, episode and turn. So a run can be repeated bit for bit. A further agent
# does not change the noise of the others. A new episode has new noise, so no policy can memorise it.

# %%
from heron_env import NoiseKey, apply_noise

key = NoiseKey("country_1", "country_2", "Variables.economic_strength")
observed = np.array([apply_noise(100.0, 0.1, key._replace(turn=turn)) for turn in range(4000)])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
left.plot(observed[:60], ".-", linewidth=0.8)
left.axhline(100.0, color="black", linewidth=0.8)
left.set(xlabel="turn", ylabel="observed strength, bn", title="true strength 100 bn, noise 0.1")
right.hist(observed, bins=40)
right.set(
    xlabel="observed strength, bn", ylabel="turns", xticks=range(90, 111, 5),
    title=f"4,000 turns: mean {observed.mean():.2f}, standard deviation {observed.std():.2f}",
)  # fmt: skip
plt.close(figure)
figure

# %% [markdown]
# The same seed gives the same bytes. The next episode has other noise:

# %%
first, second, again = env.reset(seed=5)[0], env.reset()[0], env.reset(seed=5)[0]
assert all(first[agent].tobytes() == again[agent].tobytes() for agent in first)
assert any(first[agent].tobytes() != second[agent].tobytes() for agent in first)

# %% [markdown]
# ## A check that hidden variables stay hidden
#
# This cell changes every number that is hidden from country_1. The observation of country_1 keeps every byte.

# %%
env.reset(seed=0)
before = env.proxy.get_observation("country_1").vector().tobytes()
hidden = [sight.column for sight in matrix.row("country_1", hidden=True) if sight.hidden]
assert hidden
for name in hidden:
    env.simulation.truth[env.state_names.index(name)] += 7.0
assert env.proxy.get_observation("country_1").vector().tobytes() == before
print(f"{len(hidden)} numbers changed, these variables among them:", [sight.column for sight in sights if sight.hidden])

# %% [markdown]
# ## The value of information
#
# Here country_1 follows a rule that uses everything it observes. Its rows of the matrix vary, and everything else stays
# the same, seed by seed. The insider without noise earns most. Noise reduces the advantage. With much noise the insider
# earns less than the outsider, who observes the external variables only.

# %%
from heron_env.worlds.economy import ReadsReserves

countries = env.possible_agents


def earned(level: str, noise: float, seeds: range) -> list[float]:
    """Returns of country_1 by seed, which observes the others at this level; they observe external variables."""
    rows = [("country_1", target, level, noise) for target in (*countries[1:], "global")]
    world = heron_env.make("heron/Economy-v0", observability={"matrix": rows, "default": {"level": "external"}})
    policies = {"*": ReadsReserves(world.engine, len(countries))}
    return [world.run_synchronous(policies, seed=seed, record=()).returns["country_1"] for seed in seeds]


factors = [0.0, 0.1, 0.2, 0.4, 0.8]
insider = [mean_interval(earned("insider", noise, range(12))) for noise in factors]
outsider = mean_interval(earned("external", 0.0, range(12)))

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
means = np.array([interval.mean for interval in insider])
low, high = (np.array([getattr(interval, end) for interval in insider]) for end in ("low", "high"))
axes.errorbar(factors, means, yerr=[means - low, high - means], marker="o", capsize=3, label="insider, with noise")
axes.axhspan(outsider.low, outsider.high, color="tab:orange", alpha=0.25)
axes.axhline(outsider.mean, color="tab:orange", label="outsider: external variables only, exact")
axes.set(xlabel="noise of the insider", ylabel="growth of country_1, %", title="12 episodes each, 95 % intervals")
axes.legend(frameon=False)
plt.close(figure)
figure

# %% [markdown]
# ## On the event-driven clock
#
# The noise belongs to the tick at which the agent requests an observation, and not to the time of the answer. So the
# clocks agree bit for bit with noise too. A delay changes the values that an agent receives, but not their noise.

# %%
policies = {"*": ReadsReserves(env.engine, len(countries))}
record = ("rewards", "actions", "observations")
sync = env.run_synchronous(policies, seed=1, record=record)
event = env.run_event_driven(policies, seed=1, record=record)
assert event.same_course(sync)
assert all(
    np.array_equal(mine, theirs)
    for agent in countries
    for (_, mine), (_, theirs) in zip(sync.observations[agent], event.observations[agent], strict=True)
)
late = env.run_event_driven(policies, seed=1, schedule=heron_env.ScheduleConfig(msg_delay=0.5, act_delay=0.5))
total = {name: sum(run.returns[a] for a in countries) for name, run in (("synchronous", sync), ("late", late))}
print({name: round(value, 2) for name, value in total.items()}, "% growth, sum over all countries")

# %% [markdown]
# `heron check FILE.yaml` checks such a file and reports each error with the file and the line number. Every
# environment takes a matrix: `heron_env.make(ID, observability="matrix.yaml")`.
