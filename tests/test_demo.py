"""The demo from end to end in small: files, exit codes, the order that it judges, what an interrupt leaves."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_kit import as_json, heron
from training_kit import GRID, tiny

from heron_env import Condition
from heron_env.cli import demo
from heron_env.cli.demo import CAUSES, DEMOS, EVALUATION, NOTHING, UNDECIDED, UNDER, WITHOUT, Demo
from heron_env.lab import RunFolder, read_sweep

pytest.importorskip("matplotlib")
LEARNING = {
    "total_steps": 400, "validations": 1, "validation_episodes": 1,
    "hyperparameters": tiny(n_steps=100, batch_size=100, n_epochs=4, learning_rate=3e-2, log_std=0.0),
}  # fmt: skip
"""BatteryGrid's rewards grow with every kWh, so little training suffices."""
SMALL = Demo(
    GRID, {WITHOUT: None, UNDER: {"act_delay": 2.0}}, LEARNING,
    Condition(act_delay=2.0), Condition(act_delay=2.0, loss=0.2), ((WITHOUT, NOTHING),),
    cases=2, cause_cases=2, film=(UNDER, "battery_1"),
)  # fmt: skip
FOLDERS = "trained-without-it", "trained-under-it"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(demo.DEMOS, "words", SMALL)
        patched.setitem(demo.SHORT, "words", {})
        return out, as_json("demo", "--short", "--seed", "3", "--out", out)


@pytest.mark.e2e
def test_the_demo_leaves_policies_table_film_and_report_and_prints_the_table(finished: tuple[Path, dict[str, Any]]):
    out, table = finished
    assert table == json.loads((out / EVALUATION / "table.json").read_text())
    returns = {(row["policy"], row["condition"]): row["mean"]["value"] for row in table["rows"]}
    late = "act_delay=2"
    assert {policy for policy, condition in returns if condition == late} == {WITHOUT, UNDER, NOTHING}
    assert returns[WITHOUT, late] > returns[NOTHING, late]
    text = (out / "report.html").read_text()
    assert "seed 3" in text and "Causes" in text and "Training" in text
    assert (out / "film.gif").read_bytes().startswith(b"GIF")
    without, under = (RunFolder.open(out / folder).config for folder in FOLDERS)
    assert without.seed == under.seed == 3 and without.schedule is None and under.schedule
    causes = read_sweep(out / CAUSES)
    assert "one at a time" in {part.method for part in causes.decompositions} and causes.policies == [WITHOUT]


@pytest.mark.e2e
def test_the_next_demo_replaces_the_sweeps_and_fails_where_the_order_is_another(
    finished: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
):
    out, _ = finished
    monkeypatch.setitem(demo.DEMOS, "words", replace(SMALL, cases=3, order=((NOTHING, WITHOUT),), film=None))
    monkeypatch.setattr(demo, "_trained", lambda plan, out, seed: {
        name: RunFolder.open(out / folder) for name, folder in zip(plan.trainings, FOLDERS, strict=True)
    })  # fmt: skip
    result = heron("demo", "--out", out, code=UNDECIDED)
    assert "not the order that the demo shows" in " ".join(result.stdout.split())
    assert len(json.loads((out / EVALUATION / "sweep.json").read_text())["cases"]) == 3


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("_trained", "Training was not finished; nothing of it is kept"),
        ("_evaluated", "The policies are trained and kept: heron sweep"),
    ],
)
def test_an_interrupt_says_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, words: str):
    def stop(*args: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_trained", lambda plan, out, seed: dict.fromkeys(plan.trainings))
    monkeypatch.setattr(demo, where, stop)
    assert words in heron("demo", "--short", "--out", tmp_path, code=130).stdout.replace("\n", " ")


def test_another_demo_is_named(tmp_path: Path):
    assert "there are words, energy" in heron("demo", "wrods", "--out", tmp_path, code=2).stderr


def test_the_demo_is_what_the_readme_promises():
    words = DEMOS["words"]
    assert words.network == Condition(msg_delay=0.5) and words.order == ((UNDER, NOTHING, WITHOUT),)
    assert words.cases >= 100 and words.cause_cases >= 20 and DEMOS["energy"].cause_cases >= 20
    assert words.training["total_steps"] == 600_000 and "time_limit" not in words.training
