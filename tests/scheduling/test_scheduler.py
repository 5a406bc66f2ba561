"""T2: the heap's order is (ns, phase, rank, order of scheduling), whatever the events are."""

import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from heron_env import EventScheduler
from heron_env.errors import ScheduleError
from heron_env.testing import clock

KEYS = st.tuples(st.integers(0, 5), st.integers(0, 10), st.integers(0, 3))


class Incomparable:
    """An event that must never be compared, or even looked at."""

    __eq__ = __lt__ = __hash__ = None  # type: ignore[assignment]


def test_the_phases_are_in_the_order_of_the_specification() -> None:
    assert [(phase.name, int(phase)) for phase in clock.Phase] == [
        ("PHYSICS", 0), ("REWARD", 1), ("CLOSE", 2), ("ENV_UPDATE", 3), ("AGENT_TICK", 4), ("REQUEST", 5),
        ("REPLY", 6), ("COMMAND", 7), ("ACTION_EFFECT", 8), ("REPORT", 9),
    ]  # fmt: skip


@given(st.lists(KEYS))
def test_events_come_out_in_sorted_order_and_ties_in_order_of_scheduling(keys: list[tuple[int, int, int]]) -> None:
    scheduler = EventScheduler()
    for number, key in enumerate(keys):
        scheduler.schedule(*key, number)
    assert len(scheduler) == len(keys)
    expected = sorted((*key, number) for number, key in enumerate(keys))
    assert list(scheduler) == [number for *_, number in expected]
    popped = []
    while scheduler:
        assert scheduler.peek() == expected[len(popped)][0]
        popped.append(scheduler.pop())
        assert scheduler.now == popped[-1][0]
    assert popped == expected
    assert scheduler.peek() is None


@given(st.lists(st.tuples(st.booleans(), KEYS), max_size=60))
def test_the_clock_never_runs_backwards_while_events_schedule_others(
    steps: list[tuple[bool, tuple[int, int, int]]],
) -> None:
    scheduler, times = EventScheduler(), [0]
    for pop, (delay, phase, rank) in steps:
        if pop and scheduler:
            times.append(scheduler.pop()[0])
        else:
            scheduler.schedule(scheduler.now + delay, phase, rank, None)
    assert times == sorted(times)


def test_events_are_never_compared() -> None:
    scheduler = EventScheduler()
    for _ in range(3):
        scheduler.schedule(1, clock.Phase.REPLY, 0, Incomparable())
    assert len(list(scheduler)) == 3
    assert [scheduler.pop()[:3] for _ in range(3)] == [(1, clock.Phase.REPLY, 0)] * 3


def test_a_message_of_the_physics_cycle_precedes_a_request_of_a_higher_agent_at_the_same_instant() -> None:
    scheduler = EventScheduler()
    scheduler.schedule(5, clock.Phase.REQUEST, 0, "request of rank 0")
    scheduler.schedule(5, clock.Phase.AGENT_TICK, 7, "tick of rank 7")
    scheduler.schedule(5, clock.Phase.PHYSICS, 9, "leg 4 of rank 9")
    assert [scheduler.pop()[3] for _ in range(3)] == ["leg 4 of rank 9", "tick of rank 7", "request of rank 0"]


def test_the_past_is_refused() -> None:
    scheduler = EventScheduler()
    scheduler.schedule(10, clock.Phase.AGENT_TICK, 0, clock.AgentTick(0, 1))
    scheduler.pop()
    scheduler.schedule(10, clock.Phase.AGENT_TICK, 0, clock.AgentTick(0, 2))
    with refuses(ScheduleError, "can't schedule AgentTick at 9 ns: the clock is at 10 ns already"):
        scheduler.schedule(9, clock.Phase.AGENT_TICK, 0, clock.AgentTick(0, 3))
    assert len(scheduler) == 1


def test_an_empty_heap_has_nothing_to_pop() -> None:
    with pytest.raises(IndexError):
        EventScheduler().pop()


def test_reset_forgets_everything() -> None:
    scheduler = EventScheduler()
    scheduler.schedule(10, clock.Phase.PHYSICS, 0, clock.Simulation(0, 0))
    scheduler.schedule(11, clock.Phase.CLOSE, 0, clock.CloseEpisode(0))
    scheduler.pop()
    scheduler.reset()
    assert (scheduler.now, len(scheduler), scheduler.peek()) == (0, 0, None)
    scheduler.schedule(0, clock.Phase.PHYSICS, 0, "again")
    assert scheduler.pop() == (0, clock.Phase.PHYSICS, 0, "again")


EVENTS = (
    clock.AgentTick(0, 1),
    clock.Deadline(0, 1),
    clock.Simulation(0, 1),
    clock.CloseEpisode(0),
    clock.ActionEffect(0, 1, np.zeros(2)),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_are_frozen_data(event: Any) -> None:
    assert not hasattr(event, "__dict__")
    assert repr(pickle.loads(pickle.dumps(event))) == repr(event)
    with pytest.raises(AttributeError):
        setattr(event, fields(event)[0].name, 1)
