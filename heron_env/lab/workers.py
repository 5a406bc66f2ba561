"""Work spread over processes, whichever is faster; one process works in place."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from heron_env.errors import ConfigError, WorkerLost
from heron_env.given import whole
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
            f"{_told(list(running.values()))}. Run it again, with fewer processes if it was memory"
        ) from error


def _told(items: Sequence[object]) -> str:
    """The first ones, each in a line's length."""
    shown = [text if len(text := str(item)) <= LONG else f"{text[:LONG]}..." for item in items[:FEW]]
    return "; ".join(shown) + (f"; and {len(items) - FEW} more" if len(items) > FEW else "")


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
