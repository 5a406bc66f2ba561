"""Checks that the seed and nothing else decides: not the past, the process, global generators or clocks."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import random  # noqa: TID251  the very thing that is looked for
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import heron_env.core
from heron_env.envs.base import HeronEnv
from heron_env.testing.check import Broken, Remark, Subject, failed, load, passed, skipped, warning
from heron_env.testing.interface import CYCLES, as_aec, pettingzoos_own
from heron_env.testing.rollouts import RolloutEntry, event_driven, first_difference, synchronous

Record = Callable[[HeronEnv, int, int], list[RolloutEntry]]


def same_seed(subject: Subject) -> Iterator[Remark]:
    """The same seed gives the same course, bit by bit, in both clocks."""
    difference = _twice(subject, synchronous, (1, 2)) or _twice(subject, event_driven, (3, 4))
    env = subject.build()
    with reseeded(5):
        asked = watch(lambda: synchronous(env, subject.seed, 2))
        if difference and not asked.random and not asked.clock:
            asked = watch(subject.build)
    if difference:
        raise Broken(difference, _cure(asked))
    for source, place in {**asked.random, **asked.clock}.items():
        yield warning(f"{place} asks {source}, though it changed nothing here", _cure(asked))
    problem = _seed_tests(subject)
    if problem:
        raise Broken(problem, "PettingZoo's word; take the seed in reset() and hand it on to super().reset(seed=seed)")
    yield passed(f"{subject.steps} steps")


def _twice(subject: Subject, record: Record, outer_seeds: tuple[int, int]) -> str | None:
    """Where two runs of one seed part, with the global generators at these seeds."""
    records = []
    for outer in outer_seeds:
        with reseeded(outer):
            records.append(record(subject.build(), subject.seed, subject.steps))
    return first_difference(records[0], records[1], "the first time", "the second time")


def _cure(asked: SourcesAsked) -> str:
    """How to mend what was found."""
    if asked.random:
        source, place = next(iter(asked.random.items()))
        return f"{place} draws from the global {source}; draw with world.draw(name, shape), keyed by seed and episode"
    if asked.clock:
        source, place = next(iter(asked.clock.items()))
        return f"{place} calls {source}; use world.time, the episode's own clock, or world.draw for chance"
    return "something but the seed decides: a class attribute or global that changes, id(), or a generator without seed"


def _seed_tests(subject: Subject) -> str:
    """How PettingZoo's own tests of seeds failed; "" if they passed."""
    problem, _ = pettingzoos_own("parallel_seed_test", lambda test: test(subject.build, num_cycles=CYCLES))
    return problem or pettingzoos_own("seed_test", lambda test: test(lambda: as_aec(subject), num_cycles=CYCLES))[0]


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
        mend = "give fewer steps or a longer timeout, or see what waits when a new process builds it"
        raise Broken(str(late), mend) from late
    for seed, record in list(records.items())[1:]:
        difference = first_difference(records["1"], record, "with PYTHONHASHSEED=1", f"with {seed}")
        if difference:
            raise Broken(
                difference,
                "the order of a set, or hash(), decides: iterate lists, dicts or sorted(...), and key chance by names "
                "through world.draw",
            )
    yield passed(f"{len(records)} processes, {len(records['1'])} values and events")


CHILD = "import sys; from heron_env.testing.determinism import leave_record; sys.exit(leave_record(*sys.argv[1:]))"
NOT_BUILT = 3
"""Exit code of a process that could not build the environment; its last line says why."""


class CannotGoElsewhere(Exception):
    """Why no other process can build this environment."""


def record_elsewhere(subject: Subject, hash_seeds: tuple[str, ...]) -> dict[str, list[RolloutEntry]]:
    """The records of one process per PYTHONHASHSEED, all at the same time.

    Raises CannotGoElsewhere if they can't build the environment, TimeoutError if one does not come to an end.
    """
    if subject.reference is None:
        raise CannotGoElsewhere(subject.no_reference)
    try:
        order = pickle.dumps((subject.reference, subject.options, subject.seed, subject.steps))
    except Exception as error:
        raise CannotGoElsewhere(f"the options can't be sent to another process ({error})") from error
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "order").write_bytes(order)
        started = {seed: _start(folder, seed) for seed in hash_seeds}
        try:
            return _collect(started, folder, subject.timeout)
        finally:
            for process in started.values():
                process.kill()
                process.wait()


