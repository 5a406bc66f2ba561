"""Checks across clocks and executions: without delays clocks agree, no network changes the score, and rules do compiled
what they do in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from heron_env.engine.blueprint import why_plain
from heron_env.envs.base import HeronEnv
from heron_env.envs.results import EpisodeResult
from heron_env.errors import RuleError
from heron_env.scheduling.timing import ScheduleConfig, to_seconds
from heron_env.testing.findings import Remark, failed, passed, skipped
from heron_env.testing.hearsay import scored_by_hearsay, silenced
from heron_env.testing.probes import Answers, choices, constants, waves
from heron_env.testing.recording import Entry, entry, first_difference, told
from heron_env.testing.subject import Subject, in_python

PARITY = (
    "the event-driven clock runs rules and hooks only: what step(), reset() or _observe() were overridden for belongs "
    "into features, rules, begin, advance or finish, and reads the truth there, not the proxy"
)


def parity(subject: Subject) -> Iterator[Remark]:
    """Without delays the event-driven run equals the synchronous one bit for bit, whatever the form of policies."""
    env, twin, third = subject.build(), subject.build(), subject.build()
    schedule: dict[str | int, ScheduleConfig] = {
        a: _undelayed(t.config) for a, t in zip(env.hierarchy.ids, env.timings, strict=True)
    }
    mine = _by_step(env, subject)
    for other, policies, words in ((twin, waves(twin), ""), (third, {"*": Answers(waves(third))}, ", answering,")):
        event = other.run_event_driven(
            policies, seed=subject.seed, t_end=to_seconds(subject.steps * env.dt_ns), schedule=schedule,
            record=("rewards", "observations"),
        )  # fmt: skip
        theirs = _by_event(other, event)
        difference = first_difference(mine, theirs, "in env.step()", f"{words} in the event-driven clock".strip())
        if difference:
            yield failed(difference, PARITY)
            return
    yield passed(f"{subject.steps} steps")


def _undelayed(config: ScheduleConfig) -> ScheduleConfig:
    return replace(
        config, obs_delay=0.0, act_delay=0.0, msg_delay=0.0, min_delay=0.0, jitter_type="none", jitter_ratio=0.0,
        tick_jitter_ratio=0.0,
        loss=0.0, duplicate=0.0,
    )  # fmt: skip


Timed = list[tuple[float, int, Entry]]


def _by_step(env: HeronEnv, subject: Subject) -> list[Entry]:
    """Observations of those who decide, rewards and the truth at the end, from `reset` and `step`."""
    policies, found = waves(env), Timed()
    rank = env.hierarchy.index
    seen, _ = env.reset(seed=subject.seed)
    ended = dict.fromkeys(env.possible_agents, False)
    for _ in range(subject.steps):
        now = env.simulation.time
        deciding = [agent for agent in env.agents if env.is_active(rank[agent])]
        found += [(now, 1, _seen(env, agent, now, seen[agent])) for agent in deciding]
        seen, rewards, terminated, _, _ = env.step({a: policies[a](seen[a]) for a in deciding})
        now = env.simulation.time
        found += [(now, 0, entry(f"{agent}'s reward", now, value)) for agent, value in rewards.items()]
        ended |= {agent: True for agent, over in terminated.items() if over}
        if not env.agents:
            break
    return _in_order(env, found, ended)


def _by_event(env: HeronEnv, result: EpisodeResult) -> list[Entry]:
    """The same of an event-driven run."""
    found: Timed = []
    for agent in env.possible_agents:
        found += [(t, 1, _seen(env, agent, t, vector)) for t, vector in result.observations[agent]]
        found += [(t, 0, entry(f"{agent}'s reward", t, value)) for t, value in result.rewards[agent]]
    return _in_order(env, found, {agent: result.terminated[agent] for agent in env.possible_agents})


def _seen(env: HeronEnv, agent: str, time: float, vector: Any) -> Entry:
    return entry(f"{agent}'s observation", time, vector, env.observation_names(agent))


def _in_order(env: HeronEnv, found: Timed, ended: dict[str, bool]) -> list[Entry]:
    now = env.simulation.time
    entries = [e for *_, e in sorted(found, key=lambda timed: (timed[0], timed[1], timed[2].what))]
    entries += [entry(f"{agent} is terminated", now, ended[agent]) for agent in env.possible_agents]
    return [*entries, entry("quantity", now, env.simulation.truth, env.state_names)]


AGREE = 1e-9
"""Of compiled rules with plain Python; libraries of functions and orders of sums differ in the last bits."""


def executions(subject: Subject) -> Iterator[Remark]:
    """Rules do compiled what they do in plain Python."""
    plain, env = in_python(subject.build()), subject.build()
    chosen = env.compiled
    try:
        env = in_python(env, compile=True)
        seen, _ = env.reset(seed=subject.seed)
    except RuleError as error:
        if chosen:
            raise
        yield skipped(f"its rules run in plain Python, and can't be compiled: {error}")
        return
    if not env.compiled:
        yield skipped(f"nothing is compiled: {why_plain(env.hierarchy)}")
        return
    plain.reset(seed=subject.seed)
    policies = waves(env)
    for _ in range(subject.steps):
        if not env.agents:
            break
        plain.simulation.truth[:] = env.simulation.truth  # so that differences of the last bits do not grow
        actions = choices(env, policies, seen)
        seen, found = _outcome(env, actions)
        difference = first_difference(found, _outcome(plain, actions)[1], "compiled", "in plain Python", AGREE)
        if difference:
            yield failed(
                difference,
                "look at the rules that this comes from: compiled, whole numbers wrap around beyond 64 bits; if there "
                "are none of those, it is a fault of heron_env: report it",
            )
            return
    yield passed(f"{subject.steps} steps, each from the same state, to {AGREE:g}")


def _outcome(env: HeronEnv, actions: Mapping[str, Any]) -> tuple[Any, list[Entry]]:
    """The observations after a step, and what rules made of it: the truth, everybody's rewards, ends and infos."""
    seen, _, _, _, infos = env.step(actions)
    simulation, ids = env.simulation, env.hierarchy.ids
    now = simulation.time
    entries = [entry("quantity", now, simulation.truth, env.state_names)]
    entries.append(entry("the reward of", now, simulation.last_rewards, ids))
    entries.append(entry("the life of", now, simulation.alive, ids))
    return seen, entries + [told(f"{a}'s info {n!r}", now, n, v) for a, info in infos.items() for n, v in info.items()]


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
            yield failed(
                f"under constant actions {difference}",
                "score the truth, never what messages brought: rewards and hooks read features and world, not "
                "env.proxy, and flows are summed in advance into a quantity(per_step=True)",
            )
            return
    yield from scored_by_hearsay(subject)


def _depths(env: HeronEnv) -> list[int]:
    depths: list[int] = []
    for parent in env.hierarchy.parent:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return depths


def _scores(subject: Subject, schedule: ScheduleConfig, *, deaf: bool) -> list[Entry]:
    """Rewards, ends and truth of a run in which neither seeing nor telling matters; a deaf proxy learns nothing."""
    env = silenced(subject.build())
    if deaf:
        env.proxy.receive = lambda *report: False  # type: ignore[method-assign]
    result = env.run_event_driven(
        constants(env), seed=subject.seed, t_end=to_seconds(subject.steps * env.dt_ns), schedule=schedule
    )
    found = [(t, 0, entry(f"{a}'s reward", t, value)) for a, rows in result.rewards.items() for t, value in rows]
    return _in_order(env, found, result.terminated)
