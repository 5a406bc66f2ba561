"""Parity: with all delays 0 the event-driven run equals the synchronous run bit for bit."""

from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_parity
from strategies import recipes, ticks


@given(st.data())
def test_two_clocks_one_course(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    wait = data.draw(st.sampled_from([None, recipe.dt, recipe.dt / 100]))
    check_parity(recipe, data.draw(ticks(recipe)), wait)
