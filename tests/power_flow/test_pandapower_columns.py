"""Column by column: a pandapower file has pandapower's solution, or is refused by the column's name.

data/columns.json and data/networks.json were written by ask_pandapower.py with pandapower 3.5.6: networks, and what
`runpp(trafo_model="pi")` finds after one column or the other was changed.
"""

import copy
import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from power_flow.ask_pandapower import COLUMNS as OF_SCHEMA
from power_flow.ask_pandapower import edited

from heron_env.errors import ConfigError, DataError, HeronError, HeronWarning
from heron_env.power_flow import PowerFlow
from heron_env.power_flow.pandapower_json import read_pandapower
from heron_env.power_flow.pandapower_tables import COLUMNS, ELEMENTS, UNIMPORTANT_TABLES

DATA = Path(__file__).parent / "data"
ASKED = json.loads((DATA / "columns.json").read_text())
DRAWN = json.loads((DATA / "networks.json").read_text())["cases"]
BASE = {case["network"]: case for case in ASKED["cases"] if not case["edits"]}
VOLTAGE, SHARE = 1e-6, 1e-3
"""pu, and the relative error of losses and loadings."""


def network(case):
    return edited(ASKED["networks"][case["network"]], case["edits"])


def written(folder, net):
    (path := folder / "net.json").write_text(json.dumps({"_object": net}))
    return path


def answer(folder, net):
    """The feeder and its flows, or the words with which the file is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeronWarning)
        try:
            feeder = read_pandapower(written(folder, net))
        except HeronError as error:
            return str(error)
    return feeder, PowerFlow(feeder).solve(*np.zeros((2, 1, len(feeder.buses))))


def rows(net, table):
    frame = json.loads(net[table]["_object"]) if table in net else {"index": [], "data": [], "columns": []}
    return [dict(zip(frame["columns"], row, strict=True)) for row in frame["data"]]


def faults(folder, net, expected):
    """What is different from pandapower's solution; none where the file is refused."""
    found = answer(folder, net)
    if isinstance(found, str):
        return []
    if "error" in expected:
        return [f"solved, and pandapower says {expected['error']}"]
    feeder, flows = found
    buses, lines, at = rows(net, "bus"), rows(net, "line"), {}
    named = len({bus["name"] for bus in buses}) == len(buses)
    for place, name in enumerate(feeder.buses):
        at[next(k for k, bus in enumerate(buses) if (bus["name"] if named else str(k)) == name)] = place
    wrong = []
    for bus, place in at.items():
        if expected["vm"][bus] is None or abs(flows.voltage[0, place] - expected["vm"][bus]) > VOLTAGE:
            wrong.append(f"bus {bus}: {flows.voltage[0, place]!r}, {expected['vm'][bus]}")
    source = 1 if feeder.transformer else 0
    left_out = {k for k, vm in enumerate(expected["vm"]) if vm is not None and k >= source} - at.keys()
    wrong += [f"bus {bus} is left out" for bus in left_out]
    pairs = {(line["from_bus"], line["to_bus"]): loading for line, loading in zip(lines, expected["line"], strict=True)}
    back = {place: bus for bus, place in at.items()}
    for line, loading in zip(feeder.lines, flows.loading[0], strict=True):
        ends = tuple(back[feeder.buses.index(end)] for end in (line.start, line.end))
        if pairs[ends] is None or not math.isclose(100.0 * loading, pairs[ends], rel_tol=SHARE, abs_tol=1e-6):
            wrong.append(f"line {ends}: {100.0 * loading} %, {pairs[ends]} %")
    for trafo in expected["trafo"] if feeder.transformer else []:
        if not math.isclose(100.0 * flows.transformer[0], trafo, rel_tol=SHARE):
            wrong.append(f"transformer: {100.0 * flows.transformer[0]} %, {trafo} %")
    if not math.isclose(flows.losses[0], expected["losses_kw"], rel_tol=SHARE, abs_tol=1e-9):
        wrong.append(f"losses: {flows.losses[0]} kW, {expected['losses_kw']} kW")
    return wrong


