"""Grids from pandapower's files: the same voltages as pandapower has, and a reason for each file that is refused.

data/village.json was written by pandapower 3.5.6: a 20/0.4 kV transformer one tap away from neutral, two cables with
six houses, a line out of service and one behind an open switch. Only the tables that are read were kept. Its loads are
those of LOADS, so that the file alone has to give the voltages; on two buses the analytic solution does.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from heron_env.errors import ConfigError, DataError, HeronWarning
from heron_env.power_flow import Feeder, Fixed, PowerFlow
from heron_env.power_flow.pandapower_json import read_pandapower

VILLAGE = Path(__file__).parent / "data" / "village.json"
# kW and kvar of the houses, and what runpp(trafo_model="pi", tolerance_mva=1e-12) found: pu, kW, %
LOADS = ((8.663, 2.158), (-18.156, 0.132), (16.597, 7.302), (7.299, 5.836), (4.463, 7.481), (16.713, 0.022))
VOLTAGES = (1.028617673, 1.027517439, 1.027309325, 1.023871716, 1.0200404, 1.019057182, 1.018063904)
LOSSES, LINE_LOADINGS = 1.329421964, (6.236043, 3.949877, 18.001054, 16.50108, 5.098469, 16.686713)


NOTHING = np.zeros((2, 1, 7))
"""No load beside the file's own."""


def changed(tmp_path, change):
    """The village's file after `change(net)`; tables as `table(net, name)` gives them."""
    saved = json.loads(VILLAGE.read_text())
    change(saved["_object"])
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(saved))
    return path


def set_cells(net, name, column, values):
    """Write `values` (of row number: value) into a column of a table."""
    frame = json.loads(net[name]["_object"])
    for row, value in values.items():
        frame["data"][row][frame["columns"].index(column)] = value
    net[name]["_object"] = json.dumps(frame)


def test_a_village_has_the_voltages_that_pandapower_found():
    feeder = read_pandapower(VILLAGE)
    assert feeder.buses == ("station", *(f"house {k}" for k in range(1, 7)))
    assert feeder.source == "station"
    flows = PowerFlow(feeder).solve(*NOTHING)
    assert np.allclose(flows.voltage[0], VOLTAGES, atol=2e-9, rtol=0.0)
    assert flows.losses[0] == pytest.approx(LOSSES, abs=1e-7)
    assert np.allclose(100.0 * flows.loading[0], LINE_LOADINGS, atol=0.01, rtol=0.0)


def test_pandapower_agrees_where_it_is_installed(tmp_path):
    pp = pytest.importorskip(
        "pandapower", reason="needs the extra 'grid' (pandapower wants pandas < 3: an environment of its own)"
    )
    net = pp.networks.create_kerber_landnetz_kabel_1()
    net.trafo["tap_pos"] = 0
    pp.to_json(net, str(path := tmp_path / "kerber.json"))
    pp.runpp(net, trafo_model="pi", tolerance_mva=1e-12, calculate_voltage_angles=False, numba=False)
    feeder = read_pandapower(path)
    names = [str(name) for name in net.bus["name"]]
    flows = PowerFlow(feeder).solve(*np.zeros((2, 1, len(feeder.buses))))
    expected = [net.res_bus.vm_pu[names.index(name)] for name in feeder.buses]
    assert np.allclose(flows.voltage[0], expected, atol=1e-6, rtol=0.0)


