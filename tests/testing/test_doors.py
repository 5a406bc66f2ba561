"""What `inspect` says is what the environment holds, now and a step later; `clock` has what a trace is made of."""

import pytest

import heron_env.testing
from heron_env import ScheduleConfig, make
from heron_env.testing import Source, clock, inspect


def test_a_look_at_an_environment_is_always_at_its_present_state() -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3, compile=False)
    env.reset(seed=0)
    inside = inspect(env)
    assert (inside.step, inside.alive) == (0, env.hierarchy.ids)
    assert inside.sources["battery_1"] is Source.NONE
    row = inside.layout.rows[inside.rank("battery_1")]
    before = inside.truth[row.offset]
    env.step({"battery_1": [0.5]})
    assert inside.step == 1
    assert inside.truth[row.offset] != before
    assert (inside.sources["battery_1"], inside.sources["battery_2"]) == (Source.EXPLICIT, Source.NOOP)
    inside.truth[row.offset] = 0.25
    assert env.state()[row.offset] == 0.25
    env.step({})
    env.step({})
    assert inside.alive == ()


def test_the_records_of_a_trace_are_of_the_classes_of_the_clock() -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3, compile=False)
    schedule = ScheduleConfig(msg_delay=0.2)
    result = env.run_event_driven({"*": lambda vector: [0.5]}, seed=0, schedule=schedule, trace=True)
    payloads = [record.payload for record in result.trace if record.payload is not None]
    assert {type(one).__name__ for one in payloads} <= set(clock.__all__)
    assert {one.leg for one in payloads if isinstance(one, clock.ObservationRequest)} == {clock.Leg.OBSERVATION_REQUEST}


def test_a_link_is_that_of_the_run() -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3, compile=False)
    schedule = ScheduleConfig(msg_delay=0.2, jitter_type="uniform", jitter_ratio=0.5)
    result = env.run_event_driven({"*": lambda vector: [0.5]}, seed=7, schedule=schedule, trace=True)
    link = clock.link("battery_1", schedule, seed=7, dt=env.dt)
    drawn = [link.delay(clock.SECOND // 5, "tick", clock.Leg.OBSERVATION_REQUEST, number) for number in range(3)]
    rank = inspect(env).rank("battery_1")
    found = [r.latency for r in result.trace if (r.kind, r.agent) == ("ObservationRequest", rank)]
    assert found[: len(drawn)] == drawn


@pytest.mark.parametrize("door", [heron_env.testing, clock])
def test_every_name_of_a_door_is_there_and_says_what_it_is(door: object) -> None:
    names = door.__all__  # type: ignore[attr-defined]
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))
    for name in names:
        value = getattr(door, name)
        assert isinstance(value, int | tuple) or value.__doc__, name
