"""A batch in rough hands: wrong arguments, errors half-way, results that their owner changes, copies."""

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from heron_env import BatchEnv, Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, Vector, quantity, rule
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded

LANES = 3


class Tank(FeatureProvider):
    level: float = quantity(default=0.5, low=0.0, high=1.0)


class Valve(FieldAgent):
    features = (Tank,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Tank.level)
    def apply_action(action: Vector) -> float:
        return 0.5 + 0.25 * action[0]

    @staticmethod
    @rule
    def compute_local_reward(tank: Tank) -> float:
        return tank.level


class Plant(HeronEnv):
    fails = False

    def finish(self, world: Any) -> None:
        if Plant.fails and world.lanes == 1:
            raise ValueError("leak")


def plant(compile: bool = False, **options: Any) -> Plant:
    return Plant(SystemAgent("system_agent", Valve("valve")), max_steps=4, compile=compile, **options)


def batch(**options: Any) -> BatchEnv:
    made = BatchEnv(plant, LANES, **options)
    made.reset(seed=0)
    return made


@pytest.fixture
def leak(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    return lambda on: monkeypatch.setattr(Plant, "fails", on)


ACTIONS = {"valve": np.full((LANES, 1, 1), 0.4)}


def test_what_a_step_returns_may_be_changed() -> None:
    env = batch()
    for _ in range(3):
        observations, rewards, *_ = env.step(ACTIONS)
        assert observations["valve"][0, 0, 0] == np.float32(0.6) and rewards["valve"][0, 0] == 0.6
        observations["valve"] = observations["valve"] * 0.0  # a careless normalisation
        rewards.clear()


@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
@pytest.mark.parametrize("compile", [False, True])
def test_after_an_error_half_way_only_a_reset_goes_on(
    compile: bool, autoreset: Any, leak: Callable[[bool], None]
) -> None:
    env = batch(compile=compile, autoreset=autoreset)
    leak(True)
    with pytest.raises(ValueError, match="leak") as caught:
        env.step(ACTIONS)
    assert not compile or caught.value.__notes__ == ["in finish() of lane 1"]
    leak(False)
    with pytest.raises(ResetNeeded, match="lane 0: an error ended its last step or reset half-way"):
        env.step(ACTIONS)
    env.reset(mask=np.array([True, False, True]))
    with pytest.raises(ResetNeeded, match="lane 1: an error ended"):
        env.step(ACTIONS)
    env.reset(seed=0)
    assert env.step(ACTIONS)[1]["valve"].tolist() == [[0.6]] * LANES


def test_a_refused_action_changes_nothing() -> None:
    env = batch()
    with pytest.raises(InvalidAction, match=r"lane 2: action of 'valve'"), warnings.catch_warnings():
        warnings.simplefilter("error")
        env.step({"valve": np.array([0.0, 0.0, 1e300]).reshape(LANES, 1, 1)})
    env.step(ACTIONS)
    assert env.steps.tolist() == [1] * LANES


@pytest.mark.parametrize("given", [None, [1], np.zeros((LANES, 1, 1))], ids=["None", "list", "array"])
def test_actions_that_are_no_mapping(given: Any) -> None:
    with pytest.raises(InvalidAction, match=r"step\(\) takes a mapping \{group: actions\} for \['valve'\]"):
        batch().step(given)


@pytest.mark.parametrize(
    "given",
    [torch.zeros(LANES, 1, 1, requires_grad=True), torch.zeros(LANES, 1, 1, dtype=torch.bfloat16), [[1], [2, 3]]],
    ids=["gradient", "bfloat16", "ragged"],
)
def test_actions_that_are_no_array(given: Any) -> None:
    with pytest.raises(InvalidAction, match="the actions of group 'valve' are no array"):
        batch().step({"valve": given})


@pytest.mark.parametrize("env", [None, 3], ids=repr)
def test_neither_id_nor_environment(env: Any) -> None:
    with pytest.raises(ConfigError, match="give a registered id, an environment, or a function that builds one"):
        BatchEnv(env, 2)


def test_a_function_that_builds_no_environment() -> None:
    with pytest.raises(ConfigError, match="returned None; let it return a HeronEnv"):
        BatchEnv(lambda: None, 2)  # type: ignore[arg-type,return-value]


def test_numpy_counts() -> None:
    assert BatchEnv(plant, np.int64(2)).num_envs == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, pickle.dumps], ids=["deepcopy", "copy", "pickle"])
def test_copies_are_refused(copied: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigError, match="a BatchEnv can't be copied or pickled"):
        copied(batch())
