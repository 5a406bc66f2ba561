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


# T11: who decides, and what happens in between


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


def test_an_episode_needs_an_end():
    env = heaters(1, max_steps=None)
    for run in ("run_event_driven", "run_synchronous"):
        message = f"{run}(): nothing ends this episode; give t_end, max_steps, or an is_terminated rule"
        with refuses(ConfigError, message):
            getattr(env, run)({"*": constant(1.0)})


def test_wait_lies_within_a_step():
    for wait in [0.0, 1.5, 1e-9]:
        with refuses(ScheduleError, f"wait={wait!r}: must lie in (0, dt=1.0] s, with a nanosecond for each substep"):
            heaters().run_event_driven({"*": constant(1.0)}, wait=wait)


def test_times_are_times():
    for name, value in [("wait", -1.0), ("t_end", -1.0), ("wait", float("nan"))]:
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


# T16: step by step


def policies() -> dict[str, Any]:
    return {"*": lambda vector: float(np.sin(1 + vector.sum()))}


LOSSY = ScheduleConfig(msg_delay=0.3, act_delay=0.4, loss=0.2, jitter_type="uniform", jitter_ratio=0.5)


def test_a_run_pickles_in_the_middle_without_its_policies():
    run = heaters(3).start_event_driven(policies(), seed=1, schedule=LOSSY)
    run.until(3.17)
    again = pickle.loads(pickle.dumps(run))
    with refuses(ResetNeeded, "until(): an unpickled run has no policies; attach(policies) first"):
        again.until(None)
    assert again.result().messages.balanced()


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
