"""Checks of the physics: bounds, who writes what, and that deciding more often does not act more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from heron_env.core.rule import rule_spec
from heron_env.envs.base import HeronEnv
from heron_env.scheduling.timing import ScheduleConfig, to_seconds
from heron_env.testing.findings import Remark, failed, passed, warning
from heron_env.testing.probes import choices, constants, extremes, waves
from heron_env.testing.recording import entry, first_difference, one_step
from heron_env.testing.subject import Subject, in_python


def bounds(subject: Subject) -> Iterator[Remark]:
    """Quantities stay numbers within their bounds, whatever agents do."""
    reached: set[int] = set()
    for name, end in (("lowest", 0), ("highest", 1), ("random extreme", None)):
        env = subject.build()
        layout = env.simulation.layout
        policies = extremes(env, end)
        seen, _ = env.reset(seed=subject.seed)
        for _ in range(subject.steps):
            if not env.agents:
                seen, _ = env.reset()
            seen, *_ = env.step(choices(env, policies, seen))
            truth = env.simulation.truth
            bad = np.flatnonzero(~(np.isfinite(truth) & (truth >= layout.low) & (truth <= layout.high)))
            if len(bad):
                i = int(bad[0])
                yield failed(
                    f"under the {name} actions {env.state_names[i]} became {float(truth[i])!r} "
                    f"outside [{layout.low[i]}, {layout.high[i]}]",
                    "declare bounds that physics keeps, and write the truth in rules and hooks only, which clip",
                )
                return
        reached |= set(np.flatnonzero(env.simulation.truth != env.simulation._initial).tolist())
    yield passed(f"under lowest, highest and random extreme actions; {len(reached)} quantities moved")


def writes(subject: Subject) -> Iterator[Remark]:
    """Rules write what they declare and nothing else, looking writes nothing."""
    env = in_python(subject.build())
    found: list[Remark] = []
    _watch(env, found)
    policies, (seen, _) = waves(env), env.reset(seed=subject.seed)
    for _ in range(min(3, subject.steps)):
        if env.agents:
            seen, _ = one_step(env, policies, seen)
    yield from found[:1]
    if found:
        return
    before = env.simulation.truth.tobytes()
    for name, look in _looks(env):
        look()
        if env.simulation.truth.tobytes() != before:
            yield failed(f"{name} changed the truth", "read there; write in rules, begin, advance and finish only")
            return


def _looks(env: HeronEnv) -> list[tuple[str, Callable[[], Any]]]:
    return [
        ("kpis()", env.kpis),
        ("training_signal()", env.training_signal),
        ("state()", env.state),
        ("render()", env.render),
        ("get_observation()", lambda: [env.proxy.get_observation(agent) for agent in env.hierarchy.ids]),
    ]


NAMED = {
    "apply": "apply_action",
    "advance": "advance",
    "reward": "compute_local_reward",
    "terminated": "is_terminated",
    "truncated": "is_truncated",
    "info": "get_local_info",
}


def _watch(env: HeronEnv, found: list[Remark]) -> None:
    """Let every rule and method of every agent be compared with what it may write."""
    simulation = env.simulation
    for rank, bound in enumerate(simulation.plain.bound):
        for part, name in NAMED.items():
            call = getattr(bound, part)
            if call is not None:
                setattr(bound, part, _watched(env, rank, name, call, found))
    simulation.plain.collect()


def _watched(env: HeronEnv, rank: int, name: str, call: Any, found: list[Remark]) -> Any:
    simulation, agent = env.simulation, env.hierarchy.agents[rank]
    row = simulation.layout.rows[rank]
    spec = rule_spec(getattr(type(agent), name, None))
    allowed = np.zeros(simulation.layout.size, dtype=bool)
    if spec is None and name in ("apply_action", "advance"):
        allowed[row.slice] = True  # in the imperative style: its own state
    for start, _, q in row.columns():
        if spec is not None and any(q is target or _stands_in(q, target) for target in spec.writes):
            allowed[start : start + q.size] = True

    def watched(*args: Any, **kwargs: Any) -> Any:
        before = simulation.truth.copy()
        result = call(*args, **kwargs)
        changed = np.flatnonzero((simulation.truth != before) & ~allowed)
        if len(changed):
            column = env.state_names[int(changed[0])]
            found.append(
                failed(
                    f"{type(agent).__name__}.{name} of {agent.agent_id} changed {column}, which it does not declare",
                    "return the value and name its quantity in @rule(writes=...); write other agents' and global "
                    "features in the environment's hooks",
                )
            )
        return result

    return watched


def _stands_in(q: Any, target: Any) -> bool:
    return bool(q.name == target.name and issubclass(q.owner, target.owner))


def setpoints(subject: Subject) -> Iterator[Remark]:
    """Deciding the same more often leaves the physics as it is."""
    ends = []
    for ticks in (1, 2):
        env = subject.build()
        end = to_seconds(subject.steps * env.dt_ns)
        schedule = ScheduleConfig(tick_interval=env.dt / ticks)
        env.run_event_driven(constants(env), seed=subject.seed, t_end=end, schedule=schedule)
        ends.append([entry("quantity", env.simulation.time, env.simulation.truth, env.state_names)])
    difference = first_difference(ends[0], ends[1], "with one decision a step", "with two")
    if difference:
        yield warning(
            f"constant actions act more when decided more often: {difference}",
            "let apply_action write a set-point and advance move the rest by dt; else studies of ticks and delays "
            "measure this",
        )
