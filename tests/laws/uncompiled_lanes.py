"""The kernels that all lanes share, as their own text run by Python: for faults planted in it, and for looking."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from laws.uncompiled import Fault, execute, faulty, within

import heron_env.engine
from heron_env.engine import arrays, lane_errors
from heron_env.engine.lanes import Lanes
from heron_env.engine.phases import Phases

FOLDER = Path(heron_env.engine.__file__).parent
PARTS = ("draw_kernel", "decision_kernels", "loop_kernels")
"""In the order of their imports."""


@contextmanager
def uncompiled_kernels(fault: Fault | None = None) -> Iterator[None]:
    """All lanes made meanwhile whose rules run in Python run these in Python, too, with a fault in one place."""
    original = Lanes._run_with

    def run_with(self: Lanes, module: Any) -> None:
        original(self, module)
        shared: Any = kernels_of(self, fault)
        self._phases = Phases(
            module, shared, self.blueprint, final=self._final, noisy=self._noisy, relative=self._relative
        )

    with patch.object(Lanes, "_run_with", run_with), np.errstate(all="ignore"):  # keys overflow on purpose
        yield


def kernels_of(lanes: Lanes, fault: Fault | None) -> SimpleNamespace:
    """What `shared_loops()` gives, for these lanes. Raises AssertionError unless the fault fits in one place."""
    names, spaces = _tools(lanes), dict[str, dict[str, Any]]()
    for part in PARTS:
        path = FOLDER / f"{part}.py"
        text = path.read_text(encoding="utf-8") if fault is None or fault[0] != part else faulty(path, fault)
        spaces[part] = execute(part, text, names, spaces)
        spaces[part].update({name: tool for name, tool in names.items() if name in spaces[part]})
    return SimpleNamespace(**spaces["loop_kernels"])


def _tools(lanes: Lanes) -> dict[str, Any]:
    """What compiled code calls, in Python."""
    memory = lanes._memory
    found = {}
    for at, published in zip(memory.at, memory.sets, strict=True):
        out = {f"out_{name}": array for name, array in published._asdict().items()}
        found[at] = {**memory.arrays._asdict(), **memory.fixed, **out}
    bits = memory._tables[0]

    def number(D: int, name: str) -> Any:
        return bits[arrays.PLACE[name], :1].view(arrays.NUMBERS[name])[0]

    def same(function: Any) -> Any:
        return function

    return {
        **dict.fromkeys(("leaf", "general", "inlined", "phase", "kept", "on_arrays"), same),
        "table": lambda D, name: found[D][name], "number": number, "within": within,
        "fetch": lambda *where: None, "call": None, "flat_of": lambda array: array.reshape(-1),
        "natively": None,
        "failure": lambda position, rule, number: (int(position) * 16 + rule) * 256 + number,
        "part_of": lambda array, first, size: array[int(first) : int(first + size)],
        "row_of": lambda array, b, first, size: array[int(b), int(first) : int(first + size)],
        "block_on_stack": lambda: np.zeros(512),
    }  # fmt: skip


assert lane_errors.ILLEGAL == 15, "`failure` above says the same as kernels.py"
