"""Bad inputs: CSV files, run folders and the command line."""

import json
import os

from catalogue.small_world import ENERGY, GRID, written
from typer.testing import CliRunner

from heron_env import load_config, load_policy, make
from heron_env.cli import app
from heron_env.lab import Sweep, read_sweep, record_episode
from heron_env.lab.schedules import with_settings
from heron_env.lab.traces.replaying import replay
from heron_env.worlds.energy_management.site import COLUMNS

HEADER = ",".join(COLUMNS)


def csv(folder, text):
    return make(ENERGY, profiles=written(folder, "mine.csv", text))


def latin(folder):
    (folder / "mine.csv").write_bytes(f"{HEADER}\n1,\xfc,0,0,0\n".encode("latin-1"))
    return make(ENERGY, profiles=folder / "mine.csv")


CSV = {
    "a missing file": lambda d: make(ENERGY, profiles="nowhere.csv"),
    "a folder": lambda d: make(ENERGY, profiles=d),
    "a number for a file": lambda d: make(ENERGY, profiles=3),
    "a missing column": lambda d: csv(d, "household,business,pv_south,pv_east\n"),
    "a misspelt column": lambda d: csv(d, HEADER.replace("business", "busines")),
    "semicolons": lambda d: csv(d, HEADER.replace(",", ";")),
    "another order": lambda d: csv(d, "business,household,pv_south,pv_east,pv_west"),
    "nothing in the file": lambda d: csv(d, ""),
    "text in a number": lambda d: csv(d, f"{HEADER}\n1,1,0,0,0\n1,n/a,0,0,0\n"),
    "a decimal comma": lambda d: csv(d, f"{HEADER}\n1,5,1,0,0,0\n"),
    "negative generation": lambda d: csv(d, f"{HEADER}\n1,1,-3,0,0\n"),
    "a file in another encoding": lambda d: latin(d),
    "hours instead of quarters": lambda d: csv(d, f"{HEADER}\n" + "1,1,0,0,0\n" * 8760),
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
    "a folder that is not there": lambda d: load_policy(d / "nothing"),
    "another schema": lambda d: run(d, '{"schema_version": 7}'),
    "a missing model": lambda d: run(d, json.dumps(CONFIG)),
    "no JSON": lambda d: run(d, "seed: 0"),
    "a missing field": lambda d: run(
        d, json.dumps({**CONFIG, "env_id": None} | {"seed": "one"}).replace('"env_id": null, ', "")
    ),
    "a wrong value": lambda d: run(d, json.dumps({**CONFIG, "seed": "one"})),
}


def group(**values):
    """The configuration with other values of its group."""
    return json.dumps({**CONFIG, "groups": {"battery": {**CONFIG["groups"]["battery"], **values}}})


RUNS |= {
    "a scale of nothing": lambda d: run(d, group(scale=[0.0])),
    "a model outside the folder": lambda d: run(d, group(model="../model.zip")),
    "an environment that nobody vouched for": lambda d: run_with_model(
        d, json.dumps({**CONFIG, "env_id": "subprocess:getoutput"})
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
    "results of something else": foreign,
    "a sweep that is no JSON": lambda d: (written(d, "sweep.json", "["), read_sweep(d)),
    "a pipe for a world": pipe,
    "a number for a folder": lambda d: read_sweep(3),
}


def trace(folder, text):
    written(folder, "trace.json", text)
    return replay(folder)


TRACES = {
    "a trace that is not there": lambda d: replay(d / "nothing"),
    "a trace of another schema": lambda d: trace(d, '{"schema": 7, "heron_env": "9.1"}'),
    "a trace that is no JSON": lambda d: trace(d, "{"),
    "a trace without its messages": lambda d: trace(d, '{"schema": 1}'),
    "an option that can't be written down": lambda d: record_episode(GRID, "random", options={"max_steps": {3}}),
    "a field that no schedule has": lambda d: with_settings(None, ["msg_dely=1"]),
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
    "a module that can't be imported, to check": lambda d: heron(d, "check", breaking(d, "breaks_when_checked")),
    "a module that can't be imported, to describe": lambda d: heron(
        d, "describe", breaking(d, "breaks_when_described")
    ),
    "an unknown environment": lambda d: heron(d, "describe", "heron/BateryGrid-v0"),
    "an unknown option of an environment": lambda d: heron(d, "describe", GRID, "-o", "num_baterys=3"),
    "an option of an earlier version": lambda d: heron(d, "train", GRID, "--train-delays", "obs=1,act=2"),
    "a report of nothing": lambda d: heron(d, "report", "runs/mine"),
    "an option without a value": lambda d: heron(d, "describe", GRID, "-o", "dt"),
    "an option that is no number": lambda d: heron(d, "describe", GRID, "-o", "max_steps=many"),
    "a misspelt policy": lambda d: heron(d, "sweep", GRID, "randm"),
    "a policy and no environment": lambda d: heron(d, "sweep", "random", "--axis", "loss=0"),
    "delays in words": lambda d: heron(d, "sweep", GRID, "random", "--axis", "act_delay=0;30"),
    "a misspelt split": lambda d: heron(d, "sweep", GRID, "random", "--split", "tset"),
    "a misspelt critic": lambda d: heron(d, "train", GRID, "--critic", "centrl"),
    "no path of a run folder": lambda d: load_policy(None),
    "no path of a configuration": lambda d: load_config(None),
    "a missing configuration": lambda d: heron(d, "check", "nowhere.yaml"),
    "a folder that is no run": lambda d: heron(d, "sweep", "."),
    "a window that ends before it starts": lambda d: heron(d, "trace", GRID, "--window", "5,2"),
    "a window that is no two times": lambda d: heron(d, "trace", GRID, "--window", "5"),
    "a package that Python can't import": lambda d: heron(d, "new", "my-grid"),
    "a package that is called as another module": lambda d: heron(
        d, "new", breaking(d, "breaks_when_imported").partition(":")[0]
    ),
    "a package whose folder is there": lambda d: heron(d, "new", "couriers", "--out", str(d)),
}
