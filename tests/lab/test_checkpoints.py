"""A run in one file: it decides as its folder does, and nothing else is taken for one. So do files before 0.3."""

import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import as_json, heron
from training_kit import GRID, tiny, trained

from heron_env import load_policy, make
from heron_env.errors import ConfigError, RunFolderError, TraceError
from heron_env.lab import RunFolder, record_episode
from heron_env.lab.policies import TrainedRun, identity, policy_spec
from heron_env.lab.runs import MOST
from heron_env.lab.traces import file as trace_file
from heron_env.lab.traces.replaying import replay
from heron_env.lab.weights import ACTS, packed_weights, weights_in

WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "numbers": (GRID, {}),
    "choices": ("heron/Spread-v0", {"env_options": {"continuous": False}}),
    "corrects a rule": (
        "heron/EnergyManagement-v1", {"env_options": {"dt": 3600.0, "physics_substeps": 1, "max_steps": 24}},
    ),
    "remembers": (GRID, {"hyperparameters": tiny(gru=4, activation="relu")}),
    "several groups": ("heron/GraphColoring-v0", {"env_options": {"max_steps": 8}}),
}  # fmt: skip
OLD = Path(__file__).parents[1] / "golden" / "runs_of_0.2.0" / "spread.npz"


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
    """One to spoil."""
    return runs("numbers").save(tmp_path / "grid.safetensors")


def require_same(ours: Any, theirs: Any) -> None:
    """The same decisions, bit for bit, drawn ones too."""
    for deterministic in (True, False):
        one, other = (load_policy(path, deterministic, seed=3) for path in (ours, theirs))
        assert [*one] == [*other]
        for name, policy in one.items():
            scaling = getattr(policy, "decides", policy).scaling
            for draw, row in enumerate(np.random.default_rng(5).standard_normal((50, len(scaling.center)))):
                seen = (100.0 * row).astype(np.float32)
                assert policy.forward(seen, draw=draw).tobytes() == other[name].forward(seen, draw=draw).tobytes()


@pytest.mark.parametrize("kind", WORLDS)
def test_one_file_decides_bit_for_bit_as_its_run_folder(runs: Callable[[str], RunFolder], tmp_path: Path, kind: str):
    run = runs(kind)
    file = run.save(tmp_path / "policy.safetensors")
    require_same(file, run.path)
    env = run.make()
    for how in (env.run_synchronous, env.run_event_driven):
        assert how(load_policy(file), seed=4).same_course(how(load_policy(run.path), seed=4))


def test_it_is_small_the_same_each_time_and_without_what_values(runs: Callable[[str], RunFolder], tmp_path: Path):
    run = runs("numbers")
    first, second = (RunFolder.open(run.save(tmp_path / f"{name}.safetensors")) for name in ("a", "b"))
    assert first.path.read_bytes() == second.path.read_bytes() and len(first.path.read_bytes()) < 30_000
    assert first.digest() == second.digest() != run.digest() and first.config == run.config
    assert all(name.startswith(ACTS) for name in first.weights("battery"))
    assert RunFolder.open(first.save(tmp_path / "again.safetensors")).digest() == first.digest()


def test_a_run_pickles_with_its_weights_and_its_digest(runs: Callable[[str], RunFolder], file: Path, tmp_path: Path):
    for path in (file, RunFolder.open(runs("numbers").path).path):
        there = RunFolder.open(path)
        before = there.policies()["battery"]
        copy = pickle.loads(pickle.dumps(there))
        assert (copy, copy.digest()) == (there, there.digest())
        seen = np.ones((3, len(before.scaling.center)), np.float32)
        assert copy.policies()["battery"].forward_batch(seen).tobytes() == before.forward_batch(seen).tobytes()
    file.unlink()
    assert RunFolder.weights(pickle.loads(pickle.dumps(copy)), "battery")


def test_it_is_read_and_played_without_torch(file: Path):
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


