"""Checks that the seed decides everything: in one process, after other episodes, in another process."""

from __future__ import annotations

from collections.abc import Iterator

from heron_env.testing.findings import Remark, failed, passed, skipped, warning
from heron_env.testing.global_sources import Asked, reseeded, watch
from heron_env.testing.interface import CYCLES, quietly
from heron_env.testing.processes import CannotGoElsewhere, record_elsewhere
from heron_env.testing.recording import event_driven, first_difference, synchronous
from heron_env.testing.subject import Subject


def same_seed(subject: Subject) -> Iterator[Remark]:
    """The same seed gives the same course, bit by bit, in both clocks."""
    records = []
    for outer in (1, 2):
        with reseeded(outer):
            records.append(synchronous(subject.build(), subject.seed, subject.steps))
    difference = first_difference(records[0], records[1], "the first time", "the second time")
    if difference is None:
        for outer in (3, 4):
            with reseeded(outer):
                records.append(event_driven(subject.build(), subject.seed, subject.steps))
        difference = first_difference(records[2], records[3], "the first time", "the second time")
    env = subject.build()
    with reseeded(5):
        asked = watch(lambda: synchronous(env, subject.seed, 2))
        if difference and not asked.random and not asked.clock:
            asked = watch(subject.build)
    if difference:
        yield failed(difference, _cure(asked))
        return
    for source, place in {**asked.random, **asked.clock}.items():
        yield warning(f"{place} asks {source}, though it changed nothing here", _cure(asked))
    problem = _seed_tests(subject)
    if problem:
        yield failed(problem, "PettingZoo's word; take the seed in reset() and hand it on to super().reset(seed=seed)")
        return
    yield passed(f"{subject.steps} steps")


def _cure(asked: Asked) -> str:
    """How to mend what was found."""
    if asked.random:
        source, place = next(iter(asked.random.items()))
        return f"{place} draws from the global {source}; draw with world.draw(name, shape), keyed by seed and episode"
    if asked.clock:
        source, place = next(iter(asked.clock.items()))
        return f"{place} calls {source}; use world.time, the episode's own clock, or world.draw for chance"
    return "something but the seed decides: a class attribute or global that changes, id(), or a generator without seed"


def _seed_tests(subject: Subject) -> str:
    from pettingzoo import test as theirs  # neither typed nor exported
    from pettingzoo.utils.conversions import parallel_to_aec

    parallel_seed_test, seed_test = (getattr(theirs, name) for name in ("parallel_seed_test", "seed_test"))
    tests = (
        ("parallel_seed_test", lambda: parallel_seed_test(subject.build, num_cycles=CYCLES)),
        ("seed_test", lambda: seed_test(lambda: parallel_to_aec(subject.build()), num_cycles=CYCLES)),
    )
    for name, test in tests:
        problem, _ = quietly(test)
        if problem is not None:
            return f"{name}: {type(problem).__name__}: {problem}"
    return ""


def reset_is_total(subject: Subject) -> Iterator[Remark]:
    """After any past, reset(seed) starts like a new environment."""
    used, fresh = subject.build(), subject.build()
    synchronous(used, subject.seed + 1, max(2, subject.steps // 2))
    event_driven(used, subject.seed + 2, max(2, subject.steps // 2))
    for record, clock in ((synchronous, "synchronous"), (event_driven, "event-driven")):
        difference = first_difference(
            record(used, subject.seed, subject.steps),
            record(fresh, subject.seed, subject.steps),
            "in a used environment",
            "in a new one",
        )
        if difference:
            yield failed(
                f"{difference} ({clock} run)",
                "something survives reset(): keep what changes in features, or set it anew in begin(world)",
            )
            return


def processes(subject: Subject) -> Iterator[Remark]:
    """Processes with other PYTHONHASHSEEDs agree."""
    try:
        records = record_elsewhere(subject, ("1", "2", "3"))
    except CannotGoElsewhere as reason:
        yield skipped(str(reason))
        return
    except TimeoutError as late:
        yield failed(str(late), "give fewer steps or a longer timeout, or see what waits when a new process builds it")
        return
    for seed, record in list(records.items())[1:]:
        difference = first_difference(records["1"], record, "with PYTHONHASHSEED=1", f"with {seed}")
        if difference:
            yield failed(
                difference,
                "the order of a set, or hash(), decides: iterate lists, dicts or sorted(...), and key chance by names "
                "through world.draw",
            )
            return
    yield passed(f"{len(records)} processes, {len(records['1'])} values and events")
