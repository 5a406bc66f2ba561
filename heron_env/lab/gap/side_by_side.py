"""Episodes of a sweep side by side: the cases of one policy under one condition are lanes, where that goes."""

from __future__ import annotations

import contextlib
import math
import pickle
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from heron_env.errors import HeronWarning
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import lane_outcome
from heron_env.lab.external import External
from heron_env.lab.gap.records import RECORD, Item, Record, made, require_finite, run_item
from heron_env.lab.on_lanes import can_play, in_step, noted, played, ticks_in_step
from heron_env.lab.policies import TrainedRun

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

MOST = 256
"""Episodes in a bundle: what 256 days note takes some 300 MB."""
LEAST = 16
"""Cases of a synchronous condition, from which on they are lanes: fewer are done before those are compiled."""
Bundle = tuple[Item, ...]


def bundles(items: Sequence[Item], processes: int) -> list[Bundle]:
    """The items, in their order by the first of each bundle: those that can run side by side, and the others alone."""
    together: dict[tuple[Any, ...], list[Item]] = {}
    known: dict[tuple[str, bool], bool] = {}
    cases = Counter((item.name, item.condition.name) for item in items)
    for number, item in enumerate(items):
        of, kind = (item.name, item.condition.name), (item.name, item.condition.synchronous)
        kept = not (item.condition.disturbances or item.live or (kind[1] and cases[of] < LEAST))
        if kept and kind not in known:
            known[kind] = _can(item)
        together.setdefault(of if kept and known[kind] else (number,), []).append(item)
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
    except Exception as error:  # noqa: BLE001  (what it is will be raised by the episode itself)
        found = [run_item(item) for item in bundle]
        where = f"{bundle[0].name}, {bundle[0].condition.name}"
        warnings.warn(
            f"{where}: {len(bundle)} cases ran one by one, for side by side there was {error!r:.300}; their results "
            "are right, and took longer. Please report it",
            HeronWarning,
            stacklevel=2,
        )
        return found


def _world(item: Item) -> HeronEnv:
    """The environment of the item's policy and condition, whatever the case."""
    return made(replace(item, case=Case(item.case.seed)))


def _can(item: Item) -> bool:
    """May the cases of this policy run side by side?"""
    if isinstance(item.policy, External):
        return False
    env = _world(item)
    if item.condition.synchronous and not ticks_in_step(env):
        return False
    return can_play(env, item.policy.build(env, item.case.seed), item.case.options)


def _run(bundle: Bundle) -> list[Record]:
    begun, first, synchronous = time.perf_counter(), bundle[0], bundle[0].condition.synchronous
    env, cases = _world(first), [item.case for item in bundle]
    schedule = in_step(env) if synchronous else first.condition.schedule(env)
    batch = played(env, cases, _policies(bundle, env), schedule, RECORD if synchronous else (*RECORD, "ages"))
    found = [lane_outcome(env, lane) for lane in noted(batch)]  # one by one: what lanes note is large
    if synchronous:  # which measures no time
        found = [replace(each, staleness_p95=math.nan, latency_p95=math.nan) for each in found]
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
