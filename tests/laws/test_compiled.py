"""The laws once more on compiled code: random worlds of one family of classes, which share their compiled loops."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from laws.checks import (
    check_copies_go_on,
    check_honest_score,
    check_loss_moves_nothing,
    check_no_lost_update,
    check_parity,
    check_reset_is_total,
    check_resume,
    check_same_seed,
    check_setpoints,
)
from laws.checks_batch import check_calls_do_not_grow
from laws.checks_leak import (
    check_a_glance_tells_nothing,
    check_a_run_tells_nothing,
    check_noise_hides_the_exact_value,
    kept_from,
    noisy_floats,
)
from laws.checks_noise import check_every_number_follows_the_law, check_noise_belongs_to_the_turn, deciders_see_noise
from laws.examples import TALK
from strategies import Recipe, batched, delays, family, schedules, talking, ticks

from heron_env import ScheduleConfig

FEW = settings(max_examples=max(2, settings().max_examples // 100))
"""Few by default: the same laws are asked of plain Python with many examples; each step runs the same few loops."""
SEEDS = st.sampled_from([0, 7, 2**64 + 3])


@FEW
@given(st.data())
def test_parity(data: st.DataObject) -> None:
    recipe = data.draw(batched("alone", "none"))
    wait = data.draw(st.sampled_from([None, recipe.dt, recipe.dt / 100]))
    check_parity(recipe, data.draw(ticks(recipe)), wait)


@FEW
@given(family(), st.integers(0, 99))
def test_no_leak_at_a_glance(recipe: Recipe, seed: int) -> None:
    check_a_glance_tells_nothing(recipe, seed)


@FEW
@given(st.data())
def test_no_leak_in_a_whole_run(data: st.DataObject) -> None:
    recipe, observer = data.draw(family()), data.draw(st.integers(0, 9))
    assume(kept_from(recipe.build(), observer)[1])
    check_a_run_tells_nothing(recipe, data.draw(st.one_of(st.none(), delays(recipe.dt))), observer)


@FEW
@given(st.data())
def test_noise_hides_the_exact_value(data: st.DataObject) -> None:
    recipe = data.draw(family(noisy=True))
    assume(noisy_floats(recipe.build()))
    check_noise_hides_the_exact_value(recipe, data.draw(st.one_of(st.none(), delays(recipe.dt))))


@FEW
@given(family(), SEEDS)
def test_every_number_follows_the_law_of_noise(recipe: Recipe, seed: int) -> None:
    check_every_number_follows_the_law(recipe, seed)


@FEW
@given(st.data())
def test_noise_belongs_to_the_turn(data: st.DataObject) -> None:
    recipe = data.draw(family(noisy=True))
    assume(deciders_see_noise(recipe))
    check_noise_belongs_to_the_turn(recipe, data.draw(delays(recipe.dt)))


@FEW
@given(st.data())
def test_determinism(data: st.DataObject) -> None:
    recipe = data.draw(family())
    check_same_seed(recipe, data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt))))


@FEW
@given(st.data())
def test_loss_shifts_no_other_draw(data: st.DataObject) -> None:
    recipe = data.draw(family())
    drawn = data.draw(delays(recipe.dt))
    kept = {name: getattr(drawn, name) for name in drawn.__slots__}
    check_loss_moves_nothing(recipe, ScheduleConfig(**kept | {"loss": 0.0, "reorder": True}))


@FEW
@given(st.data())
def test_honest_score(data: st.DataObject) -> None:
    recipe = data.draw(family())
    check_honest_score(recipe, data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt))))


@FEW
@given(st.data())
def test_no_lost_update(data: st.DataObject) -> None:
    recipe = data.draw(family())
    check_no_lost_update(recipe, data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt))))


@FEW
@given(st.data())
def test_reset_is_total(data: st.DataObject) -> None:
    recipe = data.draw(batched("alone", "none"))
    check_reset_is_total(recipe, data.draw(delays(recipe.dt)))


@FEW
@given(st.data())
def test_a_stored_run_goes_on_as_if_nothing_had_happened(data: st.DataObject) -> None:
    recipe = data.draw(batched("alone", "none"))
    t = data.draw(st.integers(0, 10 * recipe.max_steps)) * recipe.dt / 10
    check_resume(recipe, data.draw(delays(recipe.dt)), t)


@FEW
@given(st.data())
def test_a_copied_environment_goes_on_as_if_nothing_had_happened(data: st.DataObject) -> None:
    recipe = data.draw(batched("alone", "none"))
    way = data.draw(st.sampled_from(["pickle", "deepcopy", "set_state"]))
    check_copies_go_on(recipe, data.draw(ticks(recipe)), data.draw(st.integers(0, recipe.max_steps)), way)


@FEW
@given(family(observe_age=False), st.sampled_from([2, 5]))
def test_setpoints(recipe: Recipe, often: int) -> None:
    check_setpoints(recipe, often)


def test_a_late_command_is_dropped_and_the_noop_counts() -> None:
    """T11, `on_missing`: compiled or not, the same actions take effect at the same times."""
    for missing in ("noop", "hold"):
        schedule, told = ScheduleConfig(msg_delay=0.8, on_missing=missing), []
        for compile in (True, False):
            recipe = replace(TALK, compile=compile)
            env = recipe.build()
            told.append(env.run_event_driven(recipe.constants(env), seed=0, schedule=schedule).actions)
        assert repr(told[0]) == repr(told[1])
        commanded = [values.tolist() for _, values in told[0]["unit_6"]]
        assert commanded and (missing == "hold") == any(value != [0.0] for value in commanded)


@pytest.mark.e2e
def test_calls_of_python_depend_neither_on_agents_nor_on_lanes() -> None:
    check_calls_do_not_grow(agents=(2, 20, 80), lanes=(1, 8, 64))


@pytest.mark.parametrize("wait", [None, 0.01])
@pytest.mark.parametrize(("exchange", "when"), [("", False), ("ring", False), ("ring", True)])
def test_parity_in_the_example(exchange: str, when: bool, wait: float | None) -> None:
    check_parity(replace(TALK, root=talking(TALK.root, exchange, when)), None, wait)
