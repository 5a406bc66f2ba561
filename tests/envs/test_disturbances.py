"""Disturbances, conditions and custom events in the event clock, rule by rule (T14), and their declaration."""

import math
import pickle
import re
from typing import Any

import numpy as np
import pytest
from envs.disturbed_world import Heater, Zone, disturbed

from heron_env import ConditionMonitor, CustomEvent, Disturbance, ScheduleConfig, VectorDecomposition
from heron_env.errors import ConfigError, ScheduleError, UnknownAgent, UnknownFeature

DELAYS = ScheduleConfig(tick_interval=5.0, msg_delay=0.05, act_delay=0.15)
FAULT = Disturbance(12.3, "derating", {"limit": 2.0}, duration=100.0)


def relief(limit: float = 5.0):
    """Full power while the fuse holds it, as a heater sees it."""
    names = disturbed().observation_names("heater_1")
    column = next(i for i, name in enumerate(names) if name.endswith("Fuse.limit"))
    return lambda vector: 4.0 if vector[column] > limit else 1.0


def fuse_monitor(**options: Any) -> ConditionMonitor:
    return ConditionMonitor(agent="heater_1", watch="zone.Fuse.limit", below=5.0, **options)


def effects(result: Any, agent: str = "heater_1") -> list[tuple[float, float]]:
    return [(t, float(values[0])) for t, values in result.actions[agent]]


def refuses(error: type[Exception], *parts: str):
    return pytest.raises(error, match=".*".join(map(re.escape, parts)))


# T14: the push


def test_a_fault_at_12_3_takes_effect_at_12_50():
    env = disturbed()
    result = env.run_event_driven(
        {"*": relief()}, seed=0, schedule=DELAYS, disturbances=[FAULT], monitors=[fuse_monitor()], trace=True
    )
    assert (12.5, 1.0) in effects(result)
    pushes = [record for record in result.trace if record.kind == "ObservationPush"]
    assert [record.t_ns for record in pushes] == [12_350_000_000]
    assert [r.t_ns for r in result.trace if r.kind == "Disturbed"] == [12_300_000_000]


def test_the_periodic_cycle_goes_on_after_a_push():
    env = disturbed()
    plain = env.run_event_driven({"*": relief()}, seed=0, schedule=DELAYS, disturbances=[FAULT])
    woken = env.run_event_driven(
        {"*": relief()}, seed=0, schedule=DELAYS, disturbances=[FAULT], monitors=[fuse_monitor(preempt=True)]
    )
    periodic = [t for t, _ in effects(plain)]
    assert periodic == pytest.approx([0.25, 5.25, 10.25, 15.25])
    assert [t for t, _ in effects(woken)] == pytest.approx([*periodic[:3], 12.5, periodic[3]])
    assert effects(woken, "heater_2") == effects(plain, "heater_2")


def test_only_what_the_monitor_measured_is_fresh_in_a_push():
    env = disturbed()
    spark = Disturbance(12.3, "spark", {"heater": 1, "energy": 7.0})
    slow = {"*": DELAYS, "heater_2": ScheduleConfig(msg_delay=3.0)}
    run = env.start_event_driven(
        {"*": lambda v: 1.0}, seed=0, schedule=slow, disturbances=[spark, FAULT], monitors=[fuse_monitor()],
        record=("observations",),
    )  # fmt: skip
    run.until(12.5)
    names, state = env.observation_names("heater_1"), run.state()
    pushed = next(v for t, v in run.result().observations["heater_1"] if t == 12.3)
    assert pushed[names.index("zone.Fuse.limit")] == 2.0
    place = list(env.simulation.model.layout.full_names).index("heater_2.Store.energy")
    assert pushed[names.index("heater_2.Store.energy")] == np.float32(state["cache"][place])
    assert state["truth"][place] - state["cache"][place] > 7.0


def test_a_push_preempts_what_is_under_way_if_it_is_asked_to():
    slow = ScheduleConfig(tick_interval=5.0, act_delay=4.0)
    results = []
    for preempt in (False, True):
        env = disturbed()
        results.append(
            env.run_event_driven(
                {"*": relief()}, seed=0, schedule=slow, disturbances=[FAULT], monitors=[fuse_monitor(preempt=preempt)]
            )
        )
    plain, hard = results
    assert effects(plain) == [(4.0, 4.0), (9.0, 4.0), (14.0, 4.0), (16.3, 1.0), (19.0, 1.0)]
    assert effects(hard) == [(4.0, 4.0), (9.0, 4.0), (16.3, 1.0), (19.0, 1.0)]
    assert (plain.cancelled_effects, hard.cancelled_effects) == (0, 1)