def test_what_is_not_modelled_is_refused(tmp_path):
    for change, error, words in [
        (lambda net: net.update(gen=net["load"]), ConfigError, "elements of the kind 'gen', which are not modelled"),
        (lambda net: net.update(motor=net["load"]), ConfigError, "elements of the kind 'motor', which are not mod"),
        (lambda net: net.update(asymmetric_load=net["load"]), ConfigError, "the kind 'asymmetric_load'"),
        (
            lambda net: set_cells(net, "load", "const_z_p_percent", {2: 50.0}),
            ConfigError,
            "load 2 has const_z_p_percent=50.0: loads that depend on the voltage are not modelled; set it to 0",
        ),
        (lambda net: set_cells(net, "load", "const_i_q_percent", {0: 1.0}), ConfigError, "load 0 has const_i_q_per"),
        (lambda net: set_cells(net, "load", "p_mw", {1: None}), DataError, "load 1 has p_mw=None; write a finite numb"),
        (lambda net: set_cells(net, "load", "scaling", {1: float("nan")}), DataError, "load 1 has scaling=nan"),
        (lambda net: set_cells(net, "load", "q_mvar", {1: "much"}), DataError, "load 1 has q_mvar='much'"),
        (lambda net: set_cells(net, "ext_grid", "in_service", {0: False}), ConfigError, "has 0 external grids and 1"),
        (lambda net: set_cells(net, "trafo", "hv_bus", {0: 3}), ConfigError, "not next to the external grid"),
        (lambda net: set_cells(net, "trafo", "parallel", {0: 2}), ConfigError, "2 parallel transformers"),
        (lambda net: set_cells(net, "line", "in_service", {6: True}), ConfigError, "closes a ring"),
        (lambda net: set_cells(net, "line", "g_us_per_km", {0: 1.0}), ConfigError, "line 0 leaks"),
        (
            lambda net: set_cells(net, "switch", "et", {0: "b"}) or set_cells(net, "switch", "closed", {0: True}),
            ConfigError,
            "a closed switch joins two buses",
        ),
        (
            lambda net: net["line"].update(_object=net["line"]["_object"].replace("x_ohm_per_km", "x")),
            DataError,
            "a table lacks the column 'x_ohm_per_km'",
        ),
        (lambda net: net.pop("bus"), DataError, "is no pandapower network"),
    ]:
        with pytest.raises(error, match=words):
            read_pandapower(changed(tmp_path, change))


def test_what_is_no_such_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="can't be read: No such file"):
        read_pandapower(tmp_path / "nowhere.json")
    (odd := tmp_path / "odd.json").write_text("{")
    with pytest.raises(DataError, match="is no JSON"):
        read_pandapower(odd)
    odd.write_text("[1]")
    with pytest.raises(DataError, match="is no pandapower network"):
        read_pandapower(odd)


def test_buses_without_names_of_their_own_are_numbered(tmp_path):
    feeder = read_pandapower(changed(tmp_path, lambda net: set_cells(net, "bus", "name", {2: "house 2"})))
    assert feeder.buses == tuple("1234567")


# What is always there


def table(columns, *rows):
    """As pandapower saves a table."""
    frame = {"columns": columns.split(), "index": [*range(len(rows))], "data": [list(row) for row in rows]}
    return {"_module": "pandas.core.frame", "_class": "DataFrame", "_object": json.dumps(frame), "orient": "split"}


R, X = 0.08, 0.05
POWERS = "bus p_mw q_mvar scaling in_service"


def two_buses(tmp_path, **tables):
    """The file of a source, a line of R + jX ohm, and one bus more."""
    net = {
        "f_hz": 50.0,
        "bus": table("name vn_kv in_service", (None, 0.4, True), (None, 0.4, True), (None, 0.4, True)),
        "ext_grid": table("bus vm_pu in_service", (0, 1.0, True)),
        "line": table(
            "from_bus to_bus length_km r_ohm_per_km x_ohm_per_km c_nf_per_km max_i_ka df parallel in_service",
            (0, 1, 1.0, R, X, 0.0, 0.3, 1.0, 1, True),
        ),
        **tables,
    }
    path = tmp_path / "two.json"
    path.write_text(json.dumps({"_object": net}))
    return path


def by_formula(p, q):
    """|u| at the end of the line, pu, for kW and kvar there: the greater root of the quadratic in u**2."""
    r, x, p, q = R / 0.16, X / 0.16, p / 1e3, q / 1e3
    half = 0.5 - (r * p + x * q)
    return np.sqrt(half + np.sqrt(half**2 - (r**2 + x**2) * (p**2 + q**2)))


