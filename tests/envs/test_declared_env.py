"""Environments without code: what a YAML file declares is what runs, in both clocks and both forms."""

import copy
import pickle
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from heron_env import (
    BatchEnv,
    HeronEnv,
    ScheduleConfig,
    SimulationConfig,
    SimulationState,
    construct_observation,
    from_config,
    make,
    register_engine,
)
from heron_env.declared.engine import Engine, Scene
from heron_env.errors import ConfigError
from heron_env.files.models import Number


class Drift(Engine):
    """Test engine: the action is added to `level`, what it costs is its square; the world's `clock` counts turns."""

    agent_variables: ClassVar[tuple[str, ...]] = ("level",)
    global_variables: ClassVar[tuple[str, ...]] = ("clock",)
    gain: Number = 1.0

    def policies(self, agents: int) -> dict[str, Any]:
        return {"half": Half(), "always": always}

    def advance(self, scene: Scene, dt: float) -> None:
        level = scene.agents.level
        level += self.gain * np.where(scene.active, scene.actions, 0.0) * dt
        scene.income[...] -= scene.actions**2 * dt

    def finish(self, scene: Scene) -> None:
        clock = scene.world.clock
        clock += 1
        secret = scene.agents.secret
        secret[...] = scene.draw("secret", len(secret))


