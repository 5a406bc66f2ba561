"""A trained policy as one file: it decides as its run folder does, and nothing else is taken for one."""

import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import as_json, heron
from training_kit import GRID, tiny, trained

from heron_env import load_policy, make
from heron_env.errors import ConfigError, RunFolderError
from heron_env.lab import RunFolder
from heron_env.lab.checkpoints import CONFIG, MOST, Checkpoint, export_checkpoint
from heron_env.lab.policies import TrainedRun, identity, policy_spec

WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "numbers": (GRID, {}),
    "choices": ("heron/Spread-v0", {"env_options": {"continuous": False}}),
    "corrects a rule": (
        "heron/EnergyManagement-v1", {"env_options": {"dt": 3600.0, "physics_substeps": 1, "max_steps": 24}},
    ),
    "remembers": (GRID, {"hyperparameters": tiny(gru=4, activation="relu")}),
    "several groups": ("heron/GraphColoring-v0", {"env_options": {"max_steps": 8}}),
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunFolder]:
    """A run of each kind, made when it is asked for first."""
    made: dict[str, RunFolder] = {}

    def run(kind: str) -> RunFolder:
        if kind not in made:
            env_id, options = WORLDS[kind]
            made[kind] = trained(tmp_path_factory.mktemp("run") / "run", env_id, **options)
        return made[kind]

    return run


@pytest.fixture
def file(runs: Callable[[str], RunFolder], tmp_path: Path) -> Path:
    """A checkpoint to spoil."""
    return export_checkpoint(runs("numbers").path, tmp_path / "grid.npz").path


@pytest.mark.parametrize("kind", WORLDS)
def test_a_checkpoint_decides_bit_for_bit_as_its_run_folder(
    runs: Callable[[str], RunFolder], tmp_path: Path, kind: str
):
    run = runs(kind)
    file = export_checkpoint(run.path, tmp_path / "policy.npz").path
    for deterministic in (True, False):
        ours, theirs = (load_policy(path, deterministic, seed=3) for path in (file, run.path))
        assert [*ours] == [*theirs]
        for name, policy in ours.items():
            rng = np.random.default_rng(5)
            for draw in range(50):
                width = len(next(iter(run.config.groups.values())).center) if name not in run.config.groups else 0
                width = width or len(run.config.groups[name].center)
                seen = (100.0 * rng.standard_normal(width)).astype(np.float32)
                assert policy.forward(seen, draw=draw).tobytes() == theirs[name].forward(seen, draw=draw).tobytes()
    env = run.make()
    for how in (env.run_synchronous, env.run_event_driven):
        assert how(load_policy(file), seed=4).same_course(how(load_policy(run.path), seed=4))


def test_a_checkpoint_is_small_the_same_each_time_and_without_what_values(
    runs: Callable[[str], RunFolder], tmp_path: Path
):
    run = runs("numbers")
    first, second = (export_checkpoint(run.path, tmp_path / f"{name}.npz") for name in ("a", "b"))
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.digest() == second.digest() != run.digest()
    assert first.config == run.config
    names = list(first.arrays)
    assert names and not [name for name in names if "value" in name]
    assert {array.dtype for array in first.arrays.values()} == {np.dtype(np.float32)}
    assert export_checkpoint(first.path, tmp_path / "again.npz").digest() == first.digest()


