"""The law of the compiled event clock: lane i of a batch is the run of the Python clock with seed + i, bit for bit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from laws.checks_clock import as_bytes
from laws.row_oracle import Watch, same_rows
from laws.uncompiled import Fault, uncompiled
from strategies import Recipe, Wave

from heron_env import BatchEnv
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.rows import Ended, Rows
from heron_env.envs.results import EpisodeResult

RECORD = ("rewards", "actions", "observations")
KEPT = (*RECORD, "ages", "messages")
Policies = Mapping[int, Callable[[Any], Any]]


@dataclass
class Course:
    """What a batch told: every row and end, by lane, and the lanes' results, truth and knowledge at the end."""

    rows: list[list[dict[str, Any]]]
    ends: list[list[dict[str, Any]]]
    results: list[EpisodeResult]
    truth: np.ndarray[Any, Any]
    cache: np.ndarray[Any, Any]


def policies_of(env: HeronEnv) -> Policies:
    """A sensitive policy for each agent that decides, by rank."""
    ids, specs = env.hierarchy.ids, env.simulation.specs
    return {rank: Wave(ids[rank], specs[rank]) for rank in env.simulation.possible}


def play(
    env: HeronEnv, schedule: Any, *, seed: int, lanes: int, episodes: int = 1, text: bool = False,
    fault: Fault | None = None, **options: Any,
) -> Course:  # fmt: skip
    """Run lanes for some episodes each, answering every row by `policies_of`.

    `text`: by the clock's own text in Python, with a `fault` planted in it or without.
    """
    batch: Any = BatchEnv(
        env, lanes, seed=seed, clock="event", schedule=schedule, autoreset="disabled", record=KEPT, **options
    )
    if text:
        batch._lanes._clock = uncompiled(batch._lanes, fault)
    policies, specs = policies_of(env), env.simulation.specs
    widths = {rank: env.simulation.plan.size(rank) for rank in env.simulation.possible}
    size = max(specs[rank].size for rank in env.simulation.possible)
    course = Course([[] for _ in range(lanes)], [[] for _ in range(lanes)], [], batch.truth, batch.cache)
    for _ in range(episodes):
        course.rows, course.ends = [[] for _ in range(lanes)], [[] for _ in range(lanes)]
        rows = batch.begin()
        while True:
            note(course.ends, rows.ended, widths)
            note(course.rows, rows, widths)
            if not len(rows):
                break
            asked = set(zip(rows.lane.tolist(), rows.rank.tolist(), strict=True))
            assert len(asked) == len(rows), "an agent stands twice in one call"
            actions = np.zeros((len(rows), size))
            for n, rank in enumerate(rows.rank.tolist()):
                actions[n, : specs[rank].size] = policies[rank](rows.obs[n, : widths[rank]])
            rows = batch.answer(actions)
    course.results, course.truth, course.cache = batch.results(), batch.truth.copy(), batch.cache.copy()
    return course


def note(found: list[list[dict[str, Any]]], rows: Rows | Ended, widths: Mapping[int, int]) -> None:
    """Each row goes to its lane; what lies beyond an observation is 0. They are sorted by group, lane and rank."""
    for part in rows.parts.values():
        order = list(zip(rows.lane[part].tolist(), rows.rank[part].tolist(), strict=True))
        assert order == sorted(order), "rows of a group are not sorted by lane and rank"
    names = [name for name in type(rows).__slots__ if name not in ("parts", "ended", "lane")]
    for n, lane in enumerate(rows.lane.tolist()):
        row = {name: None if (column := getattr(rows, name)) is None else column[n] for name in names}
        width = widths[int(row["rank"])]
        assert not row["obs"][width:].any(), "an observation goes on behind its end"
        found[lane].append(row | {"obs": row["obs"][:width]})


def check_event_batch(
    build: Callable[[], HeronEnv] | Recipe, schedule: Any = None, *, seed: int = 0, lanes: int = 2, episodes: int = 1,
    **options: Any,
) -> Course:  # fmt: skip
    """Every lane yields what the Python clock does: scores, ends, actions, what was shown, ages, accounts and truth.

    `episodes`: the last of so many is compared; options are those of the batch.
    """
    make = build.build if isinstance(build, Recipe) else build
    course = play(make(), schedule, seed=seed, lanes=lanes, episodes=episodes, **options)
    for lane, mine in enumerate(course.results):
        env = make()
        chosen = {env.hierarchy.ids[rank]: policy for rank, policy in policies_of(env).items()}
        for episode in range(episodes - 1):
            env.run_event_driven(chosen, seed=seed + lane if episode == 0 else None, schedule=schedule, record=())
        first = seed + lane if episodes == 1 else None
        watch = Watch(env, policies_of(env), RECORD, seed=first, schedule=schedule)
        theirs = watch.result
        where = f"lane {lane} of {lanes}, seed {seed}: "
        same_results(mine, theirs, where)
        for name, array, other in (
            ("truth", course.truth[lane], env.simulation.truth),
            ("cache", course.cache[lane], env.proxy.cache),
        ):
            differ = np.flatnonzero(array.view(np.int64) != other.view(np.int64))
            told = [(env.simulation.layout.full_names[i], array[i], other[i]) for i in differ[:5]]
            assert not told, f"{where}at the end the {name} is not the Python clock's: {told}"
        same_rows(watch, course.rows[lane], course.ends[lane], options.get("gamma", 1.0), where)
    return course


def same_results(mine: EpisodeResult, theirs: EpisodeResult, where: str) -> None:
    """Bit for bit."""
    for name in ("rewards", "actions", "observations", "terminated", "truncated", "end_time", "masked", "notes",
                 "cancelled_effects", "unfinished_effects"):  # fmt: skip
        a, b = as_bytes(getattr(mine, name)), as_bytes(getattr(theirs, name))
        assert a == b, f"{where}{name} differ:\n{getattr(mine, name)}\n{getattr(theirs, name)}"
    for name in ("staleness", "latency", "messages"):  # nan is equal to itself here
        a, b = repr(getattr(mine, name)), repr(getattr(theirs, name))
        assert a == b, f"{where}{name} differ:\n{a}\n{b}"
