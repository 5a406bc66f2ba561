"""One step, whoever runs it: batches in plain Python and of methods on `self` on the event clock, disturbances in
batches, and all executions of one world on both clocks.
"""

from dataclasses import replace
from typing import Any

from hypothesis import given, reject, settings
from hypothesis import strategies as st
from laws.checks_batch import Script, check_batch
from laws.checks_event_batch import check_event_batch, check_on_and_on
from laws.test_batch import scripts
from laws.test_plain_clock import networks
from strategies import Recipe, batched, by_hand, sourced, storms

from heron_env import DrawnSchedule
from heron_env.errors import ScheduleError

MANY = settings().max_examples * (2 if settings().max_examples > 150 else 1)
"""Worlds of each law: 2,000 where new ones are drawn."""


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
    return replace(script, lanes=min(script.lanes, 5), storms=weather)


@settings(max_examples=MANY)
@given(st.data())
def test_disturbed_a_batch_is_its_single_environments(data: st.DataObject) -> None:
    """Compiled and not, in turn."""
    kinds = "stormy", "stormy together"
    recipe = data.draw(st.one_of(batched(*kinds), by_hand(*kinds)))
    recipe = replace(recipe, pad=data.draw(st.booleans()))
    check_batch(recipe, data.draw(stormy(recipe)))
