"""Bad inputs: CSV files, run folders and the command line."""

# ruff: noqa: E501 (a message is one line)

import json
import os

from catalogue.case import Case
from catalogue.small_world import ENERGY, GRID, written
from typer.testing import CliRunner

from heron_env import __version__, load_config, load_policy, make
from heron_env.cli import app
from heron_env.errors import ConfigError, DataError, RunFolderError, ScheduleError, TraceError, Untrusted
from heron_env.lab import Sweep, read_sweep, record_episode
from heron_env.lab.schedules import FIELDS, with_settings
from heron_env.lab.traces.replaying import replay
from heron_env.worlds.energy_management.site import COLUMNS

HEADER = ",".join(COLUMNS)


def csv(folder, text):
    return make(ENERGY, profiles=written(folder, "mine.csv", text))


def latin(folder):
    (folder / "mine.csv").write_bytes(f"{HEADER}\n1,\xfc,0,0,0\n".encode("latin-1"))
    return make(ENERGY, profiles=folder / "mine.csv")


CSV = [
    Case(
        "a missing file",
        DataError,
        lambda d: make(ENERGY, profiles="nowhere.csv"),
        "'nowhere.csv'",
        "give a CSV file",
        "profiles='nowhere.csv': no such file; give a CSV file with the columns household,business,pv_south,pv_east,pv_west",
    ),
    Case(
        "a folder",
        DataError,
        lambda d: make(ENERGY, profiles=d),
        "is a folder",
        "give a CSV file",
        "profiles='DIR': is a folder; give a CSV file with the columns household,business,pv_south,pv_east,pv_west",
    ),
    Case(
        "a number for a file",
        ConfigError,
        lambda d: make(ENERGY, profiles=3),
        "profiles=3",
        "must be the path",
        "profiles=3: must be the path of a CSV file, or None for the shipped series",
    ),
    Case(
        "a missing column",
        DataError,
        lambda d: csv(d, "household,business,pv_south,pv_east\n"),
        "mine.csv:1",
        "add pv_west",
        "mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got household,business,pv_south,pv_east; add pv_west.",
    ),
    Case(
        "a misspelt column",
        DataError,
        lambda d: csv(d, HEADER.replace("business", "busines")),
        "busines,",
        "add business",
        "mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got household,busines,pv_south,pv_east,pv_west; add business. Did you mean 'business'?",
        "business",
    ),
    Case(
        "semicolons",
        DataError,
        lambda d: csv(d, HEADER.replace(",", ";")),
        "household;",
        "separate them by commas",
        "mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got household;business;pv_south;pv_east;pv_west; separate them by commas, and write decimals with a point",
    ),
    Case(
        "another order",
        DataError,
        lambda d: csv(d, "business,household,pv_south,pv_east,pv_west"),
        "business,household",
        "put them into that order",
        "mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got business,household,pv_south,pv_east,pv_west; put them into that order, each once",
    ),
    Case(
        "nothing in the file",
        DataError,
        lambda d: csv(d, ""),
        "got none",
        "add household",
        "mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got none; add household,business,pv_south,pv_east,pv_west.",
    ),
    Case(
        "text in a number",
        DataError,
        lambda d: csv(d, f"{HEADER}\n1,1,0,0,0\n1,n/a,0,0,0\n"),
        "mine.csv:3: business='n/a'",
        "correct or fill in",
        "mine.csv:3: business='n/a' is not a number; correct or fill in the cell",
    ),
    Case(
        "a decimal comma",
        DataError,
        lambda d: csv(d, f"{HEADER}\n1,5,1,0,0,0\n"),
        "got 6",
        "decimals with a point",
        "mine.csv:2: expected 5 cells, got 6; give one a column, decimals with a point",
    ),
    Case(
        "negative generation",
        DataError,
        lambda d: csv(d, f"{HEADER}\n1,1,-3,0,0\n"),
        "pv_south=-3",
        "must be >= 0",
        "mine.csv:2: pv_south=-3 must be >= 0 (generation is positive, too)",
    ),
    Case(
        "a file in another encoding",
        DataError,
        lambda d: latin(d),
        "mine.csv",
        "save it as one",
        "mine.csv: is no CSV file in UTF-8 ('utf-8' codec can't decode byte 0xfc in position 46: invalid start byte); save it as one",
    ),
    Case(
        "hours instead of quarters",
        DataError,
        lambda d: csv(d, f"{HEADER}\n" + "1,1,0,0,0\n" * 8760),
        "got 8760",
        "must be repeated four times",
        "mine.csv: expected 35040 rows (quarter hours of 365 days), got 8760; hourly values must be repeated four times, and February 29 left out",
    ),
]

