import json
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import as_json
from training_kit import trained

from heron_env import __version__, load_policy, make
from heron_env.errors import ConfigError, RunFolderError, TraceError, UnknownEnvironment
from heron_env.lab import RunFolder, record_episode
from heron_env.lab.run_files import SCHEMA
from heron_env.lab.traces.replaying import replay
from heron_env.lab.trained import Correction, Scaling, act_of, decide_batch

NONE = np.zeros(0)
OPTIONS = {"dt": 3600.0, "physics_substeps": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of a few rollouts."""
    return trained(tmp_path_factory.mktemp("run"), "heron/EnergyManagement-v1", env_options=OPTIONS).path


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def change(folder: Path, edit) -> None:
    file = folder / "config.json"
    config = json.loads(file.read_text())
    edit(config)
    file.write_text(json.dumps(config))


def test_a_folder_says_what_was_trained_on_what_and_can_be_moved(folder: Path):
    run = RunFolder.open(folder)
    config = run.config
    assert (config.schema_version, config.env_id, config.base, config.seed) == (
        1,
        "heron/EnergyManagement-v1",
        "MPC",
        0,
    )
    assert config.env_options == OPTIONS
    assert config.training_options == {"metering": "coming", "split": "train"}
    assert config.versions["heron_env"] == __version__
    assert {"python", "numpy", "torch", "stable-baselines3"} <= set(config.versions)
    assert config.groups["battery"].observation_names == run.make().observation_names("battery_1")
    assert sorted(path.name for path in folder.iterdir()) == ["battery.safetensors", "config.json", "progress.csv"]
    columns = ["group", "transitions", "seconds", "training_signal", "validation_return", "group_return"]
    assert list(run.curve()[0]) == columns
    assert run.make(dt=900.0).dt == 900.0


def test_loaded_policies_repeat_bit_for_bit_whatever_the_batch_and_the_process(folder: Path):
    policy = load_policy(folder)["battery"]
    vectors = np.random.default_rng(0).uniform(0, 5, size=(50, 22)).astype(np.float32)
    together = policy.forward_batch(vectors)
    assert np.array_equal(together, np.stack([policy.forward(vector) for vector in vectors]))
    assert np.array_equal(together[3:10], policy.forward_batch(vectors[3:10]))
    assert np.array_equal(together, load_policy(folder)["battery"].forward_batch(vectors))
    assert np.array_equal(together, pickle.loads(pickle.dumps(policy)).forward_batch(vectors))


def test_both_clocks_take_the_policies_as_they_are(folder: Path):
    env = make("heron/EnergyManagement-v1", **OPTIONS)
    for deterministic in (True, False):
        policies = load_policy(folder, deterministic=deterministic, seed=3)
        sync = env.run_synchronous(policies, seed=2)
        assert sync.same_course(env.run_event_driven(policies, seed=2))


def test_a_policy_serves_environments_of_another_step_but_not_of_another_width(folder: Path):
    policies = load_policy(folder)
    make("heron/EnergyManagement-v1", dt=1800.0, physics_substeps=1).run_synchronous(policies, seed=1)
    with pytest.raises(ConfigError) as error:
        policies["battery"].forward(np.zeros(4))
    assert re.fullmatch(
        r"this policy was trained on observations of 22 columns \('Charge\.soc', .* and 10 more\) and got \(4,\); "
        r"build the environment with the run's env_options",
        str(error.value),
    )


def schema(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"schema_version": SCHEMA + 1}))


def of_battery(**fields: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder, lambda config: config["groups"]["battery"].update(fields))


def of_run(**fields: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder, lambda config: config.update(fields))


REFUSALS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no run": (
        lambda folder: (folder / "config.json").unlink(),
        "RUN/config.json does not exist: RUN is no finished run folder; train one, or correct the path",
    ),
    "no weights": (
        lambda folder: (folder / "battery.safetensors").unlink(),
        "RUN/battery.safetensors does not exist, the model of group 'battery'; copy it from where the run was made, or "
        "train again",
    ),
    "another schema": (
        schema,
        f"RUN/config.json has schema version {SCHEMA + 1}, heron_env {__version__} reads version {SCHEMA}: install the "
        "heron_env that wrote it, or train again",
    ),
    "a field less": (
        lambda folder: change(folder, lambda config: config.pop("env_id")),
        "RUN/config.json: env_id: Field required; restore the file, or train again",
    ),
    "no JSON": (lambda folder: (folder / "config.json").write_text("{"), "RUN/config.json: the file: Invalid JSON"),
    "no weights in the file": (
        lambda folder: (folder / "battery.safetensors").write_bytes(b"nothing"),
        "RUN/battery.safetensors is no model of a training (Error while deserializing: header too small); restore the",
    ),
    "weights of another run": (
        of_battery(center=[0.0] * 23),
        "RUN/battery.safetensors is no model of a training (it has 1 outputs, its configuration is of another run); ",
    ),
    "other actions": (
        of_battery(action_low=[-3.0]),
        "RUN/config.json: group 'battery' was trained on actions ([-3.0], [5.0], []), the environment now has "
        "([-5.0], [5.0], []); correct env_options, or train again",
    ),
    "other groups": (
        of_run(env_options={**OPTIONS, "control": "zone"}),
        "RUN/config.json: the environment has groups ['zone'], the run has 'battery'; correct env_options, or train",
    ),
    "no such baseline": (
        of_run(base="magic"), "RUN/config.json: 'heron/EnergyManagement-v1' has no baseline 'magic', only ['do"
    ),
    "a baseline of an environment that is not here": (
        of_run(env_id="my/Home-v0", base="self-consumption"),
        "RUN/config.json: the policy corrects the baseline 'self-consumption' of 'my/Home-v0', which is not registered "
        "here; import the module that registers it, then load again",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSALS)
def test_what_is_no_run_here_is_refused_in_words(folder: Path, kind: str):
    spoil, words = REFUSALS[kind]
    spoil(folder)
    with pytest.raises(RunFolderError) as error:
        load_policy(folder)
    assert str(error.value).replace(str(folder), "RUN").startswith(words)


def test_a_curve_that_is_gone_is_named_where_it_is_read(folder: Path):
    (folder / "progress.csv").unlink()
    with pytest.raises(RunFolderError, match=r"progress\.csv does not exist; copy it from where the run was made"):
        RunFolder.open(folder).curve()


def test_a_run_on_a_removed_environment_is_refused_with_the_reason(folder: Path):
    change(folder, lambda config: config.update(env_id="heron/EnergyManagement-v0"))
    for ask in (lambda: load_policy(folder), lambda: RunFolder.open(folder).make()):
        with pytest.raises(UnknownEnvironment, match="Its meters showed the coming minute"):
            ask()


def test_a_policy_that_decides_alone_loads_without_its_environment(folder: Path):
    change(folder, lambda config: config.update(env_id="my/Home-v0", base=None))
    assert load_policy(folder)["battery"].forward(np.zeros(22)).shape == (1,)


def test_a_correction_moves_its_anchor_by_half_the_range_and_stays_inside():
    alone = Correction(np.array([-2.0]), np.array([6.0]))
    outputs = np.array([[0.0], [0.5], [9.0], [-9.0]])
    assert alone(np.zeros((4, 3), np.float32), outputs).tolist() == [[2.0], [4.0], [6.0], [-2.0]]
    assert Scaling(np.array([1.0]), np.array([2.0]))(np.array([[5.0]], np.float32)).tolist() == [[2.0]]
    assert decide_batch(lambda vector: vector.sum(), np.ones((11, 5))).shape == (11, 1)
    rule = Correction(np.array([-5.0]), np.array([5.0]), lambda vector: vector[:1] + 1.0)
    assert rule(np.full((2, 3), 2.0, np.float32), np.array([[0.1], [1.0]])).tolist() == [[3.5], [5.0]]


def test_a_choice_is_the_likeliest_of_each_part():
    logits, act = np.array([[0.0, 1.0, 0.5, 3.0, 2.0], [2.0, 1.0, 0.5, 0.0, 2.0]]), act_of(NONE, NONE, (3, 2))
    assert act(np.zeros((2, 1), np.float32), logits).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_recorded_episode_finds_its_run_folder_again_unless_it_changed(folder: Path, tmp_path: Path):
    episode = record_episode("heron/EnergyManagement-v1", str(folder), t_end=4 * 3600.0, options=OPTIONS)
    assert replay(episode).identical
    moved = folder.rename(tmp_path / "moved")
    with pytest.raises(TraceError, match="does not exist; copy it back, or name where it lies now with --policy"):
        replay(episode)
    assert replay(episode, policy=str(moved)).identical
    change(moved, lambda config: config.update(seconds=1e9))
    with pytest.raises(TraceError, match="is not the one that decided in this episode"):
        replay(episode, policy=str(moved))


def pooled_sweep(folders: list[Path], **more):
    from heron_env.lab import Condition, Sweep

    policies = {"trained": [str(folder) for folder in folders], "self-consumption": "self-consumption"}
    asked = {"cases": 2, "options": OPTIONS, **more}
    return Sweep.of("heron/EnergyManagement-v1", policies, [Condition(act_delay=3600.0)], **asked)


def other_seed(folder: Path, tmp_path: Path, seed: int = 1) -> Path:
    """The same training with other weights and another seed."""
    other = Path(shutil.copytree(folder, tmp_path / f"seed{seed}"))
    change(other, lambda config: config.update(seed=seed))
    return other


def test_training_seeds_of_one_recipe_are_pooled_as_one_policy(folder: Path, tmp_path: Path):
    from heron_env.lab import SYNC, read_sweep
    from heron_env.lab.sweep.tables import to_markdown

    asked = pooled_sweep([folder, other_seed(folder, tmp_path)])
    assert asked.shown == ["trained", "self-consumption", "do nothing"]
    assert len(asked.items()) == 2 * (3 * 2 + 1)
    result = asked.run(tmp_path / "sweep", processes=1)
    assert result.table("trained").shape == (2, 2) and result.policies == ["trained", "self-consumption"]
    assert result.point("trained").iqm.runs == result.difference("trained", "self-consumption").runs == 2
    assert [point.policy for point in result.points if point.condition == SYNC] == asked.shown
    table = to_markdown(result)
    assert "trained (2 seeds pooled)" in table and "over training seeds and cases for 'trained'" in table
    assert repr(read_sweep(tmp_path / "sweep").points) == repr(result.points)
    kept = json.loads((tmp_path / "sweep" / "table.json").read_text())
    assert kept["pools"] == {"trained": ["trained, run 1", "trained, run 2"]}
    assert kept["rows"][0]["by_run"] == result.table("trained").tolist() and kept["rows"][0]["seeds"] == 2


def test_what_is_not_of_one_recipe_is_not_pooled(folder: Path, tmp_path: Path):
    other = other_seed(folder, tmp_path)
    with pytest.raises(ConfigError, match=r"have seeds .*: pool each seed once"):
        pooled_sweep([folder, folder])
    with pytest.raises(ConfigError, match="a pool of 1"):
        pooled_sweep([folder])
    change(other, lambda config: config.update(critic="central"))
    with pytest.raises(ConfigError, match=r"has critic=.*: only training seeds of one recipe are pooled"):
        pooled_sweep([folder, other])


def test_run_folders_are_pooled_and_named_on_the_command_line(folder: Path, tmp_path: Path):
    other = other_seed(folder, tmp_path)
    rest = ["--cases", "1", "--axis", "act_delay=0", "--processes", "1", "--out"]
    for number, words in enumerate(([folder, other, "--pool"], [f"trained={tmp_path}/*", f"one={folder}"])):
        rows = as_json("sweep", *words, *rest, tmp_path / f"swept {number}")["rows"]
        seeds = {row["policy"]: row["seeds"] for row in rows}
        assert seeds["trained"] == 2 and seeds.get("one", 1) == 1
        shutil.rmtree(tmp_path / f"swept {number}")


def test_an_unpooled_training_is_said_to_be_one_seed(folder: Path):
    from heron_env.lab import Sweep
    from heron_env.lab.sweep.tables import legend

    alone = Sweep.of("heron/EnergyManagement-v1", {"mine": str(folder)}, [], cases=2, options=OPTIONS)
    assert "is one training seed: other seeds may differ" in legend(alone.run(processes=1))
