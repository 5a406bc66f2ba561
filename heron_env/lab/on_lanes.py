"""Episodes side by side: lanes of the compiled event clock, for policies that decide for many at once.

That goes where nothing in an episode is Python but the policy, and the policy is a function of its vector
(`forward_batch`), or of what each agent has seen so far (`forward_rows`, a RememberingPolicy). What comes out is the
same, bit for bit, as one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy, Policies, draws_of, forward_rows
from heron_env.envs.decisions import resolve_policies
from heron_env.lab.benchmark import Case
from heron_env.lab.remembering import RememberingPolicy
from heron_env.scheduling.drawn import AnySchedule
from heron_env.scheduling.timing import Key, ScheduleConfig, to_seconds

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.batch.event import EventBatchEnv
    from heron_env.envs.batch.event_lanes import Noted
    from heron_env.envs.batch.rows import Rows


def can_play(env: HeronEnv, policies: Policies, options: Collection[str]) -> bool:
    """May cases of these options run side by side in `env` under these policies?"""
    from heron_env.envs.batch.event import why_not

    if why_not(env) is not None or not set(options) <= env.benchmark().at_reset:
        return False
    deciding = resolve_policies(policies, env)
    return deciding.keys() == set(env.simulation.possible) and all(map(_decides_for_many, deciding.values()))


def played(
    env: HeronEnv,
    cases: Sequence[Case],
    policies: Sequence[Policies],
    schedule: AnySchedule,
    record: Sequence[str] = (),
) -> Any:
    """The EventBatchEnv whose lanes have played the cases to their ends, each under its policies.

    Args:
        env: of all cases; their options are given at the reset.
        policies: of each case; one and the same object decides for all its cases at once.
        record: as of BatchEnv.
    """
    from heron_env.envs.batch.env import BatchEnv

    batch: Any = BatchEnv(
        env, len(cases), clock="event", schedule=schedule, autoreset="disabled", threads=1, record=tuple(record)
    )
    engine, ranks, specs = batch._lanes.steps, len(env.hierarchy), env.simulation.specs
    names = env.hierarchy.hashes
    asked = _Asked([resolve_policies(of_case, env) for of_case in policies], ranks)
    width = max(specs[rank].size for rank in env.simulation.possible)
    rows = batch.reset([case.seed for case in cases], options=[case.options or None for case in cases])
    while len(rows):
        actions = np.zeros((len(rows), width))
        for policy, places in asked.by_policy(rows):
            lanes, whose, more = rows.lane[places], rows.rank[places], dict[str, Any]()
            rank = int(whose[0])
            decide = policy.forward_rows if isinstance(policy, RememberingPolicy) else policy.forward_batch
            if isinstance(policy, RememberingPolicy):
                more = {"who": lanes * ranks + whose, "first": rows.first[places]}
            actions[places, : specs[rank].size] = forward_rows(
                decide,
                rows.obs[places, : env.simulation.plan.size(rank)],
                partial(_masks, rows, places, int(specs[rank].ncats.sum())),
                partial(draws_of, engine.seeds[lanes], engine.episodes[lanes], names[whose], rows.number[places]),
                **more,
            )
        rows = batch.answer(actions)
    return batch


def _masks(rows: Rows, places: Any, choices: int) -> NDArray[np.int8] | None:
    return None if rows.mask is None else rows.mask[places, :choices].astype(np.int8)


def ticks_in_step(env: HeronEnv) -> bool:
    """Do all agents tick at boundaries of control steps, as the synchronous clock demands?"""
    return all(timing.tick % env.dt_ns == timing.phase % env.dt_ns == 0 for timing in env.timings)


def in_step(env: HeronEnv) -> dict[Key, ScheduleConfig]:
    """The schedule under which lanes are the synchronous clock: its ticks, and nothing takes time or is lost."""
    return {
        timing.agent: ScheduleConfig(
            tick_interval=to_seconds(timing.tick), phase=to_seconds(timing.phase), own_rows=timing.config.own_rows
        )
        for timing in env.timings
    }


def noted(batch: EventBatchEnv) -> Iterator[Noted]:
    """What each lane of `played` has noted, in arrays."""
    from heron_env.envs.batch.event_lanes import Noted

    return (Noted(batch.env, batch._lanes, lane) for lane in range(batch.num_envs))


def _decides_for_many(policy: AnyPolicy) -> bool:
    """Is it a function of many vectors at once, and of nothing else but what a RememberingPolicy remembers?"""
    remembers = any(callable(getattr(policy, name, None)) for name in ("begin", "begin_lanes", "answer"))
    return isinstance(policy, RememberingPolicy) or (callable(getattr(policy, "forward_batch", None)) and not remembers)


class _Asked:
    """Which policy decides for whom: one number for each policy object."""

    def __init__(self, policies: Sequence[Mapping[int, Any]], ranks: int) -> None:
        numbers: dict[int, int] = {}
        self._objects: list[Any] = []
        self._which = np.zeros((len(policies), ranks), dtype=np.int64)
        for lane, by_rank in enumerate(policies):
            for rank, policy in by_rank.items():
                if id(policy) not in numbers:
                    numbers[id(policy)] = len(self._objects)
                    self._objects.append(policy)
                self._which[lane, rank] = numbers[id(policy)]

    def by_policy(self, rows: Rows) -> Iterator[tuple[Any, Any]]:
        """Each policy with its rows, a slice or places; those of a group at a time."""
        which = self._which[rows.lane, rows.rank]
        for part in rows.parts.values():
            mine = which[part]
            if not len(mine):
                continue
            if (mine == mine[0]).all():
                yield self._objects[mine[0]], part
                continue
            for one in np.unique(mine).tolist():
                yield self._objects[one], part.start + np.flatnonzero(mine == one)
