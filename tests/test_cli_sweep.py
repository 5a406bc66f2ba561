"""`heron sweep`: what it understands, prints and leaves behind."""

import json
from functools import partial
from pathlib import Path

import pytest
from cli_kit import as_json, heron

from heron_env.lab import IDEAL, Condition, read_sweep
from heron_env.lab.sweep.records import SweepJournal

GRID = "heron/BatteryGrid-v0"


sweep = partial(heron, "sweep")


def short(out: Path, *more: object) -> list[object]:
    return [GRID, "random", "--cases", 2, "--processes", 1, "-o", "max_steps=10", "--out", out, *more]


def test_a_preset_leaves_settings_results_and_tables(tmp_path: Path):
    told = " ".join(sweep(*short(tmp_path, "--preset", "quick")).stdout.split())
    assert "of the 7 conditions of this preset 'quick'" in told or "Of the 7 conditions of this preset" in told
    assert "By cause" in told
    assert {path.name for path in tmp_path.iterdir()} >= {
        "sweep.json", "results.jsonl", "table.json", "table.csv", "table.md",
    }  # fmt: skip
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2 * (9 + 1)


def test_json_goes_to_stdout_and_progress_to_stderr(tmp_path: Path):
    result = sweep(*short(tmp_path, "--axis", "act_delay=0,1", "--json"))
    table = json.loads(result.stdout)
    assert [row["condition"] for row in table["rows"] if row["policy"] == "random"] == ["sync", "ideal", "act_delay=1"]
    assert "0 of 8 episodes" in result.stderr and "8 of 8 episodes" in result.stderr


def test_held_out_cases_have_one_word_in_all_commands_and_the_earlier_one_still_works(tmp_path: Path):
    for command in ("sweep", "margin"):
        text = heron(command, "--help").stdout
        assert "--cases" in text and "--seeds" not in text
    words = [GRID, "random", "--axis", "loss=0", "--processes", 1, "-o", "max_steps=10"]
    counts = [
        len(as_json("sweep", *words, option, 3, "--out", tmp_path / option)["cases"])
        for option in ("--cases", "--seeds")
    ]
    assert counts == [3, 3]


def test_axes_are_swept_one_after_another_or_as_a_product(tmp_path: Path):
    axes = ["--axis", "act_delay=0,1", "--axis", "loss=0,0.2"]
    for name, more, count in (("each", [], 4), ("all", ["--product"], 5)):
        table = as_json("sweep", *short(tmp_path / name, *axes, *more))
        assert len([row for row in table["rows"] if row["policy"] == "random"]) == count


def test_a_rate_is_swept_down_from_infinity_and_drawn(tmp_path: Path):
    table = as_json("sweep", *short(tmp_path, "--axis", "rate=100,1e6,inf"))
    rows = [row for row in table["rows"] if row["policy"] == "random"]
    assert [row["condition"] for row in rows] == ["sync", "rate=100", "rate=1000000", "ideal"]
    assert "was offered" in "".join(rows[1]["notes"]) and not rows[2]["notes"] and not rows[3]["notes"]
    result = read_sweep(tmp_path)
    assert [amount for amount, _ in result.along("random", "rate")] == [100.0, 1e6]
    assert result.sweep.conditions[1] == Condition(rate=100.0) and result.point("random", IDEAL).gap.value == 0.0
    (axes, _) = result.plot().axes
    assert all(line.get_xdata().max() < 2e6 for line in axes.lines if line.get_marker() == "o")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--axis", "rate=0"], "rate=0.0): must be bytes a second, above 0"),
        (["--axis", "rate=field:5"], "rate is one number for all agents"),
        (["--preset", "quik"], "Did you mean 'quick'"),
        (["--axis", "los=1"], "Did you mean 'loss'"),
        (["--axis", "loss=1", "--axis", "loss=0"], "name each cause once"),
        (["--axis", "loss=0"], "name an environment"),
        (["runs/nowhere", "--axis", "loss=0"], "['runs/nowhere']: no such run folder; name an environment"),
        ([GRID, "--product"], "--product: of what?"),
        ([GRID, "random", "--axis", "loss=0", "--pool"], "--pool: two run folders at least"),
        ([GRID, "heron/Spread-v0"], "one environment at a time"),
        (["heron/BateryGrid-v0"], "no such environment"),
        (["nowhere:env"], "No module named 'nowhere'"),
        ([GRID, "-o", "max_stepz=1"], "max_steps"),
    ],
)
def test_wrong_words_are_one_line_on_stderr(tmp_path: Path, words: list[str], message: str):
    assert message in sweep(*words, "--out", tmp_path, code=2).stderr


def test_an_environment_of_ones_own_is_swept_and_read_back(tmp_path: Path):
    own = "heron_env.worlds.battery_grid:battery_grid"
    sweep(own, *short(tmp_path, "--axis", "loss=0,0.3")[1:])
    assert read_sweep(tmp_path).sweep.env.id == own


def test_who_stops_it_is_told_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stopped(self: object, record: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SweepJournal, "add", stopped)
    told = sweep(*short(tmp_path, "--axis", "loss=0,0.3"), code=130)
    kept = f"stopped; finished episodes are stored in {tmp_path}: run the same command again to resume"
    assert told.stderr.splitlines()[-1] == kept


def test_another_sweep_in_the_same_folder_is_refused(tmp_path: Path):
    sweep(*short(tmp_path, "--axis", "act_delay=0,1"))
    refused = sweep(*short(tmp_path, "--axis", "act_delay=0,2"), code=2).stderr
    assert "holds a sweep with other settings" in refused and "choose another folder" in refused
