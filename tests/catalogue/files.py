"""Bad inputs: CSV files, run folders and the command line."""

# ruff: noqa: E501 (a message is one line)

import json
import os

from catalogue.small_world import ENERGY, GRID, written
from typer.testing import CliRunner

from heron_env import __version__, load_config, load_policy, make
from heron_env.cli import app
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


CSV = {
    "a missing file": (
        lambda d: make(ENERGY, profiles="nowhere.csv"),
        "DataError: profiles=«'nowhere.csv'»: no such file; ⟨give a CSV file⟩ with the columns household,business,pv_south,pv_east,pv_west",
    ),
    "a folder": (
        lambda d: make(ENERGY, profiles=d),
        "DataError: profiles='DIR': «is a folder»; ⟨give a CSV file⟩ with the columns household,business,pv_south,pv_east,pv_west",
    ),
    "a number for a file": (
        lambda d: make(ENERGY, profiles=3),
        "ConfigError: «profiles=3»: ⟨must be the path⟩ of a CSV file, or None for the shipped series",
    ),
    "a missing column": (
        lambda d: csv(d, "household,business,pv_south,pv_east\n"),
        "DataError: «mine.csv:1»: expected the columns household,business,pv_south,pv_east,pv_west, got household,business,pv_south,pv_east; ⟨add pv_west⟩.",
    ),
    "a misspelt column": (
        lambda d: csv(d, HEADER.replace("business", "busines")),
        "DataError: mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got household,«busines,»pv_south,pv_east,pv_west; ⟨add business⟩. Did you mean 'business'?",
    ),
    "semicolons": (
        lambda d: csv(d, HEADER.replace(",", ";")),
        "DataError: mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got «household;»business;pv_south;pv_east;pv_west; ⟨separate them by commas⟩, and write decimals with a point",
    ),
    "another order": (
        lambda d: csv(d, "business,household,pv_south,pv_east,pv_west"),
        "DataError: mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, got «business,household»,pv_south,pv_east,pv_west; ⟨put them into that order⟩, each once",
    ),
    "nothing in the file": (
        lambda d: csv(d, ""),
        "DataError: mine.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, «got none»; ⟨add household⟩,business,pv_south,pv_east,pv_west.",
    ),
    "text in a number": (
        lambda d: csv(d, f"{HEADER}\n1,1,0,0,0\n1,n/a,0,0,0\n"),
        "DataError: «mine.csv:3: business='n/a'» is not a number; ⟨correct or fill in⟩ the cell",
    ),
    "a decimal comma": (
        lambda d: csv(d, f"{HEADER}\n1,5,1,0,0,0\n"),
        "DataError: mine.csv:2: expected 5 cells, «got 6»; give one a column, ⟨decimals with a point⟩",
    ),
    "negative generation": (
        lambda d: csv(d, f"{HEADER}\n1,1,-3,0,0\n"),
        "DataError: mine.csv:2: «pv_south=-3» ⟨must be >= 0⟩ (generation is positive, too)",
    ),
    "a file in another encoding": (
        lambda d: latin(d),
        "DataError: «mine.csv»: is no CSV file in UTF-8 ('utf-8' codec can't decode byte 0xfc in position 46: invalid start byte); ⟨save it as one⟩",
    ),
    "hours instead of quarters": (
        lambda d: csv(d, f"{HEADER}\n" + "1,1,0,0,0\n" * 8760),
        "DataError: mine.csv: expected 35040 rows (quarter hours of 365 days), «got 8760»; hourly values ⟨must be repeated four times⟩, and February 29 left out",
    ),
}

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


RUNS = {
    "a folder that is not there": (
        lambda d: load_policy(d / "nothing"),
        "RunFolderError: DIR/«nothing»/config.json does not exist: DIR/nothing is no finished run folder; train one, or ⟨correct the path⟩",
    ),
    "another schema": (
        lambda d: run(d, '{"schema_version": 7}'),
        f"RunFolderError: DIR/config.json has schema «version 7», heron_env {__version__} reads version 1: ⟨install the heron_env that wrote it⟩, or train again",
    ),
    "a missing model": (
        lambda d: run(d, json.dumps(CONFIG)),
        "RunFolderError: DIR/«battery.zip» does not exist, the model of group 'battery'; ⟨copy it from where the run was made⟩, or train again",
    ),
    "no JSON": (
        lambda d: run(d, "seed: 0"),
        "RunFolderError: DIR/config.json: the file: «Invalid JSON»: expected value at line 1 column 1; ⟨restore the file⟩, or train again",
    ),
    "a missing field": (
        lambda d: run(d, json.dumps({**CONFIG, "env_id": None} | {"seed": "one"}).replace('"env_id": null, ', "")),
        "RunFolderError: DIR/config.json: «env_id»: Field required; ⟨restore the file⟩, or train again",
    ),
    "a wrong value": (
        lambda d: run(d, json.dumps({**CONFIG, "seed": "one"})),
        "RunFolderError: DIR/config.json: «seed='one'»: Input should be a valid integer, unable to parse string as an integer; ⟨restore the file⟩, or train again",
    ),
}