class Half:
    """A policy with decide_action that remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[SimulationState] = []

    def decide_action(self, state: SimulationState) -> float:
        self.shown.append(state)
        return 0.5


def always(vector: Any) -> float:
    return 0.25


register_engine("drift", f"{__name__}:Drift")


def world(**sections: Any) -> dict[str, Any]:
    declared: dict[str, Any] = {
        "simulation": {"name": "test", "max_turns": 6, "dt": 1.0},
        "engine": {"type": "drift", "params": {}},
        "agents": [{"name": "A"}, {"name": "B", "initial_state": {"level": 3.0, "mood": "wild"}}, {"name": "C"}],
        "state_variables": {
            "agent_vars": {
                "level": {"type": "float", "min": -10.0, "max": 10.0, "default": 1.0, "unit": "m"},
                "units": {"type": "int", "min": 0, "max": 100, "default": 40},
                "open": {"type": "bool", "default": True},
                "mood": {"type": "categorical", "categories": ["calm", "wild"], "default": "calm"},
                "secret": {"type": "float", "min": 0.0, "max": 1.0, "default": 0.5, "visibility": "internal"},
                "action": {"type": "float", "min": 0.0, "max": 4.0, "default": 2.0},
            },
            "global_vars": {
                "clock": {"type": "int", "min": 0, "max": 1000, "default": 10, "foreknown": True},
                "vault": {"type": "float", "min": 0.0, "max": 9.0, "default": 3.0, "visibility": "internal"},
            },
        },
    }
    return {**declared, **sections}


def matrix(*rows: Any, level: str = "unaware", noise: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"matrix": list(rows), "default": {"level": level, "noise": noise}, **more}


def acted(env: HeronEnv, value: float) -> dict[str, np.ndarray]:
    return {agent: np.array([value]) for agent in env.agents}


def test_variables_become_features_with_their_kinds_bounds_and_initial_values():
    env = from_config(world())
    env.reset(seed=0)
    truth = env.simulation_state()
    assert truth.turn == 0
    assert vars(truth.agents["B"]) == {
        "level": 3.0, "units": 40, "open": True, "mood": "wild", "secret": 0.5, "action": 2.0,
    }  # fmt: skip
    assert vars(truth.global_state) == {"clock": 10, "vault": 3.0}
    assert [type(value) for value in vars(truth.agents["A"]).values()] == [float, int, bool, str, float, float]
    names = env.observation_names("A")
    assert names[:6] == [f"Variables.{name}" for name in ("level", "units", "open", "mood", "secret", "action")]
    assert "B.Variables.level" in names
    assert names[-1] == "global.Globals.clock"
    layout = env.simulation.model.layout
    assert [layout.full_names[i] for i in np.flatnonzero(layout.foreknown)] == ["global.Globals.clock"]
    assert env.observation_space("A").low[0] == -10.0
    assert env.possible_agents == ["A", "B", "C"]
    assert str(env) == "test"


def test_without_a_matrix_internal_variables_are_their_owners_alone():
    env = from_config(world())
    for agent in env.possible_agents:
        secret = [name for name in env.observation_names(agent) if "secret" in name or "vault" in name]
        assert secret == ["Variables.secret"]
    env.reset(seed=0)
    shown = env.observed_state("A")
    assert not hasattr(shown.agents["B"], "secret")
    assert not hasattr(shown.global_state, "vault")
    assert shown.agents["A"].secret == 0.5


def test_an_episode_runs_by_the_engine_and_ends_after_max_turns():
    env = from_config(world(engine={"type": "drift", "params": {"gain": 2.0}}))
    env.reset(seed=0)
    _, rewards, *_ = env.step(acted(env, 0.5))
    assert rewards == {"A": -0.25, "B": -0.25, "C": -0.25}
    assert env.simulation_state().agents["A"].level == 2.0
    assert env.simulation_state().global_state.clock == 11
    for _ in range(5):
        _, _, _, truncated, _ = env.step(acted(env, 0.5))
    assert truncated == {"A": True, "B": True, "C": True}
    assert from_config(world(), max_steps=2).termination.max_steps == 2


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [("clip", 1.0, 0.5), ("clip", -1.0, -0.25), ("clip", 0.3, 0.3), ("reject", 0.51, 0.0), ("reject", 0.5, 0.5)],
)
def test_the_validator_clips_or_rejects(kind: str, given: float, expected: float):
    env = from_config(world(validator={"type": kind, "limits": {"action": [-0.25, 0.5]}}))
    env.reset(seed=0)
    env.step(acted(env, given))
    assert env.simulation_state().agents["A"].level == 1.0 + expected


def test_a_variable_of_agents_ends_each_by_its_own_value():
    rule = {"variable": "level", "high": 3.5}
    env = from_config(world(simulation={"name": "x", "max_turns": 6, "termination": rule}))
    env.reset(seed=0)
    _, _, terminated, _, _ = env.step(acted(env, 1.0))
    assert terminated == {"A": False, "B": True, "C": False}
    _, rewards, *_ = env.step(acted(env, 1.0))
    assert set(rewards) == {"A", "C"}
    assert env.simulation_state().agents["B"].level == 4.0  # an ended agent's set-point moves nothing


def test_a_global_variable_ends_the_episode():
    rule = {"variable": "clock", "high": 11.5}
    env = from_config(world(simulation={"name": "x", "max_turns": 6, "termination": rule}))
    env.reset(seed=0)
    steps = 0
    while env.agents:
        env.step(acted(env, 0.0))
        steps += 1
    assert steps == 3  # the clock shows 12 after the second step, which the third finds


def test_policies_of_the_file_decide_when_nobody_else_does():
    agents = [
        {"name": "A", "policy": "half"},
        {"name": "B", "policy": "always"},
        {"name": "C", "policy": f"{__name__}:Half"},
    ]
    env = from_config(world(agents=agents))
    env.reset(seed=0)
    env.step({})
    assert [state.level for state in list(env.simulation_state().agents.values())] == [1.5, 1.25, 1.5]
    result = env.run_synchronous({}, seed=0)
    assert result.same_course(env.run_event_driven({}, seed=0))


def test_a_yaml_file_a_mapping_and_a_configuration_are_the_same_world(tmp_path: Path):
    import yaml

    file = tmp_path / "world.yaml"
    file.write_text(yaml.safe_dump(world(), sort_keys=False), encoding="utf-8")
    envs = [from_config(given) for given in (file, str(file), world(), SimulationConfig(**world()))]
    first = [env.reset(seed=3)[0]["A"].tobytes() for env in envs]
    assert len(set(first)) == 1


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"engine": {"type": "drfit"}}, "engine.type: Unknown engine 'drfit'; registered are "),
        ({"engine": {"type": "drfit"}}, "Did you mean 'drift'?"),
        ({"engine": {"type": "drift", "params": {"gian": 1}}}, "engine.params.gian: unknown key. Did you mean 'gain'?"),
        ({"engine": {"type": "drift", "params": {"gain": "x"}}}, "engine.params.gain: must be a number, got 'x' (str)"),
        ({"engine": {"type": "economy"}}, "state_variables.agent_vars: the engine 'economy' needs 'economic_strength'"),
        ({"agents": [{"name": "A", "policy": "hlaf"}]}, "agents[0].policy: policy of 'A': Unknown policy 'hlaf'; "),
        ({"agents": [{"name": "A", "policy": "hlaf"}]}, "Did you mean 'half'?"),
        ({"agents": [{"name": "A", "policy": "no.such:thing"}]}, "agents[0].policy: policy of 'A': can't load its"),
        ({"observability": matrix(["A", "Z", "insider", 0.0])}, "Unknown target 'Z'"),
    ],
)  # fmt: skip
def test_a_wrong_world_is_refused_in_words_and_in_a_file_with_its_line(
    tmp_path: Path, sections: dict[str, Any], message: str
):
    with pytest.raises(ConfigError) as caught:
        from_config(world(**sections))
    assert message in str(caught.value)
    path = tmp_path / "world.yaml"
    path.write_text(yaml.safe_dump(world(**sections)), "utf-8")
    with pytest.raises(ConfigError) as told:
        from_config(path)
    for line in str(told.value).splitlines():
        assert re.match(rf"{re.escape(str(path))}:\d+: ", line)
    assert message in str(told.value)


def test_an_engine_that_needs_numbers_refuses_words():
    declared = world()
    declared["state_variables"]["agent_vars"]["level"] = {"type": "bool", "default": True}
    declared["agents"] = [{"name": "A"}]
    with pytest.raises(ConfigError, match=r"agent_vars\.level: the engine 'drift' needs a number, but it is bool"):
        from_config(declared)


@pytest.mark.parametrize("wrong", [3, None, ["x"]])
def test_what_is_no_world_is_refused(wrong: Any):
    with pytest.raises(ConfigError, match=r"from_config\(.*give a SimulationConfig"):
        from_config(wrong)


def test_engines_are_registered_once_by_name():
    register_engine("drift", f"{__name__}:Drift")
    with pytest.raises(ConfigError, match="that name stands for"):
        register_engine("drift", "elsewhere:Drift")
    with pytest.raises(ConfigError, match=r"the entry point reads 'package\.module:attribute'"):
        register_engine("other", "elsewhere")
    with pytest.raises(ConfigError, match=r"register_engine\(3, \.\.\.\): must be the name"):
        register_engine(3, f"{__name__}:Drift")


SEEING = matrix(["A", "B", "insider", 0.2], ["A", "global", "insider", 0.1], level="external", noise=0.3)


def test_it_copies_and_pickles_in_mid_episode_although_its_classes_are_made_at_run_time():
    env = from_config(world(observability=SEEING))
    env.reset(seed=4)
    env.step(acted(env, 0.5))
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    for _ in range(3):
        told = env.step(acted(env, 0.3))
        for other in others:
            again = other.step(acted(other, 0.3))
            assert all(told[0][agent].tobytes() == again[0][agent].tobytes() for agent in told[0])
            assert told[1] == again[1]
            assert other.simulation_state() == env.simulation_state()


@st.composite
def matrices(draw: st.DrawFn) -> dict[str, Any]:
    levels, noises = st.sampled_from(["unaware", "external", "insider"]), st.sampled_from([0.0, 0.2, 1.5])
    pairs = draw(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["A", "B", "C", "global"])), unique=True))
    rows = [[o, t, draw(levels), draw(noises)] for o, t in pairs if o != t]
    names = ["level", "Variables.units", "mood", "action", "clock"]
    internal = draw(st.lists(st.sampled_from(names), unique=True))
    listed = {"internal": [*internal, "secret"], "external": [name for name in names if name not in internal]}
    enabled = draw(st.sampled_from([True, True, False]))
    return matrix(*rows, level=draw(levels), noise=draw(noises), variable_visibility=listed, enabled=enabled)


@given(matrices(), st.integers(0, 2**40), st.lists(st.floats(-1, 1), min_size=1, max_size=4))
def test_both_forms_of_an_observation_agree(seeing: dict[str, Any], seed: int, moves: list[float]):
    """V6: as float64 before the cast, and as float32 after it; the object form of a vector is the same state."""
    env = from_config(world(observability=seeing))
    vectors, _ = env.reset(seed=seed)
    for move in moves:
        for rank, agent in enumerate(env.hierarchy.ids[1:], start=1):
            moment = env.simulation.moment
            shown = construct_observation(
                agent, env.simulation_state(), env.config.observability, seed=seed, episode=moment.episode
            )
            assert repr(env.observed_state(agent)) == repr(shown)
            numbers = [value for state in ordered(shown, agent) for value in as_numbers(state)]
            assert np.array(numbers, dtype=np.float32).tobytes() == vectors[agent].tobytes()
            read = env.shown_to(rank)(vectors[agent], moment.turn)
            assert [list(vars(state)) for state in ordered(read, agent)] == [
                list(vars(state)) for state in ordered(shown, agent)
            ]
            assert list(read.agents) == list(shown.agents)
        vectors, *_ = env.step(acted(env, move))


def ordered(state: SimulationState, observer: str) -> list[Any]:
    """Own, the others, the world: the order of the vector."""
    others = [known for name, known in state.agents.items() if name != observer]
    return [state.agents[observer], *others, state.global_state]


def as_numbers(state: Any) -> list[float]:
    return [float(["calm", "wild"].index(v) if isinstance(v, str) else v) for v in vars(state).values()]


def test_a_decide_action_policy_sees_what_the_vector_says_with_the_turn():
    env = from_config(world(observability=SEEING))
    policy, record = Half(), ("rewards", "actions", "observations")
    result = env.run_synchronous({"A": policy, "*": always}, seed=2, record=record)
    assert [state.turn for state in policy.shown] == list(range(6))
    for state, (_, vector) in zip(policy.shown, result.observations["A"], strict=True):
        numbers = [value for part in ordered(state, "A") for value in as_numbers(part)]
        assert np.array(numbers, dtype=np.float32).tobytes() == vector.tobytes()
    again = Half()
    event = env.run_event_driven({"A": again, "*": always}, seed=2, record=record)
    assert result.same_course(event)
    assert again.shown == policy.shown


def test_a_decide_action_policy_gets_old_news_over_a_slow_network():
    env = from_config(world())
    policy = Half()
    slow = ScheduleConfig(tick_interval=1.0, msg_delay=1.25)
    env.run_event_driven({"A": policy, "*": always}, seed=0, schedule=slow)
    clocks = [state.global_state.clock for state in policy.shown]
    assert [state.turn for state in policy.shown] == list(range(len(policy.shown)))
    assert all(clock < 10 + state.turn for clock, state in zip(clocks[1:], policy.shown[1:], strict=True))


def test_further_requests_within_a_step_have_its_turn():
    env = from_config(world())
    policy = Half()
    env.run_event_driven({"A": policy, "*": always}, seed=0, schedule={"A": ScheduleConfig(tick_interval=0.5)})
    assert [state.turn for state in policy.shown][:6] == [0, 0, 1, 1, 2, 2]


def test_others_of_a_trained_group_may_have_decide_action():
    env = from_config(world(observability=matrix(["A", "B", "insider", 0.0], level="external")))
    policy = Half()
    batch = BatchEnv(env, 1, others={"*": policy})
    batch.reset(seed=0)
    batch.step({"A": np.zeros((1, 1, 1))})
    assert len(policy.shown) == 2
    assert env.simulation_state().agents["B"].level == 3.5


def test_any_environment_shows_itself_in_object_form():
    env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3)
    policy = Half()
    env.run_synchronous({"*": policy}, seed=0)
    first = policy.shown[0]
    assert first.agents["battery_2"] == {"BatteryChargeFeature": {"soc": 0.5, "capacity": 100.0}}
    assert first.global_state == {}
    env.reset(seed=0)
    assert env.simulation_state().agents == first.agents


@pytest.mark.parametrize("head", ["", "observability:\n"])
def test_another_observability_from_a_file_is_told_with_file_and_line(tmp_path: Path, head: str):
    path = tmp_path / "seeing.yaml"
    rows = "matrix:\n- [A, B, insider, 0.1]\n- [A, Z, insider, 0.1]\n"
    path.write_text(head + (rows if not head else rows.replace("matrix", "  matrix").replace("- [", "  - [")), "utf-8")
    with pytest.raises(ConfigError) as caught:
        from_config(world(), observability=path)
    line, where = (4, "observability.matrix[1]") if head else (3, "matrix[1]")
    assert str(caught.value).startswith(f"{path}:{line}: {where}.target: Unknown target 'Z'")


def test_a_mapping_whose_keys_are_no_text_is_refused():
    with pytest.raises(ConfigError, match=r"must be text: it is a key, got 1 \(int\)"):
        from_config({1: 2})
