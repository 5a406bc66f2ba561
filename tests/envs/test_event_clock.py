"""The event-driven clock rule by rule: ticks, links, the physics cycle, who decides, when it ends."""

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusing import refuses

from heron_env import (
    Continuous,
    CoordinatorAgent,
    EpisodeResult,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    TerminationConfig,
    Vector,
    VectorDecomposition,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, ResetNeeded, ScheduleError
from heron_env.testing.clock import Leg


class Store(FeatureProvider):
    visibility = ("public",)
    energy: float = quantity(default=0.0, unit="J")
    power: float = quantity(default=0.0, unit="W")


class Limit(FeatureProvider):
    visibility = ("subordinates",)
    value: float = 1.0


class Heater(FieldAgent):
    features = (Store,)
    action = Continuous(-9.0, 9.0, noop=-1.0)

    @staticmethod
    @rule(writes=Store.power)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Store.energy)
    def advance(store: Store, dt: float) -> float:
        return store.energy + store.power * dt

    @staticmethod
    @rule
    def compute_local_reward(store: Store) -> float:
        return store.energy


class Zone(CoordinatorAgent):
    features = (Limit,)


def heaters(n: int = 1, protocol: Any = None, **options: Any) -> HeronEnv:
    options = {"dt": 1.0, "physics_substeps": 10, "max_steps": 8, **options}
    zone = Zone("zone", *(Heater(f"heater_{i + 1}") for i in range(n)), protocol=protocol)
    return HeronEnv(SystemAgent("s", zone), **options)


def constant(value: Any) -> Callable[[Any], Any]:
    return lambda vector: value


def times(result: EpisodeResult, kind: str, agent: int, leg: Leg | None = None) -> list[float]:
    rows = [r for r in result.trace if (r.kind, r.agent) == (kind, agent) and (leg is None or r.payload.leg is leg)]
    return [r.t_ns / 1e9 for r in rows]


# T7: ticks and links


def test_the_legs_of_a_decision_take_msg_obs_msg_and_act_delay():
    env = heaters()
    schedule = ScheduleConfig(tick_interval=2.0, phase=0.5, msg_delay=0.1, obs_delay=0.3, act_delay=0.7)
    result = env.run_event_driven({"*": constant(2.0)}, seed=0, schedule=schedule, trace=True)
    assert times(result, "AgentTick", 2)[:2] == [0.5, 2.5]
    assert times(result, "ObservationRequest", 2)[:2] == [0.6, 2.6]
    assert times(result, "ObservationReply", 2)[:2] == [1.0, 3.0]
    assert times(result, "ActionEffect", 2)[:2] == [1.7, 3.7]
    assert [(t, v.tolist()) for t, v in result.actions["heater_1"][:2]] == [(1.7, [2.0]), (3.7, [2.0])]
    assert result.latency["heater_1"].p95 == pytest.approx(1.2)


def test_an_observation_holds_what_the_cache_held_when_it_was_gathered_not_when_it_arrived():
    env = heaters(physics_substeps=1)
    schedule = ScheduleConfig(obs_delay=1.5)
    seen = []
    env.run_event_driven({"*": lambda v: seen.append(v.tolist()) or 1.0}, seed=0, schedule=schedule)
    energies = [energy for energy, *_ in seen]
    assert energies[:4] == [0.0, 0.0, 1.0, 2.0], (
        "effects at 1.5, 2.5, ...: at its arrival, 2.5 s, the second would read 1 J"
    )


def test_an_observation_older_than_the_newest_used_is_dropped():
    env = heaters(max_steps=40)
    config = ScheduleConfig(tick_interval=0.25, msg_delay=1.0, jitter_type="uniform", jitter_ratio=1.0, reorder=True)
    result = env.run_event_driven(
        {"*": constant(1.0)}, seed=1, schedule=config, trace=True, record=("observations", "actions")
    )
    asked = [t for t, _ in result.observations["heater_1"]]
    replies = [r.number for r in result.trace if r.kind == "ObservationReply"]
    assert asked == sorted(asked)
    assert len(asked) < len(replies)
    effects = [r.number for r in result.trace if r.kind == "ActionEffect"]
    assert effects == sorted(effects), "effects of one agent never overtake"


