"""`heron check`: a line per check, the remedy beneath, exit codes for CI."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from cli_kit import as_json, heron

GRID = "heron/BatteryGrid-v0"
FEW = ("--only", "builds", "--only", "infos", "--only", "gymnasium", "--steps", "4")


check = partial(heron, "check")


def test_what_passes_is_a_line_each_and_exit_code_0():
    lines = check(GRID, *FEW).stdout.splitlines()
    assert lines[0] == GRID
    assert [line.split()[:2] for line in lines[1:4]] == [["passed", n] for n in ("builds", "infos", "gymnasium")]
    assert lines[4] == "3 passed"


def test_what_fails_is_told_with_its_remedy_and_exit_code_1():
    told = " ".join(check("broken_envs:Wordy", *FEW, code=1).stdout.split())
    assert "failed infos infos['unit_1']['mood'] at step 1 is 'good', no number" in told
    assert "mend: put words into env.last_decisions" in told
    assert told.endswith("2 passed, 1 failed")


def test_json_is_all_there_is_on_stdout():
    told = as_json("check", "broken_envs:Wordy", *FEW, code=1)
    assert (told["target"], told["ok"]) == ("broken_envs:Wordy", False)
    assert [f["status"] for f in told["findings"]] == ["passed", "failed", "passed"]


def test_gymnasiums_check_has_its_say():
    (finding,) = as_json("check", "broken_envs:GlobalDice", "--only", "gymnasium", code=1)["findings"]
    assert finding["status"] == "failed"
    assert finding["mend"].startswith("Gymnasium's word")
    (finding,) = as_json("check", "broken_envs:Stale", "--only", "gymnasium")["findings"]
    assert finding["status"] == "warning"
    assert finding["what"].startswith("WARN: The obs returned by the `step()` method")


def test_options_reach_the_factory():
    told = as_json("check", GRID, *FEW, "-o", "num_batteries=5")
    assert "7 agents, 5 decide" in told["findings"][0]["what"]


def test_warnings_are_failures_where_that_is_asked_for():
    asked = ("foretelling_envs:Planted", "--only", "foresight")
    for more, code, status in (((), 0, "warning"), (("--strict",), 1, "failed")):
        (finding,) = as_json("check", *asked, *more, code=code)["findings"]
        assert finding["status"] == status
        assert finding["what"].startswith("agents see unit_1.Meter.load and 1 more ahead of time")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["heron/Nothing-v0"], "no such environment"),
        (["nowhere:Env"], "can't import 'nowhere'"),
        ([GRID, "--only", "leaks"], "Did you mean 'no-leak'?"),
        ([GRID, "-o", "num_battery=3"], "Did you mean 'num_batteries'?"),
    ],
)
def test_wrong_arguments_are_one_line_on_stderr_and_exit_code_2(arguments: list[str], words: str):
    result = check(*arguments, "--only", "builds", code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("command", "checks"),
    [
        (["-m", "heron_env"], ["builds"]),
        (["-P", "-c", "from heron_env.cli import app; app()"], ["builds", "processes"]),
    ],
)
def test_a_module_in_the_working_directory_is_found(tmp_path: Path, command: list[str], checks: list[str]):
    source = Path(__file__).with_name("broken_envs.py").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    asked = ["check", "mine:Sound", *(word for check in checks for word in ("--only", check)), "--steps", "2"]
    done = subprocess.run([sys.executable, *command, *asked], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(checks)} passed" in done.stdout
