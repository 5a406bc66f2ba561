"""How the episodes of a sweep are run: over processes, side by side in lanes, or as Ray tasks on many machines.

On many machines one sweep drives, and its journal is all that is kept. A task that is lost with its worker or its node
is run again by Ray. Equal seeds give equal courses, bit for bit, on one kind of machine with one version of this
library; what ran elsewhere says so in its notes.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import platform
import signal
import socket
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import numpy as np

from heron_env._version import __version__
from heron_env.errors import ConfigError, HeronWarning, WorkerLost
from heron_env.given import whole
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import can_play, in_step, lane_outcome, noted_lanes, play_lanes, ticks_in_step
from heron_env.lab.policies import External, TrainedRun
from heron_env.lab.sweep.plan import Item
from heron_env.lab.sweep.records import RECORD, Record, made, require_finite, run_item
from heron_env.trust import VARIABLE, vouched

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
FEW, LONG = 3, 160
"""So many items are told, with so many letters each."""
Work = TypeVar("Work")
Result = TypeVar("Result")


def finished(
    function: Callable[[Work], Result], items: Sequence[Work], processes: int
) -> Generator[tuple[Work, Result], None, None]:
    """Each item with its result, as soon as it is there.

    Processes are spawned in this working directory: function, items and results must pickle. They end with this one,
    even if it is killed. The first error is raised here, and what has not begun is dropped.

    Raises ConfigError for less than one process, and for what does not pickle; WorkerLost where a process dies, naming
    what was under way.
    """
    whole(processes, "processes", 1)
    if min(processes, len(items)) <= 1:
        for item in items:
            yield item, function(item)
        return
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    here = os.getcwd(), sys.path, vouched()
    with ProcessPoolExecutor(min(processes, len(items)), context, _start_worker, here) as pool:
        try:
            yield from _as_completed(pool, function, items, processes)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise


def _require_picklable(function: Callable[..., Any], item: object) -> None:
    try:
        pickle.dumps((function, item))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"this can't travel to another process ({error}): name functions and classes that a module has at its top, "
            "or work in this process (processes=1)"
        ) from error


def _as_completed(
    pool: ProcessPoolExecutor, function: Callable[[Work], Result], items: Sequence[Work], processes: int
) -> Iterator[tuple[Work, Result]]:
    """A few items ahead of the processes, so that a long list is not pickled at once."""
    waiting = iter(items)
    running: dict[Future[Any], Work] = {}
    try:
        while True:
            while len(running) < 2 * processes and (item := next(waiting, None)) is not None:
                _require_picklable(function, item)  # the pool's own error would not say what to do
                running[pool.submit(function, item)] = item
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=list(running).index):
                result = future.result()
                yield running.pop(future), result
    except BrokenProcessPool as error:
        raise WorkerLost(
            "a worker process ended suddenly (killed? out of memory? a script that starts it without "
            "`if __name__ == '__main__':`?) while one of these was under way: "
            f"{_listed(list(running.values()))}. Run it again, with fewer processes if it was memory"
        ) from error


def _listed(items: Sequence[object]) -> str:
    """The first ones, each in a line's length."""
    texts = [text if len(text := str(item)) <= LONG else f"{text[:LONG]}..." for item in items[:FEW]]
    return "; ".join(texts) + (f"; and {len(items) - FEW} more" if len(items) > FEW else "")


def _start_worker(folder: str, path: list[str], trust: frozenset[str]) -> None:
    """One thread for each worker; an interrupt is the parent's business, and without it there is nothing to do.

    `folder`, `path`: where the parent is now, and looks for modules; by itself a worker is where the parent began.
    `trust`: what files may name there.
    """
    os.environ[VARIABLE] = ",".join(sorted(trust))
    os.chdir(folder)
    sys.path[:] = path
    for name in THREADS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "only workers wait for their parent"
    parent.join()
    os._exit(1)


MOST = 256
"""Episodes in a bundle: what 256 days note takes some 300 MB."""
LEAST = 16
"""Cases of a synchronous condition, from which on they are lanes: fewer are done before those are compiled."""
Bundle = tuple[Item, ...]


