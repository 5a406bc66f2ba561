"""The study of Stable-Baselines3 on the event clock beside the lean trainer: what is counted, played and shown."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import sb3_event as recipe

from heron_env import ScheduleConfig, make

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "training" / "results" / "sb3_event"


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As outside of tests."""
    monkeypatch.setitem(recipe.OPTIONS, "compile", True)


def test_days_side_by_side_are_single_runs() -> None:
    env, network = make(recipe.ID, **recipe.OPTIONS), ScheduleConfig(**recipe.NETWORK)
    cases = range(recipe.FIRST_CASE, recipe.FIRST_CASE + 2)
    policies = {"*": lambda vector: np.sin(vector[:1])}
    single = [env.run_event_driven(policies, seed=case, schedule=network).returns["system_agent"] for case in cases]
    assert recipe.days(2)(lambda rows: np.sin(rows[:, :1])) == pytest.approx(single, abs=1e-3)


def test_the_page_shows_the_table_of_the_study() -> None:
    study = json.loads((RESULTS / "study.json").read_text("utf-8"))
    text, page = recipe.table(study), (ROOT / "docs" / "use_with" / "stable_baselines3.md").read_text("utf-8")
    assert (RESULTS / "table.md").read_text("utf-8") == text
    *rows, _, difference = text.rstrip().splitlines()
    assert "\n".join(rows) in page and difference in page.replace("\n", " ")
    for each in study["decisions"].values():
        assert all(abs(number / recipe.DECISIONS - 1.0) < 0.01 for number in each)


@pytest.mark.e2e
def test_it_runs_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--quick", "--seeds", "0", "1", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["sb3_event", *words])
    recipe.main()
    assert (tmp_path / "out" / "table.md").read_text("utf-8") in capsys.readouterr().out
