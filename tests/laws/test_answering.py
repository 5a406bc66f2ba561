"""Policies that know who asks: the same course in both clocks, thinking as the law says, nobody unaccounted for."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks import RECORD, assert_same_course
from laws.checks_clock import check_plain_clock, same_question, set_of
from laws.examples import ENDING, FIELD, SLOW, ZONE
from laws.mutants import require_caught
from laws.mutants_answering import ANSWER_MUTANTS
from laws.test_plain_clock import disturbances, networks, worlds
from laws.voices import Choir, Voice, at_once, thinks, voices
from strategies import Recipe, recipes, ticks

from heron_env import ScheduleConfig

UNEQUAL = {"*": ScheduleConfig(tick_interval=2.0, phase=1.0), "field": ScheduleConfig(tick_interval=1.0)}
KINDS = st.sampled_from([Voice, Choir])


def check_answering_parity(recipe: Recipe, schedule: Any = None, wait: float | None = None, kind: Any = Choir) -> None:
    """Without delays the clocks ask the same, in the same order, and go the same course; thinking nothing changes."""
    env, made = recipe.build(schedule), voices(kind, moody=True)
    heard, others = made(recipe.policies(env)), made(recipe.policies(env))
    sync = env.run_synchronous(heard, seed=3, record=RECORD)
    event = env.run_event_driven(others, seed=3, wait=wait, record=RECORD)
    assert_same_course(sync, event)
    assert sync.origins == event.origins, "answers came from elsewhere"
    assert sync.busy == event.busy and not any(event.busy.values()), "somebody was busy"
    for mine, theirs in zip(set_of(heard), set_of(others), strict=True):
        assert mine.begun == theirs.begun == [(3, 0)], "episodes began otherwise"
        for one, two in zip(mine.log, theirs.log, strict=False):
            same_question(one, two)
        assert len(mine.log) == len(theirs.log)
        if kind is Choir:
            assert mine.batches == theirs.batches, "others were asked together"


def check_old_forms_are_untouched(recipe: Recipe, schedule: Any = None) -> None:
    """A policy that answers at once is the function that it asks: the same course, and the same trace but for it."""
    env = recipe.build()
    runs = [
        env.run_event_driven(policies, seed=1, schedule=schedule, trace=True, record=RECORD)
        for policies in (recipe.policies(env), voices(Choir)(recipe.policies(env)))
    ]
    assert_same_course(*runs)
    mine, theirs = ([r for r in run.trace or () if r.kind != "Answered"] for run in runs)
    assert [(r.t_ns, r.kind, r.agent, r.number, r.latency) for r in mine] == [
        (r.t_ns, r.kind, r.agent, r.number, r.latency) for r in theirs
    ]
    assert runs[0].messages == runs[1].messages
    assert not runs[0].busy and not runs[0].origins and runs[0].deterministic
    sync = [env.run_synchronous(made(recipe.policies(env)), seed=1, record=RECORD) for made in (dict, voices(Choir))]
    assert_same_course(*sync)


CASES = [
    ("answers_in_disorder", partial(check_answering_parity, FIELD)),
    ("numbers_of_ones_own", partial(check_answering_parity, ZONE, UNEQUAL)),
    ("begun_after_the_first_question", partial(check_answering_parity, FIELD)),
    ("a_thought_falls_at_once", partial(check_plain_clock, FIELD, SLOW, voices=voices(Choir, thinks(1.0, 2)))),
    ("the_busy_are_asked", partial(check_plain_clock, FIELD, SLOW, voices=voices(Choir, thinks(1.0, 2)))),
    ("thoughts_of_the_ended_fall", partial(check_plain_clock, ENDING, SLOW, voices=voices(Choir, thinks(1.0, 2)))),
    (
        "thoughts_at_the_end_are_forgotten",
        partial(check_plain_clock, FIELD, SLOW, voices=voices(Choir, thinks(1.0, 8))),
    ),
]


@pytest.mark.parametrize(("name", "law"), CASES, ids=[name for name, _ in CASES])
def test_a_planted_fault_breaks_its_law(name: str, law: Any) -> None:
    require_caught(ANSWER_MUTANTS[name], law)


def test_every_mutant_has_its_law() -> None:
    assert {name for name, _ in CASES} == ANSWER_MUTANTS.keys()


@given(st.data())
def test_two_clocks_ask_the_same(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    wait = data.draw(st.sampled_from([None, recipe.dt / 100]))
    check_answering_parity(recipe, data.draw(ticks(recipe)), wait, data.draw(KINDS))


@given(st.data())
def test_old_forms_are_untouched(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    check_old_forms_are_untouched(recipe, data.draw(networks(recipe)))


@settings(max_examples=max(60, settings().max_examples))
@given(st.data())
def test_thinking_is_that_of_the_plain_clock(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    thinking = data.draw(st.sampled_from([at_once, thinks(recipe.dt, 1), thinks(recipe.dt, 4)]))
    check_plain_clock(
        recipe,
        data.draw(networks(recipe)),
        seed=data.draw(st.integers(0, 3)),
        t_end=data.draw(st.sampled_from([None, None, 2.5 * recipe.dt])),
        looks=1,
        disturbances=data.draw(disturbances(recipe)),
        voices=voices(data.draw(KINDS), thinking, each=data.draw(st.booleans())),
    )
