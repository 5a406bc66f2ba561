"""Check that what is hidden from an agent changes no byte that reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.base import HeronEnv
from heron_env.envs.hooks import Hooks
from heron_env.envs.termination import TerminationConfig
from heron_env.scheduling.timing import to_seconds
from heron_env.seeding import key, uniforms
from heron_env.testing.findings import Remark, failed, passed
from heron_env.testing.hearsay import other_values, silenced
from heron_env.testing.probes import choices, noops, waves
from heron_env.testing.recording import Entry, entry, first_difference, told
from heron_env.testing.subject import Subject, in_python

MOST_OBSERVERS = 24
Columns = NDArray[np.int64]
MEND = (
    "show it by a visibility tag if the agent may see it; else keep it out of infos and observations, and what only "
    "the trainer may use in training_signal()"
)


def no_leak(subject: Subject) -> Iterator[Remark]:
    """What is hidden from an agent changes no byte that reaches it."""
    looked = 0
    for moment in (0, min(3, subject.steps)):
        env = in_python(subject.build())
        _carry_on(env, subject, moment)
        _stop_the_world(env)
        for rank in env.simulation.possible[:MOST_OBSERVERS]:
            agent = env.hierarchy.ids[rank]
            if agent not in env.agents:
                continue
            secrets = hidden(env, rank)
            bare = np.setdiff1d(secrets, _of_own_and_children(env, rank))
            for columns, look in ((secrets, _glance), (bare, _turn), (bare, _beginning)):
                told = _told(env, env.simulation.truth, rank, columns, look)
                if told:
                    yield failed(told, MEND)
                    return
            looked += 1
    env = subject.build()
    run = env.start_event_driven(waves(env), seed=subject.seed, t_end=to_seconds(subject.steps * env.dt_ns))
    run.until(1.5 * env.dt)
    for rank in env.simulation.possible[:MOST_OBSERVERS]:
        told = _told(env, env.proxy.cache, rank, hidden(env, rank), _known)
        if told:
            yield failed(f"event-driven: {told}", MEND)
            return
    yield passed(f"{looked} glances, hidden quantities scrambled")


def hidden(env: HeronEnv, rank: int) -> Columns:
    """The columns that the plan does not show to this observer and that can have other values."""
    layout = env.simulation.layout
    unseen = np.setdiff1d(np.arange(layout.size), env.simulation.plan.views[rank].columns)
    return unseen[layout.low[unseen] < layout.high[unseen]]


def _of_own_and_children(env: HeronEnv, rank: int) -> Columns:
    """Columns that an agent's own info rule may read although its vector lacks them."""
    mine = [rank, *env.hierarchy.children[rank]]
    return np.flatnonzero(np.isin(env.simulation.layout.owner_of, mine))


def _carry_on(env: HeronEnv, subject: Subject, steps: int) -> None:
    policies, (seen, _) = waves(env), env.reset(seed=subject.seed)
    for _ in range(steps):
        if env.agents:
            seen, *_ = env.step(choices(env, policies, seen))
    if not env.agents:
        env.reset(seed=subject.seed)


def _stop_the_world(env: HeronEnv) -> None:
    """Leave only looking in reset() and step(): physics and neighbours may carry hidden values into visible ones."""
    simulation = silenced(env).simulation
    simulation.hooks = Hooks()
    simulation.termination = TerminationConfig()
    simulation._by_hand = []
    for bound in simulation.plain.bound:
        bound.apply = bound.advance = bound.reward = bound.terminated = bound.truncated = None
        bound.before_apply = []
    simulation.plain.collect()
    simulation.layout.per_step = np.zeros(0, np.int64)


Look = Callable[[HeronEnv, int], list[Entry]]


def _glance(env: HeronEnv, rank: int) -> list[Entry]:
    """The vector, and the object at the proxy."""
    agent, level = env.hierarchy.ids[rank], env.hierarchy.level[rank]
    cached = env.proxy.state_cache
    states = [*cached["agents"].values(), cached["global"]]
    seen = [repr({f: v.tolist() for f, v in state.observed_by(agent, level).items()}) for state in states]
    return [
        entry("observation", 0.0, env._observe()[agent], env.observation_names(agent)),
        entry("observation_names()", 0.0, repr(env.observation_names(agent))),
        entry("proxy.get_observation()", 0.0, repr(env.proxy.get_observation(agent).to_dict())),
        entry("observed_by()", 0.0, repr(seen)),
    ]


def _known(env: HeronEnv, rank: int) -> list[Entry]:
    """What the proxy would tell."""
    return [entry("proxy.get_observation()", 0.0, repr(env.proxy.get_observation(env.hierarchy.ids[rank]).to_dict()))]


def _turn(env: HeronEnv, rank: int) -> list[Entry]:
    """What a step shows in a world at a standstill."""
    agent = env.hierarchy.ids[rank]
    observations, _, _, _, infos = env.step({a: policy(None) for a, policy in noops(env).items() if a in env.agents})
    return _given(env, agent, observations, infos, "step()")


def _beginning(env: HeronEnv, rank: int) -> list[Entry]:
    """What a reset shows that finds the truth as it is."""
    agent, simulation = env.hierarchy.ids[rank], env.simulation
    initial = simulation._initial
    simulation._initial = simulation.truth.copy()
    try:
        return _given(env, agent, *env.reset(), "reset()")
    finally:
        simulation._initial = initial


def _given(env: HeronEnv, agent: str, observations: Any, infos: Any, where: str) -> list[Entry]:
    found = [entry(f"observation of {where}", 0.0, observations[agent], env.observation_names(agent))]
    return found + [told(f"info {name!r} of {where}", 0.0, name, value) for name, value in infos[agent].items()]


def _told(env: HeronEnv, array: NDArray[np.float64], rank: int, columns: Columns, look: Look) -> str:
    """What the observer learns when these columns change, in words; "" if nothing."""
    if not _differs(env, array, rank, columns, look):
        return ""
    culprits = [int(c) for c in columns if _differs(env, array, rank, np.asarray([c]), look)] or columns[:1].tolist()
    difference = _differs(env, array, rank, np.asarray(culprits), look)
    return f"{env.hierarchy.ids[rank]} learns {env.state_names[culprits[0]]}, which is hidden from it, by {difference}"


def _differs(env: HeronEnv, array: NDArray[np.float64], rank: int, columns: Columns, look: Look) -> str:
    """By which way `look` shows other values of `columns`; "" if by none. Puts everything back."""
    drawn = uniforms(key("scramble"), len(columns))
    looks = []
    for shares in (None, drawn, 1.0 - drawn):
        kept, standing, moment = array.copy(), env.simulation.state(), (env._seed, env._episode)
        agents, decided = list(env.agents), list(env.decided)
        if shares is not None:
            array[columns] = other_values(env.simulation.layout, columns, shares)
        looks.append(look(env, rank))
        env.simulation.restore(standing)
        array[:] = kept
        (env._seed, env._episode), env.agents, env.decided = moment, agents, decided
    plain, *others = looks
    for other in others:
        difference = first_difference(plain, other, "before", "after")
        if difference:
            return difference.partition(" at 0 s")[0]
    return ""
