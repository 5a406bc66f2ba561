"""Checks that nothing leaks: what is hidden to an observer, what the network loses or delays into the score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.hooks import Hooks
from heron_env.envs.settings import TerminationConfig
from heron_env.scheduling.timing import ScheduleConfig, to_seconds
from heron_env.seeding import key, uniforms
from heron_env.testing.check import Broken, Remark, Subject, in_python, passed, silenced, warning
from heron_env.testing.rollouts import (
    Columns,
    Floats,
    RolloutEntry,
    choices,
    constants,
    entry,
    first_difference,
    in_order,
    inboxes_of,
    info_entry,
    noops,
    other_values,
    truth_of_steps,
    undone,
    until_the_end,
    waves,
)

MOST_OBSERVERS = 24
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
        for rank in _observers(env):
            if env.hierarchy.ids[rank] not in env.agents:
                continue
            secrets = hidden(env, rank, env.simulation.facts)
            bare = np.setdiff1d(secrets, _of_own_and_children(env, rank))
            for columns, look in ((secrets, _glance), (bare, _turn), (bare, _beginning)):
                leak = _leak(env, env.simulation.truth, rank, columns, look)
                if leak:
                    raise Broken(leak, MEND)
            looked += 1
    env = subject.build()
    run = env.start_event_driven(waves(env), seed=subject.seed, t_end=to_seconds(subject.steps * env.dt_ns))
    run.until(1.5 * env.dt)
    for rank in _observers(env):
        leak = _leak(env, env.proxy.cache, rank, hidden(env, rank, env.proxy.cache), _at_the_proxy)
        if leak:
            raise Broken(f"event-driven: {leak}", MEND)
    yield passed(f"{looked} glances, hidden quantities scrambled")
    if unseen := _hidden_from_owners(env):
        yield passed(f"their own agents do not see {', '.join(unseen)}")


def _observers(env: HeronEnv) -> Sequence[int]:
    return env.simulation.model.possible[:MOST_OBSERVERS]


def _hidden_from_owners(env: HeronEnv) -> list[str]:
    """Quantities, as `Charge.soc`, that an agent has and does not see, though they may be observed."""
    layout = env.simulation.model.layout
    own = np.concatenate(
        [np.zeros(0, np.int64), *(view.columns[: view.own] for view in env.simulation.model.plan.views)]
    )
    kept = np.setdiff1d(np.flatnonzero(layout.observed & (layout.owner_of < len(env.hierarchy))), own)
    return list(dict.fromkeys(layout.names[column].partition("[")[0] for column in kept.tolist()))


def hidden(env: HeronEnv, rank: int, facts: Floats) -> Columns:
    """The columns that can have other values and that an observer is not shown: by the plan, or out of its sight.

    `facts` `[layout.width]` say who sees whom.
    """
    layout, shown = env.simulation.model.layout, env.simulation.model.plan.views[rank].columns
    sight = layout.sight
    if sight and rank in sight.observers:
        away = [target for target in sight.targets if target != rank and not facts[sight.column(rank, target)]]
        shown = shown[~np.isin(layout.owner_of[shown], away)]
    unseen = np.setdiff1d(np.arange(layout.size), shown)
    return unseen[layout.low[unseen] < layout.high[unseen]]


def _of_own_and_children(env: HeronEnv, rank: int) -> Columns:
    """Columns that an agent's own info rule may read although its vector lacks them: of its own, bookkeeping."""
    layout = env.simulation.model.layout
    own = (layout.owner_of == rank) & ~layout.observed
    return np.flatnonzero(own | np.isin(layout.owner_of, env.hierarchy.children[rank]))


def _carry_on(env: HeronEnv, subject: Subject, steps: int) -> None:
    policies, (observations, _) = waves(env), env.reset(seed=subject.seed)
    for _ in range(steps):
        if env.agents:
            observations, *_ = env.step(choices(env, policies, observations))
    if not env.agents:
        env.reset(seed=subject.seed)


