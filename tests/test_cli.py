"""The command `heron`: what it prints, in which form, with which exit code."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import as_json, heron

from heron_env import registered, registry

GRID = "heron/BatteryGrid-v0"
ENERGY = "heron/EnergyManagement-v1"
COMMANDS = ("demo", "envs", "describe", "train", "sweep", "report", "trace", "replay")


def test_help_names_every_command_and_imports_little():
    code = "import sys; from heron_env.cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(command in told for command in COMMANDS)
    assert not {"torch", "matplotlib", "stable_baselines3", "scipy"} & set(told.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str):
    assert "--json" in heron(command, "--help").stdout


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "heron_env", "envs"], capture_output=True, text=True, check=True)
    assert GRID in done.stdout


def test_envs_lists_what_is_registered():
    assert [entry["id"] for entry in as_json("envs")] == registered()
    assert all(entry["summary"] for entry in as_json("envs") if entry["id"].startswith("heron/"))
    assert all(name in heron("envs").stdout for name in registered())


def test_describe_tells_tree_clock_and_who_sees_what():
    told = as_json("describe", ENERGY)
    assert (told["dt"], told["physics_substeps"]) == (60.0, 30)
    assert told["group_map"] == {"battery": told["possible_agents"]}
    agents = {agent["id"]: agent for agent in told["agents"]}
    assert agents["battery_1"]["parent"] == "zone_1"
    assert agents["battery_1"]["role"] == "decides"
    assert agents["zone_1"]["level"] == 2
    assert agents["battery_1"]["delays"] == {"obs_delay": 0.0, "act_delay": 0.0, "msg_delay": 0.0}
    seen = {column["name"]: column for column in told["groups"]["battery"]["observation"]}
    column = {"name": "Charge.soc", "unit": "1", "low": 0.0, "high": 1.0, "foreknown": False, "told": ""}
    assert seen["Charge.soc"] == column
    assert seen["zone_1.Zone.power"]["unit"] == "kW"
    assert "battery_2.Charge.soc" not in seen
    shown = heron("describe", ENERGY).stdout
    assert all(word in shown for word in ("zone_1", "decides, every 60 s", "EUR/kWh", "30 physics substeps of 2 s"))


def test_options_reach_the_environment():
    told = as_json("describe", GRID, "-o", "num_batteries=5", "-o", "control=zone", "-o", "observe_age=true")
    assert told["possible_agents"] == ["zone_1"]
    assert [agent["role"] for agent in told["agents"]] == ["watches", "decides", *["obeys"] * 5]
    assert told["groups"]["zone"]["observation"][-1]["unit"] == "s"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["describe", GRID, "-o", "num_batteries=0"], "must be a whole number >= 1"),
        (["train", "heron/Nothing-v0"], "no such environment"),
        (["sweep", GRID, "random", "--axis", "act_delay=-1"], "must be 0 or more"),
        (["check", GRID, "--env", GRID], "--env is for a YAML file"),
        (["eval", "runs/first"], "heron eval is gone since an earlier 0.x: write heron sweep"),
        (["validate", "world.yaml"], "heron validate is gone since an earlier 0.x: write heron check FILE.yaml"),
        (["zoo"], "heron zoo is gone since an earlier 0.x: write heron board list"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_exit_code_2(arguments: list[str], words: str):
    result = heron(*arguments, code=2)
    assert result.stdout == ""
    line = result.stderr.strip()
    assert line.startswith("error: ") and words in line
    assert "\n" not in line and "Traceback" not in line


@pytest.mark.parametrize("command", ["trace", "sweep", "train"])
def test_a_folder_that_can_not_be_made_is_one_line(tmp_path: Path, command: str):
    taken = tmp_path / "taken"
    taken.write_text("a file")
    told = heron(command, GRID, "-o", "max_steps=2", "--out", taken / "x", code=2).stderr
    last = told.splitlines()[-1]
    assert last.startswith(f"error: {taken / 'x'}")
    assert last.endswith(": Not a directory; mend that, or choose another folder or file")
    assert "Traceback" not in told


def test_an_error_of_the_system_that_is_about_no_file_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "no file's fault")

    monkeypatch.setattr(registry, "make", broken)
    told = heron("describe", GRID, code=2).stderr
    assert "no file's fault" in told and "Traceback" not in told


def test_the_usual_delays_are_fractions_of_the_control_step(tmp_path: Path):
    short = ("-o", "max_steps=4", "--cases", "1", "--processes", "1", "--out", tmp_path)
    told = as_json("sweep", GRID, "random", "--preset", "delays", *short)
    assert told["preset"] == "delays"
    assert [row["condition"] for row in told["rows"] if row["policy"] == "random"] == [
        "sync", "ideal", "act_delay=0.5", "act_delay=1", "act_delay=2",
    ]  # fmt: skip


def test_another_seed_is_another_draw_of_the_same_cases(tmp_path: Path):
    short = ("-o", "max_steps=2", "--cases", "2", "--processes", "1", "--out", tmp_path)
    told = as_json("sweep", GRID, "do nothing", "--axis", "loss=0", *short, "--seed", "7")
    assert [case["seed"] for case in told["cases"]] == [1_000_007, 1_000_008]


@pytest.mark.parametrize("command", ["watch", "trace", "describe", "check", "margin"])
def test_a_command_that_is_stopped_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch, command: str):
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("heron_env.registry.make", stopped)
    told = heron(command, GRID, *(["random"] if command == "margin" else []), code=130).stderr
    assert told == "stopped; run the same command again\n"


@pytest.mark.parametrize("begun", [False, True])
def test_who_stops_a_training_reads_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool):
    def stopped(self: object, *row: object) -> None:
        raise KeyboardInterrupt

    where = "Training.learn" if begun else "Validation.measure"
    monkeypatch.setattr(f"heron_env.lab.learning.train.{where}", stopped)
    told = heron("train", GRID, "--out", tmp_path / "run", "--steps", 4000, "-o", "num_batteries=2", code=130).stderr
    kept = f"its course so far is in {tmp_path / 'run'}" if begun else "nothing of it is kept"
    assert told.splitlines()[-1] == (
        f"stopped. Training was not finished; {kept}. --time-limit ends a training early and keeps its policy"
    )
    rows = (tmp_path / "run" / "progress.csv").read_text().splitlines()[1:]
    assert len(rows) == 2 * begun  # of the first validation, and of the rollout
