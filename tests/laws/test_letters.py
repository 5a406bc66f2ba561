"""Letters in random hierarchies, over random edges and networks (T24)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.checks_letters import (
    check_a_letter_reaches_nobody_else,
    check_a_stored_run_keeps_its_letters,
    check_letters_come_in_order,
    check_letters_move_no_other_draw,
    check_nothing_is_lost_uncounted,
    check_same_letters_in_both_clocks,
)
from laws.examples import FIELD, JITTERY, LOSSLESS, ROUGH
from laws.mutants import require_caught
from laws.mutants_letters import MUTANTS
from strategies import Recipe, delays, ticks, writing

from heron_env import ScheduleConfig

TALK = (("unit_2", "unit_3"), ("unit_3", "unit_2"), ("unit_2", "hand_4"), ("hand_4", "unit_2"))
"""Of FIELD; unit_3 and hand_4 have nothing to tell each other."""
THINKING = st.sampled_from([0.0, 0.5, 2.0])
WRITING = replace(FIELD, mail=TALK)
UNEVEN = replace(JITTERY, msg_delay=0.4)


def deaf_ones(recipe: Recipe) -> st.SearchStrategy[frozenset[str]]:
    return st.one_of(st.just(frozenset()), st.frozensets(st.sampled_from(recipe.ids), max_size=3))


@given(st.data())
def test_the_same_letters_reach_the_same_question_in_both_clocks(data: st.DataObject) -> None:
    recipe = data.draw(writing())
    wait = data.draw(st.sampled_from([None, recipe.dt / 100]))
    check_same_letters_in_both_clocks(recipe, data.draw(ticks(recipe)), data.draw(deaf_ones(recipe)), wait)


@given(st.data())
def test_nothing_is_lost_uncounted(data: st.DataObject) -> None:
    recipe = data.draw(writing())
    t = data.draw(st.integers(0, 10 * recipe.max_steps)) * recipe.dt / 10
    deaf, thinking = data.draw(deaf_ones(recipe)), data.draw(THINKING) * recipe.dt
    check_nothing_is_lost_uncounted(recipe, data.draw(delays(recipe.dt)), t, deaf, thinking)


@given(st.data())
def test_letters_come_by_arrival_and_then_by_rank(data: st.DataObject) -> None:
    recipe = data.draw(writing())
    check_letters_come_in_order(recipe, data.draw(delays(recipe.dt)))


@given(st.data())
def test_a_letter_reaches_nobody_else(data: st.DataObject) -> None:
    recipe = data.draw(writing())
    env = recipe.build()
    pairs = [(a, b) for a in env.possible_agents for b in env.may_write_to(a)] or [(recipe.ids[0], recipe.ids[-1])]
    check_a_letter_reaches_nobody_else(recipe, data.draw(delays(recipe.dt)), *data.draw(st.sampled_from(pairs)))


@given(st.data())
def test_a_stored_run_keeps_letters_under_way(data: st.DataObject) -> None:
    recipe = data.draw(writing())
    t = data.draw(st.integers(0, 10 * recipe.max_steps)) * recipe.dt / 10
    thinking = data.draw(THINKING) * recipe.dt
    check_a_stored_run_keeps_its_letters(recipe, data.draw(delays(recipe.dt)), t, thinking)


@pytest.mark.parametrize("schedule", [LOSSLESS, UNEVEN], ids=["reordering", "in queues"])
def test_letters_move_no_other_draw(schedule: ScheduleConfig) -> None:
    check_letters_move_no_other_draw(WRITING, schedule)


SAME = partial(check_same_letters_in_both_clocks, WRITING)
COUNTED = partial(check_nothing_is_lost_uncounted, WRITING, ROUGH, 2.1, frozenset({"hand_4"}))
CASES: list[tuple[str, Callable[[], None]]] = [
    ("read_in_the_same_step", SAME),
    ("bodies_are_shared", SAME),
    ("only_those_that_wait_are_unread", COUNTED),
    ("by_rank_alone", partial(check_letters_come_in_order, WRITING, UNEVEN)),
    ("everybody_reads", partial(check_a_letter_reaches_nobody_else, WRITING, UNEVEN, "unit_2", "unit_3")),
    ("in_the_queue_of_reports", partial(check_letters_move_no_other_draw, WRITING, UNEVEN)),
    ("drawn_from_one_stream", partial(check_letters_move_no_other_draw, WRITING, LOSSLESS)),
    ("waiting_letters_are_not_stored", partial(check_a_stored_run_keeps_its_letters, WRITING, UNEVEN, 2.1)),
]


@pytest.mark.parametrize(("name", "law"), CASES, ids=[name for name, _ in CASES])
def test_each_fault_breaks_its_law(name: str, law: Callable[[], None]) -> None:
    require_caught(MUTANTS[name], law)


def test_every_mutant_has_its_law() -> None:
    assert {name for name, _ in CASES} == MUTANTS.keys()
