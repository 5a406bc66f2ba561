"""What happens when a command or an observation is late (T11)."""

from laws.examples import ZONE
from strategies import Node, Recipe

from heron_env import ScheduleConfig

LATE = {"msg_delay": 0.8}
ALONE = Recipe(Node("system", children=(Node("unit"),)), max_steps=6)


def test_a_late_command_is_dropped_and_the_noop_counts() -> None:
    env = ZONE.build()
    result = env.run_event_driven(ZONE.policies(env), seed=0, schedule=ScheduleConfig(**LATE, on_missing="noop"))
    assert [t for t, _ in result.actions["unit_2"]] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert all(values.tolist() == [0.0] for _, values in result.actions["unit_2"])


def test_with_hold_a_late_command_still_counts() -> None:
    env = ZONE.build()
    policies = ZONE.policies(env)
    result = env.run_event_driven(policies, seed=0, schedule=ScheduleConfig(**LATE))
    assert [round(t, 9) for t, _ in result.actions["unit_2"]] == [2.4, 3.4, 4.4, 5.4]
    told = [action[:1].tolist() for action in policies["zone_1"].log]
    assert [values.tolist() for _, values in result.actions["unit_2"]] == told[:4]


def test_a_late_observation_is_not_decided_on_and_the_noop_counts() -> None:
    env = ALONE.build()
    policies = ALONE.policies(env)
    result = env.run_event_driven(policies, seed=0, schedule=ScheduleConfig(**LATE, on_missing="noop"))
    assert [(t, values.tolist()) for t, values in result.actions["unit_1"]] == [
        (t, [0.0]) for t in (1.0, 2.0, 3.0, 4.0, 5.0)
    ]
    assert not policies["unit_1"].log


def test_a_command_in_time_leaves_nothing_to_replace() -> None:
    env = ZONE.build()
    policies = ZONE.policies(env)
    config = ScheduleConfig(msg_delay=0.2, on_missing="noop")
    result = env.run_event_driven(policies, seed=0, schedule=config)
    told = [action[:1].tolist() for action in policies["zone_1"].log]
    assert [values.tolist() for _, values in result.actions["unit_2"]] == told
    assert [round(t, 9) for t, _ in result.actions["unit_2"]] == [0.6, 1.6, 2.6, 3.6, 4.6, 5.6]


def test_nobody_waits_for_a_coordinator_that_has_ended() -> None:
    team = Node("zone", protocol="vector", at=2, children=(Node("unit"),))
    recipe = Recipe(Node("system", protocol="vector", children=(team, Node("unit"))), max_steps=5)
    schedule = ScheduleConfig(on_missing="noop")
    env = recipe.build(schedule)
    result = env.run_event_driven(recipe.policies(env), seed=0)
    assert [t for t, _ in result.actions["unit_2"]] == [0.0, 1.0]
    assert [t for t, _ in result.actions["unit_3"]] == [0.0, 1.0, 2.0, 3.0, 4.0]