# T11: who decides, and what happens in between


def test_a_lost_command_is_replaced_too():
    env = heaters(1, VectorDecomposition(), max_steps=5)
    schedule = {"heater_1": ScheduleConfig(loss=1.0, on_missing="noop")}
    result = env.run_event_driven({"*": constant([2.0])}, seed=0, schedule=schedule)
    assert [float(v[0]) for _, v in result.actions["heater_1"]] == [-1.0] * 4


def test_a_star_never_means_a_commanded_agent_but_its_name_or_group_does():
    for policies, first in (
        ({"*": constant([1.0, 2.0])}, 1.0),
        ({"*": constant([1.0, 2.0]), "heater_1": constant(5.0)}, 5.0),
        ({"zone": constant([1.0, 2.0]), "heater": constant(5.0)}, 5.0),
    ):
        env = heaters(2, VectorDecomposition(), max_steps=3)
        result = env.run_event_driven(policies, seed=0)
        assert {float(v[0]) for _, v in result.actions["heater_1"]} == {first}
        assert {float(v[0]) for _, v in result.actions["heater_2"]} == {5.0 if "heater" in policies else 2.0}
        assert result.same_course(env.run_synchronous(policies, seed=0))


def test_the_most_special_policy_counts():
    env = heaters(3)
    policies = {"heater_2": constant(3.0), "*": constant(1.0), "heater": constant(2.0)}
    result = env.run_event_driven(policies, seed=0)
    assert {a: float(result.actions[a][0][1][0]) for a in env.possible_agents} == {
        "heater_1": 2.0,
        "heater_2": 3.0,
        "heater_3": 2.0,
    }


def test_an_agents_own_policy_stands_in_unless_it_is_commanded():
    def env_with(protocol: Any) -> HeronEnv:
        zone = Zone("zone", Heater("heater_1", policy=constant(7.0)), Heater("heater_2"), protocol=protocol)
        return HeronEnv(SystemAgent("s", zone), max_steps=2)

    free = env_with(None).run_event_driven({"heater_2": constant(1.0)}, seed=0)
    assert float(free.actions["heater_1"][0][1][0]) == 7.0
    for run in ("run_event_driven", "run_synchronous"):
        commanded = getattr(env_with(VectorDecomposition()), run)({"*": constant([1.0, 2.0])}, seed=0)
        assert float(commanded.actions["heater_1"][0][1][0]) == 1.0


def test_policies_are_objects_with_forward_or_functions():
    class Steady:
        def forward(self, observation: Any) -> float:
            return 4.0

    result = heaters().run_event_driven({"*": Steady()}, seed=0)
    assert float(result.actions["heater_1"][0][1][0]) == 4.0


# T1, T3, T5: the world's clock


def test_the_legs_of_the_cycle_follow_each_agents_own_link():
    env = heaters(1, max_steps=3)
    schedule = {
        "s": ScheduleConfig(msg_delay=0.01),
        "zone": ScheduleConfig(msg_delay=0.05),
        "heater_1": ScheduleConfig(msg_delay=0.2),
    }
    result = env.run_event_driven({"*": constant(1.0)}, seed=0, schedule=schedule, trace=True)
    wait, system = 1.0, 0.01
    for rank, msg in ((0, 0.01), (1, 0.05), (2, 0.2)):
        completion = wait + 3 * system + msg
        assert times(result, "CycleCompletion", rank)[0] == pytest.approx(completion)
        assert times(result, "LocalStateRequest", rank)[0] == pytest.approx(completion + msg)
        assert times(result, "LocalStateReply", rank)[0] == pytest.approx(wait + 3 * system + 3 * msg)
        assert times(result, "TickResultReport", rank)[0] == pytest.approx(completion + 3 * msg)
        if rank:
            assert times(result, "StateReport", rank)[0 if rank == 1 else 1] == pytest.approx(wait + 2 * system + msg)
    assert times(result, "CycleToken", 0)[:2] == [1.01, 1.02]


