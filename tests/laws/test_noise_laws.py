"""Noise: every number that any observer is shown follows the plain law, and belongs to its turn (N1 to N5, T9)."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from laws.checks_noise import (
    check_every_number_follows_the_law,
    check_infos_tell_only_what_is_seen_exactly,
    check_noise_belongs_to_the_turn,
    deciders_see_noise,
    with_default,
)
from laws.examples import SEEN
from strategies import Recipe, delays, recipes

from heron_env import ScheduleConfig


@given(recipes(), st.sampled_from([0, 7, 2**64 + 3]))
def test_every_number_follows_the_law_by_every_way_to_observe(recipe: Recipe, seed: int) -> None:
    check_every_number_follows_the_law(recipe, seed)


def test_in_the_example_too() -> None:
    check_every_number_follows_the_law(SEEN)


@given(st.data())
def test_delay_and_loss_change_no_noise(data: st.DataObject) -> None:
    recipe = data.draw(recipes(noisy=True))
    assume(deciders_see_noise(recipe))
    check_noise_belongs_to_the_turn(recipe, data.draw(delays(recipe.dt)))


@pytest.mark.parametrize("tick", [0.25, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("law", ["multiplicative", "additive"])
def test_a_further_request_of_a_turn_sees_other_noise(tick: float, law: str) -> None:
    config = ScheduleConfig(tick_interval=tick, msg_delay=0.6, obs_delay=0.5, loss=0.3, reorder=True)
    check_noise_belongs_to_the_turn(with_default(SEEN, "insider", 0.4, law), config)


def test_infos_tell_only_what_is_seen_exactly() -> None:
    check_infos_tell_only_what_is_seen_exactly()