def test_what_0_2_shipped_is_read_and_decides_as_what_is_shipped_now():
    require_same(OLD, "shipped:heron/Spread-v0/ppo")
    then, now = RunFolder.open(OLD), RunFolder.open("shipped:heron/Spread-v0/ppo")
    assert now.has_digest(then.digest()) and now.has_digest(now.digest()) and then.has_digest(then.digest())
    assert not then.has_digest(now.digest()) and then.config == now.config


def test_a_trace_of_what_0_2_shipped_replays(tmp_path: Path):
    """With the digest that the policy had then; with another it is not the one that decided."""
    trace = record_episode("heron/Spread-v0", "shipped:heron/Spread-v0/ppo", options={"max_steps": 3})
    policy = replace(trace.setting.policy, digest=RunFolder.open(OLD).digest())
    for digest, replays in ((policy.digest, True), ("0" * 32, False)):
        setting = replace(trace.setting, policy=replace(policy, digest=digest))
        folder = trace_file.write(replace(trace, setting=setting), tmp_path / digest)
        if replays:
            assert replay(folder).identical
        else:
            with pytest.raises(TraceError, match="is not the one that decided in this episode"):
                replay(folder)


# Damage


def changed(file: Path, about: dict[str, str] | None = None, **arrays: Any) -> None:
    """The file with other arrays or texts; None: without one."""
    kept, texts = weights_in(file.read_bytes(), file)
    some = {name: array for name, array in {**kept, **arrays}.items() if array is not None}
    if file.suffix == ".npz":
        np.savez(file, config=np.frombuffer(texts["config"].encode(), np.uint8), **some)
    else:
        file.write_bytes(packed_weights(some, **(texts if about is None else about)))


def foreign_config(file: Path, **values: Any) -> None:
    changed(file, {"config": json.dumps(json.loads(RunFolder.open(file).config.model_dump_json()) | values)})


def of_another_type(file: Path) -> None:
    from safetensors.numpy import save

    file.write_bytes(save({WEIGHT: np.zeros(3)}, {"config": "{}"}))


def with_an_older(write: Callable[[Path], object]) -> Callable[[Path], object]:
    """Damage to a file of 0.2.0, under the name of the new one: what is in it counts."""

    def spoil(file: Path) -> None:
        old = file.with_suffix(".npz")
        old.write_bytes(OLD.read_bytes())
        write(old)
        old.replace(file)

    return spoil


def packed(file: Path) -> None:
    with np.load(file) as archive:
        np.savez_compressed(file, **{**archive, "0.bomb": np.zeros(10**6, np.float32)})


