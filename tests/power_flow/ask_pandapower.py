"""Writes data/columns.json and data/networks.json: what pandapower finds where a column of a network is another one.

Needs pandapower, in an environment of its own: `python tests/power_flow/ask_pandapower.py`. Written with 3.5.6.
Each case is a network of NETWORKS after some edits `[table, row, column, value]`; networks.json has random ones, whole.
"""

import copy
import json
import random  # noqa: TID251  # in an environment that has pandapower, and not this library
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
Edit = tuple[str, int, str, Any]
WRONG = ("nan", "Wrong", -1.0)
NUMBERS = {  # column of a table that is used: values that differ from each other and from the network's own
    ("line", "length_km"): (0.05, 0.21, 0.5, 1.3),
    ("line", "r_ohm_per_km"): (0.0, 0.1, 0.641, 1.2),
    ("line", "x_ohm_per_km"): (0.001, 0.03, 0.12, 0.35),
    ("line", "c_nf_per_km"): (0.0, 150.0, 900.0, 4000.0),
    ("line", "max_i_ka"): (0.1, 0.142, 0.5, 1.0),
    ("line", "df"): (0.3, 0.5, 0.85, 0.99),
    ("line", "parallel"): (2, 3, 4, 7),
    ("trafo", "sn_mva"): (0.1, 0.16, 0.4, 0.63),
    ("trafo", "vn_hv_kv"): (19.0, 20.5, 21.0, 10.0),
    ("trafo", "vn_lv_kv"): (0.38, 0.41, 0.42, 0.433),
    ("trafo", "vk_percent"): (2.0, 4.0, 8.0, 12.0),
    ("trafo", "vkr_percent"): (0.0, 0.5, 2.0, 3.9),
    ("trafo", "pfe_kw"): (0.0, 0.3, 2.0, 5.0),
    ("trafo", "i0_percent"): (0.0, 0.1, 1.5, 4.0),
    ("trafo", "df"): (0.2, 0.5, 0.8, 0.95),
    ("trafo", "tap_pos"): (-2, 0, 2, 1.5, None),
    ("trafo", "tap_neutral"): (-1, 2, 1, 5, None),
    ("trafo", "tap_step_percent"): (0.0, 1.25, 5.0, 0.6, None),
    ("trafo", "tap_step_degree"): (30.0, 90.0, 150.0, 7.0, None),
    ("trafo", "tap_side"): ("lv", None, "mv", ""),
    ("trafo", "tap_changer_type"): (None, "Symmetrical", "Ideal", "Tabular", "nan", "Other"),
    ("ext_grid", "vm_pu"): (0.9, 0.97, 1.05, 1.1),
    ("bus", "vn_kv"): (0.38, 0.41, 0.69, 10.0),
    ("load", "p_mw"): (0.0, 0.01, 0.08, -0.05),
    ("load", "q_mvar"): (0.0, 0.03, -0.02, 0.06),
    ("load", "scaling"): (0.0, 0.5, 1.7, -1.0),
    ("sgen", "p_mw"): (0.0, 0.02, 0.09, -0.03),
    ("sgen", "q_mvar"): (0.02, -0.02, 0.05, -0.06),
    ("sgen", "scaling"): (0.0, 0.4, 1.5, -1.0),
    ("storage", "p_mw"): (0.0, 0.03, -0.04, 0.1),
    ("storage", "q_mvar"): (0.02, -0.02, 0.05, -0.06),
    ("storage", "scaling"): (0.0, 0.4, 1.5, -1.0),
    ("load", "bus"): (2, 4, 5, 0, 99),
    ("sgen", "bus"): (2, 3, 1, 0, 99),
    ("storage", "bus"): (2, 4, 5, 0, 99),
    ("line", "to_bus"): (5, 1, 99, None),
    ("trafo", "lv_bus"): (2, 3, 99, None),
    ("ext_grid", "bus"): (1, 2, 99, None),
}
SWITCHES = {  # columns of true and false, with the rows that are set to the other
    "bus": {"in_service": (0, 1, 2, 3, 4, 5, 6)},
    "line": {"in_service": (0, 1, 2, 3, 4)},
    "trafo": {"in_service": (0,)},
    "ext_grid": {"in_service": (0,)},
    "load": {"in_service": (0, 1, 2)},
    "sgen": {"in_service": (0,)},
    "storage": {"in_service": (0,)},
    "switch": {"closed": (0, 1, 2, 3, 4, 5)},
}
NOT_MODELLED = {  # columns that pandapower reads, and this library does not
    ("line", "g_us_per_km"): (1.0, 10.0, 500.0, 0.0),
    ("trafo", "parallel"): (2, 3, 4, 1),
    ("trafo", "tap_dependency_table"): (True, False, None, 1),
    ("load", "const_z_p_percent"): (100.0, 40.0, 0.0, 1.0),
    ("load", "const_z_q_percent"): (100.0, 40.0, 0.0, 1.0),
    ("load", "const_i_p_percent"): (100.0, 40.0, 0.0, 1.0),
    ("load", "const_i_q_percent"): (100.0, 40.0, 0.0, 1.0),
    ("trafo", "leakage_resistance_ratio_hv"): (0.5, 0.1, 0.9, 1.0),
    ("trafo", "leakage_reactance_ratio_hv"): (0.5, 0.1, 0.9, 1.0),
}
TEXTS = ["name", "type", "zone", "geo", "std_type", "vector_group", "curve_style", "generator_type", "description"]
COLUMNS = {  # of pandapower's network_schema and solver, beside those above
    "bus": "name type zone geo max_vm_pu min_vm_pu",
    "ext_grid": "name va_degree slack_weight controllable max_p_mw min_p_mw max_q_mvar min_q_mvar s_sc_max_mva "
    "s_sc_min_mva rx_max rx_min r0x0_max x0x_max",
    "line": "name std_type type geo max_loading_percent r0_ohm_per_km x0_ohm_per_km c0_nf_per_km g0_us_per_km "
    "endtemp_degree alpha temperature_degree_celsius reference_temperature_degree_celsius "
    "air_temperature_degree_celsius tdpf wind_speed_m_per_s wind_angle_degree solar_radiation_w_per_sq_m "
    "solar_absorptivity emissivity r_theta_kelvin_per_mw conductor_outer_diameter_m mc_joule_per_m_k",
    "trafo": "name std_type shift_degree tap_min tap_max tap2_min tap2_max id_characteristic_table max_loading_percent "
    "vector_group oltc power_station_unit pt_percent xn_ohm vk0_percent vkr0_percent mag0_percent mag0_rx "
    "si0_hv_partial",
    "load": "name sn_mva type controllable zone max_p_mw min_p_mw max_q_mvar min_q_mvar",
    "sgen": "name sn_mva type controllable max_p_mw min_p_mw max_q_mvar min_q_mvar k rx current_source generator_type "
    "lrc_pu max_ik_ka kappa id_q_capability_characteristic reactive_capability_curve curve_style",
    "storage": "name sn_mva type controllable soc_percent min_e_mwh max_e_mwh max_p_mw min_p_mw max_q_mvar min_q_mvar",
    "switch": "name type z_ohm in_ka",
}
SWITCHED = ["controllable", "tdpf", "oltc", "power_station_unit", "current_source", "reactive_capability_curve"]
TAPS = [  # of a trafo: side, position, neutral, percent, degree, type; and of its second tap changer
    ("hv", -2, 0, 2.5, 0.0, "Ratio"), ("lv", 3, 0, 1.0, 0.0, "Ratio"), ("lv", -2, 1, 2.5, 60.0, "Ratio"),
    ("hv", 2, 0, 2.5, 120.0, "Symmetrical"), ("hv", 4, 0, None, 5.0, "Ideal"), ("lv", 4, 0, 2.0, None, "Ideal"),
    ("hv", 4, 0, 2.0, 5.0, "Ideal"), ("hv", None, 0, 2.5, 0.0, "Ratio"), (None, 2, 0, 2.5, 0.0, "Ratio"),
    ("hv", 2, None, 2.5, 0.0, "Ratio"), ("hv", 2, 0, 2.5, 0.0, None),
]  # fmt: skip
FIELDS = ("side", "pos", "neutral", "step_percent", "step_degree", "changer_type")


