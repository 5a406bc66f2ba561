"""What each agent saw, decided and earned in an episode of the event-driven clock, decision by decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import Policies
from heron_env.core.rule import one_by_one
from heron_env.envs.answering import Asking
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.scheduling.drawn import AnySchedule
from heron_env.scheduling.timing import to_ns, to_seconds

if TYPE_CHECKING:
    from heron_env.envs.event.clock import EventRun


@dataclass(frozen=True, eq=False)
class AgentEpisode:
    """One agent's episode of T decisions.

    Attributes:
        observations: float32 `[T + 1, d]`: what it decided on, as the network brought it, and at last what it would see
            of the truth at the boundary where it ended.
        actions: float64 `[T, size]`, as decided, whenever they took effect.
        rewards: float64 `[T]`, of the boundaries after a decision up to the moment of the next one.
        times: float64 `[T + 1]`, s, when it decided, and when it ended.
    """

    agent: str
    observations: NDArray[np.float32]
    actions: NDArray[np.float64]
    rewards: NDArray[np.float64]
    times: NDArray[np.float64]
    terminated: bool
    truncated: bool


@dataclass(slots=True)
class Notes:
    """What is noted of one agent while the episode runs; `ended` once it has: the time, ns, and what it would see."""

    times: list[int] = field(default_factory=list)
    seen: list[NDArray[np.float32]] = field(default_factory=list)
    decided: list[NDArray[np.float64]] = field(default_factory=list)
    ended: tuple[int, NDArray[np.float32]] | None = None


def record_decisions(
    env: HeronEnv, policies: Policies, *, seed: int | None = None, schedule: AnySchedule = None
) -> list[AgentEpisode]:
    """Run one whole episode; those agents that decided at least once, in the order of the hierarchy.

    Args:
        env: must have an end of its own.
        policies, seed, schedule: as in `run_event_driven`; without delays the episode is that of the synchronous clock.

    Raises ConfigError, also for policies that are asked by `answer`: what they saw is not a vector alone.
    """
    run = env.start_event_driven(policies, seed=seed, schedule=schedule)
    notes = {rank: Notes() for rank in sorted(run.agents.deciding)}
    for rank, kept in notes.items():
        decide = run.agents.policies[rank]
        if isinstance(decide, Asking):
            raise ConfigError(
                f"the policy of {env.hierarchy.ids[rank]!r} is asked by answer(), and may see more than its vector; "
                "record policies that are functions of the vector, or keep a trace: record_episode()"
            )
        run.agents.policies[rank] = _noting(run, rank, decide, kept)
    boundary = 0
    while not run.closed:
        boundary += env.dt_ns
        run.until(to_seconds(boundary))
        _note_ends(run, boundary, notes)
    return [_episode(run, rank, kept) for rank, kept in notes.items() if kept.times]


def _noting(run: EventRun, rank: int, decide: Any, kept: Notes) -> Any:
    """The same policy, of whose decisions notes are taken."""
    parse = run.agents.parse[rank]

    def decided(vector: NDArray[np.float32], *where: Any) -> Any:
        seen = vector.copy()  # the policy may work in place
        action = decide(vector, *where)
        kept.decided.append(parse(action))
        kept.times.append(run.context.scheduler.now)
        kept.seen.append(seen)
        return action

    return decided


def _note_ends(run: EventRun, boundary: int, notes: dict[int, Notes]) -> None:
    """What agents that ended at this boundary would see of its truth, before anybody acts on it."""
    env, result = run.env, run.context.result
    for rank, kept in notes.items():
        agent = env.hierarchy.ids[rank]
        if kept.ended is None and (result.terminated[agent] or result.truncated[agent]):
            moment = run.context.moment(boundary // env.dt_ns)
            kept.ended = boundary, env.simulation.plan.vector(rank, run.context.measuring.ended, moment).copy()


def _episode(run: EventRun, rank: int, kept: Notes) -> AgentEpisode:
    result, agent = run.context.result, run.env.hierarchy.ids[rank]
    assert kept.ended is not None, f"{agent} never ended"
    times = [*kept.times, kept.ended[0]]
    earned: list[list[float]] = [[] for _ in kept.times]
    for time, reward in result.rewards[agent]:
        place = int(np.searchsorted(kept.times, to_ns(time, "time"), side="left")) - 1
        if place >= 0:  # what came before its first decision is none of its doing
            earned[place].append(reward)
    return AgentEpisode(
        agent,
        np.stack([*kept.seen, kept.ended[1]]),
        np.stack(kept.decided),
        np.array([one_by_one(some) for some in earned]),
        np.array([to_seconds(ns) for ns in times]),
        result.terminated[agent],
        result.truncated[agent],
    )