CONFIG = {
    "schema_version": 1, "env_id": GRID, "env_options": {}, "training_options": {}, "base": None, "seed": 0,
    "transitions": 1, "seconds": 1.0, "deterministic": True, "hyperparameters": {}, "validation": {}, "versions": {},
    "groups": {
        "battery": {
            "model": "battery.zip", "agents": ["battery_1"], "observation_names": ["soc"], "center": [0.0],
            "scale": [1.0], "reward_scale": 1.0,
        }
    },
}  # fmt: skip


def run(folder, text):
    written(folder, "config.json", text)
    return load_policy(folder)


RUNS = [
    Case(
        "a folder that is not there",
        RunFolderError,
        lambda d: load_policy(d / "nothing"),
        "nothing",
        "correct the path",
        "DIR/nothing/config.json does not exist: DIR/nothing is no finished run folder; train one, or correct the path",
    ),
    Case(
        "another schema",
        RunFolderError,
        lambda d: run(d, '{"schema_version": 7}'),
        "version 7",
        "install the heron_env that wrote it",
        f"DIR/config.json has schema version 7, heron_env {__version__} reads version 1: install the heron_env that wrote it, or train again",
    ),
    Case(
        "a missing model",
        RunFolderError,
        lambda d: run(d, json.dumps(CONFIG)),
        "battery.zip",
        "copy it from where the run was made",
        "DIR/battery.zip does not exist, the model of group 'battery'; copy it from where the run was made, or train again",
    ),
    Case(
        "no JSON",
        RunFolderError,
        lambda d: run(d, "seed: 0"),
        "Invalid JSON",
        "restore the file",
        "DIR/config.json: the file: Invalid JSON: expected value at line 1 column 1; restore the file, or train again",
    ),
    Case(
        "a missing field",
        RunFolderError,
        lambda d: run(d, json.dumps({**CONFIG, "env_id": None} | {"seed": "one"}).replace('"env_id": null, ', "")),
        "env_id",
        "restore the file",
        "DIR/config.json: env_id: Field required; restore the file, or train again",
    ),
    Case(
        "a wrong value",
        RunFolderError,
        lambda d: run(d, json.dumps({**CONFIG, "seed": "one"})),
        "seed='one'",
        "restore the file",
        "DIR/config.json: seed='one': Input should be a valid integer, unable to parse string as an integer; restore the file, or train again",
    ),
]


def group(**values):
    """The configuration with other values of its group."""
    return json.dumps({**CONFIG, "groups": {"battery": {**CONFIG["groups"]["battery"], **values}}})


RUNS += [
    Case(
        "a scale of nothing",
        RunFolderError,
        lambda d: run(d, group(scale=[0.0])),
        "scale.0=0.0",
        "restore the file",
        "DIR/config.json: groups.battery.scale.0=0.0: Input should be greater than or equal to 0.000000000001; restore the file, or train again",
    ),
    Case(
        "a model outside the folder",
        RunFolderError,
        lambda d: run(d, group(model="../model.zip")),
        "'../model.zip'",
        "restore the file",
        "DIR/config.json: groups.battery.model='../model.zip': Value error, must be the name of a file in this folder; restore the file, or train again",
    ),
    Case(
        "an environment that nobody vouched for",
        Untrusted,
        lambda d: run_with_model(d, json.dumps({**CONFIG, "env_id": "subprocess:getoutput"})),
        "'subprocess:getoutput'",
        "say --trust subprocess:getoutput",
        "DIR/config.json names 'subprocess:getoutput', which is not registered here: a file runs no code that nobody vouched for. If you trust it, say --trust subprocess:getoutput, trust='subprocess:getoutput' or HERON_TRUST=subprocess:getoutput; or register it under an id",
    ),
]


def run_with_model(folder, text):
    (folder / "battery.zip").write_bytes(b"")
    return run(folder, text)


def foreign(folder):
    written(folder, "results.jsonl", "mine")
    return Sweep.of(GRID, {"random": "random"}, [], cases=1).run(folder)


def pipe(folder):
    os.mkfifo(folder / "world.yaml")
    return load_config(folder / "world.yaml")