def test_physics_spreads_its_substeps_over_the_wait():
    env = heaters(1, physics_substeps=4, max_steps=2)
    result = env.run_event_driven({"*": constant(1.0)}, seed=0, wait=0.4, trace=True)
    assert times(result, "Simulation", 0) == [0.1, 0.2, 0.3, 0.4, 1.1, 1.2, 1.3, 1.4]
    result = env.run_event_driven({"*": constant(1.0)}, seed=0, trace=True)
    assert times(result, "Simulation", 0) == [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]


def test_an_effect_counts_from_the_start_of_the_substep_in_which_it_falls():
    def energy(act_delay: float, substeps: int) -> float:
        env = heaters(1, physics_substeps=substeps, max_steps=1)
        schedule = ScheduleConfig(act_delay=act_delay)
        return env.run_event_driven({"*": constant(1.0)}, seed=0, schedule=schedule).rewards["heater_1"][0][1]

    assert [energy(d, 1) for d in (0.0, 0.5, 0.99)] == [1.0, 1.0, 1.0], "with m = 1 no delay below dt shows"
    assert energy(0.31, 10) == pytest.approx(0.7)
    assert energy(0.39, 10) == pytest.approx(0.7)
    assert energy(0.4, 10) == pytest.approx(0.6), "at a tie physics goes first"


def test_at_t_end_physics_runs_and_ticks_do_not():
    env = heaters(1, max_steps=None)
    result = env.run_event_driven({"*": constant(1.0)}, t_end=3.0, seed=0, trace=True)
    assert [t for t, _ in result.rewards["heater_1"]] == [1.0, 2.0, 3.0]
    assert times(result, "AgentTick", 2) == [0.0, 1.0, 2.0]
    assert result.end_time == 3.0
    assert result.truncated == {"s": True, "zone": True, "heater_1": True}
    assert not any(result.terminated.values())
    assert len(env.run_event_driven({"*": constant(1.0)}, t_end=2.999, seed=0).rewards["heater_1"]) == 2


def test_an_episode_needs_an_end():
    env = heaters(1, max_steps=None)
    for run in ("run_event_driven", "run_synchronous"):
        message = f"{run}(): nothing ends this episode; give t_end, max_steps, or an is_terminated rule"
        with refuses(ConfigError, message):
            getattr(env, run)({"*": constant(1.0)})


@pytest.mark.parametrize("wait", [0.0, 1.5, 1e-9])
def test_wait_lies_within_a_step(wait: float):
    with refuses(ScheduleError, f"wait={wait!r}: must lie in (0, dt=1.0] s, with a nanosecond for each substep"):
        heaters().run_event_driven({"*": constant(1.0)}, wait=wait)


@pytest.mark.parametrize(("name", "value"), [("wait", -1.0), ("t_end", -1.0), ("wait", float("nan"))])
def test_times_are_times(name: str, value: float):
    with pytest.raises(ScheduleError, match=re.escape(f"{name}={value!r}: must be ")):
        heaters().run_event_driven({"*": constant(1.0)}, **{name: value})


def of_ages(after: float, ages: str) -> str:
    return (
        f"reports are sent once a step, {after} s after its end: at a decision what is observed is, without jitter and "
        f"loss, up to {ages} old, {after} s of this since the tick; set report_interval below dt (a multiple of dt / "
        "physics_substeps) (heater_1, heater_2, heater_3, ...)"
    )


