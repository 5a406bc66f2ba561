"""Time is kept in int64 ns and ends after 292 years: what would pass that says so, when built or when it comes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from catalogue.small_world import env
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from heron_env import BatchEnv, HeronEnv, ScheduleConfig, TerminationConfig
from heron_env.errors import ConfigError, ScheduleError
from heron_env.testing.clock import to_seconds

YEAR = 31_557_600.0
ROOM = 292
"""Years in 2**63 ns."""
BEYOND = (
    "time is kept in int64 ns: it ends before 9.2e9 s (292 years); end the episode before, or let dt stand for less"
)


def still(vector: Any) -> Any:
    return np.zeros(1)


def years(**options: Any) -> HeronEnv:
    """Steps of a year, without an end of their own."""
    return env(dt=YEAR, **{"max_steps": None, **options})


def test_as_many_steps_as_there_is_time_for_are_made_in_both_clocks():
    whole = years(max_steps=ROOM)
    for result in (whole.run_synchronous({"*": still}), whole.run_event_driven({"*": still})):
        assert len(result.rewards["battery_1"]) == ROOM
        assert result.end_time == ROOM * YEAR
        assert result.truncated["battery_1"]


@pytest.mark.parametrize("limit", [{"max_steps": 400}, {"max_steps": ROOM + 1}])
def test_more_are_refused_when_the_environment_is_built(limit: dict[str, int]):
    message = (
        f"max_steps={limit['max_steps']} with dt={YEAR} s: that is beyond 9.2e9 s, 292 years, where time ends (it is "
        f"kept in int64 ns); there is room for {ROOM} steps"
    )
    with refuses(ConfigError, message):
        years(**limit)
    assert years(termination=TerminationConfig(max_steps=400, max_sim_time=5 * YEAR)).termination.max_steps == 400


def test_the_boundary_at_which_max_sim_time_ends_counts():
    limit = TerminationConfig(max_sim_time=9.2e9)
    years(max_steps=None, termination=limit)
    with pytest.raises(ConfigError, match=r"max_sim_time=9200000000\.0 s with dt=5000000000\.0 s: that is beyond"):
        env(max_steps=None, dt=5e9, termination=limit)


@given(st.floats(1e-6, 1e9), st.integers(1, 10**14))
def test_the_last_step_is_the_first_boundary_at_or_after_max_sim_time(limit: float, dt_ns: int):
    last = TerminationConfig(max_sim_time=limit).last_step(dt_ns)
    assert to_seconds(last * dt_ns) >= limit
    assert last == 1 or to_seconds((last - 1) * dt_ns) < limit
    assert TerminationConfig(max_sim_time=limit, max_steps=7).last_step(dt_ns) == min(last, 7)


def stepped(world: HeronEnv) -> int:
    world.reset(seed=0)
    for count in range(400):
        try:
            world.step({})
        except ScheduleError as error:
            assert str(error) == f"step(): its end would be at {(ROOM + 1) * YEAR!r} s, and {BEYOND}"
            assert world.get_state()["step"] == count
            return count
    raise AssertionError("time went on")


def lanes(compile: bool) -> Callable[[HeronEnv], int]:
    def stepped_lanes(world: HeronEnv) -> int:
        batch = BatchEnv("heron/BatteryGrid-v0", 2, dt=YEAR, max_steps=None, compile=compile)
        batch.reset(mask=np.array([True, True]))
        for _ in range(5):
            batch.step({})
        batch.reset(mask=np.array([True, False]))
        for count in range(5, 400):
            try:
                batch.step({})
            except ScheduleError as error:
                assert f"would be at {(ROOM + 1) * YEAR!r} s, and {BEYOND}" in str(error)
                return count
        raise AssertionError("time went on")

    return stepped_lanes


@pytest.mark.parametrize("clock", [stepped, lanes(True), lanes(False)], ids=["step", "batch", "copies"])
def test_a_world_without_end_says_so_when_time_ends(clock: Callable[[HeronEnv], int]):
    assert clock(years()) == ROOM


@pytest.mark.parametrize("schedule", [None, ScheduleConfig(tick_interval=9.1e9)], ids=["each step", "rare ticks"])
def test_so_does_the_event_driven_clock(schedule: Any):
    world = years()
    world.simulation._may_end = True  # by a rule that never says so
    with pytest.raises(ScheduleError, match=f"would be at {(ROOM + 1) * YEAR!r} s, and time is kept in int64 ns"):
        world.run_event_driven({"*": still}, schedule=schedule)
    run = world.start_event_driven({"*": still}, schedule=schedule)
    run.until(ROOM * YEAR)
    assert run.state()["step"] == ROOM
    run.until(9.22e9)  # nothing more happens by then, and nothing is wrong
    with pytest.raises(ScheduleError):
        run.until(None)


OFTEN = ScheduleConfig(tick_interval=0.3 * YEAR, msg_delay=0.01 * YEAR)
WAVERING = ScheduleConfig(tick_interval=5e9, msg_delay=9e9, jitter_type="gaussian", tick_jitter_ratio=0.4)


@pytest.mark.e2e
@pytest.mark.parametrize("schedule", [None, ScheduleConfig(tick_interval=9.1e9), OFTEN, WAVERING])
def test_whatever_comes_first_beyond_it_both_event_clocks_name_the_step(schedule: Any):
    world = years(compile=True)
    world.simulation._may_end = True
    with pytest.raises(ScheduleError) as caught:
        world.run_event_driven({"*": still}, schedule=schedule)
    assert str(caught.value) == f"the end of step 292 would be at {(ROOM + 1) * YEAR!r} s, and {BEYOND}"
    batch = all_answered(world, schedule)
    with refuses(ScheduleError, str(caught.value)):
        batch()


def all_answered(world: HeronEnv, schedule: Any = None) -> Callable[[], Any]:
    """Two lanes from their beginning to the end; what they yielded."""

    def batch() -> Any:
        lanes: Any = BatchEnv(world, 2, clock="event", schedule=schedule, autoreset="disabled")
        rows = lanes.begin()
        while len(rows):
            rows = lanes.answer(np.zeros((len(rows), 1)))
        return lanes.results()

    return batch


@pytest.mark.parametrize("substeps", [1, 4])
def test_a_single_step_may_take_all_of_it(substeps: int):
    world = env(dt=9.2e9, max_steps=1, physics_substeps=substeps, compile=True)
    theirs = world.run_event_driven({"*": still})
    for mine in all_answered(world)():
        assert mine.end_time == theirs.end_time == 9.2e9
        assert mine.returns == theirs.returns


def test_a_run_that_goes_from_event_to_event_comes_to_its_end():
    """Seconds of so late a time leave nanoseconds out."""
    often = ScheduleConfig(tick_interval=1e7 / 3, msg_delay=1e6 / 7, jitter_type="uniform", jitter_ratio=0.5)
    run = years(max_steps=3).start_event_driven({"*": still}, schedule=often)
    calls = 0
    while (due := run.due) is not None:
        run.until(due)
        calls += 1
        assert calls < 1000, f"it stays at {due} s"
    assert run.state()["closed"]


def test_a_run_that_is_stopped_before_has_nothing_to_say():
    result = years().run_event_driven({"*": still}, t_end=9.22e9)
    assert result.end_time == 9.22e9
    assert result.truncated["battery_1"]


def test_a_boundary_that_comes_early_counts_as_what_it_is():
    world = years()
    with pytest.raises(ScheduleError, match="the end of step 292 would be at"):
        world.run_event_driven({"*": still}, t_end=9.22e9, wait=1.0)