def test_cooldown_and_one_shot():
    def pushes(**options: Any) -> list[float]:
        env = disturbed()
        monitor = ConditionMonitor(agent="heater_1", when=lambda world: world.time % 6.0 >= 3.0, **options)
        result = env.run_event_driven({"*": relief()}, seed=0, schedule=DELAYS, monitors=[monitor], trace=True)
        return [r.payload.asked / 1e9 for r in result.trace if r.kind == "ObservationPush"]

    rises = pushes()
    assert len(rises) == 3
    assert rises == pytest.approx([3.0, 9.0, 15.0])
    assert pushes(one_shot=True) == rises[:1]
    assert pushes(cooldown=7.0) == pytest.approx([3.0, 10.0, 17.0])
    often = pushes(cooldown=1.0)
    assert [round(t) for t in often[:4]] == [3, 4, 5, 9]


def test_a_push_splits_a_command_and_reaches_children_that_have_decided_already():
    env = disturbed(protocol=VectorDecomposition())
    monitor = ConditionMonitor(agent="zone", watch="zone.Fuse.limit", below=5.0)
    column = next(i for i, name in enumerate(env.observation_names("zone")) if name.endswith("Fuse.limit"))

    def policy(vector: Any) -> Any:
        return np.full(2, 4.0 if vector[column] > 5.0 else 1.0)

    result = env.run_event_driven({"zone": policy}, seed=0, schedule=DELAYS, disturbances=[FAULT], monitors=[monitor])
    assert (12.55, 1.0) in [(round(t, 9), v) for t, v in effects(result, "heater_1")]
    assert result.latency["heater_1"].max == pytest.approx(0.3)


def test_a_monitor_fires_after_physics_too():
    env = disturbed()
    monitor = ConditionMonitor(agent="heater_1", watch="zone.Fuse.load", above=3.0, about=("zone",))
    result = env.run_event_driven({"*": lambda v: 2.0}, seed=0, schedule=DELAYS, monitors=[monitor], trace=True)
    fired = [r.payload.asked / 1e9 for r in result.trace if r.kind == "ObservationPush"]
    assert fired[0] == 0.3  # both set-points fall at 0.25, in the substep that ends at 0.3


# T14: physics


def test_a_disturbance_that_requires_physics_shows_what_follows_at_once():
    def fired(requires_physics: bool) -> float:
        env = disturbed()
        cold = Disturbance(12.34, "cold_spell", {"cold": 3.0}, requires_physics, duration=100.0)
        monitor = ConditionMonitor(agent="heater_1", watch="zone.Fuse.load", above=10.0)
        result = env.run_event_driven(
            {"*": lambda v: 2.0}, seed=0, schedule=DELAYS, disturbances=[cold], monitors=[monitor], trace=True
        )
        return next(r.payload.asked / 1e9 for r in result.trace if r.kind == "ObservationPush")

    assert fired(True) == 12.34
    assert fired(False) == 12.4


@pytest.mark.parametrize(("t", "compile"), [(12.0, False), (12.04, True), (12.99, True)])
def test_physics_moves_time_no_further_for_it(t: float, compile: bool):
    def energy(disturbances: list[Disturbance]) -> tuple[float, float, float]:
        env = disturbed(compile=compile)
        result = env.run_event_driven({"*": lambda v: 2.0}, seed=0, disturbances=disturbances)
        earned = [value for time, value in result.rewards["heater_1"] if time in (13.0, 14.0)]
        return float(env.world[Heater].Store.energy[0]), *earned

    cut = [Disturbance(t, "spark", {"heater": 1, "energy": 1.0}, requires_physics=True)]
    assert energy(cut) == pytest.approx(energy([]), abs=1e-12)
    twice = [*cut, Disturbance(t + 0.003, "spark", {"heater": 1, "energy": 1.0}, requires_physics=True)]
    assert energy(twice) == pytest.approx(energy([]), abs=1e-12)


def test_a_part_of_a_substep_begins_where_the_last_ended():
    env = disturbed(compile=True)
    cuts = [Disturbance(t, "spark", {"heater": 1, "energy": 1.0}, True) for t in (12.34, 12.37)]
    run = env.start_event_driven({"*": lambda v: 2.0}, seed=0, disturbances=cuts)
    began = []
    for t in (12.3, 12.34, 12.37, 12.4, 12.5):
        run.until(t)
        began.append(float(env.world[Heater].Store.stamp[0]))
    assert began == pytest.approx([12.2, 12.3, 12.34, 12.37, 12.4], abs=1e-9)


