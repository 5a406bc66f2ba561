"""Rollouts as lists of entries that two runs, clocks or processes can be compared by, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from heron_env.core.masking import flat
from heron_env.envs.base import HeronEnv
from heron_env.scheduling.timing import ScheduleConfig, to_seconds
from heron_env.testing.probes import choices, waves


class Entry(NamedTuple):
    """Some named values at a time: `battery_1's observation`, `at 3 s`."""

    what: str
    when: str
    names: tuple[str, ...]
    values: tuple[float | str, ...]


def entry(what: str, time: float, value: Any, names: Iterable[str] = ()) -> Entry:
    """Anything numeric, flattened; what is no number is kept as its text."""
    array = np.asarray(value)
    values = array.ravel().tolist() if array.dtype.kind in "buif" else [repr(value)]
    return Entry(what, f"at {time:g} s", tuple(names), tuple(values))


def told(what: str, time: float, name: str, value: Any) -> Entry:
    """The entry of an info."""
    return entry(what, time, flat(value) if name == "action_mask" else value)


def first_difference(
    first: list[Entry], second: list[Entry], one: str, other: str, tolerance: float | None = None
) -> str | None:
    """Where two records part, in words, `one` and `other` saying which is which; None if they are equal bit by bit, or
    their numbers to `tolerance` times their size (at least 1).
    """
    for a, b in zip(first, second, strict=False):
        if a[:2] != b[:2] or len(a.values) != len(b.values):
            return f"{one}: {a.what} {a.when} ({len(a.values)} values); {other}: {b.what} {b.when} ({len(b.values)})"
        for i, (x, y) in enumerate(zip(a.values, b.values, strict=True)):
            if repr(x) != repr(y) and (tolerance is None or not _near(x, y, tolerance)):
                column = f" {a.names[i]}" if i < len(a.names) else f" [{i}]" if len(a.values) > 1 else ""
                return f"{a.what}{column} {a.when} is {x!r} {one}, {y!r} {other}"
    if len(first) != len(second):
        longer, where = (first, one) if len(first) > len(second) else (second, other)
        extra = longer[min(len(first), len(second))]
        return f"{extra.what} {extra.when} is there {where} only"
    return None


def _near(x: float | str, y: float | str, tolerance: float) -> bool:
    if isinstance(x, str) or isinstance(y, str):
        return False
    return abs(x - y) <= tolerance * max(1.0, abs(x), abs(y))


def shown(env: HeronEnv, observations: Mapping[str, Any], infos: Mapping[str, Any]) -> list[Entry]:
    """What the agents are shown now, and the truth."""
    now = env.simulation.time
    entries = [entry("quantity", now, env.simulation.truth, env.state_names)]
    entries += [entry(f"{a}'s observation", now, v, env.observation_names(a)) for a, v in observations.items()]
    return entries + [told(f"{a}'s info {n!r}", now, n, v) for a, info in infos.items() for n, v in info.items()]


def one_step(env: HeronEnv, policies: Mapping[str, Any], observations: Mapping[str, Any]) -> tuple[Any, list[Entry]]:
    """One step with the policies: (the next observations, everything it yielded)."""
    following, rewards, terminated, truncated, infos = env.step(choices(env, policies, observations))
    now = env.simulation.time
    entries = [entry(f"{a}'s reward", now, value) for a, value in rewards.items()]
    entries += [entry(f"{a} is terminated", now, value) for a, value in terminated.items()]
    entries += [entry(f"{a} is truncated", now, value) for a, value in truncated.items()]
    return following, entries + shown(env, following, infos)


def synchronous(env: HeronEnv, seed: int, steps: int, policies: Mapping[str, Any] | None = None) -> list[Entry]:
    """`steps` steps through `reset` and `step`, over the episode's end if need be, then the start of one more."""
    policies = policies or waves(env)
    observations, infos = env.reset(seed=seed)
    entries = shown(env, observations, infos)
    for _ in range(steps):
        if not env.agents:
            observations, infos = env.reset()
            entries += shown(env, observations, infos)
        observations, found = one_step(env, policies, observations)
        entries += found
    return entries + shown(env, *env.reset())


def network(env: HeronEnv) -> ScheduleConfig:
    """Delays, jitter and loss of every kind, in proportion to dt."""
    late = 0.4 * env.dt
    return ScheduleConfig(
        tick_interval=0.9 * env.dt,
        msg_delay=late,
        act_delay=late,
        obs_delay=late,
        jitter_type="lognormal",
        jitter_ratio=0.5,
        tick_jitter_ratio=0.5,
        loss=0.2,
        duplicate=0.2,
    )


def event_driven(env: HeronEnv, seed: int, steps: int) -> list[Entry]:
    """As long an event-driven run over a bad network: what agents saw, did and earned, and every event's time."""
    result = env.run_event_driven(
        waves(env), seed=seed, t_end=to_seconds(steps * env.dt_ns), schedule=network(env), trace=True,
        record=("rewards", "actions", "observations"),
    )  # fmt: skip
    entries = [
        entry(f"{a}'s {what} (event-driven)", t, value, env.observation_names(a) if what == "observation" else ())
        for what, found in (
            ("observation", result.observations),
            ("action", result.actions),
            ("reward", result.rewards),
        )
        for a, rows in found.items()
        for t, value in rows
    ]
    for record in result.trace or ():
        entries.append(entry(f"event {record.kind} of agent {record.agent}", to_seconds(record.t_ns), record.latency))
    return [*entries, entry("quantity (event-driven)", result.end_time, env.simulation.truth, env.state_names)]