def bundles(items: Sequence[Item], processes: int) -> list[Bundle]:
    """The items, in their order by the first of each bundle: those that can run side by side, and the others alone."""
    together: dict[tuple[Any, ...], list[Item]] = {}
    possible: dict[tuple[str, bool], bool] = {}
    cases = Counter((item.name, item.condition.name) for item in items)
    for number, item in enumerate(items):
        of, kind = (item.name, item.condition.name), (item.name, item.condition.synchronous)
        kept = not (item.condition.disturbances or item.live or (kind[1] and cases[of] < LEAST))
        if kept and kind not in possible:
            possible[kind] = _can(item)
        together.setdefault(of if kept and possible[kind] else (number,), []).append(item)
    result, parts = [], processes if isinstance(processes, int) and processes > 1 else 1  # who runs them checks it
    for some in together.values():
        size = min(MOST, -(-len(some) // parts))
        result += [tuple(some[k : k + size]) for k in range(0, len(some), size)]
    return result


def run_bundle(bundle: Bundle) -> list[Record]:
    """Run them; where anything goes wrong side by side, one by one, so that the episode at fault is named."""
    if len(bundle) == 1:
        return [run_item(bundle[0])]
    try:
        return _run(bundle)
    except Exception as error:  # noqa: BLE001  (what it is will be raised by the episode itself)
        result = [run_item(item) for item in bundle]
        where = f"{bundle[0].name}, {bundle[0].condition.name}"
        warnings.warn(
            f"{where}: {len(bundle)} cases ran one by one, for side by side there was {error!r:.300}; their results "
            "are right, and took longer. Please report it",
            HeronWarning,
            stacklevel=2,
        )
        return result


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
    return can_play(env, item.policies(env), item.case.options)


def _run(bundle: Bundle) -> list[Record]:
    begun, first, synchronous = time.perf_counter(), bundle[0], bundle[0].condition.synchronous
    env, cases = _world(first), [item.case for item in bundle]
    schedule = in_step(env) if synchronous else first.condition.schedule(env)
    batch = play_lanes(env, cases, _policies(bundle, env), schedule, RECORD if synchronous else (*RECORD, "ages"))
    result = [lane_outcome(env, lane) for lane in noted_lanes(batch)]  # one by one: what lanes note is large
    if synchronous:  # which measures no time
        result = [replace(each, staleness_p95=math.nan, latency_p95=math.nan) for each in result]
    for each in result:
        require_finite(each)
    seconds = round((time.perf_counter() - begun) / len(bundle), 3)
    return [Record(item.key, each, seconds) for item, each in zip(bundle, result, strict=True)]


def _policies(bundle: Bundle, env: HeronEnv) -> list[Any]:
    """Of each item; one and the same where those of several cases are equal to the last byte."""
    spec = bundle[0].policy
    first = bundle[0].policies(env)
    if isinstance(spec, TrainedRun):
        return [first] * len(bundle)
    by_content: dict[bytes, Any] = {}
    result = []
    for item in bundle:
        policy = item.policies(env)
        with contextlib.suppress(Exception):  # what does not pickle is its case's own
            policy = by_content.setdefault(pickle.dumps(policy), policy)
        result.append(policy)
    return result


RETRIES: Final = 3
"""How often a task is run again whose worker or node died; one that kills its worker each time is not worth more."""
OTHER: Final = "ran in part on another machine than the rest of the sweep"


@dataclass(frozen=True)
class Machine:
    """What decides the last bits of a result, beside the seed."""

    heron_env: str
    numpy: str
    numba: str
    target: str
    cpu: str
    features: str
    """Of the CPU, those that a compiler may use."""

    @classmethod
    def here(cls) -> Self:
        """This one."""
        import numba
        from llvmlite import binding

        return cls(
            __version__, np.__version__, numba.__version__, binding.get_process_triple(), binding.get_host_cpu_name(),
            binding.get_host_cpu_features().flatten(),
        )  # fmt: skip

    def unlike(self, other: Machine) -> str:
        """Where this one differs: `numba 0.61.0 instead of 0.62.1, cpu znver4 instead of skylake`; "" for the same."""
        pairs = [(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return ", ".join(
            f"{name} {_more(mine, theirs) if name == 'features' else f'{mine} instead of {theirs}'}"
            for name, mine, theirs in pairs
            if mine != theirs
        )


def _more(mine: str, theirs: str) -> str:
    """Which features there are more and less, `+avx512f -fma`."""
    own, other = ({each[1:] for each in text.split(",") if each.startswith("+")} for text in (mine, theirs))
    return " ".join([*(f"+{name}" for name in sorted(own - other)), *(f"-{name}" for name in sorted(other - own))])


@dataclass(frozen=True)
class Driver:
    """Where the sweep runs, as its tasks need to know it."""

    machine: Machine
    folder: str
    path: tuple[str, ...]
    trust: frozenset[str]

    @classmethod
    def here(cls) -> Self:
        """This process."""
        return cls(Machine.here(), os.getcwd(), tuple(sys.path), vouched())


def run_task(bundle: Bundle, driver: Driver) -> list[Record]:
    """A bundle on whatever machine this is: in the driver's folder, if it is there, with the driver's trust.

    What it raises bears the machine's name as a note.
    """
    os.environ[VARIABLE] = ",".join(sorted(driver.trust))
    if os.path.isdir(driver.folder):
        os.chdir(driver.folder)
    sys.path += [place for place in driver.path if place not in sys.path]
    try:
        records = run_bundle(bundle)
    except Exception as error:
        error.add_note(f"on {platform.node()}, in {os.getcwd()}")
        raise
    other = Machine.here().unlike(driver.machine)
    return [_noted(record, f"{OTHER}: {other}") for record in records] if other else records


def _noted(record: Record, note: str) -> Record:
    return replace(record, outcome=replace(record.outcome, notes=[*record.outcome.notes, note]))


class RayCluster:
    """A Ray cluster that is running, joined by this process.

    Args:
        address: of its head, "HOST:PORT", or "auto": the one that runs on this machine, or RAY_ADDRESS.

    Raises ConfigError where Ray is missing, or no cluster answers.
    """

    def __init__(self, address: str) -> None:
        place = None if isinstance(address, str) and address == "auto" else _place(address)
        try:
            import ray
        except ImportError as error:
            raise ConfigError("a sweep on a cluster needs Ray: pip install 'heron_env[ray]'") from error
        self._ray: Any = ray
        try:
            if not ray.is_initialized():
                if place is not None:  # Ray would ask for minutes where nothing listens
                    socket.create_connection(place, timeout=10.0).close()
                ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise _nobody(address, str(error).partition("\n")[0]) from error

    @property
    def cpus(self) -> int:
        """Of all nodes that are alive; one at least."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, bundles: Sequence[Bundle]) -> Generator[tuple[Bundle, list[Record]], None, None]:
        """Each bundle with its records, as soon as they are there; a few more are under way than there are CPUs.

        The first error of a task is raised here. No more are submitted then, and those under way end by themselves:
        `ray.cancel` of a task that is just ending can abort this process (ray-project/ray#54260). Raises WorkerLost
        where a task's workers died again and again, and where Ray itself did.
        """
        try:
            yield from self._run(bundles)
        except self._ray.exceptions.RayError as error:
            raise WorkerLost(
                f"Ray itself failed, not the sweep ({type(error).__name__}: {str(error).partition(chr(10))[0]:.200}). "
                f"Does `ray status` on {platform.node()} answer? If not: `ray stop`, and start the cluster again. What "
                "is done is kept: run the sweep again"
            ) from error

    def _run(self, bundles: Sequence[Bundle]) -> Generator[tuple[Bundle, list[Record]], None, None]:
        task = self._ray.remote(run_task).options(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")
        driver = self._ray.put(Driver.here())
        waiting, running = iter(bundles), dict[Any, Bundle]()
        while True:
            while len(running) < 2 * self.cpus and (bundle := next(waiting, None)) is not None:
                running[task.remote(bundle, driver)] = bundle
            if not running:
                return
            (reference, *_), _ = self._ray.wait(list(running))
            records = self._got(reference, running[reference])
            yield running.pop(reference), records

    def _got(self, reference: Any, bundle: Bundle) -> list[Record]:
        errors = self._ray.exceptions
        try:
            return list(self._ray.get(reference))
        except errors.RayTaskError as error:
            raise error.cause from None
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            raise WorkerLost(
                f"Ray ran this {1 + RETRIES} times, and each time its worker or node was lost: {bundle[0]}"
                f"{f' and {len(bundle) - 1} more' if len(bundle) > 1 else ''} ({type(error).__name__}). What is done "
                "is kept: see that its machines stay, or have more memory, and run the sweep again"
            ) from error


def _nobody(address: object, why: str) -> ConfigError:
    return ConfigError(
        f"ray={address!r:.100}: no Ray cluster answers there ({why}); start one with `ray start --head`, and on each "
        "other machine `ray start --address=HOST:PORT`"
    )


def _place(address: object) -> tuple[str, int]:
    """Host and port. Raises ConfigError."""
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not host or not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 2**16):
        raise _nobody(address, 'give "auto" or "HOST:PORT"')
    return host.strip("[]"), int(port)
