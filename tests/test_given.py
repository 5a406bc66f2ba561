"""What callers give is checked at the door, in every part of the library: the words name it, and what it must be."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import unsaid

from heron_env import Action, BatchEnv, Continuous, Discrete, NoiseKey, TerminationConfig, apply_noise, dcop, lab, make
from heron_env.dcop.cluster import ClusterAgent
from heron_env.errors import (
    ConfigError,
    FixtureError,
    HeronError,
    InvalidAction,
    ScheduleError,
    UnknownArgument,
    UnknownFeature,
)
from heron_env.given import all_of, is_number, keywords, require_callable, require_one_of, require_type
from heron_env.injection import ExternalPolicy, Persona, Recording, ScriptedPersona, policies
from heron_env.lab.sweep.executors import RayCluster
from heron_env.lab.traces.episode import schedule_entries
from heron_env.power_flow import Feeder, Line, PowerFlow

GRID = "heron/BatteryGrid-v0"
URL = "http://127.0.0.1:9/respond"
ARRAY = np.zeros(2)
KEY = NoiseKey("a", "b", "F.x")
DEEP: Any = []
for _ in range(80):
    DEEP = [DEEP]


def feeder() -> Feeder:
    return Feeder(("busbar", "a"), (Line("busbar", "a", 0.1, 0.1),), 0.4)


def part() -> Any:
    return dcop.g15().part("Agent1")


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: make(GRID).proxy.set_global_state("x"), "state of 'global'='x': must be a mapping"),
    (lambda: make(GRID).proxy.register_agent("a", 3), "register_agent('a', 3): must be a State"),
    (lambda: make(GRID).proxy.set_local_state("battery_1", 3), "set_local_state('battery_1', 3): must be a"),
    (lambda: TerminationConfig(max_sim_time=10**400), "must be below 9.2e9 s"),
    (lambda: dcop.write_problem(3, "x.json"), "write_problem(3, ...): must be a Problem"),
    (lambda: dcop.problem_of([]), "path=[]: must be a path"),
    (lambda: dcop.g15().part([]), "[] is no cluster of the problem"),
    (lambda: dcop.g15().cost("x"), "assignment='x': must be a mapping"),
    (lambda: dcop.solve(dcop.g15(), ARRAY), "solve(algo=array([0., 0.])): is no algorithm."),
    (lambda: dcop.best_response(3, {}), "3: must be a Part"),
    (lambda: dcop.best_response(part(), 3), "told=3: must be a mapping"),
    (lambda: dcop.best_response(part(), {}, {"a1": "mauve"}), "forced['a1']='mauve': must be one of"),
    (lambda: dcop.best_response(part(), {}, {"x": "red"}), "forced: 'x': must be one of"),
    (lambda: dcop.counterfactuals(part(), 3, {}), "kept=3: must be a list or tuple"),
    (lambda: ClusterAgent(3), "ClusterAgent(3): must be a Problem or a Part"),
    (lambda: ClusterAgent(part(), process=ARRAY), "ClusterAgent(process=array([0., 0.])): is no process."),
    (lambda: ClusterAgent(part(), start=3), "start=3: must be a mapping"),
    (lambda: Feeder(3, (), 0.4), "Feeder(buses)=3: must be a list or tuple"),
    (lambda: Feeder(("a",), (3,), 0.4), "Feeder(lines): 3: must be a Line"),
    (lambda: Feeder(("a",), (), 0.4, transformer=3), "Feeder(transformer=3): must be a Transformer"),
    (lambda: Line([], "a", 0.1, 0.1), "must be between the names of two buses"),
    (lambda: Line("a", "b", 10**400, 0.1), "must be a finite number >= 0"),
    (lambda: PowerFlow(3), "PowerFlow(3): must be a Feeder"),
    (lambda: PowerFlow(feeder(), threads="x"), "threads='x', tolerance="),
    (lambda: PowerFlow(feeder(), tolerance="x"), "tolerance='x', iterations="),
    (lambda: PowerFlow(feeder()).solve("x", 0.0), "solve(p): 'x' are no numbers"),
    (lambda: ExternalPolicy(URL, env=3), "env=3: must be a HeronEnv, or None"),
    (lambda: ExternalPolicy(URL, personas=3), "personas=3: must be a mapping"),
    (lambda: ExternalPolicy(URL, personas={"a": 3}), "personas['a']=3: must be a Persona"),
    (lambda: ExternalPolicy(URL, label=3), "ExternalPolicy(label=3): must be a text"),
    (lambda: ExternalPolicy(URL, line=3), "ExternalPolicy(line=3): must be a Line, or None"),
    (lambda: policies(3, make(GRID)), "policies(config)=3: must be a path"),
    (lambda: ScriptedPersona(answers=3), "ScriptedPersona(answers)=3: must be a mapping"),
    (lambda: ScriptedPersona(opening=ARRAY), "must be a text"),
    (lambda: lab.one_at_a_time("x"), "one_at_a_time('x'): must be a Condition"),
    (lambda: lab.Intervals(3), "Intervals(labels)=3: must be a list or tuple"),
    (lambda: lab.Intervals([1], level="x"), "level='x'"),
    (lambda: lab.export_onnx("nowhere", "."), "give the file an ending"),
    (lambda: lab.export_onnx("nowhere", 3), "export_onnx(file)=3: must be a path"),
    (lambda: lab.load_policy("x" * 300), "xxx"),
    (lambda: lab.describe_environment(GRID, 3), "describe_environment(options)=3: must be a mapping"),
    (lambda: lab.describe_environment(GRID, {3: 3}), "3: must be the name of an option"),
    (lambda: RayCluster(3), "ray=3: "),
    (lambda: RayCluster("host:99999"), "ray='host:99999': "),
    (lambda: BatchEnv(GRID, 2).alive([]), "alive() got the group []; this batch has ['battery']"),
    (lambda: BatchEnv(GRID, 2).reset(seed=[1, [2]]), "give numbers, in rows of one length"),
    (lambda: BatchEnv(GRID, 2).lane("x" * 999), f"lane('{'x' * 59}): there are the lanes 0 to 1"),
    (lambda: make(GRID).proxy.get_observation("x"), "get_observation() got 'x'; this proxy knows"),
    (lambda: dcop.g15().cost(dict.fromkeys(dcop.g15().nodes, 3)), "'h1' has 3, which is no colour"),
    (lambda: dcop.g15().cost({}), "assignment: 'h1' has no colour; give each of the 15 nodes one of"),
    (lambda: dcop.planted(9, seed=0.5), "'planted'): the seed must be a whole number, each part"),
    (lambda: ClusterAgent(part(), seed=-1), "seed=-1: must be a whole number from 0 to 2**63 - 1"),
    (lambda: Feeder(("busbar", 3), (), 0.4), "Feeder(buses): 3: must be a text"),
    (lambda: make("heron/GraphColoring-v0", dt="x"), "dt='x': must be a number, got str"),
    (lambda: make("heron/GraphColoring-v0", letter_cost=1e9), "graph_coloring(letter_cost=1000000000.0): must"),
    (lambda: ExternalPolicy("nowhere"), "Endpoint(...): url: the address of an endpoint must be like"),
    (lambda: Persona(name="b", goal=3), "goal: must be text, got 3 (int)"),
    (lambda: apply_noise(1.0, "x", KEY), "apply_noise(noise_factor='x'): must be a number >= 0"),
]


def test_a_value_of_another_kind_is_refused_with_words():
    assert unsaid(HeronError, REFUSED) == []


def test_an_action_nested_too_deeply_is_none():
    with pytest.raises(InvalidAction):
        Action(Continuous(-1.0, 1.0)).set_values({"c": DEEP})


def test_an_unknown_option_of_an_endpoint_is_named():
    with pytest.raises(
        UnknownArgument, match=r"ExternalPolicy\(fallbck=...\): no such option. Did you mean 'fallback'"
    ):
        Recording(URL, "x.jsonl", fallbck="skip")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to itself"])
def test_a_recording_goes_into_a_file_and_waits_for_no_pipe(kind: str, tmp_path: Path):
    path = tmp_path / "run.jsonl"
    {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "link to itself": lambda: path.symlink_to(path)}[kind]()
    with pytest.raises(FixtureError, match=r"run.jsonl: (can't be opened|is a pipe)"):
        Recording(ExternalPolicy(URL, env=make(GRID)), path).begin(0, 0)


def test_numbers_are_finite_numbers():
    assert all(map(is_number, [1, 0.5, np.float32(0.5), np.int64(3), np.uint8(255), 2**70]))
    others = [True, np.bool_(True), "1", None, ARRAY, 1j, float("nan"), float("inf"), 10**400]
    assert not any(map(is_number, others))


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()), st.just(ARRAY), st.just(len), st.just(object()),
)  # fmt: skip


@given(ANYTHING)
def test_each_validator_takes_its_kind_and_refuses_all_else_with_words(value: Any):
    kinds: list[tuple[Callable[[], Any], bool]] = [
        (lambda: require_one_of("a", value, ("x", "y")), isinstance(value, str) and value in ("x", "y")),
        (lambda: require_type("a", value, str, "a text"), isinstance(value, str)),
        (lambda: require_callable("a", value), callable(value)),
        (lambda: all_of(value, "a", int), isinstance(value, list)),
        (lambda: keywords(value, "a"), isinstance(value, dict)),
        (lambda: Discrete(value), is_number(value) and 1 <= value <= 2**53 and value % 1 == 0),
    ]
    for call, fits in kinds:
        if fits or value is True:
            call() if fits else None
            continue
        with pytest.raises(ConfigError) as caught:
            call()
        assert str(caught.value).strip()


def test_an_entry_of_a_schedule_and_a_feature_are_what_they_should_be():
    env = make("heron/BatteryGrid-v0")
    with pytest.raises(ScheduleError, match=r"schedule: \(1, 2\) is no ScheduleConfig; write"):
        schedule_entries((1, 2))
    with pytest.raises(UnknownFeature, match="no feature 'None' in this state"):
        env.proxy.set_global_state({None: {}})
