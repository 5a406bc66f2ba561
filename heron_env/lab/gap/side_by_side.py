"""Episodes of a sweep side by side: the cases of one policy under one condition are lanes of the compiled event clock.

That goes where nothing in an episode is Python but the policy, and the policy is a function of its vector that takes
many at once (`forward_batch`). What comes out is the same, bit for bit, as one by one.
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.policy import AnyPolicy, takes
from heron_env.envs.decisions import resolve_policies
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import outcome
from heron_env.lab.external import External
from heron_env.lab.gap.records import RECORD, Item, Record, made, require_finite, run_item
from heron_env.lab.policies import TrainedRun

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.batch.rows import Rows

MOST = 256
"""Episodes in a bundle: what 256 days note takes some 300 MB."""
Bundle = tuple[Item, ...]


def bundles(items: Sequence[Item], processes: int) -> list[Bundle]:
    """The items, in their order by the first of each bundle: those that can run side by side, and the others alone."""
    together: dict[tuple[Any, ...], list[Item]] = {}
    known: dict[str, bool] = {}
    for number, item in enumerate(items):
        networked = not (item.condition.synchronous or item.condition.disturbances or item.live)
        if networked and item.name not in known:
            known[item.name] = _can(item)
        kept = networked and known[item.name]
        where = (item.name, item.condition.name) if kept else (number,)
        together.setdefault(where, []).append(item)
    found, parts = [], processes if isinstance(processes, int) and processes > 1 else 1  # who runs them checks it
    for some in together.values():
        size = min(MOST, -(-len(some) // parts))
        found += [tuple(some[k : k + size]) for k in range(0, len(some), size)]
    return found


def run_bundle(bundle: Bundle) -> list[Record]:
    """Run them; where anything goes wrong side by side, one by one, so that the episode at fault is named."""
    if len(bundle) == 1:
        return [run_item(bundle[0])]
    try:
        return _run(bundle)
    except Exception:  # noqa: BLE001  (what it is will be raised by the episode itself)
        return [run_item(item) for item in bundle]


def _world(item: Item) -> HeronEnv:
    """The environment of the item's policy and condition, whatever the case."""
    return made(replace(item, case=Case(item.case.seed)))


def _can(item: Item) -> bool:
    """May the cases of this policy run side by side?"""
    from heron_env.envs.batch.event import why_not

    if isinstance(item.policy, External):
        return False
    env = _world(item)
    if why_not(env) is not None or not item.case.options.keys() <= env.benchmark().at_reset:
        return False
    policies = resolve_policies(item.policy.build(env, item.case.seed), env)
    return policies.keys() == set(env.simulation.possible) and all(map(_on_batches, policies.values()))


def _on_batches(policy: AnyPolicy) -> bool:
    """Is it a function of many vectors at once, without a memory of its episode?"""
    remembers = any(callable(getattr(policy, name, None)) for name in ("begin", "begin_lanes", "answer"))
    return callable(getattr(policy, "forward_batch", None)) and not remembers


def _run(bundle: Bundle) -> list[Record]:
    from heron_env.envs.batch.env import BatchEnv

    begun, first = time.perf_counter(), bundle[0]
    env = _world(first)
    batch: Any = BatchEnv(
        env, len(bundle), clock="event", schedule=first.condition.schedule(env), autoreset="disabled", threads=1,
        record=(*RECORD, "ages", "kpis"),
    )  # fmt: skip
    asked = _Asked([resolve_policies(policy, env) for policy in _policies(bundle, env)], len(env.hierarchy))
    specs = env.simulation.specs
    width = max(specs[rank].size for rank in env.simulation.possible)
    rows = batch.reset([item.case.seed for item in bundle], options=[item.case.options or None for item in bundle])
    while len(rows):
        actions = np.zeros((len(rows), width))
        for policy, places in asked.by_policy(rows):
            rank = int(rows.rank[places][0])
            seen, told = rows.obs[places, : env.simulation.plan.size(rank)], {}
            if takes(policy.forward_batch, "masks"):
                choices = int(specs[rank].ncats.sum())
                told["masks"] = None if rows.mask is None else rows.mask[places, :choices].astype(np.int8)
            actions[places, : specs[rank].size] = policy.forward_batch(seen, **told)
        rows = batch.answer(actions)
    found = [outcome(env, batch.result(lane)) for lane in range(len(bundle))]  # one by one: they are large
    for each in found:
        require_finite(each)
    seconds = round((time.perf_counter() - begun) / len(bundle), 3)
    return [Record(item.key, each, seconds) for item, each in zip(bundle, found, strict=True)]


def _policies(bundle: Bundle, env: HeronEnv) -> list[Any]:
    """Of each item; one and the same where those of several cases are equal to the last byte."""
    spec = bundle[0].policy
    first = spec.build(env, bundle[0].case.seed)
    if isinstance(spec, TrainedRun):
        return [first] * len(bundle)
    known: dict[bytes, Any] = {}
    found = []
    for item in bundle:
        policy = spec.build(env, item.case.seed)
        with contextlib.suppress(Exception):  # what does not pickle is its case's own
            policy = known.setdefault(pickle.dumps(policy), policy)
        found.append(policy)
    return found


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
