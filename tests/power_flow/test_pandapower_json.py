"""Grids from pandapower's files: the same voltages as pandapower has, and a reason for each file that is refused.

data/village.json was written by pandapower 3.5.6: a 20/0.4 kV transformer one tap away from neutral, two cables with
six houses, a line out of service and one behind an open switch. Only the tables that are read were kept.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from heron_env.errors import ConfigError, DataError
from heron_env.power_flow import PowerFlow
from heron_env.power_flow.pandapower_json import read_pandapower

VILLAGE = Path(__file__).parent / "data" / "village.json"
# kW and kvar of the houses, and what runpp(trafo_model="pi", tolerance_mva=1e-12) found: pu, kW, %
LOADS = ((8.663, 2.158), (-18.156, 0.132), (16.597, 7.302), (7.299, 5.836), (4.463, 7.481), (16.713, 0.022))
VOLTAGES = (1.028617673, 1.027517439, 1.027309325, 1.023871716, 1.0200404, 1.019057182, 1.018063904)
LOSSES, LINE_LOADINGS = 1.329421964, (6.236043, 3.949877, 18.001054, 16.50108, 5.098469, 16.686713)


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
    p, q = np.array([(0.0, 0.0), *LOADS]).T
    flows = PowerFlow(feeder).solve([p], [q])
    assert np.allclose(flows.voltage[0], VOLTAGES, atol=2e-9, rtol=0.0)
    assert flows.losses[0] == pytest.approx(LOSSES, abs=1e-7)
    assert np.allclose(100.0 * flows.loading[0], LINE_LOADINGS, atol=0.01, rtol=0.0)


def test_a_tap_left_out_is_seen(tmp_path):
    path = changed(tmp_path, lambda net: set_cells(net, "trafo", "tap_pos", {0: 0}))
    p, q = np.array([(0.0, 0.0), *LOADS]).T
    flows = PowerFlow(read_pandapower(path)).solve([p], [q])
    assert np.abs(flows.voltage[0] - VOLTAGES).min() > 0.02


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
    place = {name: k for k, name in enumerate(feeder.buses)}
    p, q = np.zeros((2, 1, len(place)))
    for load in net.load.itertuples():
        p[0, place[names[load.bus]]] += 1e3 * load.p_mw
        q[0, place[names[load.bus]]] += 1e3 * load.q_mvar
    flows = PowerFlow(feeder).solve(p, q)
    expected = [net.res_bus.vm_pu[names.index(name)] for name in feeder.buses]
    assert np.allclose(flows.voltage[0], expected, atol=1e-6, rtol=0.0)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda net: net.update(gen=net["load"]), ConfigError, "elements of the kind 'gen', which are not modelled"),
        (lambda net: set_cells(net, "ext_grid", "in_service", {0: False}), ConfigError, "has 0 external grids and 1"),
        (lambda net: set_cells(net, "trafo", "hv_bus", {0: 3}), ConfigError, "not next to the external grid"),
        (lambda net: set_cells(net, "trafo", "parallel", {0: 2}), ConfigError, "2 parallel transformers"),
        (lambda net: set_cells(net, "line", "in_service", {6: True}), ConfigError, "closes a ring"),
        (lambda net: set_cells(net, "line", "g_us_per_km", {0: 1.0}), ConfigError, "line 0 leaks"),
        (lambda net: set_cells(net, "switch", "et", {0: "b"}) or set_cells(net, "switch", "closed", {0: True}),
         ConfigError, "a closed switch joins two buses"),
        (lambda net: net["line"].update(_object=net["line"]["_object"].replace("x_ohm_per_km", "x")), DataError,
         "a table lacks the column 'x_ohm_per_km'"),
        (lambda net: net.pop("bus"), DataError, "is no pandapower network"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_refused(tmp_path, change, error, words):
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