def cases() -> list[tuple[str, list[Edit]]]:
    """The network and the edits of each."""
    found: list[tuple[str, list[Edit]]] = [("low", []), ("medium", [])]
    for (table, column), values in {**NUMBERS, **NOT_MODELLED}.items():
        row = {"bus": 3, "load": 1, "line": 1}.get(table, 0)
        found += [("low", [(table, row, column, value)]) for value in values]
    for table, columns in SWITCHES.items():
        found += [("low", [(table, row, column, None)]) for column, rows in columns.items() for row in rows]
    for table, names in COLUMNS.items():
        for column in names.split():
            values = ("a", "b") if column in TEXTS else (True, False) if column in SWITCHED else (0.4, 1.3)
            found += [("low", [(table, 0, column, value)]) for value in values]
    for tap in ("tap", "tap2"):
        for side in TAPS:
            found.append(
                ("low", [("trafo", 0, f"{tap}_{field}", value) for field, value in zip(FIELDS, side, strict=True)])
            )
    for row in range(4):
        found += [("medium", [("switch", row, "closed", None)]), ("medium", [("bus", row, "in_service", None)])]
        found += [("medium", [("line", row, "in_service", None)]), ("medium", [("line", row, "parallel", 2)])]
    for hertz in (16.7, 49.0, 60.0, 400.0):
        found.append(("medium", [("network", 0, "f_hz", hertz)]))
        found.append(("low", [("network", 0, "sn_mva", hertz)]))
    for name, value in (("trafo_model", "t"), ("trafo_model", "pi"), ("trafo_loading", "power"), ("tdpf", False),
                        ("neglect_open_switch_branches", True), ("max_iteration", 30), ("algorithm", "bfsw"),
                        ("unheard_of", 1)):  # fmt: skip
        found.append(("medium", [("network", 0, "user_pf_options", {name: value}), ("switch", 2, "closed", False)]))
    return found


