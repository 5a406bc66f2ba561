"""The compiled event clock's own text, run by Python: for faults planted in it, and for looking."""

import ast
import importlib
import importlib.util
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import heron_env
from heron_env.engine import arrays, tables
from heron_env.engine.lanes import Lanes
from heron_env.engine.phases import addresses_of
from heron_env.envs.batch import event_lanes
from heron_env.seeding import mixed

PACKAGE = Path(heron_env.__file__).parent
PARTS = {
    Path(name).stem: PACKAGE / f"{name}.py"
    for name in ("scheduling/ticks", "engine/draw_kernel", "engine/decision_kernels", "engine/step",
                 "engine/event/links", "engine/event/heap", "engine/event/servers", "engine/event/media",
                 "engine/event/broker", "engine/event/agents", "engine/event/physics", "engine/event/clock")
}  # fmt: skip
"""In the order of their imports."""
COMPILED = "heron_env.engine.kernels"
PLAIN = {
    "memory": ("heron_env.engine.event.memory", "EventMemory", "heron_env.envs.batch.event_lanes"),
    "event_lanes": ("heron_env.envs.batch.event_lanes", "EventLanes", "heron_env.envs.batch.event"),
}
"""What is Python anyway: its module, its class, and the module that takes it from there."""
Fault = tuple[str, str, str]
"""File, what it says, and what it says instead."""


@contextmanager
def planted(fault: Fault | None) -> Iterator[None]:
    """With a fault of PLAIN in the text of a class; others are none of its business."""
    if fault is None or fault[0] not in PLAIN:
        yield
        return
    name, kind, where = PLAIN[fault[0]]
    module, user = importlib.import_module(name), importlib.import_module(where)
    spec = importlib.util.spec_from_file_location(name, module.__file__)
    assert spec is not None and module.__file__ is not None
    other = importlib.util.module_from_spec(spec)
    exec(compile(faulty(Path(module.__file__), fault), module.__file__, "exec"), vars(other))
    usual = getattr(user, kind)
    setattr(user, kind, getattr(other, kind))
    try:
        yield
    finally:
        setattr(user, kind, usual)


def faulty(path: Path, fault: Fault) -> str:
    """The text of a file with a fault in it. Raises LookupError unless it fits in one place."""
    text = path.read_text(encoding="utf-8")
    if text.count(fault[1]) != 1:  # no AssertionError: the fault would pass for noticed
        raise LookupError(f"{path.name} has {text.count(fault[1])} times: {fault[1]}")
    return text.replace(fault[1], fault[2])


def uncompiled(lanes: event_lanes.EventLanes, fault: Fault | None = None) -> event_lanes.Kernels:
    """The loops for these lanes. Raises LookupError unless the fault fits the text in one place."""
    names, spaces = _tools(lanes), dict[str, dict[str, Any]]()
    for part, path in PARTS.items():
        text = path.read_text(encoding="utf-8") if fault is None or fault[0] != part else faulty(path, fault)
        spaces[part] = execute(part, text, names, spaces)
        spaces[part].update({name: tool for name, tool in names.items() if name in spaces[part]})
    *loops, records = (spaces["clock"][name] for name in event_lanes.Kernels._fields)
    return event_lanes.Kernels(*map(_quiet, loops), records)


def execute(part: str, text: str, names: dict[str, Any], spaces: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The module; what it imports of compiled code is Python here."""
    tree, space = ast.parse(text), {"__name__": part}
    kept = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (module := node.module or "").startswith("heron_env."):
            for alias in node.names:
                if module in ("heron_env.engine.event", "heron_env.scheduling") and alias.name in spaces:
                    space[alias.name] = SimpleNamespace(**spaces[alias.name])
                elif (other := module.rpartition(".")[2]) in spaces:
                    space[alias.name] = spaces[other][alias.name]
                elif module == COMPILED:
                    space[alias.name] = names[alias.name]
                else:
                    kept.append(node)
                    break
        else:
            kept.append(node)
    tree.body = kept
    exec(compile(tree, f"{part}.py", "exec"), space)
    return space


def _tools(lanes: event_lanes.EventLanes) -> dict[str, Any]:
    """What compiled code calls, in Python."""
    engine, memory = lanes.steps.lanes, lanes.steps.lanes._memory
    fixed = ChainMap(memory.fixed, memory.arrays._asdict())
    return {
        **dict.fromkeys(("leaf", "general", "inlined", "phase", "on_arrays"), _same), "fetch": lambda *where: None,
        "flat_of": lambda array: array.reshape(-1),
        "noise_row": _noise_row, "within": within, "failure": None,
        "number": lambda D, name: memory.numbers[name],
        "table": lambda D, name: fixed[name],
        "table_of": lambda forms, sized: lambda E, name: lanes.memory.arrays[name],
        "natively": partial(natively, engine), "call": calling(engine),
        "part_of": lambda array, first, size: array[int(first) : int(first + size)],
    }  # fmt: skip


def natively(engine: Lanes, D: Any, place: Any, first: Any, last: Any, calling: Any = None) -> int:
    """As kernels.py has it: what follows a phase, in its order; `calling`: what calls Python, if not compiled code."""
    failed = 0
    for at, one in zip(addresses_of(engine._natives)[:, 0].tolist(), engine._natives, strict=True):
        if at == place:
            loop = calling if one.python and calling else one.loop
            failed += int(loop(int(D), one.at, int(first), int(last)))
    return failed


def calling(engine: Lanes) -> Callable[[int, tuple[Any, ...]], int]:
    """As `call` of kernels.py, of a phase of these lanes at an address of their table."""
    phases = engine._phases
    loops = dict(zip(phases.addresses(), [phases.loops.get(name) for name in arrays.PHASES], strict=True))
    return lambda address, numbers: loops[int(address)](*map(int, numbers))  # type: ignore[misc]


def within(value: Any, low: Any, high: Any) -> Any:
    """As kernels.py has it."""
    return low if value < low else high if value > high else value


def _same(function: Any) -> Any:
    return function


def _quiet(loop: Callable[..., int]) -> Callable[..., int]:
    def run(*numbers: int) -> int:
        with np.errstate(all="ignore"):  # keys overflow on purpose
            return int(loop(*map(int, numbers)))

    return run


def _noise_row(
    t: Any, b: int, out: Any, seed: Any, episode: Any, turn: Any, at: Any, columns: Any, keys: Any, reach: Any,
    low: Any, high: Any, law: Any, *kept: Any,
) -> None:  # fmt: skip
    """N1 and N2, of one lane (engine.noise_kernel)."""
    x = mixed(mixed(mixed(keys ^ seed) ^ episode) ^ np.uint64(turn))
    error = reach * ((x >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0)
    values = t[b, columns]
    noisy = np.where(law & tables.ADDITIVE, values + error, values * np.clip(1.0 + error, 0.01, 100.0))
    noisy = np.where(law & tables.INTEGER, np.rint(noisy) + 0.0, noisy)
    out[b, at] = np.minimum(np.maximum(noisy, low), high)
