"""Checks that an environment does the same however it runs: in both clocks, compiled, copied, deciding more often."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from heron_env.engine.model import why_plain
from heron_env.envs.base import HeronEnv
from heron_env.envs.episodes import EpisodeResult
from heron_env.errors import RuleError
from heron_env.scheduling.timing import ScheduleConfig, to_seconds
from heron_env.testing.check import Broken, Remark, Subject, failed, in_python, passed, skipped, warning
from heron_env.testing.rollouts import (
    Answers,
    RolloutEntry,
    Timed,
    choices,
    constants,
    entry,
    first_difference,
    in_order,
    info_entries,
    one_step,
    truth_of_steps,
    waves,
)

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
        course = truth_of_steps(other)
        event = other.run_event_driven(
            policies, seed=subject.seed, t_end=to_seconds(subject.steps * env.dt_ns), schedule=schedule,
            record=("rewards", "observations"),
        )  # fmt: skip
        theirs = _by_event(other, event, course)
        difference = first_difference(mine, theirs, "in env.step()", f"{words} in the event-driven clock".strip())
        if difference:
            raise Broken(difference, PARITY)
    yield passed(f"{subject.steps} steps")


def _undelayed(config: ScheduleConfig) -> ScheduleConfig:
    return replace(
        config, obs_delay=0.0, act_delay=0.0, msg_delay=0.0, min_delay=0.0, jitter_type="none", jitter_ratio=0.0,
        tick_jitter_ratio=0.0, loss=0.0,
    )  # fmt: skip


def _by_step(env: HeronEnv, subject: Subject) -> list[RolloutEntry]:
    """Observations of those who decide, rewards and the truth of each step, from `reset` and `step`."""
    policies, timed, rank = waves(env), truth_of_steps(env), env.hierarchy.index
    observations, _ = env.reset(seed=subject.seed)
    ended = dict.fromkeys(env.possible_agents, False)
    for _ in range(subject.steps):
        now = env.simulation.time
        deciding = [agent for agent in env.agents if env.is_active(rank[agent])]
        timed += [(now, 1, _observation(env, agent, now, observations[agent])) for agent in deciding]
        observations, rewards, terminated, _, _ = env.step({a: policies[a](observations[a]) for a in deciding})
        now = env.simulation.time
        timed += [(now, 0, entry(f"{agent}'s reward", now, value)) for agent, value in rewards.items()]
        ended |= {agent: True for agent, over in terminated.items() if over}
        if not env.agents:
            break
    return in_order(env, timed, ended)


def _by_event(env: HeronEnv, result: EpisodeResult, timed: Timed) -> list[RolloutEntry]:
    """The same of an event-driven run, whose truths `timed` has."""
    for agent in env.possible_agents:
        timed += [(t, 1, _observation(env, agent, t, vector)) for t, vector in result.observations[agent]]
        timed += [(t, 0, entry(f"{agent}'s reward", t, value)) for t, value in result.rewards[agent]]
    return in_order(env, timed, result.terminated)


def _observation(env: HeronEnv, agent: str, time: float, vector: Any) -> RolloutEntry:
    return entry(f"{agent}'s observation", time, vector, env.observation_names(agent))


AGREE = 1e-9
"""Of compiled rules with plain Python; libraries of functions and orders of sums differ in the last bits."""


def executions(subject: Subject) -> Iterator[Remark]:
    """Rules do compiled what they do in plain Python."""
    plain, env = in_python(subject.build()), subject.build()
    chosen = env.compiled
    try:
        env = in_python(env, compile=True)
        observations, _ = env.reset(seed=subject.seed)
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
        actions = choices(env, policies, observations)
        observations, outcome = _outcome(env, actions)
        difference = first_difference(outcome, _outcome(plain, actions)[1], "compiled", "in plain Python", AGREE)
        if difference:
            raise Broken(
                difference,
                "look at the rules that this comes from: compiled, whole numbers wrap around beyond 64 bits; if there "
                "are none of those, it is a fault of heron_env: report it",
            )
    yield passed(f"{subject.steps} steps, each from the same state, to {AGREE:g}")


def _outcome(env: HeronEnv, actions: Mapping[str, Any]) -> tuple[Any, list[RolloutEntry]]:
    """The observations after a step, and what rules made of it: the truth, everybody's rewards, ends and infos."""
    observations, _, _, _, infos = env.step(actions)
    simulation, now, ids = env.simulation, env.simulation.time, env.hierarchy.ids
    entries = [
        entry("quantity", now, simulation.truth, env.state_names),
        entry("the reward of", now, simulation.last_rewards, ids),
        entry("the life of", now, simulation.alive, ids),
    ]
    return observations, entries + info_entries(infos, now)


