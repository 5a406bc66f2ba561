"""Parity: with all delays 0 the event-driven run equals the synchronous run bit for bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_parity
from laws.examples import ENDING, FIELD, NESTED, SEEN, ZONE
from strategies import Recipe, recipes, seeing, ticks

from heron_env import ScheduleConfig, make

UNEQUAL = {
    "*": ScheduleConfig(tick_interval=2.0),
    "field": ScheduleConfig(tick_interval=3.0, phase=1.0, on_missing="noop"),
    "zone_1": ScheduleConfig(tick_interval=2.0, phase=1.0, on_missing="noop"),
}


@given(st.data())
def test_two_clocks_one_course(data: st.DataObject) -> None:
    recipe = data.draw(recipes().flatmap(seeing))
    wait = data.draw(st.sampled_from([None, recipe.dt, recipe.dt / 100]))
    check_parity(recipe, data.draw(ticks(recipe)), wait)


@pytest.mark.parametrize("wait", [None, 0.01])
@pytest.mark.parametrize("schedule", [None, UNEQUAL], ids=["equal ticks", "unequal ticks"])
@pytest.mark.parametrize("substeps", [1, 4])
@pytest.mark.parametrize(
    "recipe", [FIELD, ZONE, NESTED, ENDING, SEEN], ids=["field", "zone", "nested", "ending", "seen"]
)
def test_each_kind_of_control(recipe: Recipe, substeps: int, schedule: Any, wait: float | None) -> None:
    check_parity(replace(recipe, substeps=substeps, max_steps=8), schedule, wait)


@pytest.mark.parametrize("control", ["field", "zone"])
def test_battery_grid(control: str) -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=4, zone_size=2, control=control, dt=0.1, max_steps=12)
    size = env.action_space(env.possible_agents[0]).shape[0]
    policies = {"*": lambda vector: np.sin(vector[:size])}
    record = ("rewards", "actions", "observations")
    sync = env.run_synchronous(policies, seed=3, record=record)
    assert sync.same_course(env.run_event_driven(policies, seed=3, record=record))
