"""Delays of whole steps on the event clock: agents act on what was, which synchronous stepping can be made to do."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_delays import check_whole_steps
from laws.examples import ENDING, FIELD, SEEN, ZONE
from laws.mutants import mutant_in, require_caught
from strategies import Recipe

from heron_env.scheduling.links import Link
from heron_env.scheduling.messages import Leg

LATE = st.integers(0, 3)
WORLDS = {name: replace(recipe, max_steps=10) for name, recipe in (("field", FIELD), ("zone", ZONE), ("seen", SEEN))}
WORLDS["ending"] = replace(ENDING, max_steps=10, root=replace(ENDING.root, children=ENDING.root.children[:1]))


@settings(max_examples=max(30, settings().max_examples // 10))
@given(st.sampled_from([*WORLDS.values()]), LATE, LATE, st.sampled_from(["proxy", "local"]), st.integers(0, 3))
def test_agents_act_on_what_was(recipe: Recipe, seeing: int, acting: int, own_rows: str, seed: int) -> None:
    check_whole_steps(recipe, seeing, acting, own_rows, seed)


MUTANTS: dict[str, Any] = {}
mutant = mutant_in(MUTANTS)


@mutant(Link, "delay")
def seen_a_step_early(original: Any) -> Any:
    """An age of two steps is one of one."""
    return lambda self, nominal, cause, leg, *rest: original(
        self, nominal // 2 if leg == Leg.GATHERING else nominal, cause, leg, *rest
    )


@mutant(Link, "delay")
def done_a_step_early(original: Any) -> Any:
    return lambda self, nominal, cause, leg, *rest: original(
        self, nominal // 2 if leg == Leg.ACTION else nominal, cause, leg, *rest
    )


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_faults_are_caught(name: str) -> None:
    require_caught(MUTANTS[name], partial(check_whole_steps, WORLDS["field"], 2, 2))