class _Still(Hooks):
    """Nothing happens, and who sees whom stays as in `shown` `[targets, observers]`: what decides it may be hidden."""

    def __init__(self, shown: Floats) -> None:
        self._shown = shown

    def sees(self, world: World, observer: int, target: int) -> bool:
        return bool(self._shown[target, observer])


def _stop_the_world(env: HeronEnv) -> None:
    """Leave only looking in reset() and step(): physics and neighbours may carry hidden values into visible ones."""
    simulation, sight = silenced(env).simulation, env.simulation.model.layout.sight
    simulation.look()
    shown = simulation.facts[simulation.model.layout.size :].copy()
    simulation.hooks = _Still(shown.reshape(-1, len(sight.observers)) if sight else shown)
    simulation._by_hand = []
    for bound in simulation.rules.bound:
        bound.apply = bound.advance = bound.reward = bound.terminated = bound.truncated = None
        bound.before_apply = []
    simulation.rules.collect()
    simulation.model.layout.per_step = np.zeros(0, np.int64)
    simulation.end_by(TerminationConfig())


Look = Callable[[HeronEnv, int], list[RolloutEntry]]


def _leak(env: HeronEnv, array: Floats, rank: int, columns: Columns, look: Look) -> str:
    """What the observer learns when these columns change, in words; "" if nothing."""
    if not len(columns) or not _difference(env, array, rank, columns, look):
        return ""
    culprits = [c for c in columns.tolist() if _difference(env, array, rank, np.asarray([c]), look)]
    culprits = culprits or columns.tolist()  # it shows by several together alone
    way = _difference(env, array, rank, np.asarray(culprits), look)
    return f"{env.hierarchy.ids[rank]} learns {env.state_names[culprits[0]]}, which is hidden from it, by {way}"


def _difference(env: HeronEnv, array: Floats, rank: int, columns: Columns, look: Look) -> str:
    """By which way `look` shows other values of `columns`; "" if by none. Puts everything back."""
    drawn, before = uniforms(key("scramble"), len(columns)), array.copy()
    looks = []
    for shares in (None, drawn, 1.0 - drawn):
        with undone(env):
            if shares is not None:
                array[columns] = other_values(env.simulation.model.layout, columns, shares)
            looks.append(look(env, rank))
        array[:] = before
    plain, *others = looks
    differences = (first_difference(plain, other, "before", "after") for other in others)
    return next(filter(None, differences), "").partition(" at 0 s")[0]


def _glance(env: HeronEnv, rank: int) -> list[RolloutEntry]:
    """The vector, and the object at the proxy."""
    agent, level = env.hierarchy.ids[rank], env.hierarchy.level[rank]
    cached = env.proxy.state_cache
    states = [*cached["agents"].values(), cached["global"]]
    visible = [repr({f: v.tolist() for f, v in state.observed_by(agent, level).items()}) for state in states]
    return [
        entry("observation", 0.0, env._observe()[agent], env.observation_names(agent)),
        entry("observation_names()", 0.0, repr(env.observation_names(agent))),
        entry("proxy.get_observation()", 0.0, repr(env.proxy.get_observation(agent).to_dict())),
        entry("observed_by()", 0.0, repr(visible)),
    ]


def _at_the_proxy(env: HeronEnv, rank: int) -> list[RolloutEntry]:
    """What the proxy would tell."""
    return [entry("proxy.get_observation()", 0.0, repr(env.proxy.get_observation(env.hierarchy.ids[rank]).to_dict()))]


def _turn(env: HeronEnv, rank: int) -> list[RolloutEntry]:
    """What a step shows in a world at a standstill."""
    agent = env.hierarchy.ids[rank]
    observations, _, _, _, infos = env.step({a: policy(None) for a, policy in noops(env).items() if a in env.agents})
    return _results(env, agent, observations, infos, "step()")


def _beginning(env: HeronEnv, rank: int) -> list[RolloutEntry]:
    """What a reset shows that finds the truth as it is."""
    agent, simulation = env.hierarchy.ids[rank], env.simulation
    initial = simulation.initial
    simulation.initial = simulation.truth.copy()
    try:
        return _results(env, agent, *env.reset(), "reset()")
    finally:
        simulation.initial = initial


