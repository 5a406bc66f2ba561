"""Asked aside, the clock going on: the course of a clock that waited, and was told how long the answer took (T23)."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks import RECORD, assert_same_course
from laws.examples import ENDING, FIELD, SLOW
from laws.shelf import Shelf, hand_over
from laws.test_plain_clock import disturbances, networks, worlds
from laws.voices import Choir, Voice, thinks, voices
from strategies import Recipe

from heron_env import ScheduleConfig
from heron_env.envs.event import thinking

MOMENT = 1e-6
NOOP = ScheduleConfig(act_delay=0.3, on_missing="noop")


def check_aside(
    recipe: Recipe, schedule: Any, *, kind: Any, most: int = 2, early: Callable[[], bool] = bool, **given: Any
) -> Any:
    """`early`: is an answer handed over at once, or when the next event lies behind the time at which it falls?"""
    some = thinks(recipe.dt, most)

    def took(asked: Any) -> float:
        return some(asked) + MOMENT  # an answer that was asked aside takes a while, if only a moment

    made, given = voices(kind, took), {"schedule": schedule, "record": RECORD, "trace": True, "seed": 0, **given}
    env = recipe.build()
    waited = env.run_event_driven(made(recipe.policies(env)), **given)
    run = env.start_event_driven(made(recipe.policies(env)), **given)
    shelf = Shelf()
    run.think_in_threads(shelf)
    hand_over(run, shelf, took, early)
    went_on = run.result()
    assert_same_course(waited, went_on)
    assert waited.busy == went_on.busy, "somebody was asked otherwise"
    for agent, origins in waited.origins.items():  # an answer that has not come at the end has none
        found = went_on.origins[agent]
        assert found == origins[: len(found)] and len(found) >= len(origins) - 1, "answers came from elsewhere"
    assert waited.messages == went_on.messages and waited.letters == went_on.letters, "other messages"
    counts = [(one.unfinished_effects, one.cancelled_effects) for one in (waited, went_on)]
    assert counts[0] == counts[1], "other effects were left over"
    rows = [[(r.t_ns, r.kind, r.agent, r.number) for r in one.trace or ()] for one in (waited, went_on)]
    assert rows[0] == rows[1], "other events"
    return went_on


@pytest.mark.parametrize("kind", [Voice, Choir])
@pytest.mark.parametrize("early", [lambda: True, lambda: False], ids=["early", "late"])
def test_the_course_is_that_of_a_clock_that_waited(kind: Any, early: Any) -> None:
    for recipe, schedule in ((FIELD, SLOW), (FIELD, NOOP), (ENDING, SLOW)):
        check_aside(recipe, schedule, kind=kind, early=early)
    found = check_aside(FIELD, SLOW, kind=kind, early=early, most=4)
    assert sum(found.busy.values()) > 0


@settings(max_examples=max(60, settings().max_examples))
@given(st.data())
def test_so_it_is_in_any_world(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    flips = data.draw(st.randoms(use_true_random=False))
    check_aside(
        recipe,
        data.draw(networks(recipe)),
        kind=data.draw(st.sampled_from([Voice, Choir])),
        most=data.draw(st.sampled_from([1, 4])),
        early=lambda: flips.random() < 0.5,
        seed=data.draw(st.integers(0, 3)),
        t_end=data.draw(st.sampled_from([None, None, 2.5 * recipe.dt])),
        disturbances=data.draw(disturbances(recipe)),
    )


def _falls_at_once(original: Any) -> Any:
    return lambda self, came, now: original(
        self, came._replace(said=[type(a)(a.action, a.letters, 0.0, a.origin) for a in came.said]), now
    )


def _looks_on(original: Any) -> Any:
    def hear(self: Any, answer: Any, kind: Any, rank: int, *rest: Any) -> Any:
        told = original(self, answer, kind, rank, *rest)
        if isinstance(answer, thinking.Promise):
            self.thinking.pop(rank)
        return told

    return hear


@pytest.mark.parametrize(("name", "fault"), [("come", _falls_at_once), ("accept", _looks_on)])
def test_a_planted_fault_breaks_it(name: str, fault: Any) -> None:
    with (
        patch.object(thinking.AnswerLoop, name, fault(getattr(thinking.AnswerLoop, name))),
        pytest.raises(AssertionError),
    ):
        check_aside(FIELD, SLOW, kind=Choir, most=4, early=lambda: True)