def same(first, second):
    """Do both have one solution?"""
    values = [[*one["vm"], *one["line"], *one["trafo"], one["losses_kw"]] for one in (first, second)]
    return np.allclose(*np.array(values, float), rtol=1e-6, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("table", [*COLUMNS, "network"])
def test_every_column_has_the_solution_of_pandapower_or_is_refused_by_name(tmp_path, table):
    cases = [case for case in ASKED["cases"] if any(edit[0] == table for edit in case["edits"])]
    assert len(cases) >= (4 if table != "network" else 8)
    for case in cases:
        found = answer(tmp_path, network(case))
        assert not (wrong := faults(tmp_path, network(case), case)), (case["edits"], wrong)
        if isinstance(found, str) and "error" not in case:
            names = {table, column} if (column := case["edits"][0][2]) else set()
            assert any(name in found for name in names), (case["edits"], found)
            assert re.search(rf"{table}|switch|bus|transformer|user_pf_options", found), found


@pytest.mark.parametrize("number", range(len(DRAWN)))
def test_random_networks_have_the_solution_of_pandapower(tmp_path, number):
    case = DRAWN[number]
    assert not isinstance(answer(tmp_path, case["network"]), str), answer(tmp_path, case["network"])
    assert not faults(tmp_path, case["network"], case)


def test_what_is_called_unimportant_changes_nothing_in_pandapower_and_is_read():
    """The list itself: no column of it is one that pandapower's solver reads."""
    tried = set()
    for case in ASKED["cases"]:
        if len(case["edits"]) == 1:
            ((table, _, column, value),) = case["edits"]
            if table in COLUMNS and column in COLUMNS[table].unimportant:
                tried.add((table, column))
                assert "error" not in case and same(case, BASE[case["network"]]), (table, column, value)
    for table, names in OF_SCHEMA.items():
        assert {(table, name) for name in names.split()} <= tried


def test_what_is_used_changes_the_solution_in_pandapower():
    for table, columns in COLUMNS.items():
        for column in columns.used:
            cases = [one for one in ASKED["cases"] if any((e[0], e[2]) == (table, column) for e in one["edits"])]
            assert any("error" in one or not same(one, BASE[one["network"]]) for one in cases) or (
                (table, column) in {("switch", "bus"), ("switch", "element"), ("switch", "et"), ("line", "from_bus"),
                                    ("trafo", "hv_bus")}
            ), (table, column)  # fmt: skip


def test_what_must_be_neutral_is_refused_where_it_is_not_by_table_row_column_value_and_remedy(tmp_path):
    for table, columns in COLUMNS.items():
        for column, neutral in columns.neutral.items():
            good, bad = neutral.values[0], True if neutral.values[0] is False else 2
            for value, refused in ((good, False), (bad, True)):
                if not rows(ASKED["networks"]["low"], table):
                    continue
                found = answer(tmp_path, edited(ASKED["networks"]["low"], [(table, 0, column, value)]))
                if not refused:
                    assert not isinstance(found, str), found
                else:
                    assert f"{table} 0" in found and repr(value) in found, found
                    assert column in found or column == "parallel", found
                    assert re.search("set it to|write one of|save the network", found), found


@pytest.mark.parametrize("table", [table for table in COLUMNS if table != "switch"])
def test_a_column_nobody_knows_is_refused_unless_it_is_empty(tmp_path, table):
    for value, refused in ((0.7, True), ("word", True), (True, True), (None, False), (0.0, False), (False, False)):
        found = answer(tmp_path, edited(ASKED["networks"]["low"], [(table, 0, "skin_effect", value)]))
        assert isinstance(found, str) == refused, (value, found)
        if refused:
            assert f"{table} 0" in found and f"skin_effect={value!r}" in found and "remove it" in found


@pytest.mark.parametrize("table", sorted(ELEMENTS))
def test_elements_that_are_not_modelled_are_refused_in_service_only(tmp_path, table):
    net = ASKED["networks"]["low"]
    for in_service in (True, False):
        frame = {"columns": ["bus", "in_service"], "index": [4], "data": [[3, in_service]]}
        found = answer(tmp_path, {**net, table: {"_object": json.dumps(frame)}})
        assert isinstance(found, str) == in_service, found
        assert not in_service or f"{table} 4" in found


def test_a_table_nobody_knows_is_refused_unless_it_is_empty(tmp_path):
    net, frame = ASKED["networks"]["low"], {"columns": ["bus"], "index": [0], "data": [[3]]}
    found = answer(tmp_path, {**net, "heat_pump": {"_object": json.dumps(frame)}})
    assert "a table 'heat_pump'" in found and "del net['heat_pump']" in found
    for name, rest in (
        ("heat_pump", {"index": [], "data": []}),
        ("res_bus", {}),
        *((t, {}) for t in UNIMPORTANT_TABLES),
    ):
        assert not isinstance(answer(tmp_path, {**net, name: {"_object": json.dumps({**frame, **rest})}}), str)


def test_rows_out_of_service_may_say_anything(tmp_path):
    case = {"network": "low", "edits": [("load", 1, "in_service", False), ("load", 1, "const_z_p_percent", 40.0)]}
    feeder, _ = answer(tmp_path, network(case))
    assert len(feeder.fixed) == 4


@pytest.mark.parametrize("version", ["2.14.1", "3.0.0.dev0", "3.0.0rc1"])
def test_transformers_before_pandapower_3_have_a_tap_without_a_type(tmp_path, version):
    """pandapower gives them one where it reads the file: convert_format.convert_trafo_pst_logic."""
    net = copy.deepcopy(ASKED["networks"]["low"])
    frame = json.loads(net["trafo"]["_object"])
    place = frame["columns"].index("tap_changer_type")
    for part in (frame["columns"], *frame["data"]):
        part.pop(place)
    net["trafo"]["_object"] = json.dumps(frame)
    _, now = answer(tmp_path, net)
    _, before = answer(tmp_path, {**net, "format_version": version, "version": version})
    _, typed = answer(tmp_path, ASKED["networks"]["low"])
    assert np.array_equal(before.voltage, typed.voltage) and not np.allclose(now.voltage, typed.voltage, atol=1e-3)


@pytest.mark.parametrize(
    ("edits", "error", "words"),
    [
        ([("line", 1, "length_km", -1.0)], DataError, "line 1 has length_km=-1.0; write one >= 0"),
        ([("line", 1, "df", 0.0)], DataError, "line 1 has df=0.0; write a number > 0"),
        ([("line", 1, "to_bus", 99)], DataError, "line 1 has to_bus=99; there is no such bus"),
        ([("line", 1, "in_service", None), ("line", 1, "in_service", "yes")], DataError, "write true or false"),
        ([("trafo", 0, "tap_side", "mv")], DataError, r"trafo 0 has tap_side='mv'; write one of \['hv', 'lv'\], or n"),
        ([("trafo", 0, "tap_changer_type", "Other")], DataError, "trafo 0 has tap_changer_type='Other'; write one of"),
        ([("bus", 1, "in_service", False)], ConfigError, r"bus 1 \('bus 1'\) has in_service=False, and is the lv_bus"),
        ([("bus", 3, "vn_kv", 0.69)], ConfigError, r"bus 3 \('bus 3'\) has vn_kv=0.69, and bus 1 \('bus 1'\)"),
        ([("switch", 5, "closed", False)], ConfigError, r"trafo 0 .*is open at one side \(a switch with closed=False"),
        ([("switch", 0, "bus", 5)], DataError, None),
        ([("line", 4, "from_bus", 0)], ConfigError, "line 4 ends at bus 0, on the high side of trafo 0"),
        ([("network", 0, "user_pf_options", {"tdpf": True})], ConfigError, "user_pf_options has tdpf=True"),
        ([("network", 0, "f_hz", 0)], DataError, "f_hz=0; write a number > 0"),
    ],
    ids=lambda value: "-".join(map(str, value[0][:3])) if isinstance(value, list) else "",
)  # fmt: skip
def test_values_that_make_no_sense_are_refused_with_table_row_column_and_remedy(tmp_path, edits, error, words):
    if words is None:
        edits, words = [*edits, ("switch", 0, "closed", False)], "switch 0 has element=0; no line with this number ends"
    with pytest.raises(error, match=words):
        read_pandapower(written(tmp_path, edited(ASKED["networks"]["low"], edits)))