def edited(net: dict[str, Any], edits: list[Edit]) -> dict[str, Any]:
    """The `_object` of a network's file, tables as pandas saves them, after edits; None turns a switch over."""
    net = copy.deepcopy(net)
    for table, row, column, value in edits:
        if table == "network":
            net[column] = value
            continue
        frame = json.loads(net[table]["_object"])
        if column not in frame["columns"]:
            frame["columns"].append(column)
            frame["data"] = [[*cells, None] for cells in frame["data"]]
        place = frame["columns"].index(column)
        if column in ("in_service", "closed") and value is None:
            value = not frame["data"][row][place]
        frame["data"][row][place] = value
        net[table]["_object"] = json.dumps(frame)
    return net


def low(pp: Any) -> Any:
    """A village: a transformer with a tap, a tree of cables with a stub, loads, a roof and a battery."""
    net = pp.create_empty_network(name="low")
    for name, kv in (("station", 20.0), *((f"bus {k}", 0.4) for k in range(1, 7))):
        pp.create_bus(net, kv, name=name)
    pp.create_ext_grid(net, 0, vm_pu=1.02)
    pp.create_transformer(net, 0, 1, "0.25 MVA 20/0.4 kV", tap_pos=1)
    for start, end, km in ((1, 2, 0.2), (2, 3, 0.15), (2, 4, 0.3), (4, 5, 0.1), (1, 6, 0.25)):
        pp.create_line(net, start, end, km, "NAYY 4x150 SE")
    for bus, element, et in ((1, 0, "l"), (2, 1, "l"), (5, 3, "l"), (6, 4, "l"), (0, 0, "t"), (1, 0, "t")):
        pp.create_switch(net, bus, element, et)
    pp.create_load(net, 2, 0.03, 0.01)
    pp.create_load(net, 3, 0.02, 0.004, scaling=0.8)
    pp.create_load(net, 5, 0.04, 0.01)
    pp.create_sgen(net, 4, 0.05, 0.002)
    pp.create_storage(net, 3, 0.01, max_e_mwh=0.1)
    return net


