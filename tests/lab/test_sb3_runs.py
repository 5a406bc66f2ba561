"""A run folder of what Stable-Baselines3 trained: it decides as the model does behind VecNormalize."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import as_json, heron

sb3 = pytest.importorskip("stable_baselines3")
from sb3_contrib import MaskablePPO  # noqa: E402
from stable_baselines3 import A2C, DQN, PPO, SAC  # noqa: E402
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize  # noqa: E402

from heron_env import ScheduleConfig, load_policy, make  # noqa: E402
from heron_env.adapters import HeronVecEnv  # noqa: E402
from heron_env.errors import ConfigError  # noqa: E402
from heron_env.lab import RunFolder, save_run  # noqa: E402
from heron_env.scheduling.drawn import as_dict  # noqa: E402

GRID, ENERGY, TRAFFIC = "heron/BatteryGrid-v0", "heron/EnergyManagement-v1", "heron/TrafficCorridor-v0"
HOMES = {"dt": 900.0, "physics_substeps": 1, "max_steps": 8}
SMALL = {"n_steps": 8, "device": "cpu", "seed": 3}


def normalized(env_id: Any, group: str | None = None, **options: Any) -> VecNormalize:
    return VecNormalize(VecMonitor(HeronVecEnv(env_id, 2, group=group, **options)), clip_obs=1.5)


def learned(env: Any, algorithm: Any = PPO, **options: Any) -> Any:
    few = {"batch_size": 8} if algorithm in (PPO, MaskablePPO) else {}
    return algorithm("MlpPolicy", env, **{**SMALL, **few, **options}).learn(8 * env.num_envs * 2)


def seen_in(env: VecNormalize, rows: int = 200) -> np.ndarray:
    """Observations around those of the training, a part of them beyond the bound."""
    rms = env.obs_rms
    return np.random.default_rng(1).normal(rms.mean, 2.0 * np.sqrt(rms.var), (rows, *rms.mean.shape)).astype(np.float32)


@pytest.mark.parametrize(
    ("algorithm", "env_id", "group", "options"),
    [
        (PPO, GRID, None, {"max_steps": 8}), (A2C, ENERGY, None, HOMES),
        (PPO, TRAFFIC, "intersection", {"max_steps": 8}), (MaskablePPO, TRAFFIC, "intersection", {"max_steps": 8}),
    ],
)  # fmt: skip
def test_the_run_decides_as_the_model_behind_its_normalizer(
    algorithm: Any, env_id: str, group: str | None, options: dict[str, Any], tmp_path: Path
):
    env = normalized(env_id, group, **options)
    model = learned(env, algorithm)
    run = save_run(model, env, tmp_path / "run")
    (name,) = run.config.groups
    rows = seen_in(env)
    inputs = env.normalize_obs(rows)
    assert (np.abs(inputs) == 1.5).any()
    policy = load_policy(run.path)[name]
    assert policy.scaling(rows).tobytes() == inputs.tobytes()
    theirs = model.predict(inputs, deterministic=True)[0].reshape(len(rows), -1)
    reach = np.ptp([*run.config.groups[name].action_low, *run.config.groups[name].action_high, 0.0])
    assert np.abs(policy.forward_batch(rows) - theirs).max() <= 1e-5 * reach
    assert (run.config.algorithm, run.config.trainer) == (algorithm.__name__.lower(), "sb3")
    assert run.config.transitions == model.num_timesteps and run.config.env_options == options
    if group is not None:  # the other group follows its own rule
        result = run.make().run_synchronous(load_policy(run.path), seed=2)
        assert len(result.returns) > 4 and run.misfit(make(TRAFFIC, max_steps=8)) == ""


def test_the_run_knows_the_network_that_it_was_trained_under(tmp_path: Path):
    network = ScheduleConfig(msg_delay=0.3, loss=0.1)
    env = normalized(GRID, max_steps=8, clock="event", schedule=network, compile=True)
    run = save_run(learned(env), env, tmp_path / "run")
    assert run.config.schedule == as_dict(network)
    assert run.config.env_options == {"max_steps": 8, "compile": True}


def test_a_zip_gives_the_run_of_its_model_and_the_folder_is_whole(tmp_path: Path):
    env = normalized(GRID, max_steps=8)
    model = learned(env)
    model.save(tmp_path / "model.zip")
    first = save_run(model, env, tmp_path / "run")
    weights = first.weights("battery")
    again = save_run(tmp_path / "model.zip", env, tmp_path / "run")  # replaces it
    assert RunFolder.open(tmp_path / "run") == again
    assert all(bool((weights[name] == value).all()) for name, value in again.weights("battery").items())
    assert {path.name for path in again.path.iterdir()} == {"battery-2.safetensors", "config.json", "progress-2.csv"}
    assert again.curve() == []


def test_every_group_has_its_model_or_a_policy_of_its_own(tmp_path: Path):
    lanes = {name: HeronVecEnv("heron/Tag-v0", 2, group=name, max_steps=8) for name in ("adversary", "agent")}
    models = {name: learned(env) for name, env in lanes.items()}
    run = save_run(models, lanes, tmp_path / "both")
    result = run.make().run_synchronous(load_policy(run.path), seed=1)
    assert set(run.config.groups) == {"adversary", "agent"} and len(result.returns) > 3
    with pytest.raises(ConfigError, match=r"the environment has groups .*; give models and environments of all"):
        save_run(models["agent"], lanes["agent"], tmp_path / "one")
    assert not (tmp_path / "one").exists()


def test_commands_work_on_it(tmp_path: Path):
    env = normalized(GRID, max_steps=8)
    run = str(save_run(learned(env), env, tmp_path / "run").path)
    out = tmp_path / "sweep"
    heron("sweep", run, "--axis", "act_delay=0,1", "--cases", 2, "--processes", 1, "--out", out)
    assert "run" in (out / "table.md").read_text()
    heron("report", out, run, "--out", tmp_path / "page")
    assert as_json("run", GRID, "--policy", run, "-o", "max_steps=8")
    heron("watch", run, "--out", tmp_path / "film.html")
    assert heron("export", run, "--onnx", tmp_path / "policy.onnx").stdout.strip() == str(tmp_path / "policy.onnx")
    heron("train", GRID, "--start-from", run, "--steps", 1, "--out", tmp_path / "more")


def test_what_no_run_can_be_made_of_is_refused(tmp_path: Path):
    env = HeronVecEnv(GRID, 1, max_steps=8)
    choices = HeronVecEnv("heron/Spread-v0", 1, max_steps=8, continuous=False)
    stacked, alone = VecFrameStack(env, 2), HeronVecEnv(lambda: make(GRID, max_steps=8), 1)
    few = {"device": "cpu", "buffer_size": 100}
    refused: list[tuple[Any, Any, str]] = [
        (SAC("MlpPolicy", env, **few), env, r"\(\): a run can't be made of \w+ .*play the .zip itself"),
        (DQN("MlpPolicy", choices, **few), choices, r"\(\): a run can't be made of \w+ .*play the .zip itself"),
        (learned(stacked), stacked, r"\(env\): VecFrameStack is no HeronVecEnv; give the one that"),
        (learned(env), HeronVecEnv(ENERGY, 1, **HOMES), r"\(\): the model observes .*, the environment .*; give"),
        ("none.zip", env, r"\(model='none.zip'\): no such file"),
        (learned(alone), alone, r"\(env\): .* can't be found by a name in a module"),
    ]
    for model, lanes, words in refused:
        with pytest.raises(ConfigError, match=f"(?s)save_run{words}"):
            save_run(model, lanes, tmp_path / "run")
