"""Training delays are the delays of the event-driven clock, in whole steps."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks import check_copies_go_on, check_reset_is_total
from laws.checks_batch import Script, check_batch
from laws.checks_delays import check_training_delays
from laws.examples import ENDING, FIELD, NESTED, SEEN, SLOW, TALK, ZONE
from laws.test_batch import AUTORESETS, FEW, RESETS, scripts
from strategies import Recipe, batched, recipes, ticks

from heron_env import ScheduleConfig, TrainingDelays

UNEQUAL = {
    "*": ScheduleConfig(tick_interval=2.0),
    "field": ScheduleConfig(tick_interval=3.0, phase=1.0),
    "zone_1": ScheduleConfig(tick_interval=2.0, phase=1.0),
}
LATE = st.one_of(st.integers(0, 3), st.tuples(st.integers(0, 1), st.integers(1, 4)))
DELAYS = st.builds(lambda seen, falls: TrainingDelays(observation=seen, action=falls), LATE, LATE)
SOME = max(30, settings().max_examples // 10)
"""Copies and resets are asked with all examples elsewhere, without delays."""
CASES = [
    (FIELD, None, (0, 0)), (FIELD, UNEQUAL, (2, 3)), (ZONE, None, (1, 0)), (ZONE, UNEQUAL, ((0, 2), (0, 2))),
    (NESTED, None, (0, 1)), (NESTED, UNEQUAL, (2, 3)), (ENDING, None, (2, 3)), (ENDING, UNEQUAL, (1, 0)),
    (SEEN, None, ((0, 2), (0, 2))), (SEEN, UNEQUAL, (0, 1)),
]  # fmt: skip


@given(st.data())
def test_a_late_synchronous_run_is_the_late_event_driven_run(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    wait = data.draw(st.sampled_from([None, recipe.dt / 100]))
    check_training_delays(recipe, data.draw(DELAYS), data.draw(ticks(recipe)), wait)


@pytest.mark.parametrize(("recipe", "schedule", "late"), CASES, ids=range(len(CASES)))
def test_each_kind_of_control(recipe: Recipe, schedule: Any, late: Any) -> None:
    delays = TrainingDelays(observation=late[0], action=late[1])
    check_training_delays(replace(recipe, max_steps=10, observe_age=True), delays, schedule)


@settings(max_examples=SOME)
@given(st.data())
def test_what_is_under_way_goes_with_a_copy(data: st.DataObject) -> None:
    recipe = replace(data.draw(recipes()), training_delays=data.draw(DELAYS))
    way = data.draw(st.sampled_from(["pickle", "deepcopy", "set_state"]))
    check_copies_go_on(recipe, data.draw(ticks(recipe)), data.draw(st.integers(0, recipe.max_steps)), way)


@settings(max_examples=SOME)
@given(st.data())
def test_nothing_is_under_way_from_the_last_episode(data: st.DataObject) -> None:
    check_reset_is_total(replace(data.draw(recipes()), training_delays=data.draw(DELAYS)), SLOW)


@settings(max_examples=FEW)
@given(st.data())
def test_compiled_a_late_batch_is_its_single_environments(data: st.DataObject) -> None:
    recipe = replace(data.draw(batched("alone", "none")), training_delays=data.draw(DELAYS))
    check_batch(recipe, data.draw(scripts(recipe)))


@settings(max_examples=FEW)
@given(st.data())
def test_one_by_one_a_late_batch_is_its_single_environments(data: st.DataObject) -> None:
    recipe = replace(data.draw(recipes()), training_delays=data.draw(DELAYS), compile=False)
    check_batch(recipe, data.draw(scripts(recipe)))


@pytest.mark.parametrize("autoreset", AUTORESETS)
def test_in_the_example_too(autoreset: str) -> None:
    delays = TrainingDelays(observation=(0, 2), action=(0, 3))
    check_batch(replace(TALK, training_delays=delays), Script(5, 2, autoreset, seed=2, resets=RESETS))
