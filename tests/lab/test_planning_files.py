"""Files whose models answer several actions at once are policies that plan, action by action as the model says.

Planted once and caught: numbers read by column, upper bounds unread, any size taken, an alternative's number read as a
choice, masks of now for all times.
"""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from cli_kit import heron
from gymnasium import spaces
from onnx_kit import linear

from heron_env import Planned, ScheduleConfig, make
from heron_env.errors import ConfigError
from heron_env.lab.policies import policy_spec

sb3 = pytest.importorskip("stable_baselines3")
onnx = pytest.importorskip("onnx")
contrib = pytest.importorskip("sb3_contrib")

LATE = ScheduleConfig(thinking=2.0, act_delay=1.0, tick_interval=2.0)
PENDULUM = "gymnasium:Pendulum-v1"
SEEN = gymnasium.make("Pendulum-v1").observation_space
PUSHES = spaces.Box(-2.0, 2.0, (3, 1), np.float32)


class Picky(gymnasium.Env[Any, Any]):
    """Acts in one space; observes another."""

    def __init__(self, acts: Any, sees: Any = SEEN) -> None:
        self.action_space, self.observation_space = acts, sees

    def reset(self, **of: Any) -> Any:
        super().reset(**of)
        self.number, self.done = 0, list[Any]()
        return self._shown(), {}

    def _shown(self) -> Any:
        return np.resize(np.sin(np.arange(9.0) * (1 + self.number)), self.observation_space.shape).astype(np.float32)

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.number += 1
        self.done.append(np.asarray(action).tolist())
        return self._shown(), 0.0, False, self.number == 30, {}


