"""Lanes follow the laws, as the tests work them out: a guard for the kernels that all executions of a batch share."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_batch import Script
from laws.checks_lanes import check_lanes
from laws.test_batch import RESETS, scripts
from laws.uncompiled_lanes import uncompiled_kernels
from strategies import Node, Recipe, recipes, seeing

from heron_env import ObservabilityConfig, ScheduleConfig

FEW = max(10, settings().max_examples // 5)
COMMANDS = Recipe(
    Node(
        "system",
        children=(
            Node("zone", protocol="vector", at=4, children=(Node("unit", at=2), Node("chooser"), Node("unit"))),
            Node("zone", protocol="uneven", children=(Node("unit", value=1.0), Node("unit", named=True))),
            Node("team", children=(Node("unit", own_policy=True, cut=3), Node("chooser"), Node("unit", at=3))),
        ),
    ),
    max_steps=5,
    observability=ObservabilityConfig(
        matrix=[
            ["chooser_3", "zone_5", "insider", 0.5],
            {"observer": "unit_9", "target": "unit_2", "level": "insider", "noise": 0.4, "law": "additive"},
            ["zone_1", "global", "insider", 1.5],
        ],
        default={"level": "insider", "noise": 0.3},
    ),
)
"""Whoever may command, decide, end or see with noise."""
OVER = Recipe(Node("system", children=(Node("team", children=(Node("unit", at=2), Node("unit", cut=3))),)), max_steps=9)
"""All who act end by themselves, the last by being cut off."""
TICKS = {"zone_1": ScheduleConfig(tick_interval=2.0), "unit_9": ScheduleConfig(tick_interval=2.0, phase=1.0)}
SCRIPT = Script(3, turns=14, schedule=TICKS, resets=RESETS, salt=3)


@settings(max_examples=FEW)
@given(st.data())
def test_lanes_are_what_the_laws_say(data: st.DataObject) -> None:
    recipe = data.draw(recipes().flatmap(seeing))
    check_lanes(recipe, data.draw(scripts(recipe)))


def check_examples() -> None:
    """The law of lanes, where all of it shows."""
    for mode in ("all", "any"):
        check_lanes(replace(COMMANDS, mode=mode), SCRIPT)
    check_lanes(OVER, replace(SCRIPT, schedule=None))


def test_in_the_examples_too() -> None:
    check_examples()


FAULTS = {
    "check: of a choice": ("decision_kernels", "or value - np.floor(value) > limits[GRAIN, e]):", "):"),
    "decide: whose turn": ("decision_kernels", "(now, who[clock, TICK],", "(now, who[i, TICK],"),
    "decide: a command": ("decision_kernels", "within(command * ", "(lambda value, *bounds: value)(command * "),
    "end: with the last": ("loop_kernels", "= not anyone_cut, anyone_cut", "= True, False"),
    "end: returns": ("loop_kernels", "returns[b, i] += rewards[b, i]", "returns[b, i] = rewards[b, i]"),
    "begin: returns": ("loop_kernels", "returns[b, i] = 0.0", "pass"),
    "begin: who lives": ("loop_kernels", "alive[b, i] = 1", "alive[b, i] |= episodes[b] + np.uint64(1) == 0"),
    "begin: the next episode": ("loop_kernels", "episodes[b] += np.uint64(1)", "episodes[b] = np.uint64(0)"),
    "publish: of another lane": ("loop_kernels", "out[b, k] = t[b, columns[k]]", "out[b, k] = t[0, columns[k]]"),
    "relate: nothing is subtracted": ("loop_kernels", " - received[b, relative[k, 1]]", ""),
    "noise: of no turn": ("draw_kernel", "mixed(cache[j] ^ turn)", "mixed(cache[j])"),
    "noise: beyond bounds": ("draw_kernel", "part_of(high, first, size)\n", "part_of(high, first, size) + 99.0\n"),
}
"""In the text of the kernels that all lanes share."""


def test_the_kernels_text_holds_run_by_python() -> None:
    with uncompiled_kernels():
        check_examples()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_shared_kernel_breaks_a_law(name: str) -> None:
    with uncompiled_kernels(FAULTS[name]), pytest.raises(AssertionError) as caught:
        check_examples()
    assert str(caught.traceback[-1].path).endswith("checks_lanes.py"), f"not the law failed but {caught.traceback[-1]}"
