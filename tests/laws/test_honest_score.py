"""Honest score: delay, loss and jitter change what agents know and do, never how they are scored."""

from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_an_early_end_changes_nothing_before, check_honest_score
from strategies import delays, recipes, schedules


@given(st.data())
def test_the_score_is_computed_from_the_truth(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    check_honest_score(recipe, data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt))))


@given(st.data())
def test_stopping_early_changes_nothing_before(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    t_end = round(data.draw(st.integers(1, 10 * recipe.max_steps)) * recipe.dt / 10, 9)
    check_an_early_end_changes_nothing_before(recipe, data.draw(delays(recipe.dt)), t_end)
