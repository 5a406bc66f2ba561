"""Honest score: delay, loss and jitter change what agents know and do, never how they are scored."""

from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_honest_score
from strategies import delays, recipes, schedules


@given(st.data())
def test_the_score_is_computed_from_the_truth(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    check_honest_score(recipe, data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt))))
