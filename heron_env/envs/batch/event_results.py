"""What an episode of a compiled event-driven lane yielded, as the Python clock tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from heron_env.engine.event import forms as f
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.event_lanes import EventLanes
from heron_env.envs.event.notes import notes
from heron_env.envs.event.physics import in_time, score_legs, with_more
from heron_env.envs.results import EpisodeResult, Percentiles
from heron_env.scheduling.broker import MessageCounts
from heron_env.scheduling.timing import Timing, to_seconds

Floats = NDArray[np.float64]


class Noted:
    """What lane `b`, whose episode is over, has noted of it, in arrays: an EpisodeResult is made of them, or less."""

    def __init__(self, env: HeronEnv, lanes: EventLanes, b: int) -> None:
        self.env, self.lanes, self.b = env, lanes, b
        self._log, self._found = lanes.records(b)

    def rewards(self) -> tuple[Floats, Floats]:
        """Boundary times, s `[n]`, and rewards by rank `[n, ranks]`, nan where an agent had ended."""
        table = self._table(f.REWARD_LOG, len(self.env.hierarchy) + 1)
        return table[:, 0], table[:, 1:]

    def totals(self) -> Floats:
        """Sum of the rewards by rank."""
        steps = self.lanes.steps
        found: Floats = steps.arrays.last_returns[self.b, steps.position]
        return found

    def actions(self) -> dict[int, Floats]:
        """By rank of who acts: when each took effect, its latency, s, and its elements, `[n, 2 + elements]`."""
        specs = self.env.simulation.specs
        return self._by_rank(f.ACTION_LOG, {rank: spec.size + 2 for rank, spec in enumerate(specs) if spec.size})

    def ages(self) -> dict[int, Floats]:
        """By deciding rank: how old was what it saw of each source, s `[n, sources]`."""
        views = self.env.simulation.plan.views
        return self._by_rank(f.AGES_LOG, {rank: len(views[rank].sources) for rank in self.deciding})

    def observations(self) -> dict[int, Floats]:
        """By deciding rank: when it was asked for, s, and what was seen, `[n, 1 + columns]`."""
        plan = self.env.simulation.plan
        return self._by_rank(f.OBSERVATION_LOG, {rank: plan.size(rank) + 1 for rank in self.deciding})

    @property
    def deciding(self) -> list[int]:
        """Ranks of the agents that decide."""
        return sorted(self.lanes.arrays["deciders"].tolist())

    @property
    def ends(self) -> tuple[dict[str, bool], dict[str, bool]]:
        """By agent: terminated, truncated."""
        how, ids = self.lanes.arrays["how"][self.b].tolist(), self.env.hierarchy.ids
        terminated, truncated = ({a: bool(end & bit) for a, end in zip(ids, how, strict=True)} for bit in (1, 2))
        return terminated, truncated

    @property
    def steps(self) -> int:
        """Control steps of the episode."""
        return int(self.lanes.steps.last_length[self.b])

    @property
    def timings(self) -> Sequence[Timing]:
        """By rank."""
        return self.lanes.timings[self.b]

    def kpis(self) -> dict[str, float]:
        """The environment's own figures."""
        return self.lanes.steps.lane(self.b).kpis()

    def notes(self) -> list[str]:
        """What its delays can't show."""
        return notes(self.env, self.timings, self.env.dt_ns, self.deciding)

    def _table(self, kind: int, width: int) -> Floats:
        """All records of a kind `[n, width]`."""
        starts = self._found[self._found[:, 0] == kind, 1]
        return self._wide(starts, width)

    def _wide(self, starts: NDArray[np.int64], width: int) -> Floats:
        """So many numbers from each start."""
        if not len(starts):
            return np.zeros((0, width))
        found: Floats = sliding_window_view(self._log, width)[starts]
        return found

    def _by_rank(self, kind: int, sizes: dict[int, int]) -> dict[int, Floats]:
        """The records of a kind by rank, which is their first number; `sizes`: of what follows."""
        starts = self._found[self._found[:, 0] == kind, 1]
        ranks = self._log[starts].astype(np.min_scalar_type(len(self.env.hierarchy)))  # few bits are sorted fast
        starts = starts[np.argsort(ranks, kind="stable")] + 1
        stops = np.cumsum([0, *np.bincount(ranks, minlength=len(self.env.hierarchy))]).tolist()
        parts = {rank: slice(stops[rank], stops[rank + 1]) for rank in sizes}
        if len(set(sizes.values())) == 1:
            table = self._wide(starts, next(iter(sizes.values())))
            return {rank: table[part] for rank, part in parts.items()}
        return {rank: self._wide(starts[part], sizes[rank]) for rank, part in parts.items()}


