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
from laws.checks_cost import check_linear_cost
from laws.checks_leak import check_a_glance_tells_nothing, check_a_run_tells_nothing, check_the_plan_follows_the_tags
from laws.examples import ENDING, FIELD, JITTERY, LOSSLESS, ROUGH, SLOW, ZONE
from laws.mutants import MUTANTS
from laws.test_determinism import rollouts

CASES: list[tuple[str, Callable[[], Any]]] = [
    ("order_by_event_type", partial(check_parity, FIELD)),
    ("order_by_event_type", partial(check_parity, ZONE)),
    ("ticks_before_physics", partial(check_parity, FIELD)),
    ("dt_elapsed", partial(check_parity, FIELD, wait=0.01)),
    ("dt_elapsed", partial(check_no_lost_update, FIELD, wait=0.01)),
    ("no_versions_on_reports", partial(check_no_lost_update, FIELD, ROUGH)),
    ("one_action_slot", partial(check_no_lost_update, FIELD, SLOW)),
    ("one_action_slot", partial(check_no_lost_update, ZONE, SLOW)),
    ("whole_state_write_back", partial(check_no_lost_update, FIELD, SLOW)),
    ("physics_on_the_cache", partial(check_no_lost_update, ZONE, SLOW)),
    ("effects_overtake", partial(check_no_lost_update, FIELD, JITTERY)),
    ("observe_the_truth", partial(check_no_lost_update, FIELD, SLOW)),
    ("shared_streams", partial(check_loss_moves_nothing, FIELD, LOSSLESS)),
    ("leak_a_feature", partial(check_the_plan_follows_the_tags, FIELD)),
    ("leak_a_feature", partial(check_a_glance_tells_nothing, FIELD)),
    ("leak_a_feature", partial(check_a_run_tells_nothing, FIELD, observer=-1)),
    ("show_the_ledger", partial(check_a_glance_tells_nothing, FIELD)),
    ("score_what_was_delivered", partial(check_honest_score, FIELD, SLOW)),
    ("ledger_not_reset", partial(check_honest_score, FIELD)),
    ("ended_agents_keep_deciding", partial(check_no_lost_update, ENDING, SLOW)),
    ("effects_of_the_ended_fall", partial(check_no_lost_update, ENDING, SLOW)),
    ("ended_children_are_paid", partial(check_honest_score, ENDING)),
    ("state_not_reset", partial(check_reset_is_total, FIELD)),
    ("old_knowledge_survives", partial(check_reset_is_total, FIELD)),
    ("second_copies_count", partial(check_no_lost_update, FIELD, ROUGH)),
    ("a_stored_run_knows_the_truth", partial(check_resume, FIELD, SLOW, 2.1)),
    ("the_ended_come_back", partial(check_copies_go_on, ENDING, None, 3, "set_state")),
    ("acting_moves_time", partial(check_setpoints, FIELD, 5)),
    ("ask_all_pairs", partial(check_linear_cost, 10, (10, 40, 160))),
]


def _name(case: Any) -> str:
    if isinstance(case, str):
        return case
    return f"{case.func.__name__}{case.keywords or ''}"


@pytest.mark.parametrize(("name", "law"), CASES, ids=_name)
def test_a_planted_fault_breaks_its_law(name: str, law: Callable[[], Any]) -> None:
    law()
    with MUTANTS[name](), pytest.raises(AssertionError) as caught:
        law()
    assert "/laws/" in str(caught.traceback[-1].path), f"not the law failed but {caught.traceback[-1]}"


def test_every_mutant_has_its_law() -> None:
    assert {name for name, _ in CASES} == MUTANTS.keys()


def test_names_hashed_by_the_interpreter_break_determinism() -> None:
    assert len(set(rollouts("--hash", "field"))) > 1
