"""What an episode of a compiled event-driven lane yielded, as the Python clock tells it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    lanes.drain(np.array([b]))
    latency: dict[str, list[float]] = {agent: [] for agent in result.actions}
    ages: dict[int, list[Floats]] = {rank: [] for rank in deciding}
    for kind, values in _records(lanes.logs[b]):
        if kind == f.REWARD_LOG:
            for agent, reward in zip(ids, values[1:].tolist(), strict=True):
                if reward == reward:
                    result.rewards[agent].append((float(values[0]), reward))
        elif kind == f.ACTION_LOG:
            agent = ids[int(values[0])]
            result.actions[agent].append((float(values[1]), values[3:].copy()))
            latency[agent].append(float(values[2]))
        elif kind == f.AGES_LOG:
            ages[int(values[0])].append(values[1:])
        else:
            rank = int(values[0])
            vector = values[2 : 2 + simulation.plan.size(rank)].astype(np.float32)
            result.observations[ids[rank]].append((float(values[1]), vector))
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
        result.staleness = {ids[r]: Percentiles.of(np.concatenate([np.zeros(0), *ages[r]])) for r in deciding}
    if "actions" in record:
        result.latency = {agent: Percentiles.of(latency[agent]) for agent in result.actions}
    if "messages" in record:
        result.messages = _messages(row, timings, lanes.arrays["lived"][b].tolist(), steps, env.dt_ns)
    if "kpis" in record:
        result.kpis = lanes.steps.lane(b).kpis()
    result.notes = notes(env, timings, env.dt_ns, deciding)
    return result


def _records(logs: Sequence[Floats]) -> Iterator[tuple[int, Floats]]:
    for log in logs:
        at = 0
        while at < len(log):
            kind, size = int(log[at]), int(log[at + 1])
            yield kind, log[at + 2 : at + 2 + size]
            at += 2 + size


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
