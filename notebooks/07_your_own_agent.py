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
# # Your own agent behind HTTP
#
# An agent in any language can decide in our environments. It receives POST requests and answers with JSON. Here an
# endpoint controls the traffic lights of a corridor. `serve_policy` makes an endpoint of a rule, in this process. Your
# endpoint may run anywhere. `examples/agent.mjs` is an agent in Node.js, and `docs/external_agents.md` has the
# contract.

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
server = serve_policy(rules, corridor())
print(server.url.rpartition(":")[0], list(rules))

# %% [markdown]
# An injected endpoint is a policy like any other. This one produces the same episode as the rule, bit for bit. All
# requests of one time step are sent together.

# %%
quick = ConcurrencyConfig(qps_cap=10_000)  # by default an endpoint gets 100 requests a second at most
agent = ExternalPolicy(Endpoint(server.url, concurrency=quick), env=env)
own = env.run_synchronous(rules, seed=0)
result = env.run_synchronous({"*": agent}, seed=0)
print("same episode:", result.same_course(own))
print(agent.metrics().counts, "deterministic:", result.deterministic)

# %% [markdown]
# ## The request
#
# A request holds the agent's observation, its action space and its action mask, after visibility and noise. In the tier
# `"basic"`, the default, names of other agents' features are `""`. The tier `"full"` includes them, and `"minimal"` has
# no names at all.

# %%
from heron_env import Asked

_, infos = env.reset(seed=0)
name = env.groups["intersection"][0]
vector = env.seen_by(env.hierarchy.index[name])
asked = Asked(
    name, vector, tuple(env.observation_names(name)), number=0, turn=0, time=0.0, seed=0, episode=0,
    space=env.action_space(name), mask=infos[name]["action_mask"],
)  # fmt: skip
request = agent.questions.request(asked).model_dump(mode="json")
{key: request[key] for key in ("agent_id", "persona_snapshot", "decision")}

# %% [markdown]
# ## Thinking time
#
# On the event-driven clock an answer may take virtual time. Observations that arrive before the answer are not used.
# The rule decides every 5 s. The curve shows its return over its mean thinking time. The thinking time is lognormal,
# and its standard deviation is half its mean.

# %%
from matplotlib.figure import Figure


def thinking(mean: float) -> heron_env.EpisodeResult:
    slow = Endpoint(server.url, concurrency=quick, latency=Latency(mode="virtual", mean=mean, ratio=0.5))
    policy = ExternalPolicy(slow, env=env)
    return env.run_event_driven({"*": policy}, t_end=120 * env.dt, seed=0)


means = [0.0, 1.0, 2.5, 5.0, 10.0, 20.0]
results = [thinking(mean) for mean in means]
with figure_style.house_style():
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes: Any = figure.subplots()
    axes.plot(means, [heron_env.team_return(env, one) for one in results], "o-", color=figure_style.BLUE)
    axes.set_xlabel("mean thinking time, s (one decision every 5 s)")
    axes.set_ylabel("team return")
print("observations that were not used:", [sum(one.busy.values()) for one in results])
figure

# %% [markdown]
# ## A failing endpoint
#
# Here the endpoint is closed. Every step still returns. The fallback, here the no-op, is counted. After five failures
# in a row the circuit breaker opens, and the endpoint gets no request for 30 s.

# %%
server.close()
agent = ExternalPolicy(server.url, env=env, fallback="skip")
result = env.run_synchronous({"*": agent}, seed=0)
metrics = agent.metrics()
print(metrics.counts, "circuit breaker:", metrics.circuit_state)
print("return:", heron_env.team_return(env, result), "instead of", heron_env.team_return(env, own))
