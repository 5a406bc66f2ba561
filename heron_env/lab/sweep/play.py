"""Plays the episodes of a study: the one place where an episode runs for a number.

Cases run side by side, as lanes of the compiled event clock, for policies that decide for many at once: where nothing
in an episode is Python but the policy, and the policy is a function of its vector (`forward_batch`), or of what each
agent has seen so far (`forward_rows`, of Remembering). All others run one by one. Either way the records are the same,
bit for bit. Environments are built once and used again; those of others are built for each episode.
"""

from __future__ import annotations

import math
import pickle
import time
import warnings
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env.core.policy import AnyPolicy, Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import decide_rows
from heron_env.envs.decisions import resolve_policies
from heron_env.errors import ConfigError, HeronWarning
from heron_env.injection.tally import AnswerTally
from heron_env.lab.benchmark import Case, Env
from heron_env.lab.episodes import Outcome, lane_outcome, outcome, sums
from heron_env.lab.policies import About, External, TrainedRun
from heron_env.lab.remembering import Remembering
from heron_env.lab.robust_stats import LARGEST
from heron_env.lab.sweep.conditions import AnyCondition, Condition
from heron_env.lab.sweep.records import RECORD, Record
from heron_env.scheduling.drawn import AnySchedule
from heron_env.scheduling.timing import Key, ScheduleConfig, to_seconds

if TYPE_CHECKING:
    from heron_env.envs.batch.event import EventBatchEnv
    from heron_env.envs.batch.event_lanes import Noted
    from heron_env.envs.batch.rows import Rows
    from heron_env.envs.episodes import EpisodeResult
    from heron_env.lab.external import EndpointConnections
    from heron_env.lab.sweep.study import Item

MOST: Final = 256
"""Episodes in a bundle: what 256 days note takes some 300 MB."""
LEAST: Final = 16
"""Cases of a synchronous condition, from which on they are lanes: fewer are done before those are compiled."""
WORLDS: Final = 16
"""Environments that are kept to be used again."""
Bundle = tuple["Item", ...]
"""Episodes that are played together: one, or lanes side by side."""


class Worlds:
    """Environments by all that they are built with; the last few are kept."""

    def __init__(self) -> None:
        self._envs: dict[tuple[bytes, bool], HeronEnv] = {}

    @contextmanager
    def lent(self, item: Item, *, lanes: bool = False) -> Iterator[HeronEnv]:
        """The environment of an item; of lanes, whose cases are set at the reset, without its case's options.

        It stays what it was, so it is used again, unless an error left it half-way.
        """
        if lanes:
            item = replace(item, case=Case(item.case.seed))
        key = _key(item, lanes)
        env = self._envs.pop(key, None) if key else None
        env = made(item) if env is None else env
        yield env
        self.keep(item, env, lanes=lanes)

    def keep(self, item: Item, env: HeronEnv, *, lanes: bool = False) -> None:
        """Lend this one next time; nothing of a black box, nor of endpoints, is used again."""
        if isinstance(env, HeronEnv) and not injected(env) and (key := _key(item, lanes)):
            self._envs[key] = env
            for oldest in list(self._envs)[:-WORLDS]:
                del self._envs[oldest]


def _key(item: Item, lanes: bool) -> tuple[bytes, bool] | None:
    """What an environment is built with; None where that can't be compared."""
    with suppress(pickle.PicklingError, AttributeError, TypeError):
        return pickle.dumps((item.env.id, {**item.options, **item.case.options}, item.condition.noise)), lanes
    return None


def made(item: Item) -> HeronEnv:
    """The environment of an item, fresh."""
    condition, options = item.condition, {**item.options, **item.case.options}
    env = item.env.make(**options)
    if isinstance(condition, Condition) and condition.noise:
        env = item.env.make(**{**options, "observability": condition.observability(env.observability)})
    return env


def injected(env: Env) -> dict[str, Any]:
    """Policies of the agents that the environment itself lets endpoints play."""
    return {agent.agent_id: agent.policy for agent in env.hierarchy.agents if agent.injected}


# A study's records


Played = Generator[tuple[Bundle, list[Record]], None, None]
"""Bundles with their records, as soon as they are there."""


def played(live: Sequence[Item], others: Played, worlds: Worlds) -> Iterator[Record]:
    """What came of each item: of those that ask endpoints here, one after another, while workers play the others.

    A HeronWarning names an endpoint that gave not one answer in its first episode. What an episode raises is raised
    here, with the episode as a note.
    """
    try:
        if live:
            yield from _played_live(live, others, worlds)
        yield from (record for _, records in others for record in records)
    finally:
        others.close()


def _played_live(live: Sequence[Item], others: Played, worlds: Worlds) -> Iterator[Record]:
    from heron_env.lab.external import EndpointConnections

    unheard = {item.name for item in live}
    with EndpointConnections() as lines:
        for item in live:
            record = play_one(item, worlds, lines)
            if item.name in unheard:
                unheard.remove(item.name)
                _tell_silence(record)
            yield record
            yield from (record for _, records in islice(others, 1) for record in records)