@pytest.fixture
def boxed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes a black box of what builds a Gymnasium environment."""

    def make_one(build: Any) -> Any:
        entry = gymnasium.envs.registration.EnvSpec("Picky-v0", entry_point=build, disable_env_checker=True)
        monkeypatch.setitem(gymnasium.registry, "Picky-v0", entry)
        return make("gymnasium:Picky-v0", noop="random")

    return make_one


def saved(acts: Any, path: Path, sees: Any = None, algorithm: Any = sb3.PPO) -> Any:
    """A model of Stable-Baselines3, untrained, saved, whose answers change with what it sees."""
    env = Picky(acts) if sees is None else Picky(acts, sees)
    model = algorithm("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu", seed=0)
    model.policy.action_net.weight.data *= 200.0
    model.save(path)
    return model


ONE, TALL = spaces.Box(-2.0, 2.0, (1,), np.float32), spaces.Box(-1.0, 1.0, (2, 2), np.float32)
FOLDS: dict[str, tuple[Any, Any, int]] = {
    "box": (PUSHES, ONE, 3),
    "flat box": (spaces.Box(-2.0, 2.0, (3,), np.float32), ONE, 3),
    "box of two dimensions": (spaces.Box(-1.0, 1.0, (3, 2, 2), np.float32), TALL, 3),
    "choices": (spaces.MultiDiscrete([3] * 4), spaces.Discrete(3), 4),
    "as many choices as alternatives": (spaces.MultiDiscrete([2, 2]), spaces.Discrete(2), 2),
    "several choices": (spaces.MultiDiscrete([2, 3] * 2), spaces.MultiDiscrete([2, 3]), 2),
}


@pytest.mark.parametrize("ending", ["zip", "onnx"])
@pytest.mark.parametrize("name", FOLDS)
def test_a_file_of_several_actions_plans_what_its_model_says(name: str, ending: str, tmp_path: Path, boxed: Any):
    acts, one, many = FOLDS[name]
    model, file = saved(acts, tmp_path / "m.zip"), tmp_path / f"m.{ending}"
    if ending == "onnx":
        heron("export", tmp_path / "m.zip", "--onnx", file)
    env, direct = boxed(lambda: Picky(one)), boxed(lambda: Picky(one))

    def rows(seen: Any) -> Any:
        answer = model.predict(seen, deterministic=True)[0].reshape(many, *one.shape)
        return [int(row) for row in answer] if isinstance(one, spaces.Discrete) else answer

    policy = policy_spec(str(file)).build(env, 0)
    assert isinstance(policy["agent"], Planned)
    ours, theirs = (
        box.run_event_driven(of, schedule=LATE, seed=0, record=("actions",))
        for box, of in ((env, policy), (direct, {"*": Planned(rows)}))
    )
    done, expected = (np.array([vector for _, vector in result.actions["agent"]]) for result in (ours, theirs))
    assert len(done) > 10 and len(np.unique(done, axis=0)) > 1
    assert np.allclose(done, expected, rtol=0.0, atol=1e-5 * (ending == "onnx"))
    assert ours.messages == theirs.messages


def test_an_onnx_file_of_several_actions_reads_its_numbers_by_the_action_s_size(tmp_path: Path, boxed: Any):
    rng = np.random.default_rng(1)
    seen = rng.normal(size=3).astype(np.float32)
    pushed = linear(tmp_path / "a.onnx", weights := rng.normal(size=(3, 4)), actions=4)
    (policy,) = policy_spec(pushed).build(make(PENDULUM), 0).values()
    rows = policy.policy.forward(seen)
    assert np.allclose(rows, np.clip(seen @ weights, -2.0, 2.0)[:, None], atol=1e-6) and len(rows) == 4
    chosen = linear(tmp_path / "b.onnx", weights := rng.normal(size=(3, 6)), actions=2)
    (policy,) = policy_spec(chosen).build(boxed(lambda: Picky(spaces.Discrete(3))), 0).values()
    assert policy.policy.forward(seen) == np.argmax((seen @ weights).reshape(2, 3), axis=1).tolist()


def test_other_sizes_are_refused_and_both_are_said(tmp_path: Path, boxed: Any):
    two = spaces.Box(-1.0, 1.0, (2,), np.float32)
    for acts, size, words in (
        (two, 5, r"array of size 5 into shape \(2,\)"),
        (two, 4, r"array of size 4 into shape \(2,\)"),
        (spaces.Discrete(3), 7, r"array of size 7 into"),
    ):
        with pytest.raises(ConfigError, match=rf"is no model that decides.*ValueError: cannot reshape {words}"):
            policy_spec(linear(tmp_path / "a.onnx", np.ones((3, size)))).build(boxed(lambda acts=acts: Picky(acts)), 0)
    others = {
        "other bounds": (spaces.Box(-1.0, 2.0, (3, 1), np.float32), ONE),
        "an upper bound": (spaces.Box(-2.0, 3.0, (3, 1), np.float32), ONE),
        "bounds that change": (spaces.Box(np.array([-2, -1], np.float32), np.full(2, 2.0, np.float32)), ONE),
        "no whole number of them": (spaces.Box(-1.0, 1.0, (3,), np.float32), two),
        "the type": (spaces.Box(-2.0, 2.0, (3, 1), np.float64), ONE),
        "other choices": (spaces.MultiDiscrete([3, 2]), spaces.Discrete(3)),
        "one choice in a list": (spaces.MultiDiscrete([3]), spaces.Discrete(3)),
    }
    for name, (acts, one) in others.items():
        saved(acts, tmp_path / f"{name}.zip")
        with pytest.raises(ConfigError, match="is no model that decides") as refused:
            policy_spec(str(tmp_path / f"{name}.zip")).build(boxed(lambda one=one: Picky(one)), 0)
        assert f"does {acts}" in str(refused.value) and f"does {one}" in str(refused.value), name
    saved(spaces.MultiDiscrete([3, 3]), tmp_path / "masked.zip", algorithm=contrib.MaskablePPO)
    with pytest.raises(ConfigError, match="it answers 2 actions by a mask, and there is none of the times to come"):
        policy_spec(str(tmp_path / "masked.zip")).build(boxed(lambda: Picky(spaces.Discrete(3))), 0)


def test_sweep_and_margin_play_a_file_that_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    linear(tmp_path / "plan.onnx", np.linspace(-1.0, 1.0, 24).reshape(3, 8), actions=8)
    words = [PENDULUM, "plan.onnx", "-o", "dt=0.05", "--cases", "2", "--processes", "1"]
    heron("sweep", *words, "--axis", "thinking=0.2", "--out", "out")
    assert heron("margin", *words, "--fault", "thinking", "--largest", "0.1", code=None).exit_code in (0, 1)
    heron("trace", PENDULUM, "--policy", "plan.onnx", "-o", "dt=0.05", "--out", "there", code=None)
