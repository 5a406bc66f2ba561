"""The demo from end to end in small: files, exit codes, what is left after an interrupt."""

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_kit import as_json, heron
from training_kit import GRID, tiny

from heron_env.cli import demo
from heron_env.cli.demo import CAUSES, DELAYS, FULL, RUN, SHORT, WORSE, DemoPlan
from heron_env.lab import RunFolder, read_sweep

pytestmark = pytest.mark.e2e

pytest.importorskip("matplotlib")
EXAMPLE = Path(__file__).parent.parent / "examples" / "demo.py"
LEARNING = {
    "total_steps": 800, "validations": 1, "validation_episodes": 1,
    "hyperparameters": tiny(n_steps=100, batch_size=100, n_epochs=4, learning_rate=3e-2, log_std=0.0),
}  # fmt: skip
"""BatteryGrid's rewards grow with every kWh, so little training suffices."""
SMALL = DemoPlan(GRID, LEARNING, days=2, cause_days=1, delays=(0.0, 2.0), processes=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(demo, "SHORT", SMALL)
        return out, as_json("demo", "--short", "--out", out)


def test_the_demo_leaves_policy_table_and_report_and_prints_the_table(finished: tuple[Path, dict[str, Any]]):
    out, table = finished
    assert table == json.loads((out / DELAYS / "table.json").read_text())
    returns = {row["policy"]: row["mean"]["value"] for row in table["rows"] if row["condition"] == "sync"}
    assert set(returns) == {"trained", "do nothing", "random"} and returns["trained"] == max(returns.values())
    assert [row["identical"] for row in table["rows"] if row["condition"] == "ideal"] == [True]
    text = (out / "report.html").read_text()
    assert text.count("<img") == 7
    titles = "network: action delay", "Causes of the gap", "One case on both clocks", "Training", "Hierarchy and vis"
    assert all(title in text for title in titles)
    assert RunFolder.open(out / RUN) and read_sweep(out / DELAYS).policies == ["trained"]
    causes = read_sweep(out / CAUSES)
    assert [part.method for part in causes.decompositions] == ["one at a time"] and causes.policies == ["trained"]


def test_the_next_demo_replaces_the_sweeps_and_fails_where_the_policy_does_not_beat_chance(
    finished: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
):
    out, _ = finished
    monkeypatch.setattr(demo, "SHORT", replace(SMALL, days=1, delays=(0.0,)))
    monkeypatch.setattr("heron_env.lab.learning.train.train", lambda *a, **options: RunFolder.open(out / RUN))
    monkeypatch.setattr(demo, "_beats_others", lambda delays: False)
    result = heron("demo", "--short", "--out", out, code=WORSE)
    assert "'trained' earns no more than 'do nothing' and 'random'" in " ".join(result.stdout.split())
    assert len(json.loads((out / DELAYS / "sweep.json").read_text())["cases"]) == 1


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("heron_env.lab.learning.train.train", "Training was not finished; nothing of it is kept"),
        ("heron_env.lab.sweep.sweep.Sweep.run", "The policy is trained and kept: heron sweep"),
    ],
)
def test_an_interrupt_leaves_a_usable_folder(
    finished: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, words: str
):
    def stop(*args: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "SHORT", SMALL)
    monkeypatch.setattr("heron_env.lab.learning.train.train", lambda *a, **options: RunFolder.open(finished[0] / RUN))
    monkeypatch.setattr(where, stop)
    assert words in heron("demo", "--short", "--out", tmp_path, code=130).stdout.replace("\n", " ")


def test_the_full_demo_is_what_the_readme_promises():
    assert FULL.days >= 10 and FULL.delays == (0.0, 30.0, 60.0, 120.0)
    assert FULL.processes == 2 and FULL.cause_days >= 3
    assert SHORT.training["time_limit"] <= 25.0 and SHORT.days == 2


def test_the_example_says_the_same_in_public_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its words are run on the small grid: no more than names of heron_env and heron_env.lab."""
    text = EXAMPLE.read_text(encoding="utf-8")
    assert "learning" not in text and "import _" not in text
    small = (
        text.replace("heron/EnergyManagement-v1", GRID).replace("1_200_000", "20_000").replace("(0.0, 60.0)", "(0.0,)")
    )
    (tmp_path / "demo.py").write_text(small, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["demo.py", "--short", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(tmp_path / "demo.py"), run_name="__main__")
    assert ended.value.code == 0 and (tmp_path / "out" / "report.html").is_file()
