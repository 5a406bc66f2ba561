"""T1, T7, T10: what a schedule may say, whom it reaches, and when an agent ticks."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from strategies import schedules

from heron_env import GilbertElliott, Medium, Reliable, ScheduleConfig
from heron_env.errors import RemovedName, ScheduleError
from heron_env.testing import clock

IDS = ("system_agent", "zone_1", "battery_1", "battery_2", "battery_3")
LEVELS = (3, 2, 1, 1, 1)
GROUPS = {"zone": ["zone_1"], "battery": ["battery_1", "battery_2"], "battery:1": ["battery_3"]}


def resolved(schedule: Any, dt: float = 1.0) -> dict[str, clock.Timing]:
    timings = clock.resolve(schedule, ids=IDS, levels=LEVELS, groups=GROUPS, dt_ns=clock.to_ns(dt, "dt"))
    return dict(zip(IDS, timings, strict=True))


# Seconds and nanoseconds


def test_a_time_is_rounded_to_nanoseconds_once() -> None:
    assert clock.to_ns(0.1, "dt") == 100_000_000
    assert clock.to_ns(0.1 + 0.2, "dt") == 300_000_000
    assert clock.to_ns(1 / 3, "dt") == 333_333_333
    assert clock.to_ns(np.float32(0.5), "dt") == 500_000_000
    assert clock.to_ns(np.int64(7), "dt") == 7 * clock.SECOND


@given(st.integers(0, 10**15))
def test_nanoseconds_survive_the_way_to_seconds_and_back(ns: int) -> None:
    assert clock.to_ns(clock.to_seconds(ns), "t") == ns


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "t_end=nan: must be finite"),
        (math.inf, "t_end=inf: must be finite"),
        (True, "t_end=True: must be a number, got bool"),
        (np.True_, "t_end=np.True_: must be a number, got bool"),
        (None, "t_end=None: must be a number, got NoneType"),
        (1e10, "t_end=10000000000.0: must be below 9.2e9 seconds (time is kept in int64 ns)"),
    ],
)
def test_an_impossible_time_is_refused_by_name(value: Any, message: str) -> None:
    with refuses(ScheduleError, message):
        clock.to_ns(value, "t_end")


# What a schedule may say


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"loss": -0.1}, "ScheduleConfig(loss=-0.1): must be between 0 and 1"),
        ({"loss": math.nan}, "ScheduleConfig(loss=nan): must be finite"),
        ({"obs_delay": math.nan}, "ScheduleConfig(obs_delay=nan): must be finite"),
        ({"act_delay": "1"}, "ScheduleConfig(act_delay='1'): must be a number, got str"),
        ({"phase": -1}, "ScheduleConfig(phase=-1): must be 0 or more, in seconds"),
        ({"min_delay": math.inf}, "ScheduleConfig(min_delay=inf): must be finite"),
        ({"tick_interval": -5.0}, "ScheduleConfig(tick_interval=-5.0): must be 0 or more, in seconds"),
        ({"jitter_type": None},
         "ScheduleConfig(jitter_type=None): must be one of 'none', 'uniform', 'gaussian', 'lognormal'. "
         "Did you mean 'none'?"),
        ({"jitter_type": "uniform", "jitter_ratio": -1.0}, "ScheduleConfig(jitter_ratio=-1.0): must be 0 or more"),
        ({"tick_jitter_ratio": 0.1},
         "ScheduleConfig(tick_jitter_ratio=0.1): needs jitter_type='uniform', 'gaussian' or 'lognormal'"),
        ({"reorder": 1}, "ScheduleConfig(reorder=1): must be True or False"),
        ({"on_missing": "nop"},
         "ScheduleConfig(on_missing='nop'): must be one of 'hold', 'noop'. Did you mean 'noop'?"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_refused_with_its_value_and_the_remedy(fields: dict[str, Any], message: str) -> None:
    with refuses(ScheduleError, message):
        ScheduleConfig(**fields)


def test_the_extremes_are_legal() -> None:
    ScheduleConfig(loss=1, jitter_type="gaussian", jitter_ratio=0.0)
    ScheduleConfig(jitter_type="lognormal", jitter_ratio=3)
    ScheduleConfig(tick_interval=1e-9, loss=np.float64(0.5))


def test_a_schedule_is_a_value() -> None:
    config = ScheduleConfig(msg_delay=0.2)
    assert config == ScheduleConfig(msg_delay=0.2)
    assert len({config, ScheduleConfig(msg_delay=0.2)}) == 1
    assert pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(AttributeError):
        config.msg_delay = 1.0  # type: ignore[misc]


# Whom a schedule reaches


def test_without_a_schedule_every_agent_ticks_each_dt_without_delay() -> None:
    for agent, timing in resolved(None, dt=0.5).items():
        assert timing == clock.Timing(agent, clock.SECOND // 2, 0, 0, 0, 0, 0, ScheduleConfig())


def test_seconds_become_nanoseconds() -> None:
    config = ScheduleConfig(tick_interval=5, phase=5.0, obs_delay=0.1, act_delay=0.5, msg_delay=0.2, min_delay=0.01)
    timing = resolved(config)["battery_1"]
    times = (timing.tick, timing.phase, timing.obs, timing.act, timing.msg, timing.min_delay)
    assert times == (
        5 * clock.SECOND,
        5 * clock.SECOND,
        clock.SECOND // 10,
        clock.SECOND // 2,
        clock.SECOND // 5,
        clock.SECOND // 100,
    )
    assert timing.config is config


def test_agent_before_group_before_level_before_star_before_the_default() -> None:
    by_agent, by_group, by_level, by_star = (ScheduleConfig(msg_delay=float(delay)) for delay in (1, 2, 3, 4))
    mapping = {"*": by_star, "field": by_level, "battery": by_group, "battery_1": by_agent}
    timings = resolved(mapping)
    assert {agent: timing.config for agent, timing in timings.items()} == {
        "system_agent": by_star,
        "zone_1": by_star,
        "battery_1": by_agent,
        "battery_2": by_group,
        "battery_3": by_level,
    }
    del mapping["*"]
    assert resolved(mapping)["zone_1"].config == ScheduleConfig()


def test_the_order_of_a_mapping_means_nothing() -> None:
    mapping = {key: ScheduleConfig(msg_delay=0.1 * n) for n, key in enumerate(("*", 1, "zone", "battery_2"))}
    assert resolved(mapping) == resolved(dict(reversed(mapping.items())))


@pytest.mark.parametrize(("number", "name"), [(1, "field"), (2, "coordinator"), (3, "system")])
def test_a_level_has_a_number_and_a_name(number: int, name: str) -> None:
    config = ScheduleConfig(msg_delay=1.0)
    assert resolved({number: config}) == resolved({name: config})
    reached = {agent for agent, timing in resolved({number: config}).items() if timing.config is config}
    assert reached == {agent for agent, level in zip(IDS, LEVELS, strict=True) if level == number}


def test_an_id_that_is_also_a_level_or_a_group_means_the_agent_or_both() -> None:
    config = ScheduleConfig(msg_delay=1.0)
    timings = clock.resolve({"field": config}, ids=("field", "a"), levels=(3, 1), groups={}, dt_ns=clock.SECOND)
    assert [timing.config is config for timing in timings] == [True, False]
    timings = clock.resolve(
        {"a": config}, ids=("a", "b", "c"), levels=(1, 1, 1), groups={"a": ["a", "b"]}, dt_ns=clock.SECOND
    )
    assert [timing.config is config for timing in timings] == [True, True, False]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({4: ScheduleConfig()},
         "schedule[4]: no such agent, group or level; groups are ['battery', 'battery:1', 'zone'], levels "
         "1, 2, 3 or 'field', 'coordinator', 'system', and '*' means all."),
        ({True: ScheduleConfig()},
         "schedule[True]: no such agent, group or level; groups are ['battery', 'battery:1', 'zone'], levels "
         "1, 2, 3 or 'field', 'coordinator', 'system', and '*' means all."),
        ({"zone": {"loss": 0.1}}, "schedule['zone']={'loss': 0.1}: must be a ScheduleConfig, got dict; "
         "write ScheduleConfig(tick_interval=...)"),
        ({"system": ScheduleConfig(), 3: ScheduleConfig()},
         "schedule[3]: the entry 'system' means the same level; keep one"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named(schedule: Any, message: str) -> None:
    with refuses(ScheduleError, message):
        resolved(schedule)


# Ticks


def test_an_agent_is_active_from_its_phase_on_and_then_each_tick() -> None:
    timing = clock.Timing.of("a", ScheduleConfig(tick_interval=3.0, phase=2.0), clock.SECOND)
    assert [step for step in range(12) if timing.ticks_at(step * clock.SECOND)] == [2, 5, 8, 11]


@given(st.integers(1, 7), st.integers(0, 9), st.integers(1, 10**10))
def test_active_steps_are_the_nominal_ticks(tick: int, phase: int, dt_ns: int) -> None:
    timing = clock.Timing("a", tick * dt_ns, phase * dt_ns, 0, 0, 0, 0, ScheduleConfig())
    active = [step * dt_ns for step in range(60) if timing.ticks_at(step * dt_ns)]
    assert active == [timing.nominal(number) for number in range(len(active))]
    timing.require_multiples_of(dt_ns)


@given(schedules(IDS, dt=0.1, synchronous=True))
def test_every_schedule_of_whole_steps_suits_the_synchronous_clock(schedule: Any) -> None:
    for timing in resolved(schedule, dt=0.1).values():
        timing.require_multiples_of(clock.SECOND // 10)


@given(schedules(IDS))
def test_every_agent_has_one_timing_and_its_own_entry_wins(schedule: Any) -> None:
    timings = resolved(schedule)
    assert [timing.agent for timing in timings.values()] == list(IDS)
    if isinstance(schedule, dict):
        assert all(timings[key].config is config for key, config in schedule.items() if key in timings)


def test_a_field_that_is_gone_says_what_takes_its_place() -> None:
    for value in (0.1, 0.0):
        with pytest.raises(
            RemovedName, match=r"duplicate=.*Reliable\(rto=0.0, tries=2\) sends again what was lost, and pays for it$"
        ):
            ScheduleConfig(duplicate=value)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"loss": 1.0, "transport": Reliable()}, "loss=1.0.: nothing would ever arrive"),
        ({"loss": 1, "transport": Reliable(gaps=True)}, "loss=1.: nothing would ever arrive"),
        ({"medium": Medium(order="priority"), "priority": 2**70}, "priority=.*within 2"),
        ({"medium": Medium(), "keep": 2**70}, "keep=.*whole number"),
    ],
)
def test_what_waits_for_ever_or_is_beyond_all_numbers_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        ScheduleConfig(**fields)
    ScheduleConfig(loss=1.0, transport=Reliable(tries=2))
    ScheduleConfig(loss=GilbertElliott(0.5, 0.5, 1.0, 0.0, 1.0), transport=Reliable())


def test_a_medium_that_is_as_slow_as_can_be_stays_in_time() -> None:
    slow = Medium(rate=5e-324, overhead=1e15)
    assert slow.work(1e15) == 2**62 and Medium(rate=1000.0).work(20.0) == 20_000_000
