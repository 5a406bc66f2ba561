"""Spread in C (spread.c), compiled here with this machine's compiler: one struct an environment, float32."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.case import EPISODE

SOURCE: Final = Path(__file__).with_name("spread.c")
FLAGS: Final = ("-O2", "-march=native", "-ffast-math")


def compiler() -> str | None:
    """The C compiler: `$CC`, or `cc`; None where there is none."""
    return shutil.which(os.environ.get("CC", "cc"))


def compiler_facts() -> str:
    """Its version and the flags, or why there is no C loop."""
    if (found := compiler()) is None:
        return "no C compiler (cc, or $CC): the C loop was left out"
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    return " ".join([said.splitlines()[0], *FLAGS])


@cache
def library(n: int) -> Any:
    """The compiled text for `n` agents."""
    found = compiler()
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        made, compiled = Path(folder, "spread.so"), Path(folder, "spread.o")
        subprocess.run([found, *FLAGS, "-fPIC", f"-DN={n}", "-c", str(SOURCE), "-o", str(compiled)], check=True)
        # linked without FLAGS: with -ffast-math the library would turn off subnormal numbers in this whole process
        subprocess.run([found, "-shared", str(compiled), "-o", str(made), "-lm"], check=True)
        return ctypes.CDLL(str(made))


class CSpread:
    """Environments of the C loop, begun, with seeds 1, 2, ...

    Attributes:
        envs: the structs, a record each `[B]`: x, y, vx, vy, landmark_x, landmark_y, rewards `[n]`,
            observations `[n, 6n]`, over, and what spread.c keeps besides.
    """

    def __init__(self, lanes: int, n: int, bank: NDArray[np.int64]) -> None:
        """`bank`: actions `[banked, B, n]`, taken in turn."""
        names = ["x", "y", "vx", "vy", "landmark_x", "landmark_y", "contacts", "push_x", "push_y"]
        fields: list[Any] = [("draws", "u8"), ("steps", "i4"), ("over", "i4"), *((name, "f4", n) for name in names)]
        fields += [("distance", "f4"), ("rewards", "f4", n), ("observations", "f4", (n, 6 * n))]
        self.envs = np.zeros(lanes, np.dtype(fields, align=True))
        self.envs["draws"] = np.arange(1, lanes + 1)
        self._library, self._bank = library(n), np.ascontiguousarray(bank, np.int8)
        self._library.begin(self._at(self.envs), lanes)

    def run(self, steps: int = EPISODE) -> None:
        """So many steps, from the bank's first actions on; environments whose episode ends begin anew."""
        self._library.run(self._at(self.envs), len(self.envs), self._at(self._bank), len(self._bank), steps, EPISODE)

    @staticmethod
    def _at(array: NDArray[Any]) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)
