"""The law of visibility as functions: each raises AssertionError where something hidden shows."""

from typing import Any

import numpy as np
from laws.visibility import hidden, inert, visible
from strategies import Recipe
from worlds import LawEnv

from heron_env.scheduling.messages import Command, ObservationReply
from heron_env.scheduling.trace import exact
from heron_env.seeding import key, uniforms


def check_the_plan_follows_the_tags(recipe: Recipe) -> None:
    """Every observer's columns are those that the tags show, in the documented order."""
    env = recipe.build()
    for rank, agent in enumerate(env.hierarchy.ids):
        assert env.simulation.plan.views[rank].columns.tolist() == visible(env, rank), f"{agent} sees other columns"


def glance(env: LawEnv, rank: int) -> list[bytes]:
    """Everything that tells this observer something about the present, by every way there is."""
    agent, level, plan = env.hierarchy.ids[rank], env.hierarchy.level[rank], env.simulation.plan
    cached = env.proxy.state_cache
    shown = [plan.vector(rank, env.proxy.cache).tobytes(), repr(env.observation_names(agent)).encode()]
    shown.append(exact(env.proxy.get_observation(agent).to_dict()).encode())
    for state in (*cached["agents"].values(), cached["global"]):
        shown.append(repr({f: v.tolist() for f, v in state.observed_by(agent, level).items()}).encode())
    space = env.observation_space(agent)
    shown += [space.low.tobytes(), space.high.tobytes()]
    if rank in env.simulation.possible:
        shown += [env._observe()[agent].tobytes(), repr(env._info(rank, None)).encode()]
    return shown


def check_a_glance_tells_nothing(recipe: Recipe, seed: int = 0) -> None:
    """Other values in all hidden columns at once: each observer is shown the same bytes, in both clocks."""
    env = recipe.build()
    env.reset(seed=seed)
    for rank, agent in enumerate(env.hierarchy.ids):
        before, kept = glance(env, rank), env.simulation.truth.copy()
        _scramble(env, env.simulation.truth, hidden(env, rank), seed)
        assert glance(env, rank) == before, f"{agent} learns what is hidden from it"
        env.simulation.truth[:] = kept
    run = env.start_event_driven(recipe.policies(env), seed=seed)
    run.until(recipe.dt)
    cache, plan = env.proxy.cache, env.simulation.plan
    for rank, agent in enumerate(env.hierarchy.ids):
        before, kept = (
            (plan.vector(rank, cache).tobytes(), exact(env.proxy.get_observation(agent).to_dict())),
            cache.copy(),
        )
        _scramble(env, cache, hidden(env, rank), seed)
        after = plan.vector(rank, cache).tobytes(), exact(env.proxy.get_observation(agent).to_dict())
        assert after == before, f"{agent} learns what is hidden from it"
        cache[:] = kept


def _scramble(env: LawEnv, array: Any, columns: Any, seed: int) -> None:
    layout = env.simulation.layout
    low, high = np.maximum(layout.low[columns], -1e3), np.minimum(layout.high[columns], 1e3)
    array[columns] = low + (high - low) * uniforms(key("scramble", seed), len(columns))


def check_a_run_tells_nothing(recipe: Recipe, schedule: Any = None, observer: int = 0, seed: int = 0) -> None:
    """Hidden values that nothing acts on differ from the start: what reaches the observer is the same, to the end."""
    plain, other = recipe.build(), recipe.build()
    possible = plain.simulation.possible
    rank = possible[observer % len(possible)]
    secret = np.intersect1d(hidden(plain, rank), inert(plain))
    other.shift = dict.fromkeys(secret.tolist(), 2.0)
    mine, theirs = (_diary(env, recipe, rank, schedule, seed) for env in (plain, other))
    assert plain.simulation.truth.tobytes() != other.simulation.truth.tobytes(), "nothing was hidden: no test"
    assert mine == theirs, f"{plain.hierarchy.ids[rank]} learns what is hidden from it"


def _diary(env: LawEnv, recipe: Recipe, rank: int, schedule: Any, seed: int) -> list[str]:
    """Everything one observer is sent in an episode of each clock, under policies that do not look."""
    agent, policies, pages = env.hierarchy.ids[rank], recipe.constants(env), []
    observations, infos = env.reset(seed=seed)
    while agent in env.agents:
        pages += [exact(observations[agent]), repr(infos[agent])]
        observations, _, _, _, infos = env.step({a: policies[a](None) for a in env.agents})
    pages += [exact(observations[agent]), repr(infos[agent])]
    result = env.run_event_driven(policies, seed=seed, schedule=schedule, trace=True, record=("observations",))
    pages += [exact(vector) for _, vector in result.observations[agent]]
    assert result.trace is not None
    received = (r for r in result.trace if r.agent == rank and isinstance(r.payload, ObservationReply | Command))
    return pages + [f"{r.t_ns} {exact(r.payload)} {exact(r.payload.to_dict())}" for r in received]
