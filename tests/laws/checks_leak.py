"""The law of visibility as functions: each raises AssertionError where something hidden shows."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from laws.visibility import hidden, inert, noisy, sights, still
from small_worlds import LawEnv
from strategies import Recipe

from heron_env.seeding import key, uniforms
from heron_env.testing import clock

SENT = clock.ObservationReply | clock.Command | clock.LocalStateReply
"""Messages to an agent that carry numbers."""


def check_the_plan_shows_what_is_declared(recipe: Recipe) -> None:
    """Every observer's columns are those that the tags or the matrix show, in the documented order, as clearly."""
    env = recipe.build()
    for rank, agent in enumerate(env.hierarchy.ids):
        view, declared = env.simulation.model.plan.views[rank], sights(env, rank)
        assert view.columns.tolist() == [column for column, *_ in declared], f"{agent} sees other columns"
        assert view.factors.tolist() == [factor for _, (factor, _), *_ in declared], (
            f"{agent} sees less or more clearly"
        )
        additive = [law == "additive" for _, (factor, law), *_ in declared if factor]
        assert view.visible.additive[view.factors > 0.0].tolist() == additive, f"{agent} sees by another law of noise"
        assert len(env.observation_names(agent)) == env.observation_space(agent).shape[0]


def glance(env: LawEnv, rank: int) -> list[bytes]:
    """Everything that tells this observer something about the present, by every way there is."""
    agent, level, plan = env.hierarchy.ids[rank], env.hierarchy.level[rank], env.simulation.model.plan
    cached = env.proxy.state_cache
    shown = [
        plan.vector(rank, env.proxy.cache, env.proxy.moment).tobytes(),
        repr(env.observation_names(agent)).encode(),
    ]
    shown.append(clock.exact(env.proxy.get_observation(agent).to_dict()).encode())
    for state in (*cached["agents"].values(), cached["global"]):
        shown.append(repr({f: v.tolist() for f, v in state.observed_by(agent, level).items()}).encode())
    space = env.observation_space(agent)
    shown += [space.low.tobytes(), space.high.tobytes()]
    if rank in env.simulation.model.possible:
        shown += [env._observe()[agent].tobytes(), repr(env._publisher.infos([agent], env._observe())).encode()]
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
    cache, plan = env.proxy.cache, env.simulation.model.plan
    for rank, agent in enumerate(env.hierarchy.ids):
        before, kept = (
            (
                plan.vector(rank, cache, env.proxy.moment).tobytes(),
                clock.exact(env.proxy.get_observation(agent).to_dict()),
            ),
            cache.copy(),
        )
        _scramble(env, cache, hidden(env, rank), seed)
        after = (
            plan.vector(rank, cache, env.proxy.moment).tobytes(),
            clock.exact(env.proxy.get_observation(agent).to_dict()),
        )
        assert after == before, f"{agent} learns what is hidden from it"
        cache[:] = kept


def _scramble(env: LawEnv, array: Any, columns: Any, seed: int) -> None:
    layout = env.simulation.model.layout
    low, high = np.maximum(layout.low[columns], -1e3), np.minimum(layout.high[columns], 1e3)
    array[columns] = low + (high - low) * uniforms(key("scramble", seed), len(columns))


def kept_from(env: LawEnv, observer: int) -> tuple[int, list[int]]:
    """The rank of one of the possible agents, and what is hidden from it and read by nothing."""
    possible = env.simulation.model.possible
    rank = possible[observer % len(possible)]
    return rank, np.intersect1d(hidden(env, rank), inert(env)).tolist()


def check_a_run_tells_nothing(recipe: Recipe, schedule: Any = None, observer: int = 0, seed: int = 0) -> None:
    """Hidden values that nothing acts on differ from the start: what reaches the observer is the same, to the end."""
    plain, other = recipe.build(), recipe.build()
    rank, secret = kept_from(plain, observer)
    assert secret, "nothing is hidden: no test"
    other.shift = dict.fromkeys(secret, 2.0)
    mine, theirs = (_diary(env, recipe, rank, schedule, seed) for env in (plain, other))
    assert plain.simulation.truth.tobytes() != other.simulation.truth.tobytes(), "nothing was hidden: no test"
    assert mine == theirs, f"{plain.hierarchy.ids[rank]} learns what is hidden from it"