def test_what_lasts_is_in_force_in_every_step_until_it_ends():
    env, found = disturbed(1), []
    env.reset(seed=0, options={"disturbances": [Disturbance(2.0, "cold_spell", {"cold": 10.0}, duration=3.0)]})
    for _ in range(6):
        env.step({"heater_1": 0.0})
        found.append(float(env.world.Weather.cold[0]))
    assert found == [1.25, 15.0, 10.0, 12.5, 1.5, 1.0]


# Reports


def test_of_one_instant_what_ends_comes_before_what_begins():
    env = disturbed(1)
    fail = [Disturbance(t, "sensor_failure", {"agent": "heater_1"}, duration=3.0) for t in (3.0, 0.0)]
    run = env.start_event_driven({"*": lambda v: 2.0}, seed=0, disturbances=fail)
    column = list(env.simulation.model.layout.full_names).index("heater_1.Store.energy")
    known = []
    for t in (2.9, 3.0, 5.9, 6.0):
        run.until(t)
        known.append(float(run.state()["cache"][column]))
    assert known[0] == 0.0 < known[1] == known[2] < known[3]


# The agents


@pytest.mark.parametrize(("meanwhile", "values"), [("hold", [2.0, 2.0]), ("noop", [2.0, -1.0, -1.0, -1.0, 2.0])])
def test_a_crashed_agent_holds_or_does_its_no_op_and_comes_back(meanwhile: str, values: list[float]):
    env, asked = disturbed(), []
    crash = Disturbance(3.5, "agent_crash", {"agent": "heater_1", "meanwhile": meanwhile}, duration=6.0)
    schedule = ScheduleConfig(tick_interval=2.0, phase=2.0, msg_delay=0.1)

    def policy(vector: Any) -> float:
        asked.append(vector)
        return 2.0

    result = env.run_event_driven(
        {"heater_1": policy, "heater_2": lambda v: 1.0}, seed=0, schedule=schedule, disturbances=[crash], t_end=11.0
    )
    assert [v for _, v in effects(result)] == values
    assert len(asked) == 2
    expected = [2.2, 10.2] if meanwhile == "hold" else [2.2, 4.0, 6.0, 8.0, 10.2]
    assert [t for t, _ in effects(result)] == pytest.approx(expected)


def test_what_comes_to_a_crashed_agent_is_gone():
    env = disturbed(1)
    crash = Disturbance(2.15, "agent_crash", {"agent": "heater_1"}, duration=0.1)
    schedule = ScheduleConfig(msg_delay=0.1)
    result = env.run_event_driven({"*": lambda v: 2.0}, seed=0, schedule=schedule, disturbances=[crash], t_end=4.5)
    assert [t for t, _ in effects(result)] == pytest.approx([0.2, 1.2, 3.2, 4.2])


def test_a_command_does_nothing_at_a_crashed_child():
    env = disturbed(protocol=VectorDecomposition())
    crash = Disturbance(2.5, "agent_crash", {"agent": "heater_2"}, duration=2.0)
    result = env.run_event_driven({"zone": lambda v: np.full(2, 3.0)}, seed=0, disturbances=[crash], t_end=6.0)
    assert [t for t, _ in effects(result, "heater_1")] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert [t for t, _ in effects(result, "heater_2")] == [0.0, 1.0, 2.0, 5.0]


# Custom events


def test_custom_events_and_messages_are_data_that_the_environment_handles():
    env = disturbed()
    call = CustomEvent(4.2, "call", {"to": "heater_2"})
    schedule = {"*": DELAYS, "heater_2": ScheduleConfig(msg_delay=0.7)}
    result = env.run_event_driven({"*": relief()}, seed=0, schedule=schedule, events=[call], trace=True)
    when = {r.kind: r.t_ns / 1e9 for r in result.trace if r.kind in ("CustomLetter", "ObservationPush")}
    assert when == {"CustomLetter": 4.9, "ObservationPush": 4.95}
    assert [r.t_ns / 1e9 for r in result.trace if r.kind == "Custom"] == [4.2, 5.2]
    assert (5.1, 4.0) in [(round(t, 9), v) for t, v in effects(result)]
    assert result.messages.balanced()


