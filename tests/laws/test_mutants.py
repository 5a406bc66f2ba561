"""The laws bite: each mutant is caught by the law named here, by its own assertion, and without it the law holds."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from laws.checks import (
    check_copies_go_on,
    check_honest_score,
    check_loss_moves_nothing,
    check_no_lost_update,
    check_parity,
    check_reset_is_total,
    check_resume,
    check_setpoints,
)
from laws.checks_cost import check_linear_cost, check_linear_cost_of_a_matrix
from laws.checks_leak import (
    check_a_glance_tells_nothing,
    check_a_run_tells_nothing,
    check_noise_hides_the_exact_value,
    check_the_plan_shows_what_is_declared,
)
from laws.checks_noise import (
    check_every_number_follows_the_law,
    check_infos_tell_only_what_is_seen_exactly,
    check_noise_belongs_to_the_turn,
)
from laws.examples import ENDING, FIELD, LOSSLESS, ROUGH, SEEN, SLOW
from laws.mutants import MUTANTS, require_caught
from laws.test_determinism import rollouts

CASES: list[tuple[str, Callable[[], Any]]] = [
    ("order_by_event_type", partial(check_parity, FIELD)),
    ("dt_elapsed", partial(check_parity, FIELD, wait=0.01)),
    ("no_versions_on_reports", partial(check_no_lost_update, FIELD, ROUGH)),
    ("whole_state_write_back", partial(check_no_lost_update, FIELD, SLOW)),
    ("observe_the_truth", partial(check_no_lost_update, FIELD, SLOW)),
    ("shared_streams", partial(check_loss_moves_nothing, FIELD, LOSSLESS)),
    ("leak_a_feature", partial(check_a_glance_tells_nothing, FIELD)),
    ("leak_a_feature", partial(check_a_run_tells_nothing, FIELD, observer=-1)),
    ("score_what_was_delivered", partial(check_honest_score, FIELD, SLOW)),
    ("ledger_not_reset", partial(check_honest_score, FIELD)),
    ("state_not_reset", partial(check_reset_is_total, FIELD)),
    ("a_stored_run_knows_the_truth", partial(check_resume, FIELD, SLOW, 2.1)),
    ("the_ended_come_back", partial(check_copies_go_on, ENDING, None, 3, "set_state")),
    ("acting_moves_time", partial(check_setpoints, FIELD, 5)),
    ("ask_all_pairs", partial(check_linear_cost, 10, (40, 80, 160))),
    ("noise_without_the_target", partial(check_every_number_follows_the_law, SEEN)),
    ("whole_numbers_rounded_down", partial(check_every_number_follows_the_law, SEEN)),
    ("noise_on_oneself", partial(check_the_plan_shows_what_is_declared, SEEN)),
    ("externals_see_the_inside", partial(check_the_plan_shows_what_is_declared, SEEN)),
    ("noise_of_the_time_of_gathering", partial(check_noise_belongs_to_the_turn, SEEN, SLOW)),
    ("the_proxy_tells_exactly", partial(check_noise_hides_the_exact_value, SEEN)),
    ("infos_tell_what_they_like", check_infos_tell_only_what_is_seen_exactly),
    ("ids_hashed_for_every_observer", partial(check_linear_cost_of_a_matrix, (10, 40, 160))),
]


def _name(case: Any) -> str:
    if isinstance(case, str):
        return case
    return f"{case.func.__name__}{case.keywords or ''}" if isinstance(case, partial) else case.__name__


@pytest.mark.parametrize(("name", "law"), CASES, ids=_name)
def test_a_planted_fault_breaks_its_law(name: str, law: Callable[[], Any]) -> None:
    require_caught(MUTANTS[name], law)


def test_every_mutant_has_its_law() -> None:
    assert {name for name, _ in CASES} == MUTANTS.keys()


@pytest.mark.e2e
@pytest.mark.parametrize(("fault", "world"), [("--hash", "field"), ("--hash-noise", "seen")])
def test_names_hashed_by_the_interpreter_break_determinism(fault: str, world: str) -> None:
    assert len(set(rollouts(fault, world))) > 1
