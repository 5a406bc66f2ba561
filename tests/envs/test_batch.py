"""The batch's face, in either engine; that it is its single environments, laws/test_batch.py asserts."""

from typing import Any

import numpy as np
import pytest
import torch
from ends import Mixed, Mover, endings
from refusing import refuses
from small_worlds import Level, Unit

from heron_env import (
    BatchEnv,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    VectorDecomposition,
    make,
)
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, UnknownAgent

LANES = 3


def equal(a: Any, b: Any) -> None:
    assert np.array_equal(a, b)


def near(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-6 if np.asarray(a).dtype == np.float32 else 1e-9, atol=1e-6)


ENGINES = [False, True]


def grid(compile: bool, **options: Any) -> BatchEnv:
    return BatchEnv("heron/BatteryGrid-v0", LANES, num_batteries=2, max_steps=3, compile=compile, **options)


STILL = np.zeros((LANES, 2, 1))


@pytest.mark.parametrize("compile", ENGINES)
def test_what_is_handed_out_holds_for_one_step_more_and_shares_memory_with_torch(compile: bool):
    batch = grid(compile)
    batch.reset()
    first = batch.step({"battery": STILL + 1.0})
    tensor, kept = torch.from_numpy(first[0]["battery"]), first[0]["battery"].copy()
    batch.step({"battery": torch.ones(LANES, 2, dtype=torch.float64)})
    assert np.array_equal(tensor.numpy(), kept)
    assert np.shares_memory(first[0]["battery"], batch.step({"battery": STILL})[0]["battery"])


@pytest.mark.parametrize("compile", ENGINES)
def test_actions_of_any_number_type_are_taken(compile: bool):
    batch, seen = grid(compile), []
    for dtype in (np.float64, np.float16, np.float32, np.int64):
        batch.reset(seed=0)
        seen.append(batch.step({"battery": (STILL + 1.0).astype(dtype)})[0]["battery"].copy())
        assert np.array_equal(seen[0], seen[-1])


@pytest.mark.parametrize("compile", ENGINES)
def test_the_three_ways_to_begin_anew(compile: bool):
    courses = {}
    for mode in ("same_step", "next_step", "disabled"):
        batch = grid(compile, autoreset=mode)
        batch.reset()
        batch.reset(mask=np.array([True, False, True]))
        batch.step({"battery": STILL})
        batch.reset(mask=np.array([False, True, False]))
        course = []
        for _ in range(4 if mode != "disabled" else 2):
            _, rewards, _, truncated, _ = batch.step({"battery": STILL + 1.0})
            course.append(
                (
                    batch.over.tolist(),
                    batch.steps.tolist(),
                    truncated["battery"][:, 0].tolist(),
                    (rewards["battery"][:, 0] > 0).tolist(),
                )
            )
        courses[mode] = course
        if mode == "disabled":
            with pytest.raises(ResetNeeded, match=r"no episode is running in lane 0; call reset\(\), with a mask"):
                batch.step({"battery": STILL})
    ends, none, all_ = [True, False, True], [False] * 3, [True] * 3
    middle = [False, True, False]
    assert courses["same_step"] == [
        (none, [2, 1, 2], none, all_),
        (ends, [0, 2, 0], ends, all_),
        (middle, [1, 0, 1], middle, all_),
        (none, [2, 1, 2], none, all_),
    ]
    assert courses["next_step"] == [
        (none, [2, 1, 2], none, all_),
        (ends, [3, 2, 3], ends, all_),
        (middle, [0, 3, 0], middle, middle),
        (none, [1, 0, 1], none, ends),
    ]
    assert courses["disabled"] == courses["next_step"][:2]


@pytest.mark.parametrize("compile", ENGINES)
def test_a_refused_action_names_lane_and_agent_and_changes_nothing(compile: bool):
    batch = grid(compile)
    batch.reset()
    before, actions = batch.state().copy(), STILL.copy()
    actions[1, 1] = 1.5
    with pytest.raises(InvalidAction) as error:
        batch.step({"battery": actions})
    assert str(error.value).startswith("lane 1: action of 'battery_2': [1.5] lies outside [-1.0, 1.0]")
    assert np.array_equal(batch.state(), before)
    assert batch.steps.tolist() == [0] * LANES


