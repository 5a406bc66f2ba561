from pathlib import Path

import pytest
from cli_kit import as_json, heron
from training_kit import GRID, tiny, trained

from heron_env.errors import ConfigError, HeronError, RunFolderError
from heron_env.lab import Hyperparameters, RunFolder, Sweep

STILL = tiny(learning_rate=1e-30, final_learning_rate=1e-30)
"""Steps too small to change a float32: what comes out is what it began with."""


def quick(folder: Path, env_id: str = GRID, **options) -> RunFolder:
    own = {"env_options": {"max_steps": 6}} if env_id == GRID and "start_from" not in options else {}
    return trained(folder, env_id, **{"total_steps": 32, **own, **options})


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return quick(tmp_path_factory.mktemp("first"), seed=3)


@pytest.mark.parametrize("critic", ["local", "central"])
def test_actor_critic_and_scales_are_those_of_the_run(critic: str, tmp_path: Path):
    energy = {"env_options": {"dt": 3600.0, "physics_substeps": 1}}
    first = quick(tmp_path / "a", "heron/EnergyManagement-v1", critic=critic, seed=3, **energy)
    second = quick(
        tmp_path / "b", "heron/EnergyManagement-v1", start_from=first.path, hyperparameters=STILL, critic=critic, seed=4
    )
    old, new = first.weights("battery"), second.weights("battery")
    assert any(name.startswith("value_net") for name in old) and set(old) == set(new)
    assert all(bool((old[name] == new[name]).all()) for name in old)
    before, after = first.config.groups["battery"], second.config.groups["battery"]
    assert before == after
    assert second.config.env_options == first.config.env_options  # taken over
    assert second.config.validation["trained"] == first.config.validation["trained"]
    assert float(second.curve()[0]["validation_return"]) == pytest.approx(first.config.validation["trained"], rel=1e-5)


def test_it_goes_on_learning_and_is_recorded(first: RunFolder, tmp_path: Path):
    second = quick(tmp_path, start_from=str(first.path), hyperparameters=None, total_steps=1)
    assert second.config.start_from == str(first.path) and first.config.start_from is None
    assert RunFolder.open(tmp_path) == second
    assert second.config.hyperparameters == first.config.hyperparameters
    assert second.config.base == first.config.base
    old, new = first.weights("battery"), second.weights("battery")
    assert any(bool((old[name] != new[name]).any()) for name in old)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"env_id": "heron/Spread-v0"}, "env_id='heron/BatteryGrid-v0', this one 'heron/Spread-v0'"),
        ({"critic": "central"}, "critic='local'"),
        ({"env_options": {"observe_age": True}}, "was trained on observations"),
        ({"env_options": {"control": "zone"}}, "the run has ['battery']"),
        ({"residual": "do nothing"}, "corrects None, this one 'do nothing'"),
        ({"hyperparameters": Hyperparameters(hidden=(4,))}, "hidden layers [8, 8]"),
        ({"hyperparameters": Hyperparameters(activation="relu")}, "the run has activation='tanh', this one 'relu'"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(first: RunFolder, tmp_path: Path, options: dict, told: str):
    with pytest.raises(ConfigError) as caught:
        quick(tmp_path, start_from=first.path, **options)
    assert told in str(caught.value) and "start anew" in str(caught.value)


def test_a_folder_without_a_finished_run_is_refused(tmp_path: Path):
    with pytest.raises(RunFolderError, match="no finished run folder"):
        quick(tmp_path / "b", start_from=tmp_path)


def test_the_command_takes_it(first: RunFolder, tmp_path: Path):
    ran = as_json("train", GRID, "--out", tmp_path, "--steps", "1", "--start-from", first.path)
    assert ran["start_from"] == str(first.path)


def test_the_command_does_not_overwrite_a_finished_run(first: RunFolder):
    before = first.digest()
    told = heron("train", GRID, "--out", first.path, "--steps", "1", code=2).stderr
    assert told == f"error: {first.path} holds a finished run: name another folder with --out, or remove that one\n"
    assert RunFolder.open(first.path).digest() == before


def test_a_sweep_refuses_a_run_that_does_not_fit_before_anything_runs(first: RunFolder):
    for env_id, options, told in (
        (GRID, {"observe_age": True}, "was trained on observations"),
        ("heron/Spread-v0", {}, r"the environment has groups \['agent'\], the run has"),
    ):
        with pytest.raises(HeronError, match=told):
            Sweep.of(env_id, {"mine": str(first.path)}, [], cases=1, options=options)
    assert Sweep.of(GRID, {"mine": str(first.path)}, [], cases=1, options=first.config.env_options).items()
