"""Disturbances at step boundaries: with all delays 0 both clocks take one course, bit for bit."""

import copy
from typing import Any

import numpy as np
import pytest
from envs.disturbed_world import disturbed
from laws.checks import RECORD, assert_same_course

from heron_env import (
    BatchEnv,
    ConditionMonitor,
    Disturbance,
    ObservabilityConfig,
    ScheduleConfig,
    VectorDecomposition,
)

NOISE = ObservabilityConfig(
    matrix=[["heater_1", "heater_2", "insider", 0.3], ["heater_2", "zone", "insider", 0.1]],
    default={"level": "insider", "noise": 0.0},
)
TICKS = {"*": ScheduleConfig(tick_interval=2.0), "heater_2": ScheduleConfig(tick_interval=3.0, phase=1.0)}
SETS: dict[str, list[Disturbance]] = {
    "world": [
        Disturbance(0.0, "spark", {"heater": 0, "energy": 3.0}),
        Disturbance(3.0, "cold_spell", {"cold": 2.0}, True, duration=4.0),
        Disturbance(3.0, "derating", {"limit": 4.0}, duration=2.0),
        Disturbance(5.0, "cold_spell", {"cold": 0.5}, duration=6.0),
        Disturbance(8.0, "spark", {"heater": 1, "energy": -2.5}, True),
    ],
    "sensors": [
        Disturbance(0.0, "sensor_failure", {"agent": "heater_1"}, duration=3.0),
        Disturbance(4.0, "spark", {"heater": 1, "energy": 9.0}),
        Disturbance(4.0, "sensor_failure", {"agent": "heater_2", "mode": "freeze"}, duration=5.0),
        Disturbance(6.0, "sensor_failure", {"agent": "*"}, duration=2.0),
        Disturbance(10.0, "sensor_failure", {"agent": "zone"}, duration=100.0),
        Disturbance(11.0, "derating", duration=3.0),
    ],
    "crashes": [
        Disturbance(0.0, "agent_crash", {"agent": "heater_1"}, duration=3.0),
        Disturbance(4.0, "agent_crash", {"agent": "heater_2", "meanwhile": "noop"}, duration=5.0),
        Disturbance(6.0, "agent_crash", {"agent": "heater_1", "meanwhile": "noop"}, duration=2.0),
        Disturbance(10.0, "agent_crash", {"agent": "*"}, duration=3.0),
        Disturbance(14.0, "agent_crash", {"agent": "zone", "meanwhile": "noop"}, duration=2.0),
        Disturbance(16.0, "agent_crash", {"agent": "heater"}, duration=2.0),
    ],
}
SETS["all"] = [disturbance for several in SETS.values() for disturbance in several]


def sway(size: int) -> Any:
    return lambda vector: 8.0 * np.sin(np.arange(size) + float(np.sum(vector)))


def both(options: dict[str, Any], disturbances: list[Disturbance], wait: float | None = None) -> tuple[Any, Any]:
    env = disturbed(**options)
    policies = {"*": sway(env.action_space(env.possible_agents[0]).shape[0])}
    sync = env.run_synchronous(policies, seed=1, record=RECORD, disturbances=disturbances)
    truth = env.simulation.truth.tobytes()
    event = env.run_event_driven(policies, seed=1, record=RECORD, disturbances=disturbances, wait=wait)
    assert truth == env.simulation.truth.tobytes(), "the final states differ"
    return sync, event


OWN = {"heater": ScheduleConfig(own_rows="local")}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("world", {"protocol": VectorDecomposition()}),
    ("sensors", {"report_interval": 0.2, "observe_age": True}),
    ("crashes", {"protocol": VectorDecomposition(), "schedule": {"zone": ScheduleConfig(tick_interval=2.0)}}),
    ("all", {}),
    ("all", {"schedule": TICKS}),
    ("all", {"observability": NOISE, "observe_age": True}),
    ("all", {"physics_substeps": 1, "compile": False}),
    ("all", {"report_interval": 0.5, "schedule": OWN, "observe_age": True}),
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_two_clocks_one_course(name: str, options: dict[str, Any]) -> None:
    undisturbed, _ = both(options, [])
    sync, event = both(options, SETS[name])
    assert_same_course(sync, event)
    assert not sync.same_course(undisturbed)


def test_also_where_physics_is_complete_early() -> None:
    assert_same_course(*both({}, SETS["all"], wait=0.01))


def test_step_by_step_it_is_the_same_course() -> None:
    env = disturbed()
    policy = sway(1)
    whole = env.run_synchronous({"*": policy}, seed=1, record=RECORD, disturbances=SETS["all"])
    observations, _ = env.reset(seed=1, options={"disturbances": SETS["all"]})
    rewards = []
    while env.agents:
        if len(rewards) == 7:
            env = copy.deepcopy(env)  # T16: in the middle of everything
        observations, earned, _, _, infos = env.step({a: policy(v) for a, v in observations.items()})
        rewards.append(earned["heater_1"])
        assert env.proxy.get_observation("heater_1").local["Store"].shape == (2,)
        idle = any(begin <= len(rewards) < end for begin, end in ((0, 3), (6, 8), (10, 13), (16, 18), (20, 21)))
        assert infos["heater_1"]["is_active"] == (not idle), len(rewards)
    assert rewards == [value for _, value in whole.rewards["heater_1"]]


@pytest.mark.parametrize("compile", [False, True])
def test_lanes_have_them_too(compile: bool) -> None:
    happening = {"disturbances": SETS["all"]}
    batch, env = BatchEnv(lambda: disturbed(compile=compile), 2, seed=1), disturbed(compile=compile)
    seen, _ = batch.reset(options=happening)
    mine, _ = env.reset(seed=2, options=happening)
    for _ in range(19):
        assert np.array_equal(seen["heater"][1], np.stack([*mine.values()]))
        actions = np.sin(seen["heater"][..., :1])
        seen, *_ = batch.step({"heater": actions})
        mine, *_ = env.step(dict(zip(mine, actions[1], strict=True)))


def test_a_boundary_between_two_disturbances_is_their_time_in_steps() -> None:
    """Off the boundaries the synchronous clock is late, by less than a step (T15)."""
    env = disturbed()
    late = Disturbance(3.2, "spark", {"heater": 0, "energy": 5.0})
    energies = []
    env.reset(seed=0, options={"disturbances": [late]})
    for _ in range(5):
        env.step({"heater_1": 0.0, "heater_2": 0.0})
        energies.append(
            float(env.simulation.truth[env.simulation.model.layout.full_names.index("heater_1.Store.energy")])
        )
    assert energies == [0.0, 0.0, 0.0, 5.0, 5.0]


@pytest.mark.parametrize("heaters", [2, 40])
def test_a_run_with_an_empty_list_is_the_run_without(heaters: int) -> None:
    """With 40 heaters events fall in groups; a monitor that might concern one of them has them handled one by one."""
    env = disturbed(heaters)
    plain = env.run_event_driven({"*": sway(1)}, seed=1, record=RECORD)
    never = ConditionMonitor(agent="heater_1", when=lambda world: False)
    assert_same_course(plain, env.run_event_driven({"*": sway(1)}, seed=1, record=RECORD, disturbances=[]))
    assert_same_course(plain, env.run_event_driven({"*": sway(1)}, seed=1, record=RECORD, monitors=[never]))
