"""Policies as ONNX files: onnxruntime decides as the policy does, with scales, rules, masks and memory inside."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import heron
from mixed_world import CARTS
from training_kit import GRID, tiny, trained

from heron_env import load_policy, make
from heron_env.adapters import HeronVecEnv
from heron_env.errors import ConfigError
from heron_env.lab import RunFolder, export_onnx, save_run
from heron_env.lab.run_files import GroupConfig
from heron_env.lab.trained import decide_batch
from heron_env.worlds.energy_management import STRONGEST

pytestmark = pytest.mark.e2e

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

ENERGY, TRAFFIC = "heron/EnergyManagement-v1", "heron/TrafficCorridor-v0"
SHORT = {"max_steps": 6, "physics_substeps": 1}
SEEN = 200
RUNNER = str(Path(__file__).parents[2] / "examples" / "onnx_runner.py")


def run_of(folder: Path, env_id: str, options: dict[str, Any], settings: Any = (), **more: Any) -> RunFolder:
    few = {"validations": 0, "validation_episodes": 0}
    return trained(folder, env_id, env_options=options, hyperparameters=tiny(**dict(settings)), **few, **more)


def by_sb3(folder: Path) -> RunFolder:
    sb3 = pytest.importorskip("stable_baselines3")
    env = sb3.common.vec_env.VecNormalize(HeronVecEnv(ENERGY, 1, **SHORT), clip_obs=1.5)
    model = sb3.PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu", seed=0)
    return save_run(model.learn(64), env, folder)


RUNS: dict[str, Callable[[Path], RunFolder]] = {
    "battery": lambda folder: run_of(folder, ENERGY, SHORT, residual=STRONGEST),
    "zone": lambda folder: run_of(folder, ENERGY, {**SHORT, "control": "zone"}),
    "alone": lambda folder: run_of(folder, ENERGY, SHORT, residual=None),
    "by Stable-Baselines3": lambda folder: by_sb3(folder),
    "traffic": lambda folder: run_of(folder, TRAFFIC, {"max_steps": 6}),
    "mixed": lambda folder: run_of(folder, CARTS, {}),
    "ReLU": lambda folder: run_of(folder, GRID, {"max_steps": 6}, {"activation": "relu"}),
    "GRU": lambda folder: run_of(folder, GRID, {"max_steps": 6}, {"gru": 5}),
    "GRU and a rule": lambda folder: run_of(folder, ENERGY, SHORT, {"gru": 4}, residual=STRONGEST),
}


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return RUNS[request.param](tmp_path_factory.mktemp("run") / "kept")


def observed(run: RunFolder, group: str) -> tuple[np.ndarray, np.ndarray | None]:
    """200 observations within what the run's own world shows, spread wide enough that the choice is not always one."""
    kept, drawn = run.config.groups[group], np.random.default_rng(3)
    seen = kept.center + np.array(kept.scale) * drawn.normal(size=(SEEN, len(kept.center))) * 1.5
    mask = drawn.random((SEEN, sum(kept.ncats))) < 0.7
    for part in np.split(mask, np.cumsum(kept.ncats)[:-1], axis=1) if kept.ncats else []:
        part[np.arange(SEEN), drawn.integers(part.shape[1], size=SEEN)] = True
    return seen.astype(np.float32), mask if kept.ncats else None


def test_200_of_200_decisions_are_the_same(run: RunFolder, tmp_path: Path) -> None:
    policies, env = load_policy(run.path), run.make()
    for file in export_onnx(run.path, tmp_path / "policy.onnx"):
        session = runtime.InferenceSession(str(file))
        about = json.loads(session.get_modelmeta().custom_metadata_map["heron_env"])
        kept, agent = run.config.groups[about["group"]], about["agents"][0]
        policy = next(policies[key] for key in (agent, about["group"]) if key in policies)
        seen, masks = observed(run, about["group"])
        if "mask" not in [each.name for each in session.get_inputs()]:
            masks = None
        assert [column["name"] for column in about["observation"]] == env.observation_names(agent)
        told = {each.name: np.zeros(each.shape, dtype=np.float32) for each in session.get_inputs()}
        rules = run.rules(env, about["group"])
        rule = rules.get(agent, rules.get(about["group"]))
        assert ("anchor" in told) == (rule is not None) == (about["corrects"] is not None)
        told = {name: told[name] for name in ("hidden",) if name in told}
        remembers = bool(told)
        names, acted = [each.name for each in session.get_outputs()], []
        for number, vector in enumerate(seen):
            more = {} if masks is None else {"mask": masks[number : number + 1]}
            more |= {} if rule is None else {"anchor": decide_batch(rule, vector[None])}
            more |= {"first": np.array([number % 50 == 0])} if remembers else {}
            found = dict(zip(names, session.run(None, {"observation": vector[None], **told, **more}), strict=True))
            if remembers and number % 50 == 0:
                policy.begin()
            mask = None if masks is None else offered(masks[number], kept)
            wanted = policy.forward(vector, mask)
            acted.append(found["action"][0])
            away, numbers = np.abs(found["action"][0] - wanted), len(kept.action_low)
            assert (
                away[:numbers].max(initial=0.0) <= 1e-5 * np.ptp([*kept.action_low, *kept.action_high] or [0.0]).item()
            )
            assert not away[numbers:].any()
            told = {name: found[f"next_{name}"] for name in told}
        assert len(np.unique(np.array(acted).round(6), axis=0)) > (100 if numbers else 1)