def group(**values):
    """The configuration with other values of its group."""
    return json.dumps({**CONFIG, "groups": {"battery": {**CONFIG["groups"]["battery"], **values}}})


RUNS |= {
    "a scale of nothing": (
        lambda d: run(d, group(scale=[0.0])),
        "RunFolderError: DIR/config.json: groups.battery.«scale.0=0.0»: Input should be greater than or equal to 0.000000000001; ⟨restore the file⟩, or train again",
    ),
    "a model outside the folder": (
        lambda d: run(d, group(model="../model.zip")),
        "RunFolderError: DIR/config.json: groups.battery.model=«'../model.zip'»: Value error, must be the name of a file in this folder; ⟨restore the file⟩, or train again",
    ),
    "an environment that nobody vouched for": (
        lambda d: run_with_model(d, json.dumps({**CONFIG, "env_id": "subprocess:getoutput"})),
        "Untrusted: DIR/config.json names «'subprocess:getoutput'», which is not registered here: a file runs no code that nobody vouched for. If you trust it, ⟨say --trust subprocess:getoutput⟩, trust='subprocess:getoutput' or HERON_TRUST=subprocess:getoutput; or register it under an id",
    ),
}


def run_with_model(folder, text):
    (folder / "battery.zip").write_bytes(b"")
    return run(folder, text)


def foreign(folder):
    written(folder, "results.jsonl", "mine")
    return Sweep.of(GRID, {"random": "random"}, [], cases=1).run(folder)


def pipe(folder):
    os.mkfifo(folder / "world.yaml")
    return load_config(folder / "world.yaml")


FOLDERS = {
    "results of something else": (
        foreign,
        "ConfigError: DIR/«results.jsonl» is there, but no sweep.json says of which sweep: it is left as it is; ⟨choose another folder⟩, or move it away",
    ),
    "a sweep that is no JSON": (
        lambda d: (written(d, "sweep.json", "["), read_sweep(d)),
        "RunFolderError: DIR/«sweep.json»: no folder of a sweep (Expecting value: line 1 column 2 (char 1)); ⟨make one with `heron sweep`⟩",
    ),
    "a pipe for a world": (
        pipe,
        "ConfigError: DIR/«world.yaml»: can't be read: it is a pipe or a device, ⟨no regular file⟩",
    ),
    "a number for a folder": (
        lambda d: read_sweep(3),
        "ConfigError: read_sweep(folder)«=3»: ⟨must be a path⟩, as 'runs/mine'",
    ),
}


def trace(folder, text):
    written(folder, "trace.json", text)
    return replay(folder)


TRACES = {
    "a trace that is not there": (
        lambda d: replay(d / "nothing"),
        "TraceError: DIR/«nothing» does not exist; record an episode with `heron trace ENV --out DIR`, or ⟨correct the path⟩",
    ),
    "a trace of another schema": (
        lambda d: trace(d, '{"schema": 7, "heron_env": "9.1"}'),
        f"TraceError: DIR/trace.json has schema «version 7», heron_env {__version__} reads version 1: ⟨install heron_env 9.1⟩, which wrote it, or record the episode again",
    ),
    "a trace that is no JSON": (
        lambda d: trace(d, "{"),
        "TraceError: DIR/«trace.json» is no recorded episode (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)); ⟨restore it⟩, or record the episode again",
    ),
    "a trace without its messages": (
        lambda d: trace(d, '{"schema": 1}'),
        "TraceError: DIR/trace.json: «setting»: Input should be a dictionary or an instance of TraceSetting; ⟨restore the file⟩, or record the episode again",
    ),
    "an option that can't be written down": (
        lambda d: record_episode(GRID, "random", options={"max_steps": {3}}),
        "TraceError: option «max_steps={3}» can't be written down; ⟨use words, numbers⟩, lists and dictionaries, or register the environment with it under an id of its own",
    ),
    "a field that no schedule has": (
        lambda d: with_settings(None, ["msg_dely=1"]),
        f"ScheduleError: --schedule «'msg_dely=1'»: ⟨must read FIELD=VALUE⟩ or WHO.FIELD=VALUE, with a field of {FIELDS}; msg_delay=0.5, field.tick_interval=1. Did you mean 'msg_delay'?",
    ),
}


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


