"""One step, whoever runs it: batches in plain Python and of methods on `self` on the event clock, disturbances and
errors in batches, and all executions of one world on both clocks.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from laws.checks_batch import Script, check_batch, check_compiled_is_plain, check_in_tiles_or_not
from laws.checks_clock import check_plain_clock
from laws.checks_event_batch import check_event_batch, check_on_and_on
from laws.checks_failing import check_a_refusal_stops_python, check_an_error_stops_python
from laws.test_batch import scripts
from laws.test_plain_clock import networks
from strategies import Recipe, batched, by_hand, in_reverse, seeing, sourced, storms

from heron_env import DrawnSchedule
from heron_env.errors import ScheduleError

DEEP = settings().max_examples > 150
MANY = settings().max_examples * (2 if DEEP else 1)
"""Worlds of each law: 2,000 where new ones are drawn."""
FEW = MANY if DEEP else max(3, MANY // 5)
"""The same of laws that are asked elsewhere, too, one by one."""


@st.composite
def schedules(draw: st.DrawFn, recipe: Recipe) -> Any:
    """Networks of all kinds, delays and losses from data, and what is drawn anew in every lane and episode."""
    keys = st.sampled_from([*recipe.ids, "field", "coordinator", "system"])
    from_data = st.builds(
        lambda one, more: {"*": one} | more, sourced(recipe.dt), st.dictionaries(keys, sourced(recipe.dt), max_size=2)
    )
    fields = {"msg_delay": "0-3", "act_delay": "[0, 0.7, 2.5]", "loss": "[0, 0.4]", "on_missing": "[hold, noop]"}
    drawn = st.just(DrawnSchedule({"*": fields}))
    return draw(st.one_of(networks(recipe), networks(recipe), from_data, drawn))


@st.composite
def telemetered(draw: st.DrawFn, recipe: Recipe) -> Recipe:
    """The same with reports within a step, and padded vectors."""
    substeps = draw(st.sampled_from([1, 2, 4]))
    reports = draw(st.sampled_from([n for n in (1, 2, 4) if substeps % n == 0]))
    changes: dict[str, Any] = {"substeps": substeps, "report_interval": recipe.dt / reports}
    return replace(recipe, **changes, pad=draw(st.booleans()))


def check_on_the_event_clock(data: st.DataObject, recipe: Recipe) -> None:
    check_event_batch(
        recipe,
        data.draw(schedules(recipe)),
        seed=data.draw(st.sampled_from([0, 5, 2**40])),
        lanes=data.draw(st.integers(1, 3)),
        episodes=data.draw(st.sampled_from([1, 1, 2])),
        gamma=data.draw(st.sampled_from([1.0, 0.9, 0.0])),
        with_state=data.draw(st.booleans()),
    )


@settings(max_examples=MANY)
@given(st.data())
def test_in_plain_python_every_lane_is_the_python_clock(data: st.DataObject) -> None:
    recipe = data.draw(by_hand("alone", "alone", "together", "none", "signalling"))
    check_on_the_event_clock(data, data.draw(telemetered(recipe)))


@settings(max_examples=max(3, MANY // 10))
@given(st.data())
def test_in_plain_python_lanes_go_on_from_episode_to_episode(data: st.DataObject) -> None:
    recipe = data.draw(by_hand("alone", "together", "none"))
    recipe = replace(data.draw(telemetered(recipe)), max_steps=data.draw(st.integers(1, 4)))
    patterns = st.lists(st.booleans(), min_size=1, max_size=3).map(tuple)
    resets = data.draw(st.dictionaries(st.integers(0, 9), patterns, max_size=3))
    lanes, seed = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([0, 5, 2**40]))
    try:
        check_on_and_on(recipe, data.draw(schedules(recipe)), calls=10, lanes=lanes, seed=seed, resets=resets)
    except ScheduleError as silent:
        assert "without a single observation" in str(silent)
        reject()


@st.composite
def stormy(draw: st.DrawFn, recipe: Recipe) -> Script:
    """What may happen to a batch, and to the episodes that begin at its resets."""
    script = draw(scripts(recipe))
    weather = tuple(draw(st.lists(storms(recipe), min_size=1, max_size=3)))
    return replace(script, lanes=min(script.lanes, 3), storms=weather)


@settings(max_examples=MANY)
@given(st.data())
def test_disturbed_a_batch_is_its_single_environments(data: st.DataObject) -> None:
    """Compiled, and not: then protocols may be the user's, too."""
    kinds = "stormy", "stormy together"
    own = by_hand(*kinds).map(lambda recipe: replace(recipe, root=in_reverse(recipe.root)))
    recipe = data.draw(st.one_of(batched(*kinds), by_hand(*kinds), own))
    recipe = replace(recipe, pad=data.draw(st.booleans()))
    check_batch(recipe, data.draw(stormy(recipe)))


@settings(max_examples=MANY)
@given(st.data())
def test_who_sees_whom_is_one_in_all_executions(data: st.DataObject) -> None:
    """The plain clock's, compiled and not, on both clocks; with telemetry or without."""
    recipe = data.draw(st.one_of(batched("alone"), by_hand("alone")))
    recipe = replace(data.draw(seeing(data.draw(telemetered(recipe)), always=True)), pad=False)
    script, schedule = data.draw(scripts(recipe)), data.draw(networks(recipe))
    check_plain_clock(recipe, schedule, looks=1)
    check_event_batch(recipe, schedule, lanes=1)
    check_batch(recipe, replace(script, lanes=min(script.lanes, 2), turns=4))


@settings(max_examples=FEW)
@given(st.data())
def test_the_first_error_is_told_and_no_more_python_is_called(data: st.DataObject) -> None:
    recipe = data.draw(st.one_of(batched("alone", "together"), by_hand("alone", "together")))
    script = replace(data.draw(scripts(recipe)), autoreset=data.draw(st.sampled_from(["same_step", "next_step"])))
    hook, step = data.draw(st.sampled_from([("begin", 0), ("advance", 0), ("finish", 1)]))
    lane = data.draw(st.integers(0, 12))
    check_an_error_stops_python(recipe, script, hook, step, lane)
    if recipe.compile:
        check_a_refusal_stops_python(recipe, script, lane)


@pytest.mark.e2e
@settings(max_examples=FEW)
@given(st.data())
def test_all_executions_on_both_clocks_take_one_course(data: st.DataObject) -> None:
    """Plain, compiled, in threads, in tiles where nothing is Python: each is the single environment, in every bit."""
    recipe = data.draw(batched("alone", "together", "none", "none"))
    script, schedule = data.draw(scripts(recipe)), data.draw(schedules(recipe))
    threads = data.draw(st.sampled_from([1, 2]))
    for one in (recipe, replace(recipe, compile=False)):
        check_batch(one, script)
        check_event_batch(one, schedule, lanes=2, threads=threads)
    check_compiled_is_plain(replace(recipe, dt=min(recipe.dt, 1.0)), script)  # longer steps blow up whatever differs
    if recipe.hooks == "none":
        check_in_tiles_or_not(recipe, replace(script, lanes=script.lanes + 7))
