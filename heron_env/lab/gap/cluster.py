"""A sweep's episodes as Ray tasks on many machines: one sweep drives, and its journal is all that is kept.

A task that is lost with its worker or its node is run again by Ray. Equal seeds give equal courses, bit for bit, on one
kind of machine with one version of this library; what ran elsewhere says so in its notes.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np

from heron_env._version import __version__
from heron_env.errors import ConfigError, WorkerLost
from heron_env.lab.gap.records import Record
from heron_env.lab.gap.side_by_side import Bundle, run_bundle
from heron_env.trust import VARIABLE, vouched

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


class Cluster:
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

        The first error of a task is raised here, and the others are cancelled. Raises WorkerLost where a task's
        workers died again and again.
        """
        task = self._ray.remote(run_task).options(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")
        driver = self._ray.put(Driver.here())
        waiting, running = iter(bundles), dict[Any, Bundle]()
        try:
            while True:
                while len(running) < 2 * self.cpus and (bundle := next(waiting, None)) is not None:
                    running[task.remote(bundle, driver)] = bundle
                if not running:
                    return
                (reference, *_), _ = self._ray.wait(list(running))
                records = self._got(reference, running[reference])
                yield running.pop(reference), records
        finally:
            for reference in running:
                self._ray.cancel(reference, force=True)

    def _got(self, reference: Any, bundle: Bundle) -> list[Record]:
        errors = self._ray.exceptions
        try:
            return list(self._ray.get(reference))
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
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
