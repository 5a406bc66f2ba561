"""Python as a phase: a function with an address, which compiled code calls like all that follows a phase (Native)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import Arrays, addresses
from heron_env.engine.blueprint import Native
from heron_env.errors import ConfigError

SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
FORMS = {"state": ("int64", 1), "function": ("int64", 1)}
"""`state`: 0, or one more than what the first call that failed returned; `function`: its address."""
DID_NOT_RUN, DONE, FAILED = range(3)
"""What a call returns. The handler of a signal may raise where the function is entered, before anything can catch that:
ctypes writes it to stderr and returns 0."""


class Called:
    """Functions of Python that compiled code calls for one set of lanes, and what became of the first that failed.

    After it no function is called until `raise_error` or `forget`. Addresses belong to this process; whoever holds this
    holds the functions.
    """

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._state = np.zeros(1, dtype=np.int64)
        self._held = list[Any]()

    def native(self, place: str, function: Callable[[int, int], None]) -> Native:
        """`function(first lane, last lane + 1)` as what follows the phase of this place.

        Raises ConfigError where the system lets nobody make code.
        """

        def run(first: int, last: int) -> int:
            try:
                function(first, last)
            except BaseException as error:  # noqa: BLE001  (raise_error raises it, outside of compiled code)
                self._error = error
                return FAILED
            return DONE

        callback = executable(run)
        cells = {"state": self._state, "function": np.array([ctypes.cast(callback, ctypes.c_void_p).value or 0])}
        table = addresses(FORMS, cells)
        self._held.append((callback, cells, table))
        return Native(place, kernel().python, int(table.ctypes.data), python=True)

    def raise_error(self) -> None:
        """Raise what a function raised, or KeyboardInterrupt for a signal that kept one from running, and forget it."""
        error, interrupted = self._error, self._state[0] != 0
        self.forget()
        if error is not None:
            raise error
        if interrupted:
            raise KeyboardInterrupt("a signal came as compiled code called Python")

    def forget(self) -> None:
        """Something else is raised: functions may be called again."""
        self._error, self._state[0] = None, 0


def executable(function: Callable[[int, int], int]) -> Any:
    """The function as one of C. Raises ConfigError where the system lets nobody make code."""
    try:
        return SIGNATURE(function)
    except (MemoryError, OSError) as error:
        raise ConfigError(
            f"compiled code can't call Python here: this system allows no executable memory ({error}), which numba "
            "needs, too; allow it to this process, or set HERON_COMPILE=0 and run single environments"
        ) from error


def running(arrays: Arrays, first: int, last: int) -> NDArray[np.bool_]:
    """In which of these lanes does an episode run, and is it their turn? To be asked by what moves them."""
    flags: NDArray[np.bool_] = (arrays.over[first:last] == 0) & (arrays.moving[first:last] != 0)
    return flags


@functools.cache
def kernel() -> Any:
    """call_kernel.py, compiled once for an installation."""
    from heron_env.engine.cache import cached_file

    return cached_file(Path(__file__).with_name("call_kernel.py"))
