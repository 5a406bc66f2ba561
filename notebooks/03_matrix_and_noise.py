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
# # Who sees what, and how clearly
#
# Real controllers see part of the world, blurred. An *observability matrix* says for every pair of observer and target
# whether it is unaware, sees the external variables, or all of them, and with how much noise. It applies to every
# environment, on both clocks and in every adapter; here to an economy that is declared in YAML, without code.

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
# Countries trade in a currency. Its yield depends on the reserves of all countries and of the central bank, which are
# internal: only insiders see them.

# %%
env = heron_env.make("heron/Economy-v0")
observations, infos = env.reset(seed=0)
matrix = env.visibility_matrix()
matrix.plot()

# %% [markdown]
# (`Conduct` is the engine's bookkeeping, in nobody's observation; the critic of a training may read the whole truth.)
# The picture can be asked, and each cell has a reason:

# %%
told = [sight for sight in matrix.row("country_1", hidden=True) if sight.reason != "bookkeeping"]
for sight in told:
    seen = "hidden" if sight.hidden else "exact" if sight.factor == 0 else f"noise {sight.factor:g}"
    print(f"{sight.column:<40}{seen:<12}{sight.reason}")

# %% [markdown]
# ## One look
#
# What country_1 is shown, beside the truth. Its own numbers are exact; others' strength is blurred by up to 10 %; what
# is hidden is not in the vector at all.

# %%
truth = dict(zip(env.state_names, env.state(), strict=True))
for name, value in zip(env.observation_names("country_1"), observations["country_1"], strict=True):
    full = name if name.startswith(("country_", "global.")) else f"country_1.{name}"
    print(f"{full:<42}{value:>10.3f}   truth {truth[full]:>10.3f}")

# %% [markdown]
# The same look as an object, for policies that prefer names to positions: hidden things are absent.

# %%
env.observed_state("country_1").agents["country_2"]

# %% [markdown]
# ## What the noise is
#
# An observation is `value * (1 + noise * u)`, within the declared bounds. The uniform `u` in [-1, 1) is a pure function
# of observer, target, variable, seed, episode and turn. So a run can be repeated bit for bit, adding an agent changes
# nobody's noise, a new episode has new noise, and no policy can learn it by heart.

# %%
from heron_env import NoiseKey, apply_noise

key = NoiseKey("country_1", "country_2", "Variables.economic_strength")
shown = np.array([apply_noise(100.0, 0.1, key._replace(turn=turn)) for turn in range(4000)])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
left.plot(shown[:60], ".-", linewidth=0.8)
left.axhline(100.0, color="black", linewidth=0.8)
left.set(xlabel="turn", ylabel="shown, bn", title="a strength of 100, noise 0.1")
right.hist(shown, bins=40)
right.set(xlabel="shown, bn", title=f"4,000 turns: mean {shown.mean():.2f}, sd {shown.std():.2f}")
plt.close(figure)
figure

# %% [markdown]
# The same seed gives the same bytes, and the next episode does not:

# %%
first, second, again = env.reset(seed=5)[0], env.reset()[0], env.reset(seed=5)[0]
assert all(first[agent].tobytes() == again[agent].tobytes() for agent in first)
assert any(first[agent].tobytes() != second[agent].tobytes() for agent in first)

# %% [markdown]
# ## Proof that what is hidden stays hidden
#
# Change every hidden number of the world. Nothing that country_1 is shown changes.

# %%
env.reset(seed=0)
before = env.proxy.get_observation("country_1").vector().tobytes()
hidden = [sight.column for sight in matrix.row("country_1", hidden=True) if sight.hidden]
assert hidden
for name in hidden:
    env.simulation.truth[env.state_names.index(name)] += 7.0
assert env.proxy.get_observation("country_1").vector().tobytes() == before
print(f"changed {len(hidden)} numbers, among them", [sight.column for sight in told if sight.hidden])

# %% [markdown]
# ## What knowledge is worth
#
# One country follows the rule that uses whatever it is shown, under different rows of the matrix; everything else stays
# the same, seed by seed. The insider earns most. Noise on what it sees eats the advantage up, and beyond some point
# it would be better off not to look.

# %%
from heron_env.worlds.economy import ReadsReserves

countries = env.possible_agents


def earned(level: str, noise: float, seeds: range) -> list[float]:
    """Return of country_1 by seed, with this view of all others; they see what everybody may."""
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
axes.errorbar(factors, means, yerr=[means - low, high - means], marker="o", capsize=3, label="insider")
axes.axhspan(outsider.low, outsider.high, color="tab:orange", alpha=0.25)
axes.axhline(outsider.mean, color="tab:orange", label="sees external variables only, exactly")
axes.set(xlabel="noise on what the insider sees", ylabel="growth, percent", title="12 episodes each, 95 % intervals")
axes.legend(frameon=False)
plt.close(figure)
figure

# %% [markdown]
# ## On the event-driven clock
#
# Noise belongs to the tick that asks, not to the moment of an answer. So the clocks agree bit for bit with noise on,
# and a delay changes what is known but not how it is blurred.

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
print({name: round(value, 2) for name, value in total.items()}, "percent of growth, all countries")

# %% [markdown]
# `heron validate FILE.yaml` checks such a file and says what is wrong with file and line; any environment takes a
# matrix: `heron_env.make(ID, observability="matrix.yaml")`.
