"""Python as a phase: a function with an address, which compiled code calls like all that follows a phase (Native)."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from heron_env.engine.arrays import addresses
from heron_env.engine.model import Native
from heron_env.errors import ConfigError

SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 3)
FORMS = {"failed": ("int64", 1), "turn": ("int64", 1), "function": ("int64", 1)}
"""`failed`: has a function? `turn`: number of the last call of this one; `function`: its address."""
FAILED = 0
"""What a call returns that has raised something; else its turn, a number that no other call returns.

The handler of a signal may raise where the function is entered, before anything can catch that: ctypes writes it to
stderr and returns what happens to lie there, which is often what the last call of some function returned."""
_functions = itertools.count(1)
INTERRUPTED = "a signal came as compiled code called Python; what its handler raised is written to stderr"


class Called:
    """Functions of Python that compiled code calls for one set of lanes, and what became of the first that failed.

    After it no function is called until `taken`. Addresses belong to this process; whoever holds this holds the
    functions.
    """

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._failed = np.zeros(1, dtype=np.int64)
        self._held = list[Any]()

    def native(self, place: str, function: Callable[[int, int], None]) -> Native:
        """`function(first lane, last lane + 1)` as what follows the phase of this place.

        Raises ConfigError where the system lets nobody make code.
        """

        def run(first: int, last: int, turn: int) -> int:
            try:
                function(first, last)
            except BaseException as error:  # noqa: BLE001  (it is raised outside of compiled code)
                self._error = error
                return FAILED
            return turn

        callback = executable(run)
        address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        cells = {"failed": self._failed, "function": np.array([address])}
        cells["turn"] = np.array([next(_functions) % (1 << 22) << 40])
        table = addresses(FORMS, cells)
        self._held.append((callback, cells, table))
        return Native(place, kernel().python, int(table.ctypes.data), python=True)

    def taken(self) -> BaseException | None:
        """What went wrong, once; from then on functions are called again."""
        error, failed = self._error, self._failed[0] != 0
        self._error, self._failed[0] = None, 0
        return KeyboardInterrupt(INTERRUPTED) if failed and error is None else error


def executable(function: Callable[[int, int, int], int]) -> Any:
    """The function as one of C. Raises ConfigError where the system lets nobody make code."""
    try:
        return SIGNATURE(function)
    except (MemoryError, OSError) as error:
        raise ConfigError(
            f"compiled code can't call Python here: this process gets no executable memory ({error!r}); allow it, "
            "which numba needs anyway: MemoryDenyWriteExecute=no in systemd, deny_execmem off in SELinux"
        ) from error


@functools.cache
def kernel() -> Any:
    """call_kernel.py, compiled once for an installation."""
    from heron_env.engine.cache import cached_file

    return cached_file(Path(__file__).with_name("call_kernel.py"))
