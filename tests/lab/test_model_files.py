"""Policies in files: models of Stable-Baselines3 and ONNX decide as they do where they come from."""

import zipfile
from pathlib import Path
from typing import Any

import black_boxes  # noqa: F401  registers Blob-v0
import gymnasium
import numpy as np
import pytest
from cli_kit import heron
from mixed_world import CARTS
from training_kit import GRID, tiny, trained

from heron_env import load_policy, make, under_network
from heron_env.errors import ConfigError, TraceError, Untrusted
from heron_env.lab import export_onnx, read_sweep, record_episode
from heron_env.lab.policies import policy_spec
from heron_env.lab.sweep.conditions import SYNC
from heron_env.lab.traces.replaying import replay

sb3 = pytest.importorskip("stable_baselines3")
onnx = pytest.importorskip("onnx")
contrib = pytest.importorskip("sb3_contrib")

CARTPOLE, PENDULUM = "gymnasium:CartPole-v1", "gymnasium:Pendulum-v1"
FEW: dict[str, Any] = {"learning_starts": 50, "buffer_size": 500, "seed": 0}
ONCE: dict[str, Any] = {"n_steps": 64, "seed": 0}
TRAINED: dict[str, tuple[type, str, str, dict[str, Any]]] = {
    "PPO": (sb3.PPO, "MlpPolicy", "CartPole-v1", {**ONCE, "batch_size": 32}),
    "A2C": (sb3.A2C, "MlpPolicy", "CartPole-v1", {"seed": 0}),
    "DQN": (sb3.DQN, "MlpPolicy", "CartPole-v1", FEW),
    "SAC": (sb3.SAC, "MlpPolicy", "Pendulum-v1", FEW),
    "TD3": (sb3.TD3, "MlpPolicy", "Pendulum-v1", FEW),
    "PPO of numbers": (sb3.PPO, "MlpPolicy", "Pendulum-v1", {**ONCE, "batch_size": 32, "use_sde": True}),
    "PPO of pictures": (sb3.PPO, "MultiInputPolicy", "black_boxes:Blob-v0", {**ONCE, "batch_size": 32}),
    "TRPO": (contrib.TRPO, "MlpPolicy", "CartPole-v1", {**ONCE, "batch_size": 32}),
}


def zipped(name: str, path: Path) -> Any:
    """The algorithm after a few steps, saved."""
    algorithm, policy, env, settings = TRAINED[name]
    model = algorithm(policy, env, **settings).learn(200)
    model.save(path)
    return model