def _start(folder: str, hash_seed: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([os.getcwd() if entry == "" else entry for entry in sys.path])
    variables = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    with (Path(folder) / f"output-{hash_seed}").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, folder, hash_seed],
            env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip


def _collect(started: dict[str, subprocess.Popen[bytes]], folder: str, timeout: float) -> dict[str, list[RolloutEntry]]:
    deadline = time.monotonic() + timeout
    records = {}
    for seed, process in started.items():
        try:
            code = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"another process had not finished after {timeout:g} s") from None
        output = (Path(folder) / f"output-{seed}").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if code == NOT_BUILT:
            raise CannotGoElsewhere(output[-1])
        if code:
            raise RuntimeError(f"in another process: {output[-1] if output else f'exit code {code}'}")
        record = json.loads((Path(folder) / f"record-{seed}").read_text(encoding="utf-8"))
        records[seed] = [RolloutEntry(what, when, tuple(names), tuple(values)) for what, when, names, values in record]
    return records


def leave_record(folder: str, hash_seed: str) -> int:
    """In one of the processes: build, run in both clocks, leave the record in the folder. The exit code."""
    reference, options, seed, steps = pickle.loads((Path(folder) / "order").read_bytes())
    try:
        factory = load(reference)
    except Exception as error:  # noqa: BLE001  printed for the process that asked
        print(f"another process can't import {reference}: {error}")
        return NOT_BUILT
    record = synchronous(factory(**options), seed, steps) + event_driven(factory(**options), seed, steps)
    (Path(folder) / f"record-{hash_seed}").write_text(json.dumps(record), encoding="utf-8")
    return 0


@contextmanager
def reseeded(seed: int) -> Iterator[None]:
    """Both global generators at another seed, put back afterwards."""
    legacy, drawn = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(drawn)


def watch(task: Callable[[], Any]) -> SourcesAsked:
    """Run `task` and note what it asks."""
    asked = SourcesAsked()
    before = sys.getprofile()
    sys.setprofile(asked.note)
    try:
        task()
    finally:
        sys.setprofile(before)
    return asked


class SourcesAsked:
    """The outside sources asked so far: {source: function and place}."""

    def __init__(self) -> None:
        self.random: dict[str, str] = {}
        self.clock: dict[str, str] = {}
        self._last = _state()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function: notes calls of clocks, and functions after which a global generator has moved."""
        if event not in ("c_call", "return") or is_ours(frame) or _is_installed(frame):
            return
        if event == "c_call":
            if name := _clock(argument):
                self.clock.setdefault(name, _place(frame))
            return
        before, self._last = self._last, _state()
        for name, state in self._last.items():
            if state != before[name]:
                self.random.setdefault(name, _place(frame))


CLOCKS: dict[Any, str] = {
    getattr(time, name): f"time.{name}()"
    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time")
} | {datetime.datetime.now: "datetime.now()", datetime.date.today: "date.today()", os.urandom: "os.urandom()"}
ROOMS = ("core", "pictures", "observability", "scheduling", "agents", "engine", "envs", "declared", "testing")
ROOT = Path(heron_env.core.__file__).parents[1]
OURS = tuple(str(ROOT / part) for part in (*ROOMS, "seeding.py"))
"""Files of the library itself, which never ask the outside; worlds are judged like any user's."""
INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_ours(frame: FrameType) -> bool:
    """Is this code of the library itself?"""
    return frame.f_code.co_filename.startswith(OURS)


def _is_installed(frame: FrameType) -> bool:
    """Is this somebody else's code: the standard library's (logging, say, notes the time) or a package's?"""
    return frame.f_code.co_filename.startswith(INSTALLED) and not frame.f_code.co_filename.startswith(str(ROOT))


def _clock(function: Any) -> str | None:
    try:
        return CLOCKS.get(function)
    except TypeError:  # a method of something unhashable
        return None


def _state() -> dict[str, Any]:
    """Where the two global generators stand."""
    legacy: Any = np.random.get_state(legacy=False)  # noqa: NPY002  the very thing that is looked for
    words, drawn = legacy["state"], random.getstate()
    return {
        "np.random": (words["pos"], int(words["key"][0]), legacy["has_gauss"]),
        "random": (drawn[1][-1], drawn[1][0], drawn[2]),
    }


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_qualname} ({Path(code.co_filename).name}:{frame.f_lineno})"