def test_a_checkpoint_is_read_and_played_without_torch(file: Path):
    program = f"""
import sys
sys.modules["torch"] = sys.modules["stable_baselines3"] = None
from heron_env import load_policy, make
print(make("{GRID}", max_steps=3).run_synchronous(load_policy({str(file)!r}), seed=1).returns)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    env = make(GRID, max_steps=3)
    assert done.stdout.strip() == str(env.run_synchronous(load_policy(file), seed=1).returns)


def changed(file: Path, **arrays: Any) -> None:
    """The file with other arrays; None: without one."""
    with np.load(file) as archive:
        kept = {name: archive[name] for name in archive.files} | arrays
    np.savez(file, **{name: array for name, array in kept.items() if array is not None})


def foreign_config(file: Path, **values: Any) -> None:
    config = json.loads(Checkpoint.open(file).config.model_dump_json()) | values
    changed(file, **{CONFIG: np.frombuffer(json.dumps(config).encode(), np.uint8)})


def packed(file: Path) -> None:
    with np.load(file) as archive:
        np.savez_compressed(file, **{**archive, "0.bomb": np.zeros(10**6, np.float32)})


def one_array(file: Path) -> None:
    with file.open("wb") as stream:
        np.save(stream, np.zeros(3))


WEIGHT = "0.action_net.weight"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing there": (Path.unlink, "FILE does not exist; correct the path, or export the run again"),
    "empty": (lambda file: file.write_bytes(b""), "(File is not a zip file); copy it again, or export the run"),
    "another format": (lambda file: file.write_text("weights"), "(File is not a zip file)"),
    "a pickle": (lambda file: file.write_bytes(pickle.dumps({"a": 1})), "(File is not a zip file)"),
    "a pickle inside": (lambda file: changed(file, **{WEIGHT: np.array([{}, 1], object)}), "allow_pickle=False"),
    "one array": (one_array, "(File is not a zip file)"),
    "cut off": (lambda file: file.write_bytes(file.read_bytes()[:-40]), "File is not a zip file"),
    "too large": (lambda file: file.write_bytes(bytes(MOST + 1)), "it has more than 300,000 bytes"),
    "packed": (packed, "it is packed, and may be of any size"),
    "of others": (lambda file: np.savez(file, a=np.zeros(3, np.float32)), "it has no configuration"),
    "of float64": (lambda file: changed(file, **{WEIGHT: np.zeros(3)}), f"'{WEIGHT}' holds float64, no float32"),
    "an array less": (lambda file: changed(file, **{WEIGHT: None}), "it lacks, or has another, 'action_net.weight'"),
    "another shape": (lambda file: changed(file, **{WEIGHT: np.zeros((2, 3), np.float32)}), "do not fit each other"),
    "nan": (lambda file: changed(file, **{"0.log_std": np.full(1, np.nan, np.float32)}), "holds nan or infinities"),
    "no number of a group": (lambda file: changed(file, **{"0.log_std": None}), "no spread for 1 outputs"),
    "another version": (lambda file: foreign_config(file, schema_version=2), "FILE has schema version 2, heron_env"),
    "no environment": (lambda file: foreign_config(file, env_id=3), "FILE: env_id: Input should be a valid string"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_no_checkpoint_is_refused(file: Path, kind: str):
    damage, words = DAMAGE[kind]
    damage(file)
    with pytest.raises(RunFolderError) as refused:
        load_policy(file)
    assert words in str(refused.value).replace(str(file), "FILE")


def test_a_file_that_is_cut_anywhere_is_refused_and_never_another_policy(file: Path):
    whole = file.read_bytes()
    for end in range(0, len(whole), 97):
        file.write_bytes(whole[:end])
        with pytest.raises(RunFolderError):
            load_policy(file)


def test_bytes_that_changed_are_refused_or_change_the_digest(file: Path):
    whole, before = file.read_bytes(), Checkpoint.open(file).digest()
    for place in np.random.default_rng(1).integers(len(whole), size=200).tolist():
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            found = Checkpoint.open(file)
        except RunFolderError:
            continue
        assert found.digest() != before


def test_a_zip_that_says_less_than_it_holds_is_refused(file: Path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.npy", bytes(10**6))
    file.write_bytes(stream.getvalue())
    with pytest.raises(RunFolderError, match="it is packed"):
        load_policy(file)


def test_what_is_too_large_or_called_otherwise_is_not_written(runs: Callable[[str], RunFolder], tmp_path: Path):
    with pytest.raises(ConfigError, match=r"policy.zip: give the file an ending that says what it is, say policy\.npz"):
        export_checkpoint(runs("numbers").path, tmp_path / "policy.zip")
    large = trained(tmp_path / "large", hyperparameters=tiny(hidden=(300, 300)))
    with pytest.raises(RunFolderError, match="300,000 at the most; train a smaller one"):
        export_checkpoint(large.path, tmp_path / "large.npz")
    assert not (tmp_path / "large.npz").exists()


def test_a_checkpoint_stands_wherever_a_run_folder_does(runs: Callable[[str], RunFolder], file: Path, tmp_path: Path):
    run = runs("numbers")
    assert policy_spec(str(file)) == TrainedRun(str(file))
    assert identity(TrainedRun(str(file))) == f"run {file} {Checkpoint.open(file).digest()}"
    words = ("--cases", "2", "--axis", "act_delay=0.5", "--processes", "1", "-o", "max_steps=5", "--out")
    ours, theirs = (
        as_json("sweep", path, *words, tmp_path / name)["rows"] for name, path in (("a", file), ("b", run.path))
    )
    assert [row["mean"] for row in ours] == [row["mean"] for row in theirs]
    heron("trace", file, "-o", "max_steps=3", "--out", tmp_path / "trace")
    assert "identical" in heron("replay", tmp_path / "trace").stdout
    assert as_json("run", GRID, "--policy", file, "-o", "max_steps=3") == as_json("run", file, "-o", "max_steps=3")


def test_a_checkpoint_that_changed_since_a_trace_is_named(file: Path, tmp_path: Path):
    heron("trace", file, "-o", "max_steps=3", "--out", tmp_path / "trace")
    changed(file, **{"0.log_std": np.full(1, 0.5, np.float32)})
    assert "is not the one that decided in this episode" in heron("replay", tmp_path / "trace", code=2).stderr


def test_what_is_not_shipped_is_refused_with_what_is_near():
    for name in ("shipped:heron/Spread-v0/../../x", "shipped:", "shipped:heron/Spred-v0/ppo"):
        with pytest.raises(ConfigError, match="not shipped; see `heron board list`"):
            load_policy(name)
    with pytest.raises(ConfigError, match=r"of the release and give the file heron/Spread-v0/ppo-seed3\.npz"):
        load_policy("shipped:heron/Spread-v0/ppo-seed3")