@pytest.fixture(scope="module")
def ppo(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ppo") / "ppo.zip"
    zipped("PPO", path)
    return str(path)


def linear(path: Path, weights: Any, dtype: Any = np.float32, *, inputs: int = 1, outputs: int = 1) -> str:
    """A file of ONNX: observation `[1, d]` @ weights `[d, k]`."""
    from onnx import helper, numpy_helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    seen = [helper.make_tensor_value_info(f"x{n}", kind, [1, len(weights)]) for n in range(inputs)]
    made = [helper.make_tensor_value_info(f"y{n}", kind, [1, weights.shape[1]]) for n in range(outputs)]
    nodes = [helper.make_node("MatMul", ["x0", "w"], [f"y{n}"]) for n in range(outputs)]
    graph = helper.make_graph(nodes, "linear", seen, made, [numpy_helper.from_array(weights.astype(dtype), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return str(path)


# Stable-Baselines3


@pytest.mark.parametrize("name", TRAINED)
def test_a_saved_model_of_any_algorithm_decides_as_it_does_itself(name: str, tmp_path: Path):
    model, env_id = zipped(name, tmp_path / "model.zip"), f"gymnasium:{TRAINED[name][2]}"
    env = make(env_id, noop="random")
    policy = policy_spec(str(tmp_path / "model.zip")).build(env, 0)["agent"]
    space = gymnasium.make(TRAINED[name][2]).observation_space
    space.seed(4)
    distinct = set()
    for _ in range(30):
        observation = space.sample()
        expected, action = model.predict(observation, deterministic=True)[0], policy.forward(observation)
        assert env.action_space("agent").contains(action) and np.array_equal(action, expected)
        distinct.add(np.asarray(action).tobytes())
    assert len(distinct) > 1 or name == "DQN"


def test_sweep_trace_and_margin_take_a_zip(ppo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    model, env = sb3.PPO.load(ppo), under_network(gymnasium.make("CartPole-v1"), noop=0)
    words = [CARTPOLE, ppo, "-o", "noop=0", "--processes", "2"]
    heron("sweep", *words, "--cases", "3", "--axis", "obs_delay=2", "--out", "out")
    returns = [
        env.run_synchronous({"*": lambda seen: int(model.predict(seen, deterministic=True)[0])}, seed=1_000_000 + k)
        .returns["agent"] for k in range(3)
    ]  # fmt: skip
    assert read_sweep("out").point(ppo, SYNC).values == tuple(returns)
    heron("eval", *words, "--cases", "2", "--delays", "0,1")
    assert heron("margin", *words[:4], "--cases", "4", "--largest", "2", code=None).exit_code in (0, 1)


def test_a_file_that_names_a_zip_needs_somebody_who_vouches_for_it(ppo: str):
    episode = record_episode(CARTPOLE, ppo, options={"noop": 0})
    with pytest.raises(Untrusted, match=r"names '.*ppo\.zip', which is not registered here"):
        replay(episode, trust=CARTPOLE)
    assert replay(episode, trust=(CARTPOLE, ppo)).identical
    content = Path(ppo).read_bytes()
    zipped("PPO of numbers", Path(ppo))
    with pytest.raises(TraceError, match=r"the file of '.*ppo.zip' has changed since the episode was recorded"):
        replay(episode, trust=(CARTPOLE, ppo))
    Path(ppo).write_bytes(content)


def test_beside_a_run_folder_the_command_vouches_for_it(tmp_path: Path):
    run = trained(tmp_path / "run", env_options={"max_steps": 6})
    (file,) = export_onnx(run.path, tmp_path / "policy.onnx")
    heron("run", str(run.path), "--policy", str(file))


def test_a_zip_that_does_not_fit_is_refused_in_words(ppo: str, tmp_path: Path):
    env = make(PENDULUM)
    (tmp_path / "none.zip").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("data", "{}")
    contrib.RecurrentPPO("MlpLstmPolicy", "Pendulum-v1", n_steps=8, seed=0).save(tmp_path / "lstm.zip")
    where = "is no model that decides for 'agent', who observes Box"
    for file, why in (
        (ppo, r"ValueError: it does Discrete\(2\)"), (tmp_path / "none.zip", "wasn't a zip-file"),
        (tmp_path / "other.zip", "KeyError"), (tmp_path / "lstm.zip", "it remembers, which is lost"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=rf"policy '{file}': {where}.*{why}"):
            policy_spec(str(file)).build(env, 0)
    with pytest.raises(ConfigError, match=r"Unexpected observation shape.*give one that was trained in these spaces"):
        policy_spec(ppo).build(make(CARTPOLE, noop=0, observe_age=True), 0)
    with pytest.raises(ConfigError, match=r"policy 'gone\.zip': no such file; correct the path"):
        policy_spec("gone.zip").build(env, 0)


# ONNX


def test_the_greatest_of_n_numbers_is_the_choice_and_numbers_are_clipped_into_the_box(tmp_path: Path):
    weights = np.random.default_rng(1).normal(size=(4, 2))
    chosen = policy_spec(linear(tmp_path / "a.onnx", weights)).build(make(CARTPOLE, noop=0), 0)["agent"]
    for seen in np.random.default_rng(2).normal(size=(20, 4)).astype(np.float32):
        assert chosen.forward(seen) == int(np.argmax(seen @ weights)) and type(chosen.forward(seen)) is int
    weights = np.random.default_rng(1).normal(size=(3, 1))
    env = make(PENDULUM)
    pushed = policy_spec(linear(tmp_path / "b.onnx", weights, np.float64)).build(env, 0)["agent"]
    for seen in 3.0 * np.random.default_rng(2).normal(size=(20, 3)).astype(np.float32):
        action = pushed.forward(seen)
        assert action.dtype == np.float32 and np.allclose(action, np.clip(seen @ weights, -2.0, 2.0), atol=1e-6)


EXPORTED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "plain": (GRID, {"max_steps": 6}, {}),
    "memory": (GRID, {"max_steps": 6}, {"gru": 4, "frames": 2}),
    "masks": (CARTS, {}, {}),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_run_decides_as_the_run_does(name: str, tmp_path: Path):
    env_id, options, settings = EXPORTED[name]
    run = trained(tmp_path / "run", env_id, env_options=options, hyperparameters=tiny(**settings), validations=0)
    (file,) = export_onnx(run.path, tmp_path / "policy.onnx")
    env = run.make()
    policies = policy_spec(str(file)).build(env, 0)
    for seed in (1, 2):  # the second begins anew
        ours, theirs = (env.run_event_driven(p, seed=seed).actions for p in (load_policy(run.path), policies))
        assert ours.keys() == theirs.keys()
        for agent, done in ours.items():
            assert [time for time, _ in done] == [time for time, _ in theirs[agent]]
            expected, actions = (np.array([vector for _, vector in of]) for of in (done, theirs[agent]))
            assert np.allclose(actions, expected, rtol=0.0, atol=1e-7) and np.ptp(actions) > 1e-5


def test_an_onnx_file_that_does_not_fit_is_refused_in_words(tmp_path: Path):
    env = make(CARTPOLE, noop=0)
    (tmp_path / "none.onnx").write_text("no model")
    for file, why in (
        (tmp_path / "none.onnx", "InvalidProtobuf"),
        (linear(tmp_path / "two.onnx", np.ones((4, 2)), inputs=2), r"from \['x0', 'x1'\] it makes \['y0'\]: one input"),
        (linear(tmp_path / "out.onnx", np.ones((4, 2)), outputs=2), r"it makes \['y0', 'y1'\]: one input of floats"),
        (linear(tmp_path / "whole.onnx", np.ones((4, 2)), np.int64), "one input of floats and one output are wanted"),
        (linear(tmp_path / "wide.onnx", np.ones((5, 2))), "InvalidArgument.*dimensions"),
        (linear(tmp_path / "many.onnx", np.ones((4, 3))), "ValueError: cannot reshape"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=rf"(?s)policy '{file}': is no model that decides for 'agent'.*{why}"):
            policy_spec(str(file)).build(env, 0)
    with pytest.raises(ConfigError, match="cannot reshape"):
        policy_spec(linear(tmp_path / "grid.onnx", np.ones((4, 7)))).build(make(GRID, max_steps=6), 0)


def test_without_the_package_it_says_which_extra_has_it(ppo: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    import sys

    file = linear(tmp_path / "a.onnx", np.ones((4, 2)))
    for name in ("onnxruntime", "stable_baselines3.common.save_util"):
        monkeypatch.setitem(sys.modules, name, None)
    env = make(CARTPOLE, noop=0)
    with pytest.raises(ConfigError, match=r"a\.onnx'.*pip install 'heron_env\[onnx\]'"):
        policy_spec(file).build(env, 0)
    copy = tmp_path / "copy.zip"
    copy.write_bytes(Path(ppo).read_bytes())
    with pytest.raises(ConfigError, match=r"copy\.zip'.*pip install 'heron_env\[train\]'"):
        policy_spec(str(copy)).build(env, 0)


class Picky(gymnasium.Env[Any, Any]):
    """Takes actions of one space, and checks them."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.action_space = space

    def reset(self, **of: Any) -> Any:
        super().reset(**of)
        return np.ones(2, np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        return np.ones(2, np.float32), 0.0, False, True, {}


@pytest.mark.parametrize(
    ("space", "weights", "expected"),
    [
        (gymnasium.spaces.Discrete(3, start=5), [[0, 2, 0], [0, 0, 1]], 6),
        (gymnasium.spaces.Discrete(1), [[0.3], [0.4]], 0),
        (gymnasium.spaces.Discrete(3, start=-1), [[1], [1]], 1),
        (gymnasium.spaces.MultiDiscrete([3, 2], start=[1, 0]), [[1, 0], [1, 0.2]], [3, 0]),
        (gymnasium.spaces.MultiBinary(2), [[1, 0], [0, 0.2]], [1, 0]),
        (gymnasium.spaces.Discrete(3), [[2], [5]], None),
        (gymnasium.spaces.MultiDiscrete([3, 2]), [[7, 0], [7, 0]], None),
        (gymnasium.spaces.Discrete(3), [[np.nan] * 3, [0, 0, 0]], None),
        (gymnasium.spaces.Box(-1, 1, (1,)), [[np.nan], [0]], None),
    ],
)
def test_what_a_model_answers_is_an_action_or_is_refused(
    space: gymnasium.Space[Any], weights: Any, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gymnasium.register("Picky-v0", entry_point=lambda: Picky(space))
    try:
        file, env = linear(tmp_path / "a.onnx", np.array(weights, float)), make("gymnasium:Picky-v0", noop="random")
        if expected is None:
            with pytest.raises(ConfigError, match=r"a.onnx' for 'agent' answers .*, which is no action of "):
                policy_spec(file).build(env, 0)
        else:
            chosen = policy_spec(file).build(env, 0)["agent"].forward(np.ones(2, np.float32))
            assert np.asarray(chosen).tolist() == expected and space.contains(chosen)
    finally:
        del gymnasium.registry["Picky-v0"]


def test_a_model_with_weights_in_a_second_file_is_refused(tmp_path: Path):
    file = linear(tmp_path / "a.onnx", np.ones((4, 300)))
    onnx.save_model(onnx.load(file), file, save_as_external_data=True, location="a.data", size_threshold=0)
    with pytest.raises(ConfigError, match="is no model that decides for 'agent'"):
        policy_spec(file).build(make(CARTPOLE, noop=0), 0)


@pytest.mark.parametrize(
    ("theirs", "there"),
    [
        (gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(3, start=5)),
        (gymnasium.spaces.MultiDiscrete([9, 9]), gymnasium.spaces.MultiDiscrete([2, 2])),
    ],
)
def test_a_zip_of_other_choices_is_refused(theirs: Any, there: Any, tmp_path: Path):
    sb3.PPO("MlpPolicy", Picky(theirs), n_steps=8, batch_size=8).save(tmp_path / "a.zip")
    gymnasium.register("Picky-v0", entry_point=lambda: Picky(there))
    try:
        with pytest.raises(ConfigError, match="ValueError: it does "):
            policy_spec(str(tmp_path / "a.zip")).build(make("gymnasium:Picky-v0", noop="random"), 0)
    finally:
        del gymnasium.registry["Picky-v0"]


def test_a_model_that_was_moved_is_named(tmp_path: Path):
    file = linear(tmp_path / "a.onnx", np.ones((4, 2)))
    episode = record_episode(CARTPOLE, file, options={"noop": 0})
    moved = Path(file).rename(tmp_path / "b.onnx")
    with pytest.raises(ConfigError, match="no such file"):
        replay(episode, trust=(CARTPOLE, file))
    assert replay(episode, policy=str(moved), trust=(CARTPOLE, str(moved))).identical