def lying_zip(file: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.npy", bytes(10**6))
    file.write_bytes(stream.getvalue())


WEIGHT = "0.action_net.weight"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing there": (Path.unlink, "FILE does not exist; correct the path, or save the run again"),
    "empty": (lambda file: file.write_bytes(b""), "FILE is no model of a training (Error while deserializing"),
    "another format": (lambda file: file.write_text("weights"), "is no model of a training"),
    "a pickle": (lambda file: file.write_bytes(pickle.dumps({"a": 1})), "is no model of a training"),
    "cut off": (lambda file: file.write_bytes(file.read_bytes()[:-40]), "is no model of a training"),
    "too large": (lambda file: file.write_bytes(bytes(MOST + 1)), "it has more than 300,000 bytes"),
    "of others": (lambda file: changed(file, {}), "it has no configuration"),
    "of float64": (of_another_type, f"'{WEIGHT}' holds float64, no float32"),
    "an array less": (lambda file: changed(file, **{WEIGHT: None}), "it lacks 'action_net.weight'"),
    "another shape": (lambda file: changed(file, **{WEIGHT: np.zeros((2, 3), np.float32)}), "do not fit each other"),
    "nan": (lambda file: changed(file, **{"0.log_std": np.full(1, np.nan, np.float32)}), "holds nan or infinities"),
    "no number of a group": (lambda file: changed(file, **{"0.log_std": None}), "no spread for 1 outputs"),
    "another version": (lambda file: foreign_config(file, schema_version=2), "FILE has schema version 2, heron_env"),
    "no environment": (lambda file: foreign_config(file, env_id=3), "FILE: env_id: Input should be a valid string"),
    "older, a pickle inside": (
        with_an_older(lambda file: changed(file, **{WEIGHT: np.array([{}, 1], object)})), "allow_pickle=False",
    ),
    "older, cut off": (with_an_older(lambda file: file.write_bytes(file.read_bytes()[:-40])), "not a zip file"),
    "older, packed": (with_an_older(packed), "it is packed, and may be of any size"),
    "older, says less than it holds": (with_an_older(lying_zip), "it is packed"),
    "older, of others": (
        with_an_older(lambda file: np.savez(file, a=np.zeros(3, np.float32))), "it lacks 'config'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_no_run_is_refused(file: Path, kind: str):
    damage, words = DAMAGE[kind]
    damage(file)
    with pytest.raises(RunFolderError) as refused:
        load_policy(file)
    assert words in str(refused.value).replace(str(file), "FILE")


@pytest.mark.parametrize("older", [False, True])
def test_a_file_that_is_cut_anywhere_is_refused_and_never_another_policy(file: Path, older: bool):
    whole = (OLD if older else file).read_bytes()
    for end in range(0, len(whole), len(whole) // 90):
        file.write_bytes(whole[:end])
        with pytest.raises(RunFolderError):
            load_policy(file)


def test_bytes_that_changed_are_refused_or_change_the_digest(file: Path):
    whole, before = file.read_bytes(), RunFolder.open(file).digest()
    for place in np.random.default_rng(1).integers(len(whole), size=200).tolist():
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            there = RunFolder.open(file)
        except RunFolderError:
            continue
        assert there.digest() != before


def test_what_is_too_large_or_called_otherwise_is_not_written(runs: Callable[[str], RunFolder], tmp_path: Path):
    for name in ("policy.zip", "policy.npz"):
        with pytest.raises(ConfigError, match=r"give the file an ending that says what it is, say policy\.safetensors"):
            runs("numbers").save(tmp_path / name)
    large = trained(tmp_path / "large", hyperparameters=tiny(hidden=(300, 300)))
    with pytest.raises(RunFolderError, match="300,000 at the most; train a smaller one"):
        large.save(tmp_path / "large.safetensors")
    assert not (tmp_path / "large.safetensors").exists()


def test_no_training_goes_on_from_one_file(file: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"start_from=.*grid\.safetensors'\): one file has no weights of what values"):
        trained(tmp_path / "next", start_from=file)


def test_it_stands_wherever_a_run_folder_does(runs: Callable[[str], RunFolder], file: Path, tmp_path: Path):
    run = runs("numbers")
    assert policy_spec(str(file)) == TrainedRun(str(file))
    assert identity(TrainedRun(str(file))) == f"run {file} {RunFolder.open(file).digest()}"
    words = ("--cases", "2", "--axis", "act_delay=0.5", "--processes", "1", "-o", "max_steps=5", "--out")
    ours, theirs = (
        as_json("sweep", path, *words, tmp_path / name)["rows"] for name, path in (("a", file), ("b", run.path))
    )
    assert [row["mean"] for row in ours] == [row["mean"] for row in theirs]
    heron("trace", file, "-o", "max_steps=3", "--out", tmp_path / "trace")
    assert "identical" in heron("replay", tmp_path / "trace").stdout
    assert as_json("run", GRID, "--policy", file, "-o", "max_steps=3") == as_json("run", file, "-o", "max_steps=3")
    changed(file, **{"0.log_std": np.full(1, 0.5, np.float32)})
    assert "is not the one that decided in this episode" in heron("replay", tmp_path / "trace", code=2).stderr


def test_what_is_not_shipped_is_refused_with_what_is_near():
    for name in ("shipped:heron/Spread-v0/../../x", "shipped:", "shipped:heron/Spred-v0/ppo"):
        with pytest.raises(ConfigError, match="not shipped; see `heron board list`"):
            load_policy(name)
    with pytest.raises(ConfigError, match=r"of the release and give the file heron/Spread-v0/ppo-seed3\.safetensors"):
        load_policy("shipped:heron/Spread-v0/ppo-seed3")
