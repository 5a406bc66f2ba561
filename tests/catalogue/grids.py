"""Bad inputs: grids from pandapower's files, and what is fixed in a feeder."""

import json
import os

from catalogue.small_world import ENERGY, written

from heron_env import make
from heron_env.power_flow import Feeder, Fixed
from heron_env.power_flow.pandapower_json import read_pandapower

BUSES = {"columns": ["name", "vn_kv", "in_service"], "index": [0, 1], "data": [[None, 0.4, True], [None, 0.4, True]]}
LINE = {
    "from_bus": 0, "to_bus": 1, "length_km": 0.1, "r_ohm_per_km": 0.2, "x_ohm_per_km": 0.1, "c_nf_per_km": 0.0,
    "max_i_ka": 0.27, "df": 1.0, "parallel": 1, "in_service": True,
}  # fmt: skip
LOAD = {"bus": 1, "p_mw": 0.03, "q_mvar": 0.0, "scaling": 1.0, "in_service": True}


def table(row):
    return {"_object": {"columns": [*row], "index": [0], "data": [[*row.values()]]}}


def grid(folder, kind="load", **load):
    """EnergyManagement on two buses, one of which has this load."""
    net = {
        "f_hz": 50.0,
        "bus": {"_object": BUSES},
        "ext_grid": table({"bus": 0, "vm_pu": 1.0, "in_service": True}),
        "line": table(LINE),
        kind: table({**LOAD, **load}),
    }
    return make(ENERGY, network=str(written(folder, "grid.json", json.dumps({"_object": net}))))


def pipe(folder):
    os.mkfifo(folder / "grid.json")
    return read_pandapower(folder / "grid.json")


GRIDS = {
    "a load that depends on the voltage": lambda d: grid(d, const_z_percent=40.0),
    "a load without a power": lambda d: grid(d, p_mw=None),
    "a motor": lambda d: grid(d, "motor"),
    "a load on one phase": lambda d: grid(d, "asymmetric_load"),
    "a fixed load of nan": lambda d: Fixed("house", float("nan")),
    "a fixed load at a misspelt bus": lambda d: Feeder(("house",), (), 0.4, fixed=(Fixed("hause", 1.0),)),
    "a pipe for a grid": pipe,
    "a table that is none": lambda d: read_pandapower(
        written(d, "grid.json", '{"_object": {"bus": {}, "ext_grid": 3}}')
    ),
}