CLI = {
    "a module that can't be imported, to check": (
        lambda d: heron(d, "check", breaking(d, "breaks_when_checked")),
        "error: 'breaks_when_checked:env': importing 'breaks_when_checked' raised OSError: «no licence» (at DIR/breaks_when_checked.py:2); ⟨mend that⟩, `import breaks_when_checked` in Python shows all of it",
    ),
    "a module that can't be imported, to describe": (
        lambda d: heron(d, "describe", breaking(d, "breaks_when_described")),
        "error: make('breaks_when_described:env'): importing 'breaks_when_described' raised OSError: «no licence» (at DIR/breaks_when_described.py:2); ⟨mend that⟩, `import breaks_when_described` in Python shows all of it",
    ),
    "an unknown environment": (
        lambda d: heron(d, "describe", "heron/BateryGrid-v0"),
        "error: make(«'heron/BateryGrid-v0'»): no such environment; ⟨registered are⟩ REGISTERED, your own is 'module:function'. Did you mean 'heron/BatteryGrid-v0'?",
    ),
    "an unknown option of an environment": (
        lambda d: heron(d, "describe", GRID, "-o", "num_baterys=3"),
        "error: make('heron/BatteryGrid-v0', «num_baterys»=...): no such option. ⟨Did you mean⟩ 'num_batteries'?",
    ),
    "training delays in words": (
        lambda d: heron(d, "train", GRID, "--train-delays", "obs=1,action=2"),
        "error: --train-delays «'obs=1,action=2'»: ⟨must read obs=1,act=0-2⟩: whole control steps, or the least and the most",
    ),
    "training delays below zero": (
        lambda d: heron(d, "train", GRID, "--train-delays", "obs=-1"),
        "error: --train-delays «'obs=-1'»: ⟨must read obs=1,act=0-2⟩: whole control steps, or the least and the most",
    ),
    "a report of nothing": (
        lambda d: heron(d, "report", "runs/mine"),
        "error: «runs/mine»: neither a folder of `heron sweep`, nor of `heron train`, nor of `heron trace`; ⟨a report is made of what these leave behind⟩",
    ),
    "an option without a value": (
        lambda d: heron(d, "describe", GRID, "-o", "dt"),
        "error: --option «'dt'»: ⟨must read name=value⟩, as dt=900 does",
    ),
    "an option that is no number": (
        lambda d: heron(d, "describe", GRID, "-o", "max_steps=many"),
        "error: TerminationConfig(max_steps=«'many'»): ⟨must be a whole number⟩ >= 1, or None",
    ),
    "a misspelt policy": (
        lambda d: heron(d, "eval", "randm", "--env", GRID),
        "error: policy «'randm'»: neither a run folder nor a baseline; ⟨this environment has⟩ ['do nothing', 'random']. Did you mean 'random'?",
    ),
    "a policy and no environment": (
        lambda d: heron(d, "eval", "random"),
        "error: none of «['random']» is a run folder: ⟨name the environment with --env⟩",
    ),
    "delays in words": (
        lambda d: heron(d, "eval", "random", "--env", GRID, "--delays", "0;30"),
        "error: --delays «'0;30'»: ⟨must be seconds separated by commas⟩, as 0,30,60",
    ),
    "a misspelt split": (
        lambda d: heron(d, "eval", "random", "--env", GRID, "--split", "tset"),
        "error: split=«'tset'» ⟨must be one of⟩ ['test', 'validation']. Did you mean 'test'?",
    ),
    "a misspelt critic": (
        lambda d: heron(d, "train", GRID, "--critic", "centrl"),
        "error: train(critic=«'centrl'»): ⟨must be one of⟩ ('local', 'central'). Did you mean 'central'?",
    ),
    "no path of a run folder": (
        lambda d: load_policy(None),
        "RunFolderError: «None» is no path of a run folder; ⟨write⟩ 'runs/my-run' or a Path",
    ),
    "no path of a configuration": (
        lambda d: load_config(None),
        "ConfigError: «None» is no path of a YAML file; ⟨write⟩ 'world.yaml' or a Path",
    ),
    "a missing configuration": (
        lambda d: heron(d, "validate", "nowhere.yaml"),
        "error: «nowhere.yaml»: no such file. ⟨Correct the path⟩",
    ),
    "a folder that is no run": (
        lambda d: heron(d, "eval", "."),
        "error: «config.json does not exist»: . is no finished run folder; train one, or ⟨correct the path⟩",
    ),
    "a window that ends before it starts": (
        lambda d: heron(d, "trace", GRID, "--window", "5,2"),
        "error: --window «'5,2'»: ⟨must start at 0 or later⟩, and end after that",
    ),
    "a window that is no two times": (
        lambda d: heron(d, "trace", GRID, "--window", "5"),
        "error: --window «'5'»: must be two times in seconds, ⟨as 0,30⟩",
    ),
    "a package that Python can't import": (
        lambda d: heron(d, "new", "my-grid"),
        "error: heron new «'my-grid'»: must be a name that Python imports, ⟨of ASCII letters, digits and _ between them⟩",
    ),
    "a package that is called as another module": (
        lambda d: heron(d, "new", breaking(d, "breaks_when_imported").partition(":")[0]),
        "error: heron new «breaks_when_imported»: there is a module of that name (DIR/breaks_when_imported.py); ⟨choose another⟩",
    ),
    "a package whose folder is there": (
        lambda d: heron(d, "new", "couriers", "--out", str(d)),
        "error: «DIR» exists already: ⟨name another folder with --out⟩, or remove that one",
    ),
}
