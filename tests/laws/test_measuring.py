"""Telemetry and local reading: without delays both clocks take one course."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks import check_parity, check_resume
from laws.checks_clock import check_plain_clock
from laws.checks_delays import check_whole_steps
from laws.examples import FIELD, ROUGH, SLOW
from laws.mutants import require_caught
from laws.mutants_measuring import MEASURING_MUTANTS
from laws.test_plain_clock import AT_ONCE, TELEMETRIC, networks, worlds
from strategies import Recipe, ticks

from heron_env import ScheduleConfig

EXAMPLES = max(50, settings().max_examples)
OWN = st.sampled_from([None, "proxy", "local"])


@st.composite
def measured(draw: st.DrawFn, recipe: Recipe) -> dict[str, ScheduleConfig]:
    """Ticks of both clocks, and of each agent whether it sees itself as it is."""
    timed = draw(ticks(recipe)) or {}
    default = timed.get("*", ScheduleConfig())
    return {agent: replace(timed.get(agent, default), own_rows=draw(OWN)) for agent in recipe.ids}


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_two_clocks_one_course_whatever_is_measured(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    check_parity(recipe, data.draw(measured(recipe)), seed=data.draw(st.integers(0, 3)))


@given(st.data())
def test_early_physics_changes_nothing_that_is_read(data: st.DataObject) -> None:
    recipe = replace(data.draw(worlds()), report_interval=None)
    check_parity(recipe, data.draw(measured(recipe)), wait=recipe.dt / 100)


@given(st.data())
def test_a_run_goes_on_as_if_it_had_never_stopped(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    t = data.draw(st.integers(0, 20 * recipe.max_steps)) * recipe.dt / 20
    check_resume(recipe, data.draw(networks(recipe)), t)


LOCAL = replace(SLOW, own_rows="local")
CASES: list[tuple[str, Callable[[], Any]]] = [
    ("telemetry_overtakes_the_boundary", partial(check_parity, TELEMETRIC)),
    ("telemetry_overtakes_the_boundary", partial(check_plain_clock, TELEMETRIC, AT_ONCE)),
    ("own_rows_read_at_the_gather", partial(check_whole_steps, FIELD, 2, 1, "local")),
    ("own_rows_read_at_the_gather", partial(check_plain_clock, TELEMETRIC, LOCAL)),
    ("own_rows_of_a_neighbour", partial(check_whole_steps, FIELD, 2, 1, "local")),
    ("own_rows_of_a_neighbour", partial(check_plain_clock, TELEMETRIC, ROUGH)),
    ("a_running_sum_is_read", partial(check_plain_clock, TELEMETRIC, SLOW)),
    ("a_running_sum_is_reported", partial(check_plain_clock, TELEMETRIC, SLOW)),
]


@pytest.mark.parametrize(("name", "law"), CASES, ids=[f"{name}: {law.func.__name__}" for name, law in CASES])
def test_a_planted_fault_breaks_its_law(name: str, law: Callable[[], Any]) -> None:
    require_caught(MEASURING_MUTANTS[name], law)


def test_every_mutant_has_its_law() -> None:
    assert {name for name, _ in CASES} == MEASURING_MUTANTS.keys()
