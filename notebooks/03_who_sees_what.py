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
# # 3 Who sees what
#
# **Goal.** Hide numbers from agents, add noise, prove that nothing leaks, and measure what information is worth.
#
# The world is an economy, declared in a YAML file without code. Countries trade in one currency. Its yield depends on
# the reserves of all countries and of the central bank, and reserves are secret.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
import matplotlib.pyplot as plt
import numpy as np

import heron_env
from heron_env import NoiseKey, apply_noise, mean_interval
from heron_env.worlds.economy import ReadsReserves

env = heron_env.make("heron/Economy-v0")
observations, infos = env.reset(seed=0)
matrix = env.visibility_matrix()
matrix.plot()

# %% [markdown]
# A row is an observer and a column a number. Each cell has a reason, which you can print:

# %%
sights = matrix.row("country_1", hidden=True)
for sight in sights:
    if sight.reason == "bookkeeping" or not sight.column.startswith(("country_1", "country_2")):
        continue
    visible = "hidden" if sight.hidden else "exact" if sight.factor == 0 else f"noise {sight.factor:g}"
    print(f"{sight.column:<40}{visible:<12}{sight.reason}")

# %% [markdown]
# ## One observation, and the truth
#
# Own numbers are exact. Those of the other countries have noise of up to 10 %. Hidden numbers are not in the vector.

# %%
truth = dict(zip(env.state_names, env.state(), strict=True))
for name, value in zip(env.observation_names("country_1"), observations["country_1"], strict=True):
    full = name if name.startswith(("country_", "global.")) else f"country_1.{name}"
    print(f"{full:<42}{value:>10.3f}   truth {truth[full]:>10.3f}")

# %% [markdown]
# ## Prediction
#
# The next cell adds 7 to every number that is hidden from country_1. **Does its observation change? In how many of its
# bytes?**

# %%
env.reset(seed=0)
before = env.proxy.get_observation("country_1").vector().tobytes()
hidden = [sight.column for sight in sights if sight.hidden]
for name in hidden:
    env.simulation.truth[env.state_names.index(name)] += 7.0
after = env.proxy.get_observation("country_1").vector().tobytes()
print(f"{len(hidden)} numbers changed; bytes of the observation that changed:", sum(map(int.__ne__, before, after)))

# %% [markdown]
# **Explanation.** None. Noise does not leak either: it is drawn by observer, target, number, seed and time, and never
# from a common sequence. So a further agent does not change the noise of the others, and a run repeats bit for bit.

# %%
key = NoiseKey("country_1", "country_2", "Variables.economic_strength")
noisy = np.array([apply_noise(100.0, 0.1, key._replace(turn=turn)) for turn in range(1000)])
print(f"true strength 100, noise 0.1: from {noisy.min():.1f} to {noisy.max():.1f}, mean {noisy.mean():.2f}")

# %% [markdown]
# ## Prediction
#
# An *insider* observes all reserves, an *outsider* none. Both follow a rule that uses everything that it observes. The
# insider's numbers get more and more noise. **At which noise is the insider as poor as the outsider? Can it become
# poorer?**

# %%
countries = env.possible_agents


def earned(level, noise, episodes=10):
    """Mean return of country_1 with its interval; the other countries observe external numbers only."""
    table = [("country_1", target, level, noise) for target in (*countries[1:], "global")]
    world = heron_env.make("heron/Economy-v0", observability={"matrix": table, "default": {"level": "external"}})
    policies = {"*": ReadsReserves(world.engine, len(countries))}
    runs = [world.run_synchronous(policies, seed=seed, record=()) for seed in range(episodes)]
    return mean_interval([run.returns["country_1"] for run in runs])


factors = [0.0, 0.1, 0.2, 0.4, 0.8]
insider = [earned("insider", noise) for noise in factors]
outsider = earned("external", 0.0)
figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
mean, low, high = np.array([(one.mean, one.low, one.high) for one in insider]).T
axes.errorbar(factors, mean, yerr=[mean - low, high - mean], marker="o", capsize=3, label="insider, with noise")
axes.axhspan(outsider.low, outsider.high, color="tab:orange", alpha=0.25)
axes.axhline(outsider.mean, color="tab:orange", label="outsider, exact")
axes.set(xlabel="noise of the insider", ylabel="growth of country_1, %", title="10 episodes, 95 % intervals")
axes.legend(frameon=False)
plt.close(figure)
figure

# %% [markdown]
# **Explanation.** Information is worth something as long as it is exact enough. The rule trusts everything that it
# observes, so with much noise it trades on errors: then it earns less than the outsider, who knows less and is right.
#
# ## Exercise
#
# 1. Give country_1 `"external"` with noise 0.2. Does noise hurt an outsider, too?
# 2. Write a rule that trusts noisy reserves less. Does it ever earn less than the outsider?
# 3. In Tag, hunters may see prey only nearby: `heron_env.make("heron/Tag-v0", mates="message", sight=0.5)`. Find the
#    return of the baseline rules for `sight` of 0.3, 0.6 and `None`.
#
# **Next**: [4, train under a network](04_train_under_a_network.ipynb).