def medium(pp: Any) -> Any:
    """Cables of 20 kV, whose charging counts, with a switch at one end of each."""
    net = pp.create_empty_network(name="medium")
    for k in range(5):
        pp.create_bus(net, 20.0, name=f"node {k}")
    pp.create_ext_grid(net, 0, vm_pu=1.01)
    for start, end, km in ((0, 1, 5.0), (1, 2, 8.0), (2, 3, 12.0), (4, 1, 6.0)):
        line = pp.create_line(net, start, end, km, "NA2XS2Y 1x185 RM/25 12/20 kV")
        pp.create_switch(net, end, line, "l")
    pp.create_load(net, 1, 2.0, 0.5)
    pp.create_load(net, 4, 1.0, 0.2)
    pp.create_sgen(net, 2, 0.6, -0.1)
    return net


NETWORKS = {"low": low, "medium": medium}


def random_network(pp: Any, seed: int) -> Any:
    """A tree with numbers drawn for most columns, a few switches open, a few elements out of service."""
    draw = random.Random(seed)
    net, fed = pp.create_empty_network(f_hz=draw.choice([50.0, 60.0])), draw.random() < 0.7
    kv, size = draw.choice([0.4, 0.69]) if fed else draw.choice([10.0, 20.0]), draw.randint(3, 7)
    if fed:
        pp.create_bus(net, 20.0, name="above")
    buses = [pp.create_bus(net, kv, name=f"bus {k}") for k in range(size)]
    pp.create_ext_grid(net, 0, vm_pu=draw.uniform(0.97, 1.05), va_degree=draw.uniform(-30, 30))
    if fed:
        pp.create_transformer_from_parameters(
            net, 0, 1, sn_mva=draw.uniform(0.2, 0.8), vn_hv_kv=draw.uniform(19.0, 21.0),
            vn_lv_kv=kv * draw.uniform(0.95, 1.06), vkr_percent=draw.uniform(0.5, 1.5),
            vk_percent=draw.uniform(3.0, 7.0), pfe_kw=draw.uniform(0.0, 2.0), i0_percent=draw.uniform(0.0, 1.5),
            shift_degree=draw.choice([0, 150, 330]), tap_side=draw.choice(["hv", "lv", None]),
            tap_neutral=draw.randint(-1, 1), tap_pos=draw.randint(-2, 2), tap_step_percent=draw.uniform(0.5, 2.5),
            tap_step_degree=draw.choice([0.0, 0.0, 30.0]), df=draw.uniform(0.5, 1.0),
            tap_changer_type=draw.choice(["Ratio", "Ratio", "Symmetrical", "Ideal", None]),
        )  # fmt: skip
    scale = 0.3 if fed else 60.0
    for k in range(1, size):
        ends = [buses[draw.randrange(k)], buses[k]]
        draw.shuffle(ends)
        line = pp.create_line_from_parameters(
            net, *ends, length_km=scale * draw.uniform(0.1, 1.0) / (1.0 if fed else 10.0),
            r_ohm_per_km=draw.uniform(0.1, 0.6), x_ohm_per_km=draw.uniform(0.05, 0.2),
            c_nf_per_km=draw.uniform(0.0, 500.0), max_i_ka=draw.uniform(0.1, 0.4), df=draw.uniform(0.5, 1.0),
            parallel=draw.choice([1, 1, 2]),
        )  # fmt: skip
        pp.create_switch(net, draw.choice(ends), line, "l", closed=draw.random() < 0.85)
    net.line.loc[size - 2, "in_service"] = draw.random() < 0.9
    net.bus.loc[buses[-1], "in_service"] = draw.random() < 0.8
    for bus in buses:
        made = draw.choice([pp.create_load, pp.create_load, pp.create_sgen, None])
        if made is not None:
            power = (1.0 if not fed else 0.03) * draw.uniform(0.1, 1.0)
            made(net, bus, power, power * draw.uniform(-0.3, 0.5), scaling=draw.uniform(0.5, 1.2),
                 in_service=draw.random() < 0.9)  # fmt: skip
    pp.create_storage(net, buses[0], 0.01, max_e_mwh=1.0)
    return net