def _diary(env: LawEnv, recipe: Recipe, rank: int, schedule: Any, seed: int) -> list[str]:
    """Everything one observer is sent in an episode of each clock, under policies that do not look."""
    agent, policies, pages = env.hierarchy.ids[rank], recipe.constants(env), []
    observations, infos = env.reset(seed=seed)
    while agent in env.agents:
        pages += [clock.exact(observations[agent]), repr(infos[agent])]
        observations, _, _, _, infos = env.step({a: policies[a](None) for a in env.agents})
    pages += [clock.exact(observations[agent]), repr(infos[agent])]
    result = env.run_event_driven(policies, seed=seed, schedule=schedule, trace=True, record=("observations",))
    pages += [clock.exact(vector) for _, vector in result.observations[agent]]
    assert result.trace is not None
    received = (r for r in result.trace if r.agent == rank and isinstance(r.payload, SENT))
    return pages + [f"{r.t_ns} {clock.exact(r.payload)} {clock.exact(r.payload.to_dict())}" for r in received]


def check_noise_hides_the_exact_value(recipe: Recipe, schedule: Any = None, seed: int = 0) -> None:
    """The exact value of what an observer sees with noise reaches it by no way there is, in either clock."""
    env = recipe.build()
    kept = noisy_floats(env)
    assert kept, "nothing is seen with noise: no test"
    env.shift = {column: 0.1 * np.pi * (i + 1) / len(kept) for i, column in enumerate(kept)}
    env.reset(seed=seed)
    marks = {column: np.float32(env.simulation.truth[column]) for column in kept}
    received = _numbers_sent(env, recipe, schedule, seed)
    for rank, agent in enumerate(env.hierarchy.ids):
        mine = set(noisy(env, rank)) & marks.keys()
        told = [env.simulation.model.layout.names[column] for column in mine if marks[column] in received[rank]]
        assert not told, f"{agent} learns the exact {told}, which it sees with noise"


def noisy_floats(env: LawEnv) -> list[int]:
    """Columns that nothing changes and that somebody sees with noise; floats, since whole numbers may round back."""
    layout = env.simulation.model.layout
    seen = {column for rank in range(len(env.hierarchy)) for column in noisy(env, rank)}
    return [column for column in np.intersect1d(still(env), sorted(seen)).tolist() if not layout.integer[column]]


def _numbers_sent(env: LawEnv, recipe: Recipe, schedule: Any, seed: int) -> list[set[Any]]:
    """Every number that reaches each observer at the start of an episode and in an event-driven run, as float32."""
    sent: list[list[Any]] = [[_asked(env, rank)] for rank in range(len(env.hierarchy))]
    for rank in env.simulation.model.possible:
        agent = env.hierarchy.ids[rank]
        sent[rank] += [env._observe()[agent], env._publisher.infos([agent], env._observe())]
    result = env.run_event_driven(recipe.constants(env), seed=seed, schedule=schedule, trace=True)
    for record in result.trace or []:
        if isinstance(record.payload, SENT):
            sent[record.agent].append(record.payload.to_dict())
    return [{np.float32(n) for n in _numbers([*parts, _asked(env, rank)])} for rank, parts in enumerate(sent)]


def _asked(env: LawEnv, rank: int) -> list[Any]:
    """What the proxy and the State objects answer to an observer now."""
    agent, level, cached = env.hierarchy.ids[rank], env.hierarchy.level[rank], env.proxy.state_cache
    states = (*cached["agents"].values(), cached["global"])
    told = [state.observed_by(agent, level) for state in states]
    vector = env.simulation.model.plan.vector(rank, env.proxy.cache, env.proxy.moment)
    return [vector, env.proxy.get_observation(agent).to_dict(), *told]


def _numbers(thing: Any) -> Iterator[float]:
    """All numbers in a nest of mappings, sequences and arrays."""
    if isinstance(thing, Mapping):
        thing = list(thing.values())
    if isinstance(thing, list | tuple):
        for part in thing:
            yield from _numbers(part)
    elif not isinstance(thing, str | None):
        yield from np.ravel(thing).tolist()
