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
# # Your own agent, behind HTTP
#
# An agent in any language decides in our environments: it is asked by POST and answers with JSON. Here the traffic
# lights of a corridor are played by an endpoint. `serve_policy` makes one of a rule, in this process; yours may run
# anywhere (`examples/agent.mjs` is one in Node.js, `docs/external_agents.md` has the contract).

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from typing import Any

import heron_env
from heron_env.injection import ConcurrencyConfig, Endpoint, ExternalPolicy, Latency, serve_policy
from heron_env.lab import benchmark, figure_style


def corridor() -> heron_env.HeronEnv:
    return heron_env.make("heron/TrafficCorridor-v0", max_steps=120)


env = corridor()
rules = benchmark.baselines(env)["actuated"]
there = serve_policy(rules, corridor())
print(there.url.rpartition(":")[0], list(rules))

# %% [markdown]
# Injected, it is a policy like any other, and runs the course of the rule bit for bit: all questions of one instant are
# sent together.

# %%
quick = ConcurrencyConfig(qps_cap=10_000)  # by default an endpoint gets 100 requests a second at most
agent = ExternalPolicy(Endpoint(there.url, concurrency=quick), env=env)
own = env.run_synchronous(rules, seed=0)
result = env.run_synchronous({"*": agent}, seed=0)
print("the same course:", result.same_course(own))
print(agent.metrics().counts, "deterministic:", result.deterministic)

# %% [markdown]
# ## What it is asked
#
# What it sees, its action space, its mask: after visibility and noise. In the tier `"basic"`, the default, names that
# belong to others are `""`; `"full"` has them, `"minimal"` has no names at all.

# %%
from heron_env import Asked

_, infos = env.reset(seed=0)
name = env.groups["intersection"][0]
vector, turn = env.seen_by(env.hierarchy.index[name])
asked = Asked(
    name, vector, tuple(env.observation_names(name)), number=0, turn=turn, time=0.0, seed=0, episode=0,
    space=env.action_space(name), mask=infos[name]["action_mask"],
)  # fmt: skip
request = agent.questions.request(asked).model_dump(mode="json")
{key: request[key] for key in ("agent_id", "persona_snapshot", "decision")}

# %% [markdown]
# ## When thinking takes time
#
# In the event-driven clock an answer may take virtual time. Observations that come meanwhile are not used. The rule
# decides every 5 s; the curve is its return over the mean time that it thinks (lognormal, half its mean apart).

# %%
from matplotlib.figure import Figure


def thinking(mean: float) -> heron_env.EpisodeResult:
    slow = Endpoint(there.url, concurrency=quick, latency=Latency(mode="virtual", mean=mean, ratio=0.5))
    policy = ExternalPolicy(slow, env=env)
    return env.run_event_driven({"*": policy}, t_end=120 * env.dt, seed=0)


means = [0.0, 1.0, 2.5, 5.0, 10.0, 20.0]
found = [thinking(mean) for mean in means]
with figure_style.house_style():
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes: Any = figure.subplots()
    axes.plot(means, [heron_env.team_return(env, one) for one in found], "o-", color=figure_style.BLUE)
    axes.set_xlabel("mean thinking time, s (a decision is due every 5 s)")
    axes.set_ylabel("return of the corridor")
print("observations that found it thinking:", [sum(one.busy.values()) for one in found])
figure

# %% [markdown]
# ## When it fails
#
# The endpoint is gone. Every step returns all the same; what stood in (here the no-op) is counted, and after five
# failures in a row the endpoint is left alone for 30 s.

# %%
there.close()
agent = ExternalPolicy(there.url, env=env, fallback="skip")
result = env.run_synchronous({"*": agent}, seed=0)
figures = agent.metrics()
print(figures.counts, "circuit:", figures.circuit_state)
print("return:", heron_env.team_return(env, result), "instead of", heron_env.team_return(env, own))
