"""Rollouts to examine an environment by: deterministic policies, and records that say in words where two runs part."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.layout import Layout
from heron_env.core.masking import flat
from heron_env.core.policy import Answer, Asked
from heron_env.envs.base import HeronEnv
from heron_env.envs.decisions import take
from heron_env.scheduling.timing import ScheduleConfig, to_seconds
from heron_env.seeding import key, uniforms

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]


def synchronous(env: HeronEnv, seed: int, steps: int, policies: Mapping[str, Any] | None = None) -> list[RolloutEntry]:
    """`steps` steps through `reset` and `step`, over the episode's end if need be, then the start of one more."""
    policies = policies or waves(env)
    observations, infos = env.reset(seed=seed)
    entries = visible(env, observations, infos)
    for _ in range(steps):
        if not env.agents:
            observations, infos = env.reset()
            entries += visible(env, observations, infos)
        observations, more = one_step(env, policies, observations)
        entries += more
    return entries + visible(env, *env.reset())


def event_driven(env: HeronEnv, seed: int, steps: int) -> list[RolloutEntry]:
    """As long an event-driven run over a bad network: what agents saw, did and earned, and every event's time."""
    result = env.run_event_driven(
        waves(env), seed=seed, t_end=to_seconds(steps * env.dt_ns), schedule=network(env), trace=True,
        record=("rewards", "actions", "observations"),
    )  # fmt: skip
    parts = (("observation", result.observations), ("action", result.actions), ("reward", result.rewards))
    entries = [
        entry(f"{a}'s {what} (event-driven)", t, value, env.observation_names(a) if what == "observation" else ())
        for what, by_agent in parts
        for a, rows in by_agent.items()
        for t, value in rows
    ]
    entries += [
        entry(f"event {event.kind} of agent {event.agent}", to_seconds(event.t_ns), event.latency)
        for event in result.trace or ()
    ]
    return [*entries, entry("quantity (event-driven)", result.end_time, env.simulation.truth, env.state_names)]


def network(env: HeronEnv) -> ScheduleConfig:
    """Delays, jitter and loss of every kind, in proportion to dt."""
    late = 0.4 * env.dt
    return ScheduleConfig(
        tick_interval=0.9 * env.dt, msg_delay=late, act_delay=late, obs_delay=late, loss=0.2,
        jitter_type="lognormal", jitter_ratio=0.5, tick_jitter_ratio=0.5,
    )  # fmt: skip


def one_step(
    env: HeronEnv, policies: Mapping[str, Any], observations: Mapping[str, Any]
) -> tuple[Any, list[RolloutEntry]]:
    """One step with the policies: (the next observations, everything it yielded)."""
    following, rewards, terminated, truncated, infos = env.step(choices(env, policies, observations))
    now = env.simulation.time
    entries = [entry(f"{a}'s reward", now, value) for a, value in rewards.items()]
    entries += [entry(f"{a} is terminated", now, value) for a, value in terminated.items()]
    entries += [entry(f"{a} is truncated", now, value) for a, value in truncated.items()]
    return following, entries + visible(env, following, infos)


def visible(env: HeronEnv, observations: Mapping[str, Any], infos: Mapping[str, Any]) -> list[RolloutEntry]:
    """What the agents are shown now, and the truth."""
    now = env.simulation.time
    entries = [entry("quantity", now, env.simulation.truth, env.state_names)]
    entries += [entry(f"{a}'s observation", now, v, env.observation_names(a)) for a, v in observations.items()]
    return entries + info_entries(infos, now)


class RolloutEntry(NamedTuple):
    """Some named values at a time: `battery_1's observation`, `at 3 s`."""

    what: str
    when: str
    names: tuple[str, ...]
    values: tuple[float | str, ...]


def entry(what: str, time: float, value: Any, names: Iterable[str] = ()) -> RolloutEntry:
    """Anything numeric, flattened; what is no number is kept as its text."""
    array = np.asarray(value)
    values = array.ravel().tolist() if array.dtype.kind in "buif" else [repr(value)]
    return RolloutEntry(what, f"at {time:g} s", tuple(names), tuple(values))


def info_entries(infos: Mapping[str, Any], time: float) -> list[RolloutEntry]:
    """An entry for each agent and name."""
    return [info_entry(f"{a}'s info {n!r}", time, n, v) for a, info in infos.items() for n, v in info.items()]


def info_entry(what: str, time: float, name: str, value: Any) -> RolloutEntry:
    """The entry of an info."""
    return entry(what, time, flat(value) if name == "action_mask" else value)