def test_a_custom_event_takes_its_phase():
    env = disturbed()
    late, early = CustomEvent(5.0, "again", phase=99), CustomEvent(5.0, "again", phase=-1)
    run = env.run_event_driven({"*": relief()}, seed=0, schedule=DELAYS, events=[late, early], trace=True)
    kinds = [r.kind for r in run.trace if r.t_ns == 5_000_000_000]
    assert (kinds[0], kinds[-1]) == ("Custom", "Custom")
    assert "AgentTick" in kinds[1:-1]


@pytest.mark.parametrize(("t", "phase"), [(12.3, 3), (12.3, 99), (12.34, 3)])
def test_a_condition_is_asked_after_a_custom_event_whatever_its_phase(t: float, phase: int):
    env = disturbed()

    def happen(world: Any, event: Any) -> None:
        world[Zone].Fuse.limit[...] = 2.0

    env.happen = happen
    blow = CustomEvent(t, "blow", phase=phase)
    result = env.run_event_driven(
        {"*": relief()}, seed=0, schedule=DELAYS, events=[blow], monitors=[fuse_monitor()], trace=True
    )
    assert [r.payload.asked / 1e9 for r in result.trace if r.kind == "ObservationPush"] == [t]


# T16: resumed, recorded


def everything() -> dict[str, Any]:
    return {
        "disturbances": [
            FAULT,
            Disturbance(3.07, "cold_spell", {"cold": 2.0}, True, duration=10.0),
            Disturbance(6.5, "spark", {"heater": 0, "energy": 3.0}),
            Disturbance(4.4, "sensor_failure", {"agent": "heater_2"}, duration=5.0),
            Disturbance(7.1, "agent_crash", {"agent": "heater_2", "meanwhile": "noop"}, duration=2.0),
        ],
        "monitors": [fuse_monitor(cooldown=1.0)],
        "events": [CustomEvent(5.2, "call", {"to": "heater_1"})],
    }


ROUGH = ScheduleConfig(
    tick_interval=0.7, msg_delay=0.3, obs_delay=0.2, act_delay=0.8, jitter_type="uniform", jitter_ratio=0.5,
    tick_jitter_ratio=0.5, loss=0.1,
)  # fmt: skip


def test_a_run_pickles_in_the_middle_and_goes_on_bit_for_bit():
    env = disturbed()
    whole = env.run_event_driven({"*": relief()}, seed=3, schedule=ROUGH, trace=True, **everything())
    run = env.start_event_driven({"*": relief()}, seed=3, schedule=ROUGH, trace=True, **everything())
    run.until(7.9)
    copy = pickle.loads(pickle.dumps(run))
    copy.attach({"*": relief()})
    copy.until(None)
    again = copy.result()
    assert again.same_course(whole)
    assert again.trace.lines(env.hierarchy.ids) == whole.trace.lines(env.hierarchy.ids)
    assert whole.messages.balanced()


def test_nothing_is_left_of_disturbances_after_a_reset():
    env = disturbed()
    plain = env.run_event_driven({"*": relief()}, seed=3, schedule=ROUGH, trace=True)
    env.run_event_driven({"*": relief()}, seed=3, schedule=ROUGH, **everything())
    again = env.run_event_driven({"*": relief()}, seed=3, schedule=ROUGH, trace=True)
    assert again.trace.lines(env.hierarchy.ids) == plain.trace.lines(env.hierarchy.ids)


def test_a_trace_tells_disturbances_and_pushes():
    env = disturbed()
    result = env.run_event_driven({"*": relief()}, seed=3, schedule=DELAYS, trace=True, **everything())
    table = result.trace.table(env.hierarchy.ids)
    assert "Disturbed" in table
    assert "cold_spell" in table
    assert "ObservationPush" in table
    fault = next(r for r in result.trace if r.kind == "Disturbed" and r.payload.disturbance.type == "derating")
    settle = next(r for r in result.trace if r.kind == "Settle" and r.t_ns == fault.t_ns)
    assert [r.kind for r in result.trace if r.cause == settle.index] == ["ObservationPush"]
    assert result.trace[settle.cause].t_ns == fault.t_ns


def test_disturbances_of_others_move_no_draw():
    """T8: a push and its effect more change neither delays nor losses of the ticks."""
    env = disturbed()
    plain = env.run_event_driven({"*": lambda v: 1.0}, seed=3, schedule=ROUGH)
    monitor = ConditionMonitor(agent="heater_2", watch="zone.Fuse.limit", below=5.0)
    woken = env.run_event_driven({"*": lambda v: 1.0}, seed=3, schedule=ROUGH, disturbances=[FAULT], monitors=[monitor])
    assert [t for t, _ in plain.actions["heater_1"]] == [t for t, _ in woken.actions["heater_1"]]
    more = {t for t, _ in woken.actions["heater_2"]} - {t for t, _ in plain.actions["heater_2"]}
    assert len(more) == 1