@pytest.mark.parametrize("compile", ENGINES)
def test_what_can_t_be_is_refused_in_words(compile: bool):
    batch = grid(compile)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: batch.step({}), ResetNeeded,
         "step(): no episode is running in lane 0; call reset(), with a mask if others go on"),
        (lambda: batch.step({"batery": STILL}), UnknownAgent,
         "step() got actions for the group 'batery'; this batch has ['battery']. Did you mean 'battery'?"),
        (lambda: batch.step({"battery": STILL[:2]}), InvalidAction,
         "step(): the actions of group 'battery' have shape (2, 2, 1), expected (3, 2, 1): "
         "(lanes, agents, elements), each [-1.0, 1.0]"),
        (lambda: batch.reset(seed=-1), ConfigError, "seed=-1: must be a whole number >= 0"),
        (lambda: batch.reset(mask=np.zeros(3)), ConfigError,
         "reset(mask=...): has shape (3,) and type float64; give booleans of shape (3,)"),
        (lambda: grid(compile, autoreset="next"), ConfigError,
         "BatchEnv(autoreset='next'): must be one of ('same_step', 'next_step', 'disabled'). "
         "Did you mean 'next_step'?"),
        (lambda: BatchEnv("heron/BatteryGrid-v0", 0), ConfigError, "BatchEnv(num_envs=0): must be a whole number >= 1"),
        (lambda: BatchEnv(make("heron/BatteryGrid-v0"), 2, dt=3.0), ConfigError,
         "BatchEnv: options ['dt'] go with an id or a function; build the env with them"),
    ]  # fmt: skip
    for call, error, words in cases:
        if words.startswith("step() got") or "have shape" in words:
            batch.reset()
        with refuses(error, words):
            call()


@pytest.mark.parametrize("compile", ENGINES)
def test_infos_of_an_earlier_step_are_refused(compile: bool):
    batch = grid(compile)
    _, old = batch.reset()
    batch.step({"battery": STILL})
    with pytest.raises(ResetNeeded, match="the batch has gone on; read infos before the next step"):
        old["battery"]["is_active"]


@pytest.mark.parametrize("compile", ENGINES)
def test_policies_of_the_batch_act_where_step_says_nothing(compile: bool):
    class Whole:
        calls = 0

        def forward(self, vector: np.ndarray) -> float:
            raise AssertionError("asked one by one")

        def forward_batch(self, vectors: np.ndarray) -> np.ndarray:
            self.calls += 1
            return np.full((len(vectors), 1), 0.5)

    system = SystemAgent("system_agent", *Mixed.pair())
    policy = Whole()
    batch = BatchEnv(HeronEnv(system, max_steps=3, compile=compile), LANES, others={"mover": policy})
    batch.reset()
    _, rewards, _, _, infos = batch.step({"chooser": np.full((LANES, 1), 2)})
    assert (rewards["mover"].tolist(), rewards["chooser"].tolist()) == ([[0.5]] * LANES, [[2.0]] * LANES)
    assert infos["mover"]["decision"].tolist() == [[1]] * LANES
    assert policy.calls == 1


@pytest.mark.e2e
def test_who_decides_may_change_from_step_to_step_in_one_call_too():
    """The coordinator has a policy of its own; where somebody looks `at_close`, a step has parts."""
    whole, parts = (BatchEnv("heron/TrafficCorridor-v0", LANES, max_steps=5, compile=True) for _ in range(2))
    parts.at_close.append(lambda: None)
    random, names = np.random.default_rng(0), list(whole.groups)
    for batch in (whole, parts):
        batch.reset(seed=3)
    for turn in range(16):
        shapes = {name: (LANES, len(whole.groups[name])) for name in names if random.random() < 0.6}
        given = {name: random.integers(0, 2, shape) for name, shape in shapes.items()}
        (*results, infos), (*others, told) = whole.step(given), parts.step(given)
        for name in names:
            for result, other in zip(results, others, strict=True):
                assert result[name].tobytes() == other[name].tobytes(), f"turn {turn}, given {list(given)}"
            equal(infos[name]["decision"], told[name]["decision"])
        assert whole.state().tobytes() == parts.state().tobytes()


