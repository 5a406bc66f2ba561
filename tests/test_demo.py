"""The demo from end to end in small: files, exit codes, what is left after an interrupt."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_kit import as_json

from heron_env.lab import Hyperparameters, RunFolder, read_sweep, run_demo
from heron_env.lab.learning import demo
from heron_env.lab.learning.demo import FULL, INTERRUPTED, SHORT, WORSE, DemoPlan

pytest.importorskip("stable_baselines3")
pytest.importorskip("matplotlib")


def tiny(**changes) -> DemoPlan:
    """BatteryGrid, two short rollouts: its rewards grow with every kWh, so little training suffices."""
    plan = DemoPlan(
        env_id="heron/BatteryGrid-v0", train_seconds=60.0, total_steps=800, days=2, cause_days=1, delays=(0.0, 2.0),
        processes=1, validations=1, validation_episodes=1,
        hyperparameters=Hyperparameters(
            num_envs=2, n_steps=100, batch_size=100, n_epochs=4, learning_rate=3e-2, log_std=0.0
        ),
    )  # fmt: skip
    return replace(plan, **changes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    out = tmp_path_factory.mktemp("demo")
    return out, run_demo(out, plan=tiny(), quiet=True)


def test_the_demo_leaves_policy_table_and_report(finished: tuple[Path, int]):
    out, code = finished
    told = json.loads((out / demo.DELAYS / "table.json").read_text())
    returns = {row["policy"]: row["mean"]["value"] for row in told["rows"] if row["condition"] == "sync"}
    assert set(returns) == {"trained", "do nothing", "random"}
    assert code == (0 if returns["trained"] > max(returns["do nothing"], returns["random"]) else WORSE)
    assert [row["identical"] for row in told["rows"] if row["condition"] == "ideal"] == [True]
    text = (out / "report.html").read_text()
    assert text.count("<img") == 7
    for title in (
        "network: action delay",
        "Causes of the gap",
        "One case on both clocks",
        "Training",
        "Hierarchy and visibility",
    ):
        assert title in text
    assert (out / "policy" / "config.json").is_file()
    assert {path.stem for path in out.glob("*.svg")} == {
        "act_delay", "sweep2-causes", "one_case", "timeline", "learning", "hierarchy", "who_sees_what",
    }  # fmt: skip


def test_the_sweeps_can_be_reported_again_and_are_replaced_by_the_next_demo(finished: tuple[Path, int]):
    out, _ = finished
    assert read_sweep(out / demo.DELAYS).policies == ["trained"]
    result = read_sweep(out / demo.CAUSES)
    assert [found.method for found in result.decompositions] == ["one at a time"]
    assert result.policies == ["trained"]


def test_a_policy_that_does_not_beat_chance_and_doing_nothing_fails_the_demo(
    finished: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out, _ = finished
    monkeypatch.setattr("heron_env.lab.learning.ppo.train", lambda *args, **options: RunFolder.open(out / "policy"))
    monkeypatch.setattr(demo, "TrainedRun", lambda path: demo.Baseline("do nothing"))
    assert run_demo(out, plan=tiny(), quiet=False) == WORSE
    assert "earns no more than" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("heron_env.lab.learning.ppo.train", "was not finished"),
        ("heron_env.lab.learning.demo.Sweep.run", "heron sweep"),
    ],
)
def test_an_interrupt_leaves_a_usable_folder(
    finished: tuple[Path, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    words: str,
):
    def stop(*args, **options):
        raise KeyboardInterrupt

    done = RunFolder.open(finished[0] / "policy")
    if where.endswith("run"):
        (tmp_path / "policy").symlink_to(done.path)
        monkeypatch.setattr("heron_env.lab.learning.ppo.train", lambda *args, **options: done)
    monkeypatch.setattr(where, stop)
    assert run_demo(tmp_path, plan=tiny()) == INTERRUPTED
    assert words in capsys.readouterr().out.replace("\n", " ")


def test_the_full_demo_is_what_the_readme_promises():
    assert FULL.days >= 10
    assert FULL.delays == (0.0, 30.0, 60.0, 120.0)
    assert FULL.processes == 2 and FULL.cause_days >= 3
    assert SHORT.train_seconds <= 25.0 and SHORT.days == 2


@pytest.mark.parametrize("code", [0, WORSE])
def test_the_command_passes_the_exit_code_on_and_prints_the_table_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
):
    def fake(out, *, short, seed, quiet):
        assert (short, seed, quiet) == (True, 3, True)
        (out / demo.DELAYS).mkdir()
        (out / demo.DELAYS / "table.json").write_text('{"rows": []}\n')
        return code

    monkeypatch.setattr(demo, "run_demo", fake)
    assert as_json("demo", "--short", "--seed", "3", "--out", tmp_path, code=code) == {"rows": []}


def test_a_quiet_demo_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    run_demo(tmp_path, plan=tiny(total_steps=200, days=1, delays=(0.0,)), quiet=True)
    assert capfd.readouterr().out == ""