def _tell_silence(record: Record) -> None:
    """Warn where no answer of an episode was the endpoint's own."""
    answers = record.answers and record.answers.metrics()
    if answers and answers.fallback_rate == 1.0:
        codes = ", ".join(f"{origin} {count}" for origin, count in answers.counts.items())
        warnings.warn(
            f"policy {record.key.policy!r}: not one of {answers.decisions} answers of its first episode is the "
            f"endpoint's ({codes}); all figures are those of the fallback. Is it running, and is its address "
            "right? The sweep continues",
            HeronWarning, stacklevel=2,
        )  # fmt: skip


def bundles(items: Sequence[Item], workers: int, worlds: Worlds) -> list[Bundle]:
    """The items, in their order by the first of each bundle: those that can run side by side, and the others alone."""
    together: dict[tuple[Any, ...], list[Item]] = {}
    possible: dict[tuple[str, bool], bool] = {}
    cases = Counter((item.name, item.condition.name) for item in items)
    for number, item in enumerate(items):
        of, kind = (item.name, item.condition.name), (item.name, item.condition.synchronous)
        many = not (item.condition.disturbances or item.live or (kind[1] and cases[of] < LEAST))
        if many and kind not in possible:
            possible[kind] = _can(item, worlds)
        together.setdefault(of if many and possible[kind] else (number,), []).append(item)
    result = []
    for some in together.values():
        size = min(MOST, -(-len(some) // workers))
        result += [tuple(some[k : k + size]) for k in range(0, len(some), size)]
    return result


def _can(item: Item, worlds: Worlds) -> bool:
    """May the cases of this policy run side by side?"""
    if isinstance(item.policy, External):
        return False
    with worlds.lent(item, lanes=True) as env:
        if item.condition.synchronous and not ticks_in_step(env):
            return False
        if not can_play(env, item.policies(env), item.case.options):
            return False
        timings = () if item.condition.synchronous else env.timings_of(item.condition.schedule(env))
        return not any(timing.thinks for timing in timings)


def play_bundle(bundle: Bundle, worlds: Worlds) -> list[Record]:
    """What came of them. What an episode raises bears its item as a note; of lanes, the first item."""
    return [play_one(bundle[0], worlds)] if len(bundle) == 1 else play_together(bundle, worlds)


# One by one


def play_one(item: Item, worlds: Worlds, lines: EndpointConnections | None = None) -> Record:
    """Play one episode and keep what a study needs of it. What it raises bears the item as a note.

    `lines`: the ways to endpoints that all items of a study share.
    """
    try:
        begun = time.perf_counter()
        with worlds.lent(item) as env:
            policies = _policies(item, env, lines)
            all_policies = {**policies, **injected(env)}
            done = False
            try:
                result = run_under(item.condition, env, policies, item.case.seed, item.record)
                done = True
            finally:
                _close_recordings(all_policies, done)
            figures = outcome(env, result) if item.record else sums(env, result)
            require_finite(figures)
        return Record(item.key, figures, round(time.perf_counter() - begun, 3), AnswerTally.of(result, all_policies))
    except Exception as error:
        error.add_note(f"while running {item}")
        raise


def _close_recordings(policies: Policies, finished: bool) -> None:
    """Those of answers; without a footer one can be continued."""
    closing = [policy for policy in policies.values() if hasattr(policy, "close")]
    if closing:
        from heron_env.injection.recording import Recording

        for policy in closing:
            if isinstance(policy, Recording):
                policy.close(finished=finished)


def require_finite(figures: Outcome) -> None:
    """Raise ConfigError where the return is no number to reckon with."""
    if not abs(figures.value) <= LARGEST:
        raise ConfigError(f"the team's return is {figures.value}: no statistics can be made of it; mend the rewards")


def run_episode(item: Item, record: Sequence[str] = RECORD) -> tuple[HeronEnv, EpisodeResult]:
    """Run one episode, in an environment built for it alone; `record` as for `run_event_driven`."""
    env = made(item)
    return env, run_under(item.condition, env, _policies(item, env), item.case.seed, record)


def _policies(item: Item, env: HeronEnv, lines: EndpointConnections | None = None) -> Policies:
    """The policies of the item; those that ask endpoints have their ways from `lines`."""
    if lines is not None:
        for own in injected(env).values():
            asking = getattr(own, "policy", own)  # a recording has one within
            asking.line = lines(asking.endpoint)
    if not isinstance(item.policy, External):
        return item.policies(env)
    episode = f"case-{item.number}-{item.condition.name}"
    options = {**item.options, **item.case.options}
    about = About(item.env.id, options, label=f"{item.name}, {episode}", episode=episode, lines=lines)
    return item.policy.asked(env, item.case.seed, about)


def run_under(
    condition: AnyCondition, env: Env, policies: Policies, seed: int, record: Sequence[str], **event_driven: Any
) -> EpisodeResult:
    """Run an episode in the clock of `condition`; `event_driven`: what only that clock takes, its schedule or t_end."""
    options: dict[str, Any] = {"seed": seed, "disturbances": condition.happenings(env, seed), "record": record}
    if condition.synchronous:
        return env.run_synchronous(policies, **options)
    return env.run_event_driven(policies, **{**options, "schedule": condition.schedule(env), **event_driven})


# Side by side


def play_together(bundle: Bundle, worlds: Worlds) -> list[Record]:
    """Play the cases of one policy under one condition as lanes."""
    begun, first = time.perf_counter(), bundle[0]
    synchronous, record = first.condition.synchronous, first.record
    try:
        with worlds.lent(first, lanes=True) as env:
            schedule = in_step(env) if synchronous else first.condition.schedule(env)
            if record and not synchronous:
                record = (*record, "ages")
            batch = play_lanes(env, [item.case for item in bundle], _of_lanes(bundle, env), schedule, record)
            if record:  # one by one: what lanes note is large
                result = [lane_outcome(env, lane) for lane in noted_lanes(batch)]
            else:
                result = [sums(env, each) for each in batch.results()]
        if synchronous:  # which measures no time
            result = [replace(each, staleness_p95=math.nan, latency_p95=math.nan) for each in result]
        for each in result:
            require_finite(each)
    except Exception as error:
        error.add_note(f"while running {first}, and {len(bundle) - 1} more cases side by side")
        raise
    seconds = round((time.perf_counter() - begun) / len(bundle), 3)
    return [Record(item.key, each, seconds) for item, each in zip(bundle, result, strict=True)]


def _of_lanes(bundle: Bundle, env: HeronEnv) -> list[Any]:
    """Policies of each item; one and the same where those of several cases are equal to the last byte."""
    first = bundle[0].policies(env)
    if isinstance(bundle[0].policy, TrainedRun):
        return [first] * len(bundle)
    by_content: dict[bytes, Any] = {}
    result = []
    for item in bundle:
        policy = item.policies(env)
        with suppress(pickle.PicklingError, AttributeError, TypeError):  # what does not pickle is its case's own
            policy = by_content.setdefault(pickle.dumps(policy), policy)
        result.append(policy)
    return result


def can_play(env: HeronEnv, policies: Policies, options: Collection[str]) -> bool:
    """May cases of these options run side by side in `env` under these policies?"""
    from heron_env.envs.batch.event import why_not

    if not isinstance(env, HeronEnv) or not env.compiled or why_not(env) is not None:
        return False  # rules in plain Python gain nothing by it
    if not set(options) <= env.benchmark().at_reset:
        return False
    deciding = resolve_policies(policies, env)
    return deciding.keys() == set(env.simulation.model.possible) and all(map(_decides_for_many, deciding.values()))


def play_lanes(
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
    specs = env.simulation.model.specs
    by_lane = _PolicyOfLane([resolve_policies(of_case, env) for of_case in policies], len(env.hierarchy))
    width = max(specs[rank].size for rank in env.simulation.model.possible)
    rows = batch.reset([case.seed for case in cases], options=[case.options or None for case in cases])
    while len(rows):
        actions = np.zeros((len(rows), width))
        for policy, places in by_lane.by_policy(rows):
            size = specs[rows.rank[places][0]].size
            actions[places, :size] = decide_rows(env, batch._lanes.steps, rows, policy, places)
        rows = batch.answer(actions)
    return batch


def ticks_in_step(env: HeronEnv) -> bool:
    """Do all agents tick at boundaries of control steps, and show true ages, as the synchronous clock demands?"""
    if isinstance(env, HeronEnv) and env.simulation.model.plan.by_wrong_clocks:
        return False
    return all(timing.tick % env.dt_ns == timing.phase % env.dt_ns == 0 for timing in env.timings)


def in_step(env: HeronEnv) -> dict[Key, ScheduleConfig]:
    """The schedule under which lanes are the synchronous clock: its ticks, and nothing takes time or is lost."""
    return {
        timing.agent: ScheduleConfig(
            tick_interval=to_seconds(timing.tick), phase=to_seconds(timing.phase), own_rows=timing.config.own_rows
        )
        for timing in env.timings
    }


def noted_lanes(batch: EventBatchEnv) -> Iterator[Noted]:
    """What each lane of `play_lanes` has noted, in arrays."""
    from heron_env.envs.batch.event_lanes import Noted

    return (Noted(batch.env, batch._lanes, lane) for lane in range(batch.num_envs))


def _decides_for_many(policy: AnyPolicy) -> bool:
    """Is it a function of many vectors at once, and of nothing else but what a Remembering one remembers?"""
    remembers = any(callable(getattr(policy, name, None)) for name in ("begin", "begin_lanes", "answer"))
    return (isinstance(policy, Remembering) and policy.on_rows) or (
        callable(getattr(policy, "forward_batch", None)) and not remembers
    )


class _PolicyOfLane:
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