def with_edits(pp: Any, saved: dict[str, Any], base: Any, edits: list[Edit]) -> Any:
    """The network of a file after edits: only the tables that they change are read anew, which takes its time."""
    changed = edited(saved["_object"], edits)
    tables = {table for table, *_ in edits} - {"network"}
    scalars = {name: value for name, value in changed.items() if not (isinstance(value, dict) and "_object" in value)}
    few = {**saved, "_object": {**scalars, **{table: changed[table] for table in tables}}}
    net, anew = copy.deepcopy(base), pp.from_json_string(json.dumps(few))
    for name in (*tables, "f_hz", "sn_mva", "user_pf_options"):
        net[name] = anew[name]
    return net


def solved(pp: Any, made: Callable[[], Any]) -> dict[str, Any]:
    """What pandapower finds: voltages by bus, losses, loadings; or why it finds nothing."""
    try:
        pp.runpp(net := made(), trafo_model="pi", tolerance_mva=1e-10, numba=False)
    except Exception as error:  # noqa: BLE001  # of any kind: what counts is that there is no solution
        return {"error": f"{type(error).__name__}: {error}"[:80]}
    losses = 1e3 * (net.res_line.pl_mw.sum() + net.res_trafo.pl_mw.sum())
    return {
        "vm": [_short(value) for value in net.res_bus.vm_pu], "losses_kw": _short(losses),
        "line": [_short(value) for value in net.res_line.loading_percent],
        "trafo": [_short(value) for value in net.res_trafo.loading_percent],
    }  # fmt: skip


def _short(value: float) -> float | None:
    return None if value != value else float(f"{value:.10g}")


def stripped(saved: dict[str, Any]) -> dict[str, Any]:
    """A file without empty tables and results."""
    kept = {}
    for name, value in saved.items():
        table = isinstance(value, dict) and "_object" in value
        if not name.startswith(("_", "res_")) and not (table and not json.loads(value["_object"])["index"]):
            kept[name] = {"_object": value["_object"]} if table else value
    kept.pop("std_types", None)
    return kept


def main() -> None:
    """Write both files."""
    import pandapower as pp

    warnings.simplefilter("ignore")
    saved = {name: json.loads(pp.to_json(made(pp))) for name, made in NETWORKS.items()}
    base = {name: pp.from_json_string(json.dumps(one)) for name, one in saved.items()}
    found = []
    for name, edits in cases():
        result = solved(pp, partial(with_edits, pp, saved[name], base[name], edits))
        found.append({"network": name, "edits": edits, **result})
    print(sum("error" in case for case in found), "of", len(found), "have no solution")
    data = {"networks": {name: stripped(one["_object"]) for name, one in saved.items()}, "cases": found}
    _write("columns.json", data, found)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    drawn = []
    for seed in range(count):
        text = pp.to_json(random_network(pp, seed))
        drawn.append(
            {"network": stripped(json.loads(text)["_object"]), **solved(pp, partial(pp.from_json_string, text))}
        )
    _write("networks.json", {"cases": drawn}, drawn)


def _write(name: str, data: dict[str, Any], cases: list[dict[str, Any]]) -> None:
    """A case a line."""
    head = json.dumps({key: value for key, value in data.items() if key != "cases"})[1:-1]
    lines = ",\n".join(json.dumps(case) for case in cases)
    (DATA / name).write_text("{" + (head + ", " if head else "") + '"cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