def setpoints(subject: Subject) -> Iterator[Remark]:
    """Deciding the same more often leaves the physics as it is."""
    courses = []
    for ticks in (1, 2):
        env = subject.build()
        course = truth_of_steps(env)
        schedule = ScheduleConfig(tick_interval=env.dt / ticks)
        t_end = to_seconds(subject.steps * env.dt_ns)
        env.run_event_driven(constants(env), seed=subject.seed, t_end=t_end, schedule=schedule)
        courses.append(
            [*(e for *_, e in course), entry("quantity", env.simulation.time, env.simulation.truth, env.state_names)]
        )
    difference = first_difference(courses[0], courses[1], "with one decision a step", "with two")
    if difference:
        yield warning(
            f"constant actions act more when decided more often: {difference}",
            "let apply_action write a set-point and advance move the rest by dt; else, and where a mask that changes "
            "within a step is meant, studies of ticks and delays measure this",
        )


COMPLETE = "add what it lacks to get_state() and set_state(), or keep it in features, or derive it from seed and step"


def copies(subject: Subject) -> Iterator[Remark]:
    """In mid-episode a pickled, a copied and a restored environment go on alike."""
    half = max(1, subject.steps // 2)
    for way in ("pickled", "deep copy", "restored by set_state()"):
        env = subject.build()
        policies = waves(env)
        observations, _ = _go_on(env, policies, env.reset(seed=subject.seed)[0], half)
        try:
            other = _copied(env, way, subject)
        except Exception as error:  # noqa: BLE001  whatever it is, it becomes a finding
            yield _refused(env, way, error)
            return
        theirs = copy.deepcopy(policies)
        _, original = _go_on(env, policies, observations, half)
        _, copied = _go_on(other, theirs, observations, half)
        difference = first_difference(original, copied, "in the original", f"in the {way} one")
        if difference:
            raise Broken(difference, COMPLETE)
    yield passed(f"after {half} steps")


def _go_on(env: HeronEnv, policies: Any, observations: Any, steps: int) -> tuple[Any, list[RolloutEntry]]:
    """The last observations of so many steps, and everything they yielded."""
    entries: list[RolloutEntry] = []
    for _ in range(steps):
        if env.agents:
            observations, more = one_step(env, policies, observations)
            entries += more
    return observations, entries


def _copied(env: HeronEnv, way: str, subject: Subject) -> HeronEnv:
    if way == "pickled":
        unpickled: HeronEnv = pickle.loads(pickle.dumps(env))
        return unpickled
    if way == "deep copy":
        return copy.deepcopy(env)
    other = subject.build()
    other.reset(seed=subject.seed + 1)
    other.set_state(env.get_state())
    return other


def _refused(env: HeronEnv, way: str, error: Exception) -> Remark:
    """Which attribute can't be copied."""
    culprit = _unpicklable(env) if way == "pickled" else ""
    return failed(
        f"it can't be {way}: {type(error).__name__}: {error}{culprit and f'; the culprit is {culprit}'}",
        "keep no lambdas, local functions, files or generators on the environment or its agents; define classes and "
        "functions at the top level of a module",
    )


def _unpicklable(env: HeronEnv) -> str:
    """The first attribute that can't be pickled, with its type; "" where there is none."""
    state: Any = env.__getstate__()
    for name, value in state.get("declared", state).items():
        try:
            pickle.dumps(value)
        except Exception:  # noqa: BLE001  its name is what counts
            return f"self.{name}, a {type(value).__name__}"
    return ""