def offered(flat: np.ndarray, kept: GroupConfig) -> Any:
    parts = [part.astype(np.int8) for part in np.split(flat, np.cumsum(kept.ncats)[:-1])]
    choices = parts[0] if len(parts) == 1 else tuple(parts)
    return {"c": None, "d": choices} if kept.action_low else choices


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    run = RUNS["battery"](tmp_path / "run")
    (file,) = export_onnx(run.path, tmp_path / "policy.onnx")
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    about = json.loads({each.key: each.value for each in model.metadata_props}["heron_env"])
    assert about["env_id"] == ENERGY and about["env_options"] == SHORT
    assert about["corrects"] == {"rule": run.config.base, "where": "input 'anchor': its action"}
    assert about["run"] == run.digest() and about["action"]["numbers"]["unit"] == "kW"
    assert {"name": "Charge.soc", "unit": "1"} in about["observation"]


def test_a_mask_is_asked_for_where_choices_may_be_forbidden(tmp_path: Path) -> None:
    run = RUNS["traffic"](tmp_path / "run")
    files = export_onnx(run.path, tmp_path / "policy.onnx")
    asked = {file.name: [each.name for each in runtime.InferenceSession(str(file)).get_inputs()] for file in files}
    assert asked == {"policy-corridor.onnx": ["observation"], "policy-intersection.onnx": ["observation", "mask"]}


@pytest.mark.parametrize(
    ("name", "column"), [("GRU", "BatteryChargeFeature.soc [1]"), ("GRU and a rule", "Charge.soc [1]")]
)
def test_the_command_and_twenty_lines_run_it(name: str, column: str, tmp_path: Path) -> None:
    run = RUNS[name](tmp_path / "run")
    (file,) = heron("export", run.path, "--onnx", tmp_path / "policy.onnx").stdout.split()
    agent, rows = run.config.groups["battery"].agents[0], observed(run, "battery")[0][:5]
    rule = run.rules(run.make(), "battery", by_agent=True).get(agent)
    anchors = np.empty((5, 0)) if rule is None else np.concatenate([decide_batch(rule, row[None]) for row in rows])
    lines = [",".join(map(repr, [*row.tolist(), *anchor.tolist()])) for row, anchor in zip(rows, anchors, strict=True)]
    done = subprocess.run(
        [sys.executable, RUNNER, file], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    head, *printed = done.stdout.splitlines()
    assert column in head
    policy = load_policy(run.path)[agent]
    expected = np.array([policy.forward(row) for row in rows])
    assert np.allclose(np.array([row.split(",") for row in printed], dtype=float), expected, atol=1e-5)
    program = ast.parse(Path(RUNNER).read_text())
    assert {name.name for node in program.body if isinstance(node, ast.Import) for name in node.names} == {
        "json", "sys", "numpy", "onnxruntime",
    }  # fmt: skip


def test_what_can_not_be_exported_says_why(tmp_path: Path) -> None:
    run = RUNS["alone"](tmp_path / "run")
    with pytest.raises(ConfigError, match=r"policy: give the file an ending that says what it is, say policy\.onnx"):
        export_onnx(run.path, tmp_path / "policy")
    with pytest.raises(ConfigError, match="was trained on observations"):
        export_onnx(run.path, tmp_path / "policy.onnx", env=make(ENERGY, observe_age=True))
    assert not list(tmp_path.glob("*.onnx"))
