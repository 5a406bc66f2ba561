"""What an episode of a compiled event-driven lane yielded, as the Python clock tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.event import forms as f
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.event_lanes import EventLanes
from heron_env.envs.event.notes import notes
from heron_env.envs.results import EpisodeResult, Percentiles
from heron_env.scheduling.broker import MessageCounts
from heron_env.scheduling.timing import Timing, to_seconds

Floats = NDArray[np.float64]


def result_of(env: HeronEnv, lanes: EventLanes, b: int, record: frozenset[str]) -> EpisodeResult:
    """Of lane `b`, whose episode is over. What `record` does not name is blank; of rewards the totals are there."""
    ids, simulation = env.hierarchy.ids, env.simulation
    deciding = sorted(lanes.arrays["deciders"].tolist())
    acting = [agent for agent, spec in zip(ids, simulation.specs, strict=True) if spec.size]
    observing = [ids[rank] for rank in deciding] if "observations" in record else []
    masked = sorted(simulation.masks.ranks)
    result = EpisodeResult.blank(ids, acting, observing, [ids[rank] for rank in masked])
    log, found = lanes.records(b)
    times, rewards = _table(log, found, f.REWARD_LOG, len(ids) + 1)
    for column, agent in zip(rewards.T, ids, strict=True):
        been = column == column  # nan where an agent had ended
        result.rewards[agent] = list(zip(times[been].tolist(), column[been].tolist(), strict=True))
    steps, row = int(lanes.steps.last_length[b]), lanes.arrays["lane"][b]
    result.end_time = to_seconds(steps * env.dt_ns)
    if "rewards" not in record:
        totals = lanes.steps.arrays.last_returns[b, lanes.steps.position].tolist()
        result.rewards = {agent: [(result.end_time, total)] for agent, total in zip(ids, totals, strict=True)}
    for rank, agent in enumerate(ids):
        how = int(lanes.arrays["how"][b, rank])
        result.terminated[agent], result.truncated[agent] = bool(how & 1), bool(how & 2)
    for rank in masked:
        result.masked[ids[rank]] = int(lanes.arrays["masked"][b, rank])
    result.cancelled_effects, result.unfinished_effects = int(row[f.CANCELLED]), int(row[f.UNFINISHED])
    timings = lanes.timings[b]
    if "ages" in record:
        sizes = {rank: len(simulation.plan.views[rank].sources) for rank in deciding}
        for rank, (_, ages) in _by_rank(log, found, f.AGES_LOG, sizes).items():
            result.staleness[ids[rank]] = Percentiles.of(ages.reshape(-1))
    if "actions" in record:
        sizes = {rank: spec.size + 2 for rank, spec in enumerate(simulation.specs) if spec.size}
        for rank, (_, told) in _by_rank(log, found, f.ACTION_LOG, sizes).items():
            result.actions[ids[rank]] = list(zip(told[:, 0].tolist(), list(told[:, 2:]), strict=True))
            result.latency[ids[rank]] = Percentiles.of(told[:, 1])
    if "observations" in record:
        sizes = {rank: simulation.plan.size(rank) + 1 for rank in deciding}
        for rank, (_, told) in _by_rank(log, found, f.OBSERVATION_LOG, sizes).items():
            vectors = told[:, 1:].astype(np.float32)
            result.observations[ids[rank]] = list(zip(told[:, 0].tolist(), list(vectors), strict=True))
    if "messages" in record:
        result.messages = _messages(row, timings, lanes.arrays["lived"][b].tolist(), steps, env.dt_ns)
    if "kpis" in record:
        result.kpis = lanes.steps.lane(b).kpis()
    result.notes = notes(env, timings, env.dt_ns, deciding)
    return result


def _table(log: Floats, found: NDArray[np.int64], kind: int, width: int) -> tuple[Floats, Floats]:
    """All records of a kind: their first numbers `[n]`, and the next ones `[n, width - 1]`."""
    numbers = log[found[found[:, 0] == kind, 1][:, None] + np.arange(width)]
    return numbers[:, 0], numbers[:, 1:]


def _by_rank(
    log: Floats, found: NDArray[np.int64], kind: int, sizes: dict[int, int]
) -> dict[int, tuple[Floats, Floats]]:
    """The same by rank, which is their first number; `sizes`: of what follows."""
    some = found[found[:, 0] == kind]
    ranks = log[some[:, 1]]
    return {rank: _table(log, some[ranks == rank], kind, 1 + size) for rank, size in sizes.items()}


def _messages(row: NDArray[Any], timings: Sequence[Timing], lived: Sequence[int], steps: int, dt: int) -> MessageCounts:
    """The lane's counts, with the legs of the physics cycles that nothing can delay, lose or be changed by.

    `lived`: control steps that each agent was in; the last cycle's legs are cut off where the episode ends.
    """
    end, system = steps * dt, timings[0].msg

    def in_time(late: int, cycles: int) -> int:
        """How many of the first cycles have a message so late, ns after their boundary, before the end."""
        return max(0, min(cycles, (end - late) // dt))

    sent = steps + in_time(system, steps)
    delivered = in_time(system, steps) + in_time(2 * system, steps)
    for timing, cycles in zip(timings, lived, strict=True):
        sent += in_time(2 * system, cycles)
        for leg in range(1, 5):
            came = in_time(3 * system + leg * timing.msg, cycles)
            delivered += came
            sent += came * (leg < 4)
    counts = [int(row[k]) for k in (f.SENT, f.DUPLICATED, f.DELIVERED, f.LOST)]
    sent, doubled, delivered, lost = counts[0] + sent, counts[1], counts[2] + delivered, counts[3]
    return MessageCounts(sent, doubled, delivered, lost, sent + doubled - delivered - lost, int(row[f.DROPPED]))
