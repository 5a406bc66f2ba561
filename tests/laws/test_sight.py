"""The laws of sight (V11) bite: each planted fault is caught by one of them; what nobody sees moves no number."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from laws.checks_batch import Script, check_batch
from laws.checks_clock import check_plain_clock
from laws.checks_event_batch import check_event_batch
from laws.checks_sight import check_a_run_hides, check_toggles
from laws.examples import ROUGH, TALK
from laws.mutants import require_caught
from laws.mutants_sight import (
    COMPILED_SIGHT_MUTANTS,
    LEAKS,
    SIGHT_IN_STEPS,
    SIGHT_IN_TEXT,
    SIGHT_MUTANTS,
    WEIGHTY_MUTANTS,
)
from laws.uncompiled_lanes import uncompiled_kernels
from strategies import Node, Recipe

from heron_env import Medium, ObservabilityConfig, ScheduleConfig
from heron_env.errors import HeronError

SIGHTED = Recipe(
    Node(
        "system",
        children=(
            Node("zone", protocol="vector", children=(Node("unit", value=1.0), Node("hand"))),
            Node("team", children=(Node("unit", at=3), Node("unit", value=-1.0), Node("chooser"))),
        ),
    ),
    substeps=4,
    max_steps=6,
    observe_age=True,
    observability=ObservabilityConfig(default={"level": "external", "noise": 0.3}),
    hooks="gusty",
    report_interval=0.25,
    sight="rule",
    visible=True,
)
"""Who commands, decides, ends; telemetry in every substep, and noise."""
SIGHTED_TALK = replace(TALK, sight="rule", visible=True, observe_age=True, report_interval=0.5, max_steps=8)
"""Compiled, of the family."""
BUSY = ScheduleConfig(tick_interval=0.5, msg_delay=0.05, medium=Medium(rate=400.0))
WIRED = replace(ROUGH, own_rows="local")
HERE = partial(check_plain_clock, SIGHTED, ROUGH)
COMPILED = partial(check_plain_clock, replace(SIGHTED_TALK, hooks="gusty"), ROUGH)


@pytest.mark.parametrize("name", SIGHT_MUTANTS)
def test_a_planted_fault_makes_another_clock(name: str) -> None:
    require_caught(SIGHT_MUTANTS[name], HERE)


@pytest.mark.parametrize("name", COMPILED_SIGHT_MUTANTS)
def test_a_fault_in_compiled_sight_makes_another_clock(name: str) -> None:
    require_caught(COMPILED_SIGHT_MUTANTS[name], COMPILED)


@pytest.mark.parametrize("name", WEIGHTY_MUTANTS)
def test_who_sees_a_row_weighs_nothing(name: str) -> None:
    require_caught(WEIGHTY_MUTANTS[name], partial(check_plain_clock, SIGHTED, BUSY))


@pytest.mark.parametrize("name", SIGHT_IN_STEPS)
def test_a_fault_in_the_text_of_a_step_breaks_the_law_of_batches(name: str) -> None:
    law = partial(check_batch, replace(SIGHTED_TALK, max_steps=4), Script(3, turns=7, final=True))
    require_caught(partial(uncompiled_kernels, SIGHT_IN_STEPS[name], 2), law)


def look_at_sight(**options: Any) -> None:
    """At lanes in which a fault in who sees whom shows."""
    recipe = replace(SIGHTED_TALK, hooks="none")
    for schedule, late in ((WIRED, 0.5), (replace(ROUGH, medium=Medium(rate=500.0)), 1.0)):
        check_event_batch(replace(recipe, report_interval=late), schedule, lanes=1, seed=3, **options)


def test_the_text_of_the_event_clock_holds_run_by_python() -> None:
    look_at_sight(text=True)


@pytest.mark.parametrize("name", SIGHT_IN_TEXT)
def test_a_fault_in_the_text_of_the_event_clock_makes_another_clock(name: str) -> None:
    with pytest.raises((AssertionError, IndexError, ValueError, HeronError)):
        look_at_sight(text=True, fault=SIGHT_IN_TEXT[name])


TALKERS = tuple(Node("talker", value=value) for value in (0.5, 1.0, -1.0))
TOGGLED = Recipe(
    Node("system", children=(Node("team", exchange="ring", children=TALKERS), Node("zone", children=TALKERS[:1]))),
    observe_age=True, sight="toggled", visible=True,
)  # fmt: skip
"""Agents that see of each other what is relative and what is not, with masks."""
CLEAR = ObservabilityConfig(default={"level": "insider", "noise": 0.3})


@pytest.mark.parametrize("seen", [None, CLEAR], ids=["by tags", "by a matrix with noise"])
def test_what_an_observer_does_not_see_moves_nothing_that_is_shown_to_it(seen: Any) -> None:
    check_toggles(replace(TOGGLED, observability=seen), 5_000)


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_noticed(name: str) -> None:
    require_caught(LEAKS[name], partial(check_toggles, replace(TOGGLED, observability=CLEAR), 200))


UNITS = tuple(Node("unit", value=value) for value in (0.5, 1.0, -1.0))
TRIO = Recipe(
    Node("system", children=(Node("team", children=UNITS), Node("team", children=UNITS))), substeps=2, max_steps=4,
    observe_age=True, sight="toggled", visible=True,
)  # fmt: skip
"""Units that see the modes of their siblings, which nothing reads."""


@pytest.mark.parametrize("schedule", [None, ROUGH, WIRED, BUSY], ids=["at once", "rough", "wired", "medium"])
def test_in_a_whole_run_it_moves_nothing_either(schedule: Any) -> None:
    for seed in range(5):
        check_a_run_hides(TRIO, schedule, seed)


UNASKED = Recipe(
    Node(
        "system",
        children=(
            Node("team", children=TALKERS), Node("zone", protocol="uneven", children=(Node("unit"), Node("unit")))
        ),
    ),
    compile=True, sight="rule", observe_age=True,
)  # fmt: skip
"""All units are commanded: what they see is published to nobody."""


def test_who_is_commanded_sees_too_where_the_hook_is_compiled() -> None:
    check_plain_clock(replace(UNASKED, hooks="gusty"), ROUGH)
