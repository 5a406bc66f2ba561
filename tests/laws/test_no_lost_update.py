"""No lost update: what happened is in the truth, and an old report never undoes a newer fact."""

from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_no_lost_update
from strategies import delays, recipes, schedules


@given(st.data())
def test_what_happened_is_in_the_truth(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    schedule = data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt)))
    check_no_lost_update(recipe, schedule)