def test_notes_name_delays_that_cannot_show_and_nothing_else():
    env = heaters(4, max_steps=3)
    policies = {"*": constant(0.0)}
    own = (
        "agents get even their own features by message (own_rows='proxy'); set own_rows='local' if an agent measures "
        "them itself (heater_1, heater_2, heater_3, ...)"
    )
    late = env.run_event_driven(policies, schedule=ScheduleConfig(msg_delay=0.1, act_delay=2.0)).notes
    assert late == [of_ages(0.2, "1.2 s (zone), 1.0 s (heater, its own features)"), own]
    late = env.run_event_driven(policies, schedule=ScheduleConfig(msg_delay=0.05)).notes
    assert late == [of_ages(0.1, "1.1 s (zone), 1.0 s (heater, its own features)"), own]
    local = ScheduleConfig(msg_delay=0.05, own_rows="local")
    late = env.run_event_driven(policies, schedule=local).notes
    assert late == [of_ages(0.1, "1.1 s (zone), 1.0 s (heater)")], "others' rows still come by message"
    late_ticks = ScheduleConfig(msg_delay=0.05, phase=0.5)
    assert env.run_event_driven(policies, schedule=late_ticks).notes == [own]
    assert env.run_event_driven(policies, schedule=ScheduleConfig(min_delay=0.05)).notes == [own]
    schedule = {"heater": ScheduleConfig(act_delay=0.05), "zone": ScheduleConfig(obs_delay=0.5)}
    below = "below one physics substep of 0.1 s: on its own it has no effect"
    assert env.run_event_driven(policies, schedule=schedule).notes == [
        f"act_delay=0.05 s is {below} (heater_1, heater_2, heater_3, ...)"
    ]
    why = "wait=0.5 s is below dt=1.0 s: this is meant for parity tests, not for studies of delay"
    assert env.run_event_driven(policies, schedule=schedule, wait=0.5).notes == [
        f"obs_delay=0.5 s: {why} (zone)",
        f"act_delay=0.05 s: {why} (heater_1, heater_2, heater_3, ...)",
    ]


class Fading(Heater):
    @staticmethod
    @rule
    def is_terminated(store: Store) -> bool:
        return store.energy >= 2.0


def test_an_ended_agent_ticks_no_more_and_its_pending_effects_are_cancelled_and_counted():
    env = HeronEnv(SystemAgent("s", Fading("a"), Heater("b")), max_steps=6, physics_substeps=10)
    policies = {"a": constant(2.0), "b": constant(0.0)}
    result = env.run_event_driven(policies, seed=0, schedule={"a": ScheduleConfig(act_delay=1.5)}, trace=True)
    assert result.terminated == {"s": False, "a": True, "b": False}
    assert [t for t, _ in result.rewards["a"]] == [1.0, 2.0, 3.0], "power 2 W from 1.5 s on: 3 J at 3 s"
    assert times(result, "AgentTick", 1) == [0.0, 1.0, 2.0, 3.0], "the tick at 3 s finds it ended and does nothing"
    assert times(result, "ObservationRequest", 1) == [0.0, 1.0, 2.0]
    assert [t for t, _ in result.actions["a"]] == [1.5, 2.5]
    assert result.cancelled_effects == 1
    assert result.truncated == {"s": True, "a": False, "b": True}


def test_with_any_the_others_are_terminated_in_the_same_step():
    env = HeronEnv(SystemAgent("s", Fading("a"), Heater("b")), termination=TerminationConfig(mode="any"))
    result = env.run_event_driven({"*": constant(1.0)}, seed=0)
    assert result.terminated == {"s": True, "a": True, "b": True}
    assert result.end_time == 2.0
    assert result.same_course(env.run_synchronous({"*": constant(1.0)}, seed=0))


# T9, T12: turns and ages


