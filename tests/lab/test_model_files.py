"""Policies in files: models of Stable-Baselines3 and ONNX decide as they do where they come from."""

import json
import os
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import black_boxes  # noqa: F401  registers Blob-v0
import gymnasium
import masked_worlds
import numpy as np
import pytest
from cli_kit import heron
from mixed_world import CARTS
from onnx_kit import linear
from training_kit import GRID, tiny, trained

from heron_env import ScheduleConfig, load_policy, make, under_network
from heron_env.adapters import HeronVecEnv
from heron_env.errors import ConfigError, TraceError, Untrusted
from heron_env.lab import export_onnx, read_sweep, record_episode
from heron_env.lab.policies import policy_spec
from heron_env.lab.sweep.conditions import SYNC
from heron_env.lab.traces.replaying import replay

pytestmark = pytest.mark.e2e

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


def test_a_zip_that_does_not_fit_is_refused_in_words(ppo: str, tmp_path: Path):
    env = make(PENDULUM)
    (tmp_path / "none.zip").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("data", "{}")
    contrib.RecurrentPPO("MlpLstmPolicy", "Pendulum-v1", n_steps=8, seed=0).save(tmp_path / "lstm.zip")
    where = "is no model that decides for 'agent', who observes Box"
    for file, why in (
        (ppo, r"ValueError: it observes Box.* and does Discrete\(2\)"), (tmp_path / "none.zip", "wasn't a zip-file"),
        (tmp_path / "other.zip", "KeyError"), (tmp_path / "lstm.zip", "it remembers, which is lost"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=rf"policy '{file}': {where}.*{why}"):
            policy_spec(str(file)).build(env, 0)
    with pytest.raises(ConfigError, match=r"it observes Box.*, \(4,\), float32\).*give one that was trained in these"):
        policy_spec(ppo).build(make(CARTPOLE, noop=0, observe_age=True), 0)
    with pytest.raises(ConfigError, match=r"policy 'gone\.zip': no such file; correct the path"):
        policy_spec("gone.zip").build(env, 0)


@pytest.fixture
def boxed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes a black box of what builds a Gymnasium environment."""

    def make_one(build: Any) -> Any:
        entry = gymnasium.envs.registration.EnvSpec("Boxed-v0", entry_point=build, disable_env_checker=True)
        monkeypatch.setitem(gymnasium.registry, "Boxed-v0", entry)
        return make("gymnasium:Boxed-v0", noop="random")

    return make_one


# Masks


class Closing(gymnasium.Env[Any, Any]):
    """What may be chosen changes from step to step; `where`: how it is said; `book`: (observation, action) by step."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (4,), np.float32)

    def __init__(self, space: gymnasium.Space[Any], where: str, steps: int = 12) -> None:
        self.action_space, self.where, self.steps, self.book = space, where, steps, list[Any]()
        self.observation_space = Closing.observation_space
        if where == "observation":
            self.observation_space = gymnasium.spaces.Dict(
                {"numbers": self.observation_space, "action_mask": gymnasium.spaces.MultiBinary(5)}
            )
        if where == "method":
            self.action_masks = lambda: self.flags(self.number)

    @staticmethod
    def flags(number: int) -> Any:
        """Of two and three choices, one after another; the boundary says which."""
        flags = np.zeros(5, bool)
        flags[[number % 2, 2 + number % 3]] = True
        return flags

    def reset(self, **of: Any) -> Any:
        super().reset(**of)
        self.number, self.book = 0, []
        return self._seen()

    def _seen(self) -> Any:
        numbers = np.full(4, self.number / 16.0, np.float32)
        info = {"action_mask": self.flags(self.number)} if self.where == "info" else {}
        seen = {"numbers": numbers, "action_mask": self.flags(self.number).astype(np.int8)}
        return (seen if self.where == "observation" else numbers), info

    def step(self, action: Any) -> Any:
        self.book.append(np.asarray(action).tolist())
        self.number += 1
        seen, info = self._seen()
        return seen, 0.0, False, self.number == self.steps, info


def maskable(env: gymnasium.Env[Any, Any], path: Path) -> Any:
    """A MaskablePPO for the spaces of `env` that likes the last choice best, saved."""
    policy = "MultiInputPolicy" if isinstance(env.observation_space, gymnasium.spaces.Dict) else "MlpPolicy"
    model = contrib.MaskablePPO(policy, env, n_steps=8, batch_size=8, device="cpu", seed=0)
    model.policy.action_net.bias.data[-1] = 5.0
    model.save(path)
    return model


PAIR, FIVE, FLAGS = (
    gymnasium.spaces.MultiDiscrete([2, 3]),
    gymnasium.spaces.Discrete(5),
    gymnasium.spaces.MultiBinary(2),
)


@pytest.mark.parametrize("late", [0.0, 2.0])
@pytest.mark.parametrize(
    ("space", "where"), [(FIVE, "info"), (PAIR, "info"), (PAIR, "observation"), (FIVE, "method"), (PAIR, "method")]
)
def test_a_maskable_zip_decides_by_the_mask_of_its_observation(
    space: Any, where: str, late: float, tmp_path: Path, boxed: Any
):
    model, env = maskable(Closing(space, where), tmp_path / "m.zip"), boxed(lambda: Closing(space, where))
    policies = policy_spec(str(tmp_path / "m.zip")).build(env, 0)
    result = env.run_event_driven(
        policies, seed=0, schedule=ScheduleConfig(obs_delay=late), record=("actions", "observations")
    )
    assert len(result.actions["agent"]) == 12 - late
    for (_, done), (_, seen) in zip(result.actions["agent"], result.observations["agent"], strict=True):
        numbers = seen["numbers"] if where == "observation" else seen
        flags = Closing.flags(round(16 * float(numbers[0])))
        expected = model.predict(seen, deterministic=True, action_masks=flags)[0]
        assert np.array_equal(done, np.ravel(expected))


def test_several_choices_of_two_read_sb3_contrib_s_flags(tmp_path: Path, boxed: Any):
    class Switches(Closing):
        @staticmethod
        def flags(number: int) -> Any:
            return np.array([[1, 0, 0, 1], [1, 1, 0, 1]][number % 2], bool)

    bare = Switches(FLAGS, "method")
    model, env = maskable(bare, tmp_path / "m.zip"), boxed(lambda: bare)
    env.run_synchronous(policy_spec(str(tmp_path / "m.zip")).build(env, 0), seed=0)
    masks = [Switches.flags(number) for number in range(12)]
    rows = [np.full(4, number / 16.0, np.float32) for number in range(12)]
    decided = [model.predict(row, deterministic=True, action_masks=m)[0] for row, m in zip(rows, masks, strict=True)]
    assert bare.book == [choices.tolist() for choices in decided] and [0, 1] in bare.book


def test_a_maskable_zip_is_refused_where_there_is_no_mask(tmp_path: Path, boxed: Any):
    maskable(Closing(FIVE, "nowhere"), tmp_path / "m.zip")
    env = boxed(lambda: Closing(FIVE, "nowhere"))
    policies = policy_spec(str(tmp_path / "m.zip")).build(env, 0)
    for run in (env.run_synchronous, env.run_event_driven):
        with pytest.raises(ConfigError, match=r"m\.zip': was trained with masks.*gives 'agent' none.*action_masks\(\)"):
            run(policies, seed=0)


@pytest.mark.parametrize("kind", ["lamp", "pair"])
def test_a_maskable_zip_keeps_to_the_masks_of_our_own_worlds(kind: str, tmp_path: Path):
    env = masked_worlds.lamps(kind)
    lanes = HeronVecEnv(lambda: masked_worlds.lamps(kind), 1)
    model = maskable(lanes, tmp_path / "m.zip")
    policies = policy_spec(str(tmp_path / "m.zip")).build(env, 0)

    class Theirs:
        def forward(self, vector: Any, mask: Any = None) -> Any:
            flags = np.concatenate(mask) if isinstance(mask, tuple) else mask
            return model.predict(vector, deterministic=True, action_masks=flags)[0]

    for run in (env.run_synchronous, env.run_event_driven):
        ours, theirs = run(policies, seed=1), run({"*": Theirs()}, seed=1)
        assert ours.same_course(theirs) and not any(ours.masked.values())
    unmasked = env.run_synchronous({"*": lambda vector: model.predict(vector, deterministic=True)[0]}, seed=1)
    assert any(unmasked.masked.values())


def test_a_joint_view_says_its_masks_as_one(tmp_path: Path):
    name = "gymnasium:heron_env:heron/TrafficCorridor-v0"
    joint = gymnasium.make(name.partition(":")[2])
    model = maskable(joint, tmp_path / "m.zip")
    box = make(name, noop="random")
    result = box.run_event_driven(
        policy_spec(str(tmp_path / "m.zip")).build(box, 0), seed=3, t_end=200.0, record=("actions",)
    )
    seen, _ = joint.reset(seed=3)
    for _, done in result.actions["agent"]:
        chosen = model.predict(seen, deterministic=True, action_masks=joint.get_wrapper_attr("action_masks")())[0]
        assert np.array_equal(done, chosen)
        seen, *_ = joint.step(chosen)


def test_under_a_network_the_mask_is_as_old_as_the_observation():
    for where in ("info", "method"):
        env = under_network(Closing(FIVE, where), ScheduleConfig(obs_delay=3.0), noop="random")
        seen, info = env.reset(seed=0)
        for number in range(1, 12):
            seen, _, _, over, info = env.step(int(np.argmax(Closing.flags(max(0, number - 4)))))
            flags = Closing.flags(round(16 * float(seen[0])))
            assert over or round(16 * float(seen[0])) == max(0, number - 3)
            assert np.array_equal(info["action_mask"] if where == "info" else env.action_masks(), flags)


# Spaces


SPACES: dict[str, tuple[Any, Any]] = {
    "lower bounds of actions": (gymnasium.spaces.Box(-1, 2, (2,)), gymnasium.spaces.Box(-2, 2, (2,))),
    "one of several bounds": (
        gymnasium.spaces.Box(np.array([-1.0, -1.0], np.float32), np.ones(2, np.float32)),
        gymnasium.spaces.Box(np.array([-1.0, -2.0], np.float32), np.ones(2, np.float32)),
    ),
    "the shape": (gymnasium.spaces.Box(-1, 1, (2,)), gymnasium.spaces.Box(-1, 1, (1, 2))),
    "the number's type": (gymnasium.spaces.Box(-1, 1, (2,)), gymnasium.spaces.Box(-1, 1, (2,), np.float64)),
    "binary and choices": (FLAGS, gymnasium.spaces.MultiDiscrete([2, 2])),
    "where choices begin": (gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(3, start=5)),
    "how many choices there are": (gymnasium.spaces.MultiDiscrete([9, 9]), gymnasium.spaces.MultiDiscrete([2, 2])),
}


@pytest.mark.parametrize("what", SPACES)
def test_a_zip_that_acts_within_other_bounds_is_refused(what: str, tmp_path: Path, boxed: Any):
    theirs, there = SPACES[what]
    sb3.PPO("MlpPolicy", Picky(theirs), n_steps=8, batch_size=8, device="cpu").save(tmp_path / "a.zip")
    env = boxed(lambda: Picky(there))
    with pytest.raises(ConfigError) as refused:
        policy_spec(str(tmp_path / "a.zip")).build(env, 0)
    assert f"does {theirs}" in str(refused.value) and f"does {there}" in str(refused.value)


def test_what_was_trained_behind_a_wrapper_is_refused_without_it(tmp_path: Path):
    algorithm, policy, env_id, settings = TRAINED["SAC"]
    bare = gymnasium.make(env_id)
    for wrapper in (partial(gymnasium.wrappers.RescaleAction, min_action=np.float32(-1), max_action=np.float32(1)),
                    gymnasium.wrappers.NormalizeObservation):  # fmt: skip
        wrapped = wrapper(bare)
        algorithm(policy, wrapped, device="cpu", **settings).save(tmp_path / "a.zip")
        with pytest.raises(ConfigError) as refused:
            policy_spec(str(tmp_path / "a.zip")).build(make(PENDULUM), 0)
        for space in (bare.observation_space, bare.action_space, wrapped.observation_space, wrapped.action_space):
            assert str(space) in str(refused.value)


def test_a_zip_of_our_own_world_is_refused_where_its_bounds_are_others(tmp_path: Path):
    lanes = HeronVecEnv(GRID, 1, max_steps=6)
    sb3.PPO("MlpPolicy", lanes, n_steps=8, batch_size=8, device="cpu").save(tmp_path / "own.zip")
    wider = gymnasium.spaces.Box(2 * lanes.action_space.low, 2 * lanes.action_space.high)
    mapped = sb3.common.vec_env.VecMonitor(lanes)
    mapped.action_space = wider
    sb3.PPO("MlpPolicy", mapped, n_steps=8, batch_size=8, device="cpu").save(tmp_path / "mapped.zip")
    env = make(GRID, max_steps=6)
    assert policy_spec(str(tmp_path / "own.zip")).build(env, 0).keys() == set(env.possible_agents)
    with pytest.raises(ConfigError, match=r"mapped.zip': .*who observes .* it observes .* and does Box"):
        policy_spec(str(tmp_path / "mapped.zip")).build(env, 0)


def test_an_exported_run_is_refused_where_its_bounds_are_others(tmp_path: Path):
    run = trained(tmp_path / "run", env_options={"max_steps": 6})
    (file,) = export_onnx(run.path, tmp_path / "policy.onnx")
    model = onnx.load(file)
    (about,) = (entry for entry in model.metadata_props if entry.key == "heron_env")
    said = json.loads(about.value)
    said["action"]["numbers"]["high"] = [2 * high for high in said["action"]["numbers"]["high"]]
    about.value = json.dumps(said)
    onnx.save(model, tmp_path / "other.onnx")
    heron("run", str(run.path), "--policy", str(file))  # the command vouches for it
    with pytest.raises(ConfigError, match=r"other.onnx': .*ValueError: it does numbers from .* to .*and choices among"):
        policy_spec(str(tmp_path / "other.onnx")).build(run.make(), 0)


@pytest.mark.parametrize("ending", [".zip", ".py"])
def test_what_a_file_holds_counts_not_when_it_was_written(ending: str, tmp_path: Path):
    path, env = tmp_path / f"policy{ending}", make(CARTPOLE, noop=0)
    written = set()
    for seed, text in ((0, "def act(seen): return 0"), (1, "def act(seen): return 1")):
        if ending == ".zip":
            sb3.PPO("MlpPolicy", "CartPole-v1", device="cpu", seed=seed).save(path)
        else:
            path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        spec = policy_spec(str(path) if ending == ".zip" else f"{path}:act")
        result = env.run_synchronous(spec.build(env, 0), seed=0)
        written.add(np.array([done for _, done in result.actions["agent"]]).tobytes())
    assert len(written) == 2


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
    "memory": (GRID, {"max_steps": 6}, {"gru": 4}),
    "masks": (CARTS, {}, {}),
    "a rule": ("heron/EnergyManagement-v1", {"max_steps": 6, "physics_substeps": 1}, {}),
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


def test_of_several_outputs_the_one_called_action_decides(tmp_path: Path, name: str = "Actions"):
    weights = np.random.default_rng(1).normal(size=(4, 2))
    file = linear(tmp_path / "a.onnx", weights, outputs=3)
    model = onnx.load(file)
    model.graph.output[1].name = model.graph.node[1].output[0] = name
    onnx.save(model, file)
    chosen = policy_spec(file).build(make(CARTPOLE, noop=0), 0)["agent"]
    for seen in np.random.default_rng(2).normal(size=(20, 4)).astype(np.float32):
        assert chosen.forward(seen) == int(np.argmax(seen @ weights))


EXPORTABLE = ("PPO", "A2C", "TRPO", "PPO of numbers")


@pytest.mark.parametrize("name", [*EXPORTABLE, "pair", "five"])
def test_a_zip_that_is_exported_decides_as_it_did(name: str, tmp_path: Path, boxed: Any):
    zip_file, file = tmp_path / "m.zip", tmp_path / "m.onnx"
    if name in EXPORTABLE:
        zipped(name, zip_file)
        env = make(f"gymnasium:{TRAINED[name][2]}", noop="random")
    else:
        space = PAIR if name == "pair" else FIVE
        maskable(Closing(space, "info"), zip_file)
        env = boxed(lambda: Closing(space, "info"))
    assert heron("export", zip_file, "--onnx", file).stdout.strip() == str(file)
    for run in (env.run_synchronous, env.run_event_driven):
        theirs, ours = (run(policy_spec(str(each)).build(env, 0), seed=1) for each in (zip_file, file))
        before, after = (np.array([done for _, done in result.actions["agent"]]) for result in (theirs, ours))
        assert before.shape == after.shape and np.allclose(before, after, rtol=0.0, atol=1e-5)
    if name not in EXPORTABLE:
        bare = boxed(lambda: Closing(space, "nowhere"))
        with pytest.raises(ConfigError, match=r"m\.onnx': was trained with masks"):
            bare.run_synchronous(policy_spec(str(file)).build(bare, 0), seed=0)


class Wide(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole whose observations are eight times as large."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        inner = self.env.observation_space
        self.observation_space = gymnasium.spaces.Box(8 * inner.low, np.minimum(8 * inner.high, 3e38), dtype=np.float32)

    def observation(self, observation: Any) -> Any:
        return 8 * observation


def test_an_exported_zip_is_refused_where_other_bounds_are_observed(ppo: str, tmp_path: Path, boxed: Any):
    file, wide = tmp_path / "m.onnx", boxed(Wide)
    heron("export", ppo, "--onnx", file)
    with pytest.raises(ConfigError, match=r"m\.onnx'.*it observes numbers from \[-4\.8"):
        policy_spec(str(file)).build(wide, 0)


@pytest.mark.parametrize("name", ["SAC", "TD3", "DQN", "PPO of pictures"])
def test_a_zip_of_other_layers_is_not_exported_and_says_how_it_could_be(name: str, tmp_path: Path):
    zipped(name, tmp_path / "m.zip")
    with pytest.raises(ConfigError, match=r"m\.zip: \w+, .*is more than fully connected .*output_names=\['action'\]"):
        export_onnx(tmp_path / "m.zip", tmp_path / "m.onnx")
    (tmp_path / "none.zip").write_text("no zip")
    with pytest.raises(ConfigError, match=r"none\.zip: is no model of Stable-Baselines3"):
        export_onnx(tmp_path / "none.zip", tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_an_onnx_file_that_does_not_fit_is_refused_in_words(tmp_path: Path):
    env = make(CARTPOLE, noop=0)
    (tmp_path / "none.onnx").write_text("no model")
    apart = linear(tmp_path / "apart.onnx", np.ones((4, 300)))
    onnx.save_model(onnx.load(apart), apart, save_as_external_data=True, location="a.data", size_threshold=0)
    for file, why in (
        (tmp_path / "none.onnx", "InvalidProtobuf"), (apart, ""),
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
    copy.write_bytes(Path(ppo).read_bytes() + b" ")  # the content counts, not the name
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
    space: gymnasium.Space[Any], weights: Any, expected: Any, tmp_path: Path, boxed: Any
):
    file, env = linear(tmp_path / "a.onnx", np.array(weights, float)), boxed(lambda: Picky(space))
    if expected is None:
        with pytest.raises(ConfigError, match=r"a.onnx' for 'agent' answers .*, which is no action of "):
            policy_spec(file).build(env, 0)
        return
    chosen = policy_spec(file).build(env, 0)["agent"].forward(np.ones(2, np.float32))
    assert np.asarray(chosen).tolist() == expected and space.contains(chosen)


def test_a_model_that_was_moved_is_named(tmp_path: Path):
    file = linear(tmp_path / "a.onnx", np.ones((4, 2)))
    episode = record_episode(CARTPOLE, file, options={"noop": 0})
    moved = Path(file).rename(tmp_path / "b.onnx")
    with pytest.raises(ConfigError, match="no such file"):
        replay(episode, trust=(CARTPOLE, file))
    assert replay(episode, policy=str(moved), trust=(CARTPOLE, str(moved))).identical