@pytest.mark.parametrize("compile", ENGINES)
def test_options_reach_the_lanes_that_are_reset(compile: bool):
    batch = BatchEnv("heron/EnergyManagement-v1", 2, dt=3600.0, physics_substeps=1, compile=compile)
    alone = make("heron/EnergyManagement-v1", dt=3600.0, physics_substeps=1, compile=compile)
    shown, _ = batch.reset(seed=3, options={"day": 4})
    for lane in range(2):
        seen, _ = alone.reset(seed=3 + lane, options={"day": 4})
        near(shown["battery"][lane], np.stack(list(seen.values())))
    other, _ = batch.reset(seed=3)
    seen, _ = alone.reset(seed=3)
    near(other["battery"][0], np.stack(list(seen.values())))


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_a_lane_can_be_looked_at(compile: bool):
    batch = BatchEnv("heron/EnergyManagement-v1", 2, dt=3600.0, physics_substeps=1, compile=compile)
    alone = make("heron/EnergyManagement-v1", dt=3600.0, physics_substeps=1, compile=compile)
    batch.reset(seed=1)
    alone.reset(seed=2)
    told: list[Any] = []
    batch.at_close.append(lambda: told.append(batch.training_rewards("battery")))
    batch.step({"battery": np.full((2, 6), 0.5)})
    alone.step(dict.fromkeys(alone.agents, 0.5))
    near(batch.lane(1).state(), alone.state())
    assert batch.lane(1).kpis() == pytest.approx(alone.kpis())
    near(told[0][1], list(alone.training_signal().values()))


def test_environments_in_the_imperative_style_run_one_by_one_with_a_hint(caplog: pytest.LogCaptureFixture):
    class Hand(FieldAgent):
        features = (Level,)
        action = Unit.action

        def apply_action(self) -> None:
            self.state.features[Level].value = float(self.action.c[0])

        def compute_local_reward(self, local_state: Any) -> float:
            return float(local_state["Level"].value)

    env = HeronEnv(SystemAgent("system_agent", Hand("hand_1")), max_steps=2, compile=True)
    batch = BatchEnv(env, 2)
    assert not batch.compiled
    assert caplog.messages == ["BatchEnv: Hand has methods where rules could stand; 2 run one by one"]
    batch.reset()
    assert batch.step({"hand": np.array([[1.0], [-1.0]])})[1]["hand"].tolist() == [[1.0], [-1.0]]


def test_memory_grows_with_lanes_times_agents():
    sizes = []
    for lanes in (64, 128):
        batch = BatchEnv("heron/BatteryGrid-v0", lanes, num_batteries=10, scope="parent", compile=True)
        batch.reset()
        arrays = batch._engine.lanes.arrays
        sizes.append(sum(array.nbytes for array in arrays) - arrays.initial.nbytes)
    assert sizes[1] == 2 * sizes[0]


def test_who_sees_nothing_decides_in_a_batch_as_well():
    batch = BatchEnv(lambda: HeronEnv(SystemAgent("s", Mover("m"), protocol=VectorDecomposition()), max_steps=2), 2)
    observations, _ = batch.reset(seed=0)
    assert observations["s"].shape == (2, 1, 0)
    assert batch.step({"s": np.array([[[0.5]], [[-0.25]]])})[1]["s"].tolist() == [[0.5], [-0.25]]


def test_an_illegal_action_of_an_agent_that_has_ended_is_ignored_in_one_call_too():
    batch = BatchEnv(lambda: endings((2, 4), compile=True), 2)
    batch.reset()
    for number in range(4):
        actions = np.zeros((2, 2))
        actions[:, 0] = 1e9 if number >= 2 else 0.0
        _, rewards, *_ = batch.step({"mortal": actions})
        assert rewards["mortal"].tolist() == [[0.0 if number >= 2 else 1.0, 1.0]] * 2
    with pytest.raises(InvalidAction, match="mortal_1"):
        batch.step({"mortal": actions})