def test_the_turn_is_the_step_of_the_nominal_tick_and_further_requests_get_numbers():
    def turns(tick: float, phase: float, n: int) -> list[int]:
        config = ScheduleConfig(tick_interval=tick, phase=phase)
        result = heaters().run_event_driven({"*": constant(1.0)}, seed=0, schedule=config, trace=True)
        return [r.payload.turn for r in result.trace if r.kind == "ObservationRequest" and r.agent == 2][:n]

    again = 2**32
    assert turns(1.0, 0.0, 4) == [0, 1, 2, 3]
    assert turns(2.0, 1.0, 3) == [1, 3, 5]
    assert turns(0.25, 0.0, 6) == [0, again, 2 * again, 3 * again, 1, 1 + again]
    assert turns(0.4, 0.5, 5) == [0, again, 1, 1 + again, 2], "ticks at 0.5, 0.9, 1.3, 1.7, 2.1"


def test_requests_carry_their_turn_whatever_the_jitter():
    env = heaters(max_steps=6)
    config = ScheduleConfig(tick_interval=0.5, jitter_type="uniform", tick_jitter_ratio=0.5, msg_delay=0.3)
    result = env.run_event_driven({"*": constant(1.0)}, seed=2, schedule=config, trace=True)
    turns = [r.payload.turn for r in result.trace if r.kind == "ObservationRequest"]
    assert turns[:4] == [0, 2**32, 1, 1 + 2**32]
    assert all(r.payload.turn % 2**32 == r.number // 2 for r in result.trace if r.kind == "ObservationReply")


def test_the_age_of_information_counts_from_the_fact_to_the_receipt():
    env = heaters(1, observe_age=True, max_steps=6)
    names = env.observation_names("heater_1")
    assert names[-2:] == ["age.heater_1", "age.zone"]
    ages = []
    schedule = {"*": ScheduleConfig(msg_delay=0.1), "s": ScheduleConfig(msg_delay=0.0)}
    result = env.run_event_driven({"*": lambda v: ages.append(v[-2:].tolist()) or 1.0}, seed=0, schedule=schedule)
    # Tick k asks; the request is at the proxy at k + 0.1, and so is the report of boundary k, which goes first (phase
    # 0). The reply is back at k + 0.2. At tick 0 there has been no boundary: the age counts from the reset.
    assert np.allclose(ages, [[0.2, 0.2]] * 6, atol=1e-6)
    assert result.staleness["heater_1"].max == pytest.approx(0.2)
    assert result.staleness["heater_1"].count == 12


def test_own_columns_come_from_the_cache_too():
    env = heaters(1, max_steps=4)
    seen = []
    schedule = ScheduleConfig(msg_delay=0.4)
    env.run_event_driven({"*": lambda v: seen.append(v[0]) or 1.0}, seed=0, schedule=schedule)
    truth = [
        energy
        for _, energy in env.run_event_driven({"*": constant(1.0)}, seed=0, schedule=schedule).rewards["heater_1"]
    ]
    assert seen[0] == 0.0
    assert all(s < t for s, t in zip(seen[1:], truth, strict=False)), (
        "the report of boundary k comes after tick k asked"
    )


# T16: step by step


def policies() -> dict[str, Any]:
    return {"*": lambda vector: float(np.sin(1 + vector.sum()))}


LOSSY = ScheduleConfig(msg_delay=0.3, act_delay=0.4, loss=0.2, duplicate=0.2, jitter_type="uniform", jitter_ratio=0.5)


def test_a_run_carried_on_in_pieces_is_the_same_run():
    whole = heaters(3).run_event_driven(policies(), seed=1, schedule=LOSSY, trace=True)
    env = heaters(3)
    run = env.start_event_driven(policies(), seed=1, schedule=LOSSY, trace=True)
    for t in (0.0, 0.35, 2.2, 2.2, 5.01):
        run.until(t)
        state = run.state()
        assert state["time"] <= t
        assert not state["closed"]
    assert run.state()["step"] == 5
    assert run.state()["alive"]["heater_1"]
    assert run.state()["messages"].balanced()
    assert not np.array_equal(run.state()["truth"], run.state()["cache"])
    run.until(None)
    assert run.state()["closed"]
    assert run.result().same_course(whole)
    assert run.result().trace.lines(env.hierarchy.ids) == whole.trace.lines(env.hierarchy.ids)


def test_a_run_pickles_in_the_middle_without_its_policies():
    whole = heaters(3).run_event_driven(policies(), seed=1, schedule=LOSSY, trace=True)
    env = heaters(3)
    run = env.start_event_driven(policies(), seed=1, schedule=LOSSY, trace=True)
    run.until(3.17)
    again = pickle.loads(pickle.dumps(run))
    with refuses(ResetNeeded, "until(): an unpickled run has no policies; attach(policies) first"):
        again.until(None)
    assert again.result().messages.balanced()
    again.attach(policies())
    again.until(None)
    assert again.result().same_course(whole)
    assert again.result().trace.lines(env.hierarchy.ids) == whole.trace.lines(env.hierarchy.ids)


def test_a_run_goes_on_with_policies_for_the_same_agents():
    env = heaters(2, VectorDecomposition())
    run = env.start_event_driven({"*": constant([1.0, 2.0])}, seed=1)
    message = "attach(policies): these decide for ['zone', 'heater_1'], the run began with ['zone']; name the same"
    with refuses(ConfigError, message):
        run.attach({"*": constant([1.0, 2.0]), "heater_1": constant(0.0)})


# T6, T8: results


def test_only_what_was_asked_for_is_recorded():
    env = heaters(2)
    nothing = env.run_event_driven(policies(), seed=0, record=())
    full = env.run_event_driven(policies(), seed=0, record=("rewards", "actions", "observations"))
    assert nothing.actions == {"heater_1": [], "heater_2": []}
    assert nothing.observations == {}
    assert {a: len(r) for a, r in nothing.rewards.items()} == dict.fromkeys(env.hierarchy.ids, 1)
    assert nothing.returns == pytest.approx(full.returns)
    assert [len(o) for o in full.observations.values()] == [8, 8]
    assert full.trace is None
    assert full.deterministic


def test_the_run_resets_first_and_takes_the_environments_own_schedule():
    env = heaters(2, schedule=LOSSY)
    first, second = env.run_event_driven(policies(), seed=4), env.run_event_driven(policies(), seed=4)
    assert first.same_course(second)
    other = heaters(2).run_event_driven(policies(), seed=4, schedule=LOSSY)
    assert first.same_course(other)
    assert not first.same_course(env.run_event_driven(policies())), "the next episode of seed 4 draws anew"


def test_results_compare_by_course():
    env = heaters(1)
    a, b = (env.run_event_driven({"*": constant(v)}, seed=0) for v in (1.0, 2.0))
    assert a.same_course(env.run_event_driven({"*": constant(1.0)}, seed=0))
    assert not a.same_course(b)
    assert a != b


@pytest.mark.parametrize("clock", ["run_synchronous", "run_event_driven"])
def test_a_policy_that_works_in_place_changes_no_record_of_what_it_saw(clock: str):
    def in_place(vector: np.ndarray) -> float:
        vector *= 0.1
        return float(np.clip(vector[0], -9.0, 9.0))

    def by_copy(vector: np.ndarray) -> float:
        return in_place(vector.copy())

    told = [
        getattr(heaters(2), clock)({"*": policy}, seed=0, record=("rewards", "actions", "observations"))
        for policy in (in_place, by_copy)
    ]
    assert told[0].observations["heater_1"]
    assert told[0].same_course(told[1])


def test_the_trace_keeps_what_a_policy_was_shown_before_it_worked_in_place():
    def wipe(vector: np.ndarray) -> float:
        vector[:] = 7.0
        return 0.0

    traces = [
        heaters().run_event_driven({"*": policy}, seed=0, trace=True).trace.lines(["s", "zone", "heater_1"])
        for policy in (wipe, lambda vector: 0.0)
    ]
    assert traces[0] == traces[1]
