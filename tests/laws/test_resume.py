"""Resume: a run that was stopped, stored and taken up again is the run that never stopped (T16)."""

from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_copies_go_on, check_resume
from strategies import delays, recipes, seeing, ticks


@given(st.data())
def test_a_stored_run_goes_on_as_if_nothing_had_happened(data: st.DataObject) -> None:
    recipe = data.draw(recipes().flatmap(seeing))
    schedule = data.draw(delays(recipe.dt))
    t = data.draw(st.integers(0, 10 * recipe.max_steps)) * recipe.dt / 10
    check_resume(recipe, schedule, t)


@given(st.data())
def test_a_copied_environment_goes_on_as_if_nothing_had_happened(data: st.DataObject) -> None:
    recipe = data.draw(recipes().flatmap(seeing))
    way = data.draw(st.sampled_from(["pickle", "deepcopy", "set_state"]))
    check_copies_go_on(recipe, data.draw(ticks(recipe)), data.draw(st.integers(0, recipe.max_steps)), way)
