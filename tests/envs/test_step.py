"""The synchronous clock step by step: actions in, results out, and nothing changed by what is refused."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from refusing import refuses

import heron_env
from heron_env import (
    Action,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    TerminationConfig,
    Vector,
    World,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, ScheduleError
from heron_env.testing import Source
from heron_env.worlds import battery_grid

NAME = "heron/BatteryGrid-v0"


class Mode(FeatureProvider):
    visibility = ("public",)
    value: int = quantity(low=0, high=9)
    count: float = 0.0


class Tally(NamedTuple):
    count: float
    value: int


class Switch(FieldAgent):
    features = (Mode,)
    action = Discrete(3, noop=1)

    @staticmethod
    @rule(writes=(Mode.value, Mode.count))
    def apply_action(mode: Mode, action: Vector) -> tuple[float, float]:
        return action[0], mode.count + 1

    @staticmethod
    @rule
    def get_local_info(mode: Mode) -> Tally:
        return Tally(mode.count, mode.value)


def grid(**options: Any) -> HeronEnv:
    env = heron_env.make(NAME, **options)
    env.reset(seed=0)
    return env


def socs(env: HeronEnv) -> list[float]:
    return env.world[battery_grid.Battery].BatteryChargeFeature.soc.tolist()


def switches(n: int = 2, **options: Any) -> HeronEnv:
    options.setdefault("max_steps", 20)
    return HeronEnv(SystemAgent("s", *(Switch(f"switch_{i + 1}") for i in range(n))), **options)


def test_step_takes_numbers_arrays_and_actions_alike():
    action = Action(battery_grid.Battery.action)
    action.set_values([0.25])
    outcomes = []
    for value in (0.25, np.float32(0.25), np.array([0.25]), [0.25], action, {"c": [0.25]}):
        env = grid()
        env.step({"battery_1": value, "battery_2": 0.0})
        outcomes.append(socs(env))
    assert all(outcome == [0.5 + 0.25 * 0.01, 0.5] for outcome in outcomes)


def test_a_missing_agent_takes_its_own_policy_else_its_no_op():
    seen = []

    def policy(vector: Any) -> float:
        seen.append(vector.copy())
        return 1.0

    zone = CoordinatorAgent(
        "zone_1", battery_grid.Battery("battery_1", policy=policy), battery_grid.Battery("battery_2")
    )
    env = HeronEnv(SystemAgent("s", zone), max_steps=3)
    obs, _ = env.reset(seed=0)
    env.step({})
    assert socs(env) == [0.51, 0.5]
    assert np.array_equal(seen[0], obs["battery_1"])
    sources = {agent: decision.source for agent, decision in env.last_decisions.items()}
    assert sources == {"battery_1": Source.POLICY, "battery_2": Source.NOOP}
    env.step({"battery_1": -1.0})
    assert env.last_decisions["battery_1"].source is Source.EXPLICIT
    assert len(seen) == 1


def test_an_explicit_action_for_a_commanded_agent_wins():
    env = grid(control="zone")
    assert env.possible_agents == ["zone_1"]
    _, _, _, _, infos = env.step({"zone_1": [1.0, 1.0], "battery_2": -1.0})
    assert socs(env) == [0.51, 0.49]
    assert list(infos) == ["zone_1"]
    assert {a: d.source for a, d in env.last_decisions.items()} == {
        "zone_1": Source.EXPLICIT,
        "battery_1": Source.COMMAND,
        "battery_2": Source.EXPLICIT,
    }


def test_last_decisions_say_why_in_words():
    env = grid(control="zone")
    assert {d.reason for d in env.last_decisions.values()} == {"nothing decided yet"}
    env.step({"battery_2": 0.5})
    assert {a: d.reason for a, d in env.last_decisions.items()} == {
        "zone_1": "no action and no policy, or it has crashed: the no-op",
        "battery_1": "its coordinator's command",
        "battery_2": "the caller's action",
    }


def test_a_policy_of_an_agent_that_fails_changes_nothing():
    zone = CoordinatorAgent(
        "zone_1", battery_grid.Battery("battery_1"), battery_grid.Battery("battery_2", policy=lambda vector: 7.0)
    )
    env = HeronEnv(SystemAgent("s", zone), max_steps=3)
    env.reset(seed=0)
    decisions = env.last_decisions
    message = "action of 'battery_2': [7.0] lies outside [-1.0, 1.0]; clip it, or rescale your policy"
    with refuses(InvalidAction, message):
        env.step({"battery_1": 0.5})
    assert socs(env) == [0.5, 0.5]
    assert env.last_decisions == decisions


def test_a_sampled_action_is_always_accepted():
    class Odd(battery_grid.Battery):
        action = Continuous(-0.1, 0.3)

    env = HeronEnv(SystemAgent("s", Odd("a")), max_steps=300)
    env.reset(seed=0)
    space = env.action_space("a")
    space.seed(0)
    for value in [space.low, space.high, *(space.sample() for _ in range(50))]:
        assert space.contains(value)
        env.step({"a": value})


def test_step_needs_an_episode():
    env = heron_env.make(NAME, max_steps=2)
    with refuses(ResetNeeded, "step(): no episode is running; call reset() first"):
        env.step({})
    env.reset(seed=0)
    env.step({})
    env.step({})
    assert env.agents == []
    with refuses(ResetNeeded, "step(): no episode is running; call reset() first"):
        env.step({"battery_1": 0.0})
    assert env.step({}) == ({}, {}, {}, {}, {}), "PettingZoo's loop ends with an empty step"
    env.run_event_driven({"*": lambda vector: 0.0}, seed=0)
    for actions in ({}, {"battery_1": 0.0}):
        with refuses(ResetNeeded, "step(): an event-driven run used this environment last; call reset() first"):
            env.step(actions)
    env.reset(seed=0)
    env.step({})


def test_a_seed_is_a_whole_number():
    for seed in [-1, 1.5, True, "0", float("nan")]:
        with refuses(ConfigError, f"reset(seed={seed!r}): a seed is a whole number >= 0"):
            grid().reset(seed=seed)


def test_reset_with_a_seed_starts_episode_0_and_without_one_the_next():
    env = heron_env.make(NAME)
    seen = []
    for seed in (5, None, None, np.int64(5)):
        env.reset(seed=seed)
        seen.append((env.world.seed, env.world.episode))
    assert seen == [(5, 0), (5, 1), (5, 2), (5, 0)]


def test_infos_have_the_same_keys_and_shapes_at_reset_and_step():
    for env in (switches(), grid(observe_age=True), grid(control="zone")):
        _, first = env.reset(seed=0)
        *_, later = env.step({})
        for agent in env.agents:
            shapes = [
                {k: (np.asarray(v).shape, np.asarray(v).dtype) for k, v in infos[agent].items()}
                for infos in (first, later)
            ]
            assert shapes[0] == shapes[1]
            assert all(dtype.kind in "biuf" for _, dtype in shapes[0].values())
        assert {tuple(info) for info in later.values()} == {tuple(later[env.agents[0]])}


def test_local_infos_come_from_the_rule():
    env = switches(1)
    env.reset(seed=0)
    *_, infos = env.step({"switch_1": 2})
    assert (infos["switch_1"]["count"], infos["switch_1"]["value"]) == (1.0, 2.0)
    assert "action_mask" not in infos["switch_1"], "nothing is ever forbidden here"


SLOW = ScheduleConfig(tick_interval=3.0, phase=1.0)


def test_a_masked_action_is_a_flagged_no_op_and_no_exception():
    env = switches(schedule={"switch_2": SLOW})
    env.reset(seed=0)
    *_, infos = env.step({"switch_1": 0, "switch_2": 2})
    assert env.world[Switch].Mode.value.tolist() == [0, 0]
    assert infos["switch_2"]["decision"] == Source.HELD
    assert env.last_decisions["switch_2"].reason == "not its turn, or it has crashed: the last set-point holds"
    *_, infos = env.step({"switch_1": 0, "switch_2": 2})
    assert env.world[Switch].Mode.value.tolist() == [0, 2]
    assert infos["switch_2"]["decision"] == Source.EXPLICIT


def test_synchronous_ticks_are_whole_multiples_of_dt():
    for config, what, value, near in [
        (ScheduleConfig(tick_interval=1.5), "tick_interval", 1.5, 2.0),
        (ScheduleConfig(phase=0.25), "phase", 0.25, 0.0),
        (ScheduleConfig(tick_interval=0.1), "tick_interval", 0.1, 1.0),
    ]:
        env = switches(schedule={"switch_2": config})
        message = (
            f"agent 'switch_2': {what}={value!r} s is not a whole multiple of the env's dt=1.0 s, which the "
            f"synchronous clock needs. Use {near!r}, change dt, or give this schedule to run_event_driven() only"
        )
        with refuses(ScheduleError, message):
            env.reset(seed=0)
        env.run_event_driven({"*": lambda vector: 0}, t_end=3.0)


class Timed(FieldAgent):
    """Terminates once its counter is at its own limit."""

    features = (Mode,)
    action = Discrete(3)

    @staticmethod
    @rule(writes=Mode.count)
    def advance(mode: Mode) -> float:
        return mode.count + 1

    @staticmethod
    @rule
    def is_terminated(mode: Mode) -> bool:
        return mode.value > 0 and mode.count >= mode.value

    @staticmethod
    @rule
    def is_truncated(mode: Mode) -> bool:
        return mode.count >= 7

    @staticmethod
    @rule
    def compute_local_reward(mode: Mode) -> float:
        return mode.count


def timed(**options: Any) -> HeronEnv:
    agents = [Timed("a", Mode(value=2)), Timed("b", Mode(value=4)), Timed("c")]
    return HeronEnv(SystemAgent("s", CoordinatorAgent("z", *agents)), **options)


def course(env: HeronEnv) -> list[tuple[list[str], str]]:
    env.reset(seed=0)
    rows = []
    while env.agents:
        live = env.agents
        obs, rewards, terminated, truncated, infos = env.step({})
        assert list(obs) == list(rewards) == list(terminated) == list(truncated) == list(infos) == live
        rows.append((live, "".join("T" if terminated[a] else "t" if truncated[a] else "." for a in live)))
    return rows


def test_agents_end_one_by_one_and_the_last_ends_the_episode():
    env = timed()
    abc, bc, c = ["a", "b", "c"], ["b", "c"], ["c"]
    assert course(env) == [(abc, "..."), (abc, "T.."), (bc, ".."), (bc, "T."), (c, "."), (c, "."), (c, "t")]
    assert env.proxy.get_step_results()[1] == {"s": 7.0, "z": 7.0, "a": 0.0, "b": 0.0, "c": 7.0}


def test_with_any_the_first_to_end_ends_all():
    assert course(timed(termination=TerminationConfig(mode="any")))[-1] == (["a", "b", "c"], "TTT")
    assert len(course(timed(termination=TerminationConfig(mode="any")))) == 2


def test_limits_truncate_everyone_still_there():
    assert course(timed(max_steps=3))[-1] == (["b", "c"], "tt")
    assert course(timed(termination=TerminationConfig(max_sim_time=2.5)))[-1] == (["b", "c"], "tt")
    assert len(course(timed(termination=TerminationConfig(max_sim_time=3.0)))) == 3


def test_at_the_limit_an_agent_may_be_terminated_and_truncated():
    env = timed(max_steps=2)
    env.reset(seed=0)
    env.step({})
    _, _, terminated, truncated, _ = env.step({})
    assert terminated == {"a": True, "b": False, "c": False}
    assert truncated == {"a": True, "b": True, "c": True}
    assert env.agents == []


def test_impossible_limits_are_refused():
    for options, message in [
        ({"max_steps": 1.5}, "TerminationConfig(max_steps=1.5): must be a whole number >= 1, or None"),
        ({"max_steps": True}, "TerminationConfig(max_steps=True): must be a whole number >= 1, or None"),
        ({"max_sim_time": float("nan")}, "TerminationConfig(max_sim_time=nan): must be > 0 s, or None"),
    ]:
        with refuses(ConfigError, message):
            TerminationConfig(**options)


def test_the_environment_refuses_impossible_settings():
    system = SystemAgent("s", Switch("a"))
    both = TerminationConfig()
    with refuses(ConfigError, f"max_steps=3 and termination={both!r}: give one of the two"):
        HeronEnv(system, max_steps=3, termination=both)
    for m in (0, 1.5, True, "2"):
        with refuses(ConfigError, f"physics_substeps={m!r}: must be a whole number >= 1"):
            HeronEnv(system, physics_substeps=m)


def test_physics_runs_in_substeps_with_nominal_time_and_finish_once():
    calls: list[Any] = []

    class Watched(HeronEnv):
        dt = 3.0
        physics_substeps = 3

        def begin(self, world: World) -> None:
            calls.append(("begin", world.step, world.time))

        def advance(self, world: World, dt: float) -> None:
            calls.append(("advance", world.step, world.time, dt))

        def finish(self, world: World) -> None:
            calls.append(("finish", world.step, world.time))

    env = Watched(SystemAgent("s", Switch("a")), max_steps=2)
    env.reset(seed=0)
    env.step({})
    env.step({})
    assert calls == [
        ("begin", 0, 0.0),
        *(("advance", 0, float(t), 1.0) for t in (0, 1, 2)),
        ("finish", 1, 3.0),
        *(("advance", 1, float(t), 1.0) for t in (3, 4, 5)),
        ("finish", 2, 6.0),
    ]


def test_hooks_write_within_the_declared_bounds():
    class Wild(HeronEnv):
        def begin(self, world: World) -> None:
            world[Switch].Mode.value = 99

        def finish(self, world: World) -> None:
            world[Switch].Mode.value = 3.6

    env = Wild(SystemAgent("s", Switch("a")), max_steps=2)
    obs, _ = env.reset(seed=0)
    assert obs["a"][0] == 9.0
    obs, *_ = env.step({})
    assert obs["a"][0] == 4.0, "a whole quantity is rounded"


def test_the_training_signal_is_the_reward_unless_the_environment_knows_better():
    env = grid()
    _, rewards, *_ = env.step({"battery_1": 1.0})
    assert env.training_signal() == rewards
    assert env.kpis() == {}


def test_the_state_is_the_whole_truth_and_in_no_info():
    env = grid(scope="owner")
    assert env.state_names == [
        f"battery_{i}.BatteryChargeFeature.{field}" for i in (1, 2) for field in ("soc", "capacity")
    ]
    env.step({"battery_1": 1.0})
    assert env.state().tolist() == np.array([0.51, 100.0, 0.5, 100.0], np.float32).tolist()
    assert env.state_space.contains(env.state())


def test_spaces_are_the_same_objects_each_time_also_for_watchers():
    env = grid()
    for agent in env.hierarchy.ids:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
    assert list(env.observation_spaces) == list(env.action_spaces) == env.possible_agents
    assert env.render() is None
    env.close()


@pytest.mark.parametrize(("run", "place"), [("step", 1), ("run_synchronous", 0), ("run_event_driven", 1)])
def test_a_masked_action_is_refused_by_whoever_reads_it(run: str, place: int):
    env = grid()
    agents, masked = env.possible_agents, np.ma.array([0.3], mask=[True])
    given = {agent: masked if i == place else np.array([0.3]) for i, agent in enumerate(agents)}
    with refuses(InvalidAction, f"action of {agents[place]!r} is a masked array; fill it: values.filled(0.0)"):
        if run == "step":
            env.step(given)
        else:
            getattr(env, run)({agent: lambda vector, action=action: action for agent, action in given.items()})