def _results(env: HeronEnv, agent: str, observations: Any, infos: Any, where: str) -> list[RolloutEntry]:
    return [
        entry(f"observation of {where}", 0.0, observations[agent], env.observation_names(agent)),
        *(info_entry(f"info {name!r} of {where}", 0.0, name, value) for name, value in infos[agent].items()),
    ]


def honest_score(subject: Subject) -> Iterator[Remark]:
    """What the network loses or delays never changes the score."""
    env = subject.build()
    legs = 2.0 + 3.0 * (1 + max(_depths(env)))
    small = env.dt / env.physics_substeps / (4.0 * legs)
    late = ScheduleConfig(obs_delay=small, act_delay=small, msg_delay=small)
    honest = _scores(subject, ScheduleConfig(), deaf=False)
    for network, other in (
        ("with every report lost", _scores(subject, ScheduleConfig(), deaf=True)),
        ("with delays below one physics substep", _scores(subject, late, deaf=False)),
    ):
        difference = first_difference(honest, other, "without delays", network)
        if difference:
            raise Broken(
                f"under constant actions {difference}",
                "score the truth, never what messages brought: rewards and hooks read features and world, not "
                "env.proxy, and flows are summed in advance into a quantity(per_step=True)",
            )
    yield from _scored_byinboxes_of(subject)


def _depths(env: HeronEnv) -> list[int]:
    depths: list[int] = []
    for parent in env.hierarchy.parent:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return depths


def _scores(subject: Subject, schedule: ScheduleConfig, *, deaf: bool) -> list[RolloutEntry]:
    """Rewards, ends and truth of a run in which neither seeing nor telling matters; a deaf proxy learns nothing."""
    env = silenced(subject.build())
    course = truth_of_steps(env)
    if deaf:
        env.proxy.receive = lambda *report: False  # type: ignore[method-assign]
    result = env.run_event_driven(
        constants(env), seed=subject.seed, t_end=to_seconds(subject.steps * env.dt_ns), schedule=schedule
    )
    timed = [(t, 0, entry(f"{a}'s reward", t, value)) for a, rows in result.rewards.items() for t, value in rows]
    return in_order(env, timed + course, result.terminated)


BOUNDARIES = 3


def _scored_byinboxes_of(subject: Subject) -> Iterator[Remark]:
    """A warning where a reward or an end comes out different if only inboxes hold something else."""
    env = in_python(subject.build())
    inboxes = inboxes_of(env.simulation.model.layout)
    if not len(inboxes):
        return
    policies, (observations, _) = waves(env), env.reset(seed=subject.seed)
    drawn = uniforms(key("hearsay"), len(inboxes))
    for boundary in range(min(BOUNDARIES, subject.steps)):
        if not env.agents:
            return
        actions = choices(env, policies, observations)
        plain, again, *others = (_score(env, actions, inboxes, shares) for shares in (None, None, 1.0 - drawn, drawn))
        different = [one for one in others if one != plain]
        if plain == again and different:
            agent, what = next(each for each in different[0] if each not in plain)[:2]
            yield warning(
                f"at boundary {boundary + 1} {agent}'s {what} depends on what its inbox holds: the network decides the "
                "score, and a lost message costs twice",
                "legal, if believing is what you pay for; else score the truth: let rewards and ends read the "
                "features that inboxes tell of, as an env hook or a coordinator with Children[...] can",
            )
            return
        observations, *_ = env.step(actions)


def _score(
    env: HeronEnv, actions: Mapping[str, Any], inboxes: Columns, shares: Floats | None
) -> list[tuple[str, str, float]]:
    """Rewards and ends of the coming step, those of the leaves first, with inboxes at these shares of their ranges."""
    simulation, ids = env.simulation, env.hierarchy.ids
    with undone(env):
        until_the_end(env, actions)
        if shares is not None:
            simulation.truth[inboxes] = other_values(simulation.model.layout, inboxes, shares)
        rewards = simulation.close_step().rewards
        parts = (("reward", rewards), ("end", simulation.alive))
        return [(ids[rank], what, float(values[rank])) for rank in range(len(ids))[::-1] for what, values in parts]