FOLDERS = [
    Case(
        "results of something else",
        ConfigError,
        foreign,
        "results.jsonl",
        "choose another folder",
        "DIR/results.jsonl is there, but no sweep.json says of which sweep: it is left as it is; choose another folder, or move it away",
    ),
    Case(
        "a sweep that is no JSON",
        RunFolderError,
        lambda d: (written(d, "sweep.json", "["), read_sweep(d)),
        "sweep.json",
        "make one with `heron sweep`",
        "DIR/sweep.json: no folder of a sweep (Expecting value: line 1 column 2 (char 1)); make one with `heron sweep`",
    ),
    Case(
        "a pipe for a world",
        ConfigError,
        pipe,
        "world.yaml",
        "no regular file",
        "DIR/world.yaml: can't be read: it is a pipe or a device, no regular file",
    ),
    Case(
        "a number for a folder",
        ConfigError,
        lambda d: read_sweep(3),
        "=3",
        "must be a path",
        "read_sweep(folder)=3: must be a path, as 'runs/mine'",
    ),
]


def trace(folder, text):
    written(folder, "trace.json", text)
    return replay(folder)


TRACES = [
    Case(
        "a trace that is not there",
        TraceError,
        lambda d: replay(d / "nothing"),
        "nothing",
        "correct the path",
        "DIR/nothing does not exist; record an episode with `heron trace ENV --out DIR`, or correct the path",
    ),
    Case(
        "a trace of another schema",
        TraceError,
        lambda d: trace(d, '{"schema": 7, "heron_env": "9.1"}'),
        "version 7",
        "install heron_env 9.1",
        f"DIR/trace.json has schema version 7, heron_env {__version__} reads version 1: install heron_env 9.1, which wrote it, or record the episode again",
    ),
    Case(
        "a trace that is no JSON",
        TraceError,
        lambda d: trace(d, "{"),
        "trace.json",
        "restore it",
        "DIR/trace.json is no recorded episode (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)); restore it, or record the episode again",
    ),
    Case(
        "a trace without its messages",
        TraceError,
        lambda d: trace(d, '{"schema": 1}'),
        "setting",
        "restore the file",
        "DIR/trace.json: setting: Input should be a dictionary or an instance of Setting; restore the file, or record the episode again",
    ),
    Case(
        "an option that can't be written down",
        TraceError,
        lambda d: record_episode(GRID, "random", options={"max_steps": {3}}),
        "max_steps={3}",
        "use words, numbers",
        "option max_steps={3} can't be written down; use words, numbers, lists and dictionaries, or register the environment with it under an id of its own",
    ),
    Case(
        "a field that no schedule has",
        ScheduleError,
        lambda d: with_settings(None, ["msg_dely=1"]),
        "'msg_dely=1'",
        "must read FIELD=VALUE",
        f"--schedule 'msg_dely=1': must read FIELD=VALUE or WHO.FIELD=VALUE, with a field of {FIELDS}; msg_delay=0.5, field.tick_interval=1. Did you mean 'msg_delay'?",
        "msg_delay",
    ),
]


