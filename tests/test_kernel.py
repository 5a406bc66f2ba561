"""One model, one state, one step: what the redrawn kernel must not lose again. Before: at 14258254."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import house
import numpy as np
import pytest

import heron_env
from heron_env import make

PACKAGE = Path(heron_env.__file__).parent
ROOMS = {room: sorted((PACKAGE / room).rglob("*.py")) for room in house.KERNEL}
KERNEL = [path for paths in ROOMS.values() for path in paths]
ROUTES = ("moves_itself", "quiet", "_smooth", "HOOK", "STAGE", "whole_step", "step_jointly", "_decide_all")
"""Flags that chose the way of a step, or told of one: 16 before. OwnSteps, of environments that step themselves, has
`moves_itself`; Lanes have `in_tiles` and `in_python`."""


def words(paths: list[Path], pattern: str) -> Iterator[str]:
    """Where it is written, `file:line`."""
    for path in paths:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if re.search(pattern, line):
                yield f"{path.relative_to(PACKAGE)}:{number}"


def test_the_order_of_a_step_is_told_twice() -> None:
    """In compiled code, and by the event clock in Python: 7 times before."""
    told = [where.partition(":")[0] for where in words(KERNEL, r"^# order of a step")]
    assert told == ["engine/step.py", "envs/event/physics.py"]
    orders = [path for path in ROOMS["envs"] if {"substep", "close"} <= called_on_lanes(path)]
    assert [path.name for path in orders] == ["lane.py"], "who else calls the parts of a step one after the other?"


def called_on_lanes(path: Path) -> set[str]:
    """Names of methods that a file calls on `lanes`."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    calls = (node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    return {call.attr for call in calls if ast.unparse(call.value).endswith("lanes")}


def test_no_flag_chooses_the_way_of_a_step() -> None:
    nodes = [node for path in KERNEL for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    bound = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    bound |= {node.id for node in nodes if isinstance(node, ast.Name)}
    assert bound & {*ROUTES} == {"moves_itself"}


def test_saving_and_moving_stay_short() -> None:
    """Functions that save, restore, bind or move what changes: 490 lines by the design's count."""
    names = {"state", "restore", "bind", "move_to", "__getstate__", "__setstate__"}
    files = [*ROOMS["envs"], *ROOMS["scheduling"]]
    found = [node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8")))
             if isinstance(node, ast.FunctionDef) and node.name in names]  # fmt: skip
    assert sum((node.end_lineno or 0) - node.lineno + 1 for node in found) <= 210


def test_names_of_the_kernel_are_the_field_s() -> None:
    """Variables and parameters in the private dialect: 326 before."""
    assert house.dialect(path.read_text("utf-8") for path in KERNEL) <= 10


def test_comments_say_why_and_price_nothing() -> None:
    """Comments that say what a call costs: 33 before."""
    priced = (
        r"#.*\b(a call more|a (tenth|fifth|hundredth) of|half as long|takes its time|without its calls|quicker than)\b"
    )
    assert len([*words(KERNEL, priced)]) <= 4


@pytest.mark.parametrize(("compile", "most_calls", "most_files"), [(True, 10, 5), (False, 60, 12)])
def test_a_step_goes_through_few_hands(compile: bool, most_calls: int, most_files: int) -> None:
    """Of 4 batteries, warm: 28 calls in 10 files before, in plain Python 130 in 18."""
    env = make("heron/BatteryGrid-v0", num_batteries=4, compile=compile)
    env.reset(seed=0)
    actions = {agent: np.array([0.1]) for agent in env.agents}
    for _ in range(3):
        env.step(actions)
    files: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            files.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        env.step(actions)
    finally:
        sys.setprofile(before)
    assert len(files) <= most_calls and len({*files}) <= most_files, sorted({*files})
