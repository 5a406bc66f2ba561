"""The kernels that all lanes share, as their own text run by Python: for faults planted in it, and for looking."""

from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from laws.uncompiled import Fault, execute, faulty, natively, within

import heron_env.engine
from heron_env.engine import arrays, lane_errors
from heron_env.engine.called import SIGNATURE
from heron_env.engine.lanes import Lanes
from heron_env.engine.phases import Phases

FOLDER = Path(heron_env.engine.__file__).parent
PARTS = ("draw_kernel", "decision_kernels", "loop_kernels", "step")
"""In the order of their imports."""


class PlainPhases(Phases):
    """Phases as functions of Python: their addresses are their places, and 1."""

    def addresses(self, tiled: Any = None) -> list[int]:
        """As in Phases; nothing is compiled."""
        return [place * (name in self.loops) for place, name in enumerate(arrays.PHASES, start=1)]

    def tiled(self, vector: Any, natives: Any) -> dict[str, int]:
        """None of them."""
        return {}


@contextmanager
def uncompiled_kernels(fault: Fault | None = None, least: int = 1) -> Iterator[None]:
    """All that is made meanwhile of `least` lanes or more runs these in Python, with a fault in one place."""
    original = Lanes._run_with

    def run_with(self: Lanes, module: Any) -> None:
        original(self, module)
        if self.count < least:
            return
        spaces = texts_of(self, fault)
        self._order = SimpleNamespace(**spaces["step"])  # type: ignore[assignment]
        shared: Any = SimpleNamespace(**spaces["loop_kernels"])
        self._phases = PlainPhases(
            module, shared, self.model, final=self._final, noisy=self._noisy, relative=self._relative, hides=self._hides
        )
        self._phases.loops["step"] = self._order.step

    with patch.object(Lanes, "_run_with", run_with), np.errstate(all="ignore"):  # keys overflow on purpose
        yield


def texts_of(lanes: Lanes, fault: Fault | None) -> dict[str, dict[str, Any]]:
    """What the texts define, for these lanes. Raises LookupError unless the fault fits in one place."""
    names, spaces = _tools(lanes, fault), dict[str, dict[str, Any]]()
    for part in PARTS:
        path = FOLDER / f"{part}.py"
        text = path.read_text(encoding="utf-8") if fault is None or fault[0] != part else faulty(path, fault)
        spaces[part] = execute(part, text, names, spaces)
        spaces[part].update({name: tool for name, tool in names.items() if name in spaces[part]})
    return spaces


def _tools(lanes: Lanes, fault: Fault | None) -> dict[str, Any]:
    """What compiled code calls, in Python."""
    memory = lanes._memory
    arrays_at = {}
    for at, published in zip(memory.at, memory.sets, strict=True):
        out = {f"out_{name}": array for name, array in published._asdict().items()}
        arrays_at[at] = ChainMap(memory.fixed, memory.arrays._asdict(), out)
    bits = memory._tables[0]

    def number(D: int, name: str) -> Any:
        return bits[arrays.PLACE[name], :1].view(arrays.NUMBERS[name])[0]

    def same(function: Any) -> Any:
        return function

    def call(address: Any, numbers: Any) -> int:
        return int(lanes._phases.loops[arrays.PHASES[int(address) - 1]](*map(int, numbers)))

    return {
        **dict.fromkeys(("leaf", "general", "inlined", "phase", "stored", "on_arrays"), same),
        "table": lambda D, name: arrays_at[D][name], "number": number, "within": within,
        "fetch": lambda *where: None, "call": call, "flat_of": lambda array: array.reshape(-1),
        "natively": partial(natively, lanes, calling=caller(lanes, fault)),
        "failure": lambda position, rule, number: (int(position) * 16 + rule) * 256 + number,
        "part_of": lambda array, first, size: array[int(first) : int(first + size)],
        "row_of": lambda array, b, first, size: array[int(b), int(first) : int(first + size)],
        "block_on_stack": lambda: np.zeros(512),
    }  # fmt: skip


def caller(lanes: Lanes, fault: Fault | None) -> Any:
    """What calls Python: call_kernel.py, run by Python."""
    path = FOLDER / "call_kernel.py"
    text = path.read_text(encoding="utf-8") if fault is None or fault[0] != "call_kernel" else faulty(path, fault)

    def of(at: int, name: str) -> Any:
        return next(cells[name] for _, cells, table in lanes.called._held if table.ctypes.data == at)

    def same(function: Any) -> Any:
        return function

    space = execute("call_kernel", text, {"phase": same, "table_of": lambda forms: of}, {})
    space["call_c"] = lambda address, *numbers: SIGNATURE(int(address))(*map(int, numbers))
    return space["python"]


assert lane_errors.ILLEGAL == 15, "`failure` above says the same as kernels.py"
