"""T21: an environment has one owner at a time. Looking ahead is free; taking it away is told, never passed over."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from envs.disturbed_world import disturbed
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks import RECORD, assert_same_course
from laws.checks_owner import (
    ASTRAY,
    BETWEEN,
    CALLS,
    EVENT,
    SYNC,
    Run,
    check_between_untils,
    check_left_elsewhere,
    check_look_ahead,
    check_marks,
    check_planning_on_a_copy,
    check_reading_is_free,
    check_trespass,
    check_two_threads,
    look_ahead,
)
from laws.examples import ENDING, FIELD, NESTED, SILENT, TALK, ZONE
from laws.mutants import require_caught
from laws.mutants_owner import OWNER_MUTANTS
from laws.test_disturbed_parity import SETS, sway
from strategies import recipes, ticks

SOME = max(10, settings().max_examples // 10)
RUNS = [pytest.param(SYNC, id="synchronous"), pytest.param(EVENT, id="event-driven")]
SHORT = replace(FIELD, max_steps=3)
OWN = replace(NESTED, max_steps=2)


@settings(max_examples=SOME)
@given(st.data())
def test_a_look_ahead_that_restores_changes_nothing(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    check_look_ahead(recipe, data.draw(ticks(recipe)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)))


@pytest.mark.parametrize("recipe", [ENDING, OWN, TALK, SILENT], ids=["ending", "own", "talk", "silent"])
def test_a_look_ahead_in_each_kind_of_world(recipe: Any) -> None:
    check_look_ahead(recipe, times=2)


def test_a_look_ahead_amid_disturbances_changes_nothing() -> None:
    alone, env = disturbed(), disturbed()
    look = look_ahead(3, 2)

    def decide(agent: str) -> Callable[[Any], Any]:
        size = env.action_space(agent).shape[0]

        def decided(vector: Any) -> Any:
            action = sway(size)(vector)
            look(env)
            return action

        return decided

    plain = {agent: sway(env.action_space(agent).shape[0]) for agent in env.possible_agents}
    a = alone.run_synchronous(plain, seed=2, record=RECORD, disturbances=SETS["all"])
    meddling = {agent: decide(agent) for agent in env.possible_agents}
    assert_same_course(a, env.run_synchronous(meddling, seed=2, record=RECORD, disturbances=SETS["all"]))


@pytest.mark.parametrize("recipe", [FIELD, ENDING, ZONE], ids=["field", "ending", "zone"])
def test_planning_on_a_copy_changes_nothing(recipe: Any) -> None:
    check_planning_on_a_copy(recipe)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("call", CALLS)
def test_taking_the_environment_away_raises_in_that_call_and_changes_nothing(call: str, run: Run) -> None:
    check_trespass(SHORT, call, run)


@pytest.mark.parametrize("call", CALLS)
def test_so_it_does_in_a_step_that_asks_agents_for_their_own_decisions(call: str) -> None:
    check_trespass(OWN, call, SYNC)


@pytest.mark.parametrize("way", ASTRAY)
def test_a_decision_that_leaves_the_environment_elsewhere_ends_the_run(way: str) -> None:
    check_left_elsewhere(SHORT, way)


def test_so_does_one_of_the_event_driven_clock() -> None:
    check_left_elsewhere(SHORT, "by the back door", EVENT)


@pytest.mark.parametrize("call", BETWEEN)
def test_between_two_untils_it_may_be_used_but_the_old_run_is_over(call: str) -> None:
    check_between_untils(SHORT, call, 1.5)


@pytest.mark.parametrize("recipe", [SHORT, ZONE], ids=["field", "zone"])
def test_reading_is_always_free(recipe: Any) -> None:
    check_reading_is_free(recipe, 1.5)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("call", [*CALLS, "set_state()"])
def test_of_two_threads_the_later_is_refused(call: str, run: Run) -> None:
    check_two_threads(SHORT, call, run)


def test_the_mark_is_new_whenever_the_environment_moves_and_comes_back_with_a_state() -> None:
    check_marks(FIELD)


CASES: list[tuple[str, Callable[[], Any]]] = [
    ("anybody_drives", partial(check_trespass, SHORT, "reset()", EVENT)),
    ("anybody_drives", partial(check_two_threads, SHORT, "reset()", EVENT)),
    ("everything_is_lent", partial(check_trespass, SHORT, "step()", SYNC)),
    ("nobody_looks", partial(check_left_elsewhere, SHORT, "not restored")),
    ("nobody_looks", partial(check_left_elsewhere, SHORT, "by the back door", EVENT)),
    ("until_does_not_look", partial(check_between_untils, SHORT, "reset()", 1.5)),
    ("marks_of_others_come_again", partial(check_marks, FIELD)),
    ("a_run_is_restored_from_a_state", partial(check_between_untils, SHORT, "set_state()", 1.5)),
    ("a_state_is_a_view", partial(check_look_ahead, SHORT)),
]


@pytest.mark.parametrize(("name", "law"), CASES, ids=lambda case: case if isinstance(case, str) else case.func.__name__)
def test_a_planted_fault_breaks_its_law(name: str, law: Callable[[], Any]) -> None:
    require_caught(OWNER_MUTANTS[name], law)


def test_every_mutant_has_its_law() -> None:
    assert {name for name, _ in CASES} == OWNER_MUTANTS.keys()