def heron(folder, *arguments):
    """What the command prints, in the folder."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        return CliRunner().invoke(app, list(arguments))
    finally:
        os.chdir(before)


def breaking(folder, name):
    """An environment of a module that raises when it is imported."""
    written(folder, f"{name}.py", "import os\nraise OSError('no licence')")
    return f"{name}:env"


CLI = [
    Case(
        "a module that can't be imported, to check",
        None,
        lambda d: heron(d, "check", breaking(d, "breaks_when_checked")),
        "no licence",
        "mend that",
        "'breaks_when_checked:env': importing 'breaks_when_checked' raised OSError: no licence (at DIR/breaks_when_checked.py:2); mend that, `import breaks_when_checked` in Python shows all of it",
    ),
    Case(
        "a module that can't be imported, to describe",
        None,
        lambda d: heron(d, "describe", breaking(d, "breaks_when_described")),
        "no licence",
        "mend that",
        "make('breaks_when_described:env'): importing 'breaks_when_described' raised OSError: no licence (at DIR/breaks_when_described.py:2); mend that, `import breaks_when_described` in Python shows all of it",
    ),
    Case(
        "an unknown environment",
        None,
        lambda d: heron(d, "describe", "heron/BateryGrid-v0"),
        "'heron/BateryGrid-v0'",
        "registered are",
        "make('heron/BateryGrid-v0'): no such environment; registered are REGISTERED, your own is 'module:function'. Did you mean 'heron/BatteryGrid-v0'?",
        "heron/BatteryGrid-v0",
    ),
    Case(
        "an unknown option of an environment",
        None,
        lambda d: heron(d, "describe", GRID, "-o", "num_baterys=3"),
        "num_baterys",
        "Did you mean",
        "make('heron/BatteryGrid-v0', num_baterys=...): no such option. Did you mean 'num_batteries'?",
        "num_batteries",
    ),
    Case(
        "training delays in words",
        None,
        lambda d: heron(d, "train", GRID, "--train-delays", "obs=1,action=2"),
        "'obs=1,action=2'",
        "must read obs=1,act=0-2",
        "--train-delays 'obs=1,action=2': must read obs=1,act=0-2: whole control steps, or the least and the most",
    ),
    Case(
        "training delays below zero",
        None,
        lambda d: heron(d, "train", GRID, "--train-delays", "obs=-1"),
        "'obs=-1'",
        "must read obs=1,act=0-2",
        "--train-delays 'obs=-1': must read obs=1,act=0-2: whole control steps, or the least and the most",
    ),
    Case(
        "a report of nothing",
        None,
        lambda d: heron(d, "report", "runs/mine"),
        "runs/mine",
        "a report is made of what these leave behind",
        "runs/mine: neither a folder of `heron sweep`, nor of `heron train`, nor of `heron trace`; a report is made of "
        "what these leave behind",
    ),
    Case(
        "an option without a value",
        None,
        lambda d: heron(d, "describe", GRID, "-o", "dt"),
        "'dt'",
        "must read name=value",
        "--option 'dt': must read name=value, as dt=900 does",
    ),
    Case(
        "an option that is no number",
        None,
        lambda d: heron(d, "describe", GRID, "-o", "max_steps=many"),
        "'many'",
        "must be a whole number",
        "TerminationConfig(max_steps='many'): must be a whole number >= 1, or None",
    ),
    Case(
        "a misspelt policy",
        None,
        lambda d: heron(d, "eval", "randm", "--env", GRID),
        "'randm'",
        "this environment has",
        "policy 'randm': neither a run folder nor a baseline; this environment has ['do nothing', 'random']. Did you mean 'random'?",
        "random",
    ),
    Case(
        "a policy and no environment",
        None,
        lambda d: heron(d, "eval", "random"),
        "['random']",
        "name the environment with --env",
        "none of ['random'] is a run folder: name the environment with --env",
    ),
    Case(
        "delays in words",
        None,
        lambda d: heron(d, "eval", "random", "--env", GRID, "--delays", "0;30"),
        "'0;30'",
        "must be seconds separated by commas",
        "--delays '0;30': must be seconds separated by commas, as 0,30,60",
    ),
    Case(
        "a misspelt split",
        None,
        lambda d: heron(d, "eval", "random", "--env", GRID, "--split", "tset"),
        "'tset'",
        "must be one of",
        "split='tset' must be one of ['test', 'validation']. Did you mean 'test'?",
        "test",
    ),
    Case(
        "a misspelt critic",
        None,
        lambda d: heron(d, "train", GRID, "--critic", "centrl"),
        "'centrl'",
        "must be one of",
        "train(critic='centrl'): must be one of ('local', 'central'). Did you mean 'central'?",
        "central",
    ),
    Case(
        "no path of a run folder",
        RunFolderError,
        lambda d: load_policy(None),
        "None",
        "write",
        "None is no path of a run folder; write 'runs/my-run' or a Path",
    ),
    Case(
        "no path of a configuration",
        ConfigError,
        lambda d: load_config(None),
        "None",
        "write",
        "None is no path of a YAML file; write 'world.yaml' or a Path",
    ),
    Case(
        "a missing configuration",
        None,
        lambda d: heron(d, "validate", "nowhere.yaml"),
        "nowhere.yaml",
        "Correct the path",
        "nowhere.yaml: no such file. Correct the path",
    ),
    Case(
        "a folder that is no run",
        None,
        lambda d: heron(d, "eval", "."),
        "config.json does not exist",
        "correct the path",
        "config.json does not exist: . is no finished run folder; train one, or correct the path",
    ),
    Case(
        "a window that ends before it starts",
        None,
        lambda d: heron(d, "trace", GRID, "--window", "5,2"),
        "'5,2'",
        "must start at 0 or later",
        "--window '5,2': must start at 0 or later, and end after that",
    ),
    Case(
        "a window that is no two times",
        None,
        lambda d: heron(d, "trace", GRID, "--window", "5"),
        "'5'",
        "as 0,30",
        "--window '5': must be two times in seconds, as 0,30",
    ),
]
