"""Who plays the bundles of a study: several processes, or the tasks of a Ray cluster on many machines.

On many machines one study drives, and its journal is all that is kept. A task that is lost with its worker or its node
is run again by Ray. Equal seeds give equal courses, bit for bit, on one kind of machine with one version of this
library; what ran elsewhere says so in its notes.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import platform
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self, TypeVar

import numpy as np

from heron_env._version import __version__
from heron_env.errors import ConfigError, WorkerLost
from heron_env.lab.sweep.play import Bundle, Played, Worlds, play_bundle
from heron_env.lab.sweep.records import Record
from heron_env.lab.sweep.study import Here
from heron_env.trust import VARIABLE, vouched

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

    Raises ConfigError for what does not pickle; WorkerLost where a process dies, naming what was under way.
    """
    before = set(multiprocessing.active_children())
    context, running = multiprocessing.get_context("spawn"), dict[Any, Work]()
    with ProcessPoolExecutor(min(processes, len(items)), context, _start_worker, (Driver.here(),)) as pool:

        def submit(item: Work) -> Future[Result]:
            _require_picklable(function, item)  # the pool's own error would not say what to do
            return pool.submit(function, item)

        try:
            for future, item in _under_way(items, running, lambda: processes, submit, _done):
                yield item, future.result()
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            if isinstance(error, BrokenProcessPool):
                raise WorkerLost(
                    "a worker process ended suddenly (killed? out of memory? a script that starts it without "
                    "`if __name__ == '__main__':`?) while one of these was under way: "
                    f"{_listed(list(running.values()))}. Run it again, with fewer processes if it was memory"
                ) from error
            raise


def _under_way(
    items: Sequence[Work],
    running: dict[Any, Work],
    workers: Callable[[], int],
    submit: Callable[[Work], Any],
    done: Callable[[list[Any]], Iterable[Any]],
) -> Iterator[tuple[Any, Work]]:
    """What was submitted, once it is done, with its item; two a worker, so that a long list is not pickled at once."""
    waiting = iter(items)
    while True:
        while len(running) < 2 * workers() and (item := next(waiting, None)) is not None:
            running[submit(item)] = item
        if not running:
            return
        for one in done(list(running)):
            yield one, running[one]
            del running[one]


def _done(futures: list[Future[Any]]) -> list[Future[Any]]:
    """Those that are, in their order."""
    done, _ = wait(futures, return_when=FIRST_COMPLETED)
    return sorted(done, key=futures.index)


def _require_picklable(function: Callable[..., Any], item: object) -> None:
    try:
        pickle.dumps((function, item))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"this can't travel to another process ({error}): name functions and classes that a module has at its top, "
            "or work in this process (processes=1)"
        ) from error


def _listed(items: Sequence[object]) -> str:
    """The first ones, each in a line's length."""
    texts = [text if len(text := str(item)) <= LONG else f"{text[:LONG]}..." for item in items[:FEW]]
    return "; ".join(texts) + (f"; and {len(items) - FEW} more" if len(items) > FEW else "")


def _start_worker(driver: Driver) -> None:
    """One thread for each worker; an interrupt is the parent's business, and without it there is nothing to do."""
    driver.enter()
    for name in THREADS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "only workers wait for their parent"
    parent.join()
    os._exit(1)


@dataclass(frozen=True)
class Processes:
    """Worker processes of this machine."""

    count: int

    def run(self, bundles: Sequence[Bundle], worlds: Worlds) -> Played:
        """In any order; one bundle alone is played here."""
        if len(bundles) > 1:
            yield from finished(play_here, bundles, self.count)
        else:
            yield from Here().run(bundles, worlds)


_worlds: Final = Worlds()
"""Of a worker."""


def play_here(bundle: Bundle) -> list[Record]:
    """In a worker, whose environments serve all its bundles."""
    return play_bundle(bundle, _worlds)


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
    """Where the study runs, as its workers need to know it; by itself one is where this program began."""

    folder: str
    path: tuple[str, ...]
    trust: frozenset[str]

    @classmethod
    def here(cls) -> Self:
        """This process."""
        return cls(os.getcwd(), tuple(sys.path), vouched())

    def enter(self) -> None:
        """Work in its folder, if that is here, look for modules where it does, and trust whom it trusts."""
        os.environ[VARIABLE] = ",".join(sorted(self.trust))
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        sys.path[:] = [*self.path, *(place for place in sys.path if place not in self.path)]


def run_task(bundle: Bundle, driver: Driver, machine: Machine) -> list[Record]:
    """A bundle on whatever machine this is; `machine`: the driver's. What it raises bears this one's name as a note."""
    driver.enter()
    try:
        records = play_here(bundle)
    except Exception as error:
        error.add_note(f"on {platform.node()}, in {os.getcwd()}")
        raise
    other = Machine.here().unlike(machine)
    return [_noted(record, f"{OTHER}: {other}") for record in records] if other else records


def _noted(record: Record, note: str) -> Record:
    return replace(record, outcome=replace(record.outcome, notes=[*record.outcome.notes, note]))


class RayCluster:
    """A Ray cluster that is running, joined by this process.

    Args: address: of its head, "HOST:PORT", or "auto": the one that runs on this machine, or RAY_ADDRESS.

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
    def count(self) -> int:
        """Of all nodes that are alive; one at least."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, bundles: Sequence[Bundle], worlds: Worlds) -> Played:
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

    def _run(self, bundles: Sequence[Bundle]) -> Played:
        task = self._ray.remote(run_task).options(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")
        driver, machine = self._ray.put(Driver.here()), self._ray.put(Machine.here())
        under_way = _under_way(
            bundles, {}, lambda: self.count, lambda bundle: task.remote(bundle, driver, machine),
            lambda references: self._ray.wait(references)[0][:1],
        )  # fmt: skip
        for reference, bundle in under_way:
            yield bundle, self._got(reference, bundle)

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