def first_difference(
    first: list[RolloutEntry], second: list[RolloutEntry], one: str, other: str, tolerance: float | None = None
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


Timed = list[tuple[float, int, RolloutEntry]]
"""Entries with their time, s, and their place among those of one time."""


def in_order(env: HeronEnv, timed: Timed, ended: Mapping[str, bool]) -> list[RolloutEntry]:
    """The entries by time, place and name; then who was terminated, and the truth as it is now."""
    now = env.simulation.time
    entries = [e for *_, e in sorted(timed, key=lambda one: (one[0], one[1], one[2].what))]
    entries += [entry(f"{agent} is terminated", now, ended[agent]) for agent in env.possible_agents]
    return [*entries, entry("quantity", now, env.simulation.truth, env.state_names)]


def truth_of_steps(env: HeronEnv) -> Timed:
    """Fills with the truth at the end of each step from now on, whichever clock runs.

    Inboxes are filled later, and flags lowered (V10).
    """
    simulation, timed = env.simulation, Timed()
    later = [*inboxes_of(simulation.model.layout), *(edge.flag for edge in simulation.exchange.edges)]
    columns = np.setdiff1d(np.arange(simulation.model.layout.size), later)
    names = [env.state_names[column] for column in columns]

    def watched(close: Callable[[], Any]) -> Callable[[], Any]:
        def closed() -> Any:
            returned, time = close(), simulation.time
            timed.append((time, 2, entry("quantity", time, simulation.truth[columns], names)))
            return returned

        return closed

    for name in ("close_step", "step"):  # the one, or with it all that is before it
        setattr(simulation, name, watched(getattr(simulation, name)))
    return timed


def inboxes_of(layout: Layout) -> Columns:
    """The columns that are memory of their owners: what others told them."""
    spans = [
        np.arange(start, start + q.size)
        for row in layout.rows
        for start, feature, q in row.columns()
        if not feature.reported
    ]
    return np.concatenate([np.zeros(0, np.int64), *spans])


@contextmanager
def undone(env: HeronEnv) -> Iterator[None]:
    """What happens within is undone: truth and clock, who lives and what was decided, seed and episode."""
    simulation = env.simulation
    state, moment, agents, decided = simulation.state(), (env._seed, env._episode), list(env.agents), list(env.decided)
    try:
        yield
    finally:
        simulation.restore(state)
        (env._seed, env._episode), env.agents, env.decided = moment, agents, decided


def until_the_end(
    env: HeronEnv, actions: Mapping[str, Any], before: Callable[[int], None] = lambda number: None
) -> None:
    """Carry out the coming step but for its end; `before` is called before each substep."""
    take(env, actions, {})
    env.simulation.lane.act()
    for number in range(env.simulation.model.substeps):
        before(number)
        env.simulation.substep(number)


def choices(env: HeronEnv, policies: Mapping[str, Any], observations: Mapping[str, Any]) -> dict[str, Any]:
    """What the living choose on what they see."""
    return {agent: policies[agent](observations[agent]) for agent in env.agents}


def waves(env: HeronEnv) -> dict[str, Any]:
    """A Wave for each possible agent."""
    return {agent: Wave(agent, spec) for agent, spec in specs(env).items()}


def extremes(env: HeronEnv, end: int | None) -> dict[str, Any]:
    """An Extreme for each possible agent."""
    return {agent: Extreme(agent, spec, end) for agent, spec in specs(env).items()}


def constants(env: HeronEnv, share: float = 0.8) -> dict[str, Any]:
    """The same action for ever, at a share of the range that is seldom the no-op."""
    return {agent: always(at(spec, np.full(spec.size, share))) for agent, spec in specs(env).items()}


def noops(env: HeronEnv) -> dict[str, Any]:
    """The no-op for ever."""
    return {agent: always(spec.noop) for agent, spec in specs(env).items()}


def specs(env: HeronEnv) -> dict[str, ActionSpec]:
    """The action of each possible agent."""
    return {agent: env.simulation.model.specs[env.hierarchy.index[agent]] for agent in env.possible_agents}


class Wave:
    """Pseudo-random actions that depend on every bit of the observation and on how often it was asked."""

    def __init__(self, agent: str, spec: ActionSpec) -> None:
        self.agent, self.spec, self.asked = agent, spec, 0

    def __call__(self, vector: Any) -> Floats:
        """The next action."""
        self.asked += 1
        digest = int.from_bytes(hashlib.blake2b(np.asarray(vector).tobytes(), digest_size=8).digest(), "big")
        return at(self.spec, uniforms(key("probe", self.agent, self.asked, digest), self.spec.size))


class Extreme:
    """Only the ends of the range: all low, all high (`end` 0 or 1), or either at random (None)."""

    def __init__(self, agent: str, spec: ActionSpec, end: int | None) -> None:
        self.agent, self.spec, self.end, self.asked = agent, spec, end, 0

    def __call__(self, vector: Any) -> Floats:
        """The next action."""
        self.asked += 1
        drawn = uniforms(key("extreme", self.agent, self.asked), self.spec.size)
        high = drawn >= 0.5 if self.end is None else np.full(self.spec.size, bool(self.end))
        c, d = high[: self.spec.dim_c], high[self.spec.dim_c :]
        return np.concatenate([np.where(c, self.spec.high, self.spec.low), np.where(d, self.spec.ncats - 1, 0)])


def always(action: Floats) -> Callable[[Any], Floats]:
    """The policy of one action for ever."""
    return lambda vector: action.copy()


class Answers:
    """The same policies as one that knows who asks, asked for all of an instant together."""

    def __init__(self, policies: Mapping[str, Any]) -> None:
        self.policies = policies

    def answer(self, asked: Asked) -> Answer:
        """What the asking agent's policy decides. Raises ValueError where not each number has its name."""
        if len(asked.names) != len(asked.vector):
            raise ValueError(f"{asked.agent} sees {len(asked.vector)} numbers with {len(asked.names)} names")
        return Answer(self.policies[asked.agent](asked.vector))

    def answer_all(self, questions: Sequence[Asked]) -> list[Answer]:
        """One answer each."""
        return [self.answer(asked) for asked in questions]


def at(spec: ActionSpec, shares: Floats) -> Floats:
    """The action at these shares (in [0, 1), float64 `[size]`) of its ranges."""
    c, d = shares[: spec.dim_c], shares[spec.dim_c :]
    return np.concatenate([spec.low + (spec.high - spec.low) * c, np.floor(spec.ncats * d)])


def other_values(layout: Layout, columns: Columns, shares: Floats) -> Floats:
    """Values of these columns at shares (in [0, 1)) of their ranges."""
    low, high = np.maximum(layout.low[columns], -1e3), np.minimum(layout.high[columns], 1e3)
    values = low + (high - low) * shares
    return np.asarray(np.where(layout.integer[columns], np.round(values), values))
