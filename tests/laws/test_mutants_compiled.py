"""The laws bite on compiled code: each fault in its tables, around its loops or in its text is caught by a law."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from laws.checks import check_copies_go_on, check_no_lost_update, check_parity, check_reset_is_total
from laws.checks_batch import Script, check_batch, check_compiled_is_plain, check_infos_are_the_truth
from laws.checks_noise import check_every_number_follows_the_law
from laws.examples import SLOW, TALK
from laws.mutants import require_caught, require_held
from laws.mutants_compiled import PLANTED, WRITTEN
from laws.test_lanes import check_examples
from strategies import talking

UNTOLD = replace(TALK, root=talking(TALK.root, ""))
RESETS = {2: ((True, False, False), None), 5: ((False, True), (5, 3))}
SHORT = Script(3, turns=7, resets=RESETS)
EQUAL, PLAIN = partial(check_batch, TALK, SHORT), partial(check_compiled_is_plain, TALK, SHORT)
THREADED = partial(check_batch, TALK, replace(SHORT, threads=2))
NEXT_STEP = partial(check_batch, TALK, replace(SHORT, autoreset="next_step", turns=12))

CASES: list[tuple[str, Callable[[], Any]]] = [
    ("actions_of_another_lane", EQUAL),
    ("overlapping_ranges", THREADED),
    ("the_truth_survives", PLAIN),
    ("the_truth_survives", partial(check_reset_is_total, UNTOLD)),
    ("noise_by_lane", EQUAL),
    ("noise_by_lane", partial(check_every_number_follows_the_law, TALK, 7)),
    ("commands_to_the_wrong_child", check_examples),
    ("commands_to_the_wrong_child", partial(check_parity, UNTOLD)),
    ("physics_of_the_ended_stops", partial(check_no_lost_update, UNTOLD)),
    ("the_episode_stays", EQUAL),
    ("everyone_begins_anew", EQUAL),
    ("hooks_of_all_lanes", NEXT_STEP),
    ("the_ended_go_on_telling", EQUAL),
    ("infos_before_the_hook", partial(check_infos_are_the_truth, TALK, SHORT)),
    ("an_effect_is_lost", partial(check_no_lost_update, UNTOLD, SLOW)),
    ("the_ended_come_back_compiled", partial(check_copies_go_on, TALK, None, 3, "set_state")),
]
TEXTS: list[tuple[str, Callable[[], Any]]] = [
    ("text_drops_commands", PLAIN),
    ("text_of_lane_zero", EQUAL),
    ("text_lets_the_ended_act", PLAIN),
]


def _name(case: Any) -> str:
    if isinstance(case, str):
        return case
    return case.func.__name__ if isinstance(case, partial) else case.__name__


@pytest.mark.parametrize(("name", "law"), CASES, ids=_name)
def test_a_fault_around_the_loops_breaks_its_law(name: str, law: Callable[[], Any]) -> None:
    require_caught(PLANTED[name], law)


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
    assert {name for name, _ in TEXTS} == WRITTEN.keys()