def test_what_is_fixed_gives_the_voltage_of_the_analytic_solution(tmp_path):
    for tables, p, q in [
        ({}, 0.0, 0.0),
        ({"load": table(POWERS, (1, 0.0, 0.0, 1.0, True))}, 0.0, 0.0),
        ({"load": table(POWERS, (1, 0.03, 0.01, 1.0, True))}, 30.0, 10.0),
        ({"load": table(POWERS, (1, 0.1, 0.0, 1.0, True))}, 100.0, 0.0),
        ({"load": table(POWERS, (1, 0.03, 0.0, 0.5, True), (1, 0.02, 0.01, 1.0, True))}, 35.0, 10.0),
        ({"load": table(POWERS, (1, 0.03, 0.0, 1.0, False))}, 0.0, 0.0),
        ({"sgen": table(POWERS, (1, 0.04, -0.01, 1.0, True))}, -40.0, 10.0),
        (
            {"sgen": table(POWERS, (1, 0.04, 0.0, 0.25, True)), "load": table(POWERS, (1, 0.03, 0.0, 1.0, True))},
            20.0,
            0.0,
        ),
        ({"storage": table(POWERS, (1, 0.02, 0.0, 1.0, True))}, 20.0, 0.0),
        ({"load": table(POWERS, (0, 0.5, 0.1, 1.0, True))}, 0.0, 0.0),
    ]:
        flow = PowerFlow(read_pandapower(two_buses(tmp_path, **tables)))
        assert flow.solve(*np.zeros((2, 1, 2))).voltage[0, 1] == pytest.approx(by_formula(p, q), abs=1e-9)
        on_top = np.array([[0.0, 12.0], [0.0, 3.0]])[:, None]
        assert flow.solve(*on_top).voltage[0, 1] == pytest.approx(by_formula(p + 12.0, q + 3.0), abs=1e-9)


def test_solving_leaves_the_callers_loads_alone(tmp_path):
    flow = PowerFlow(read_pandapower(two_buses(tmp_path, load=table(POWERS, (1, 0.03, 0.0, 1.0, True)))))
    p = np.zeros((1, 2))
    assert flow.solve(p, p).voltage.tolist() == flow.solve(p, p).voltage.tolist()
    assert not p.any()


def test_customers_are_where_loads_are():
    feeder = read_pandapower(VILLAGE)
    assert feeder.customers == tuple(f"house {k}" for k in range(1, 7))
    assert [load.p for load in feeder.fixed] == pytest.approx([p for p, _ in LOADS], abs=1e-3)


def test_roofs_and_batteries_are_no_customers(tmp_path):
    feeder = read_pandapower(two_buses(tmp_path, sgen=table(POWERS, (1, 0.04, 0.0, 1.0, True))))
    assert feeder.customers == ()
    assert feeder.connecting() == [1]


def test_what_the_feeder_does_not_reach_is_counted_in_a_warning(tmp_path):
    for change, words in [
        (
            lambda net: set_cells(net, "load", "bus", {0: 0}),
            r"1 loads or generators of 0.008663 MW in all are left out.* \(numbers 0\): on the transformer's high side",
        ),
        (lambda net: set_cells(net, "load", "bus", {0: 8, 2: 8}), r"2 loads or generators of 0.02526 MW .*bers 8\)"),
        (lambda net: set_cells(net, "bus", "in_service", {7: False}), r"1 loads .*0.016713 MW.*\(numbers 7\)"),
    ]:
        with pytest.warns(HeronWarning, match=words):
            feeder = read_pandapower(changed(tmp_path, change))
        assert len(feeder.fixed) in (4, 5)


def test_what_is_out_of_service_is_left_out_in_silence(tmp_path):
    path = changed(tmp_path, lambda net: set_cells(net, "load", "in_service", dict.fromkeys(range(6), False)))
    assert read_pandapower(path).fixed == read_pandapower(path).customers == ()


def test_odd_fixed_loads_are_refused():
    for fixed, words in [
        (lambda: Fixed("b", float("nan")), "fixed load at 'b': p=nan kW must be a finite number"),
        (lambda: Fixed("b", 1.0, float("inf")), "q=inf kvar must be a finite number"),
        (lambda: Feeder(("a",), (), 0.4, fixed=(Fixed("b", 1.0),)), "fixed load names the bus 'b', which is not there"),
        (lambda: Feeder(("a",), (), 0.4, customers=("b",)), "customers names the bus 'b', which is not there"),
    ]:
        with pytest.raises(ConfigError, match=words):
            fixed()