def result_of(env: HeronEnv, lanes: EventLanes, b: int, record: frozenset[str]) -> EpisodeResult:
    """Of lane `b`, whose episode is over. What `record` does not name is blank; of rewards the totals are there."""
    ids, simulation, noted = env.hierarchy.ids, env.simulation, Noted(env, lanes, b)
    acting = [agent for agent, spec in zip(ids, simulation.specs, strict=True) if spec.size]
    observing = [ids[rank] for rank in noted.deciding] if "observations" in record else []
    masked = sorted(simulation.masks.ranks)
    result = EpisodeResult.blank(ids, acting, observing, [ids[rank] for rank in masked])
    times, rewards = noted.rewards()
    for column, agent in zip(rewards.T, ids, strict=True):
        been = column == column  # nan where an agent had ended
        result.rewards[agent] = list(zip(times[been].tolist(), column[been].tolist(), strict=True))
    row = lanes.arrays["lane"][b]
    result.end_time = to_seconds(noted.steps * env.dt_ns)
    if "rewards" not in record:
        totals = zip(ids, noted.totals().tolist(), strict=True)
        result.rewards = {agent: [(result.end_time, total)] for agent, total in totals}
    result.terminated, result.truncated = noted.ends
    for rank in masked:
        result.masked[ids[rank]] = int(lanes.arrays["masked"][b, rank])
    result.cancelled_effects, result.unfinished_effects = int(row[f.CANCELLED]), int(row[f.UNFINISHED])
    if "ages" in record:
        for rank, ages in noted.ages().items():
            result.staleness[ids[rank]] = Percentiles.of(ages.reshape(-1))
    if "actions" in record:
        for rank, told in noted.actions().items():
            result.actions[ids[rank]] = list(zip(told[:, 0].tolist(), list(told[:, 2:]), strict=True))
            result.latency[ids[rank]] = Percentiles.of(told[:, 1])
    if "observations" in record:
        for rank, told in noted.observations().items():
            vectors = told[:, 1:].astype(np.float32)
            result.observations[ids[rank]] = list(zip(told[:, 0].tolist(), list(vectors), strict=True))
    if "messages" in record:
        lived = lanes.arrays["lived"][b].tolist()
        result.messages = _messages(row, noted.timings, lived, noted.steps, env.dt_ns)
    if "kpis" in record:
        result.kpis = noted.kpis()
    result.notes = noted.notes()
    return result


def _messages(row: NDArray[Any], timings: Sequence[Timing], lived: Sequence[int], steps: int, dt: int) -> MessageCounts:
    """The lane's counts, with the legs of the physics cycles but the reports.

    `lived`: control steps that each agent was in; the last cycle's legs are cut off where the episode ends.
    """
    sent, doubled, delivered, lost = (int(row[k]) for k in (f.SENT, f.DUPLICATED, f.DELIVERED, f.LOST))
    counts = MessageCounts(sent, doubled, delivered, lost, sent + doubled - delivered - lost, int(row[f.DROPPED]))
    end, system = steps * dt, timings[0].msg
    back, came = (in_time(end, dt + leg * system, dt, steps) for leg in (1, 2))
    counts = with_more(counts, steps + back, back + came)
    return with_more(counts, *score_legs(timings, lived, dt, dt, end))