# Refused


def test_what_can_not_happen_is_refused_before_the_run():
    for disturbance, error, parts in [
        (
            Disturbance(1.0, "cold_spel", {"cold": 2.0}, duration=1.0),
            ConfigError,
            ("'cold_spel' at t=1.0 s", "DisturbedEnv knows", "'cold_spell', 'derating'", "Did you mean 'cold_spell'"),
        ),
        (Disturbance(1.0, "cold_spell", {}, duration=1.0), ConfigError, ("needs 'cold' (factor)",)),
        (Disturbance(1.0, "cold_spell", {"cold": 1.0, "warm": 1}, duration=1.0), ConfigError, ("no entry 'warm'",)),
        (Disturbance(1.0, "cold_spell", {"cold": 1.0}), ConfigError, ("this type lasts",)),
        (Disturbance(1.0, "spark", {"heater": 0, "energy": 1.0}, duration=2.0), ConfigError, ("is a single event",)),
        (Disturbance(1.0, "agent_crash", {"agent": "heater_9"}, duration=2.0), UnknownAgent, ("'heater_9' is",)),
        (
            Disturbance(1.0, "agent_crash", {"agent": "s", "meanwhile": "sleep"}, duration=2.0),
            ConfigError,
            ("meanwhile='sleep'",),
        ),
        ("spark", ConfigError, ("is no Disturbance",)),
    ]:
        env = disturbed()
        for run in (env.run_event_driven, env.run_synchronous):
            with refuses(error, *parts):
                run({"*": relief()}, seed=0, disturbances=[disturbance])
        with refuses(error, *parts):
            env.reset(options={"disturbances": [disturbance]})


def test_a_disturbance_checks_itself():
    for fields, error, message in [
        ({"t": -1.0, "type": "x"}, ScheduleError, "t)=-1.0"),
        ({"t": 1.0, "type": ""}, ConfigError, "type=''"),
        ({"t": 1.0, "type": "x", "payload": 3}, ConfigError, "payload=3"),
        ({"t": 1.0, "type": "x", "duration": 0.0}, ConfigError, "duration=0.0"),
        ({"t": 1.0, "type": "x", "requires_physics": 1}, ConfigError, "requires_physics=1"),
    ]:
        with refuses(error, message):
            Disturbance(**fields)


def test_a_monitor_checks_itself():
    for fields, error, message in [
        ({"agent": "heater_1"}, ConfigError, "give either watch"),
        ({"agent": "heater_1", "watch": "zone.Fuse.limit"}, ConfigError, "give either watch"),
        ({"agent": "heater_1", "watch": "zone.Fuse.limit", "above": math.nan}, ConfigError, "above=nan): must be"),
        ({"agent": "heater_1", "watch": "zone.Fuse.limit", "below": "3"}, ConfigError, "must be a number"),
        ({"agent": "heater_1", "watch": "zone.Fuse.limt", "above": 1.0}, UnknownFeature, "mean 'zone.Fuse.limit'"),
        ({"agent": "heter_1", "watch": "zone.Fuse.limit", "above": 1.0}, UnknownAgent, "heter_1"),
        ({"agent": "zone", "watch": "zone.Fuse.limit", "above": 1.0}, ConfigError, "no action to decide"),
        ({"agent": "heater_1", "when": bool, "about": ("zome",)}, UnknownAgent, "Did you mean 'zone'"),
    ]:
        env = disturbed()
        with refuses(error, message):
            env.run_event_driven({"*": relief()}, seed=0, monitors=[ConditionMonitor(**fields)])


def test_custom_events_need_a_handler_and_sensible_answers():
    from envs.test_event_clock import heaters

    with refuses(ConfigError, "HeronEnv has no happen(world, event)"):
        heaters().run_event_driven({"*": lambda v: 1.0}, seed=0, events=[CustomEvent(1.0, "call")])
    env = disturbed()
    env.happen = lambda world, event: ["what?"]
    with refuses(ConfigError, "happen() returned 'what?'"):
        env.run_event_driven({"*": relief()}, seed=0, events=[CustomEvent(1.0, "call")])
