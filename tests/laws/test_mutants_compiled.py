"""The laws bite on compiled code: each fault in its tables, around its loops or in its text is caught by a law."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from laws.checks import (
    assert_same_course,
    check_copies_go_on,
    check_no_lost_update,
    check_parity,
    check_reset_is_total,
)
from laws.checks_batch import Script, check_batch, check_compiled_is_plain, check_infos_are_the_truth
from laws.checks_event_batch import check_event_batch
from laws.checks_failing import check_a_refusal_stops_python, check_an_error_stops_python
from laws.checks_noise import check_every_number_follows_the_law
from laws.examples import ROUGH, SILENT, SLOW, STORMS, TALK
from laws.mutants import require_caught, require_held
from laws.mutants_compiled import PLANTED, STEPPED, WRITTEN
from laws.test_disturbed_parity import SETS, both
from laws.test_lanes import check_examples
from laws.uncompiled_lanes import uncompiled_kernels
from strategies import talking

UNTOLD = replace(TALK, root=talking(TALK.root, ""))
RESETS = {2: ((True, False, False), None), 5: ((False, True), (5, 3))}
SHORT = Script(3, turns=7, resets=RESETS)
EQUAL, PLAIN = partial(check_batch, TALK, SHORT), partial(check_compiled_is_plain, TALK, SHORT)
THREADED = partial(check_batch, SILENT, replace(SHORT, threads=2))
NEXT_STEP = partial(check_batch, TALK, replace(SHORT, autoreset="next_step", turns=12))
DISABLED = partial(check_batch, TALK, replace(SHORT, autoreset="disabled", turns=12))
STORMY = replace(TALK, hooks="stormy")
DISTURBED = partial(check_batch, STORMY, replace(SHORT, storms=STORMS, turns=12))
STANDING = partial(check_batch, STORMY, replace(SHORT, storms=STORMS, autoreset="next_step", turns=12))
BETWEEN = partial(check_event_batch, TALK, ROUGH, lanes=3)
INFORMED = partial(check_infos_are_the_truth, TALK, SHORT)
FAILING = partial(check_an_error_stops_python, TALK, replace(SHORT, resets={}), "finish", 2, 1)
FAILING_LAST = partial(check_an_error_stops_python, TALK, SHORT, "begin", 0, 1)
FAILING_PLAIN = partial(check_an_error_stops_python, replace(TALK, compile=False), SHORT, "finish", 2, 1)
REFUSED = partial(check_a_refusal_stops_python, TALK, SHORT, 1)


def check_crashes() -> None:
    """Both clocks take one course where agents crash."""
    assert_same_course(*both({}, SETS["crashes"]))


CASES: list[tuple[str, Callable[[], Any]]] = [
    ("actions_of_another_lane", EQUAL),
    ("overlapping_ranges", THREADED),
    ("commands_to_the_wrong_child", check_examples),
    ("commands_to_the_wrong_child", partial(check_parity, UNTOLD)),
    ("the_episode_stays", EQUAL),
    ("everyone_begins_anew", EQUAL),
    ("hooks_of_all_lanes", NEXT_STEP),
    ("hooks_between_substeps", BETWEEN),
    ("the_ended_go_on_telling", EQUAL),
    ("an_effect_is_lost", partial(check_no_lost_update, UNTOLD, SLOW)),
    ("the_ended_come_back_compiled", partial(check_copies_go_on, TALK, None, 3, "set_state")),
    ("disturbances_come_again", DISTURBED),
    ("upheld_where_nothing_moves", STANDING),
    ("who_is_down_decides", check_crashes),
]
IN_TEXT: list[tuple[str, int, Callable[[], Any]]] = [
    ("the_truth_survives", 2, EQUAL),
    ("the_truth_survives", 2, PLAIN),
    ("the_truth_survives", 1, partial(check_reset_is_total, UNTOLD)),
    ("noise_by_lane", 2, EQUAL),
    ("noise_by_lane", 1, partial(check_every_number_follows_the_law, TALK, 7)),
    ("physics_of_the_ended_stops", 2, EQUAL),
    ("physics_of_the_ended_stops", 1, partial(check_no_lost_update, UNTOLD)),
    ("infos_before_the_hook", 2, INFORMED),
    ("neighbours_hear_before_the_hook", 2, DISTURBED),
    ("nobody_begins_in_the_next_step", 2, NEXT_STEP),
    ("an_error_is_not_told", 2, FAILING_LAST),
    ("answers_are_ignored", 2, FAILING),
    ("after_an_error_more_is_called", 2, FAILING_PLAIN),
    ("after_a_refusal_python_is_called", 2, REFUSED),
]
"""Of faults in the text of what all lanes share, those of so many lanes or more have it."""
TEXTS: list[tuple[str, Callable[[], Any]]] = [
    ("text_drops_commands", PLAIN),
    ("text_of_lane_zero", EQUAL),
    ("text_lets_the_ended_act", PLAIN),
]


def _name(case: Any) -> str:
    if isinstance(case, str | int):
        return str(case)
    return case.func.__name__ if isinstance(case, partial) else case.__name__


@pytest.mark.parametrize(("name", "law"), CASES, ids=_name)
def test_a_fault_around_the_loops_breaks_its_law(name: str, law: Callable[[], Any]) -> None:
    require_caught(PLANTED[name], law)


@pytest.mark.parametrize("law", [EQUAL, NEXT_STEP, DISABLED, DISTURBED, STANDING, INFORMED, FAILING, REFUSED])
def test_the_text_of_a_step_holds_run_by_python(law: Callable[[], Any]) -> None:
    with uncompiled_kernels(least=2):
        law()


@pytest.mark.parametrize(("name", "least", "law"), IN_TEXT, ids=_name)
def test_a_fault_in_the_text_of_a_step_breaks_its_law(name: str, least: int, law: Callable[[], Any]) -> None:
    require_caught(partial(uncompiled_kernels, STEPPED[name], least), law)


@pytest.mark.e2e  # each compiles all loops anew
@pytest.mark.parametrize(("name", "law"), TEXTS, ids=_name)
def test_a_fault_in_the_text_breaks_its_law(
    name: str, law: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_held(law)
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    require_caught(WRITTEN[name], law)


def test_every_mutant_has_its_law() -> None:
    assert {name for name, _ in CASES} == PLANTED.keys()
    assert {name for name, _, _ in IN_TEXT} == STEPPED.keys()
    assert {name for name, _ in TEXTS} == WRITTEN.keys()
