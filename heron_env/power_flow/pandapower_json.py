"""Grids from pandapower: a network saved by `pandapower.to_json`, as a feeder. Needs no pandapower to read.

pandapower saves its tables as pandas does with orient="split": columns, index, data. Read are bus, line, trafo, switch
and ext_grid; loads, static generators and storages stay as what is fixed in the feeder, with their scaling. What this
solver has no model for is refused, not left out; what lies where nothing is fed is counted in a warning.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heron_env.errors import ConfigError, DataError, HeronError, HeronWarning
from heron_env.files.reading import read
from heron_env.power_flow.feeder import Feeder, Fixed, Line, Transformer

REFUSED = (
    "trafo3w", "impedance", "dcline", "xward", "ward", "shunt", "tcsc", "svc", "ssc", "vsc", "line_dc", "bus_dc", "gen",
    "asymmetric_load", "asymmetric_sgen", "motor", "load_dc", "source_dc", "b2b_vsc", "vsc_stacked", "vsc_bipolar",
)  # fmt: skip
"""Tables whose elements would change the flows, and are not modelled."""
FIXED = {"load": 1.0, "storage": 1.0, "sgen": -1.0}
"""Tables of constant powers, and the sign of what they take."""
DAMAGE = (AttributeError, IndexError, TypeError, ValueError, ArithmeticError, RecursionError)
"""What tables raise that hold other things than pandapower writes."""
Row = dict[str, Any]


def read_pandapower(path: str | Path) -> Feeder:
    """The feeder in a JSON file that `pandapower.to_json(net, path)` wrote.

    One external grid, at most one transformer, which lies next to it, and lines on its low-voltage side; buses keep
    their names, or their numbers where names are missing or not unique. Open switches and elements out of service are
    left out, with what only they feed. Its loads, static generators and storages are the feeder's `fixed`, the buses
    with loads its `customers`. A HeronWarning counts those of them in service that nothing on the feeder's side feeds.

    Raises:
        DataError: it is no such file, or lacks a column.
        ConfigError: it holds what is not modelled, or is not radial.
    """
    where = Path(path).name
    net = _tables(Path(path))
    try:
        _require_modelled(where, net)
        return _feeder(where, net)
    except HeronError:
        raise
    except KeyError as error:
        raise DataError(f"{where}: a table lacks the column {error}; save the network with pandapower >= 2") from error
    except DAMAGE as error:
        told = f"{type(error).__name__}: {error}"
        raise DataError(f"{where}: a table is damaged ({told:.200}); save the network with pandapower anew") from error


def _require_modelled(where: str, net: dict[str, Any]) -> None:
    """Raise ConfigError for elements that would change the flows, and are not modelled."""
    for name in REFUSED:
        if any(row.get("in_service", True) for row in _rows(net, name)):
            raise ConfigError(f"{where}: has elements of the kind {name!r}, which are not modelled; remove them")


def _feeder(where: str, net: dict[str, Any]) -> Feeder:
    """The tables' feeder; KeyError for a column that is not there."""
    grids = [row for row in _rows(net, "ext_grid") if row["in_service"]]
    trafos = [row for row in _rows(net, "trafo") if row["in_service"] and not _cut(net, "t", row)]
    if len(grids) != 1 or len(trafos) > 1:
        raise ConfigError(
            f"{where}: has {len(grids)} external grids and {len(trafos)} transformers in service; a feeder has one "
            "external grid and at most one transformer"
        )
    grid, source, transformer = grids[0], grids[0]["bus"], None
    if trafos:
        if trafos[0]["hv_bus"] != source:
            raise ConfigError(f"{where}: the transformer is not next to the external grid; start the feeder there")
        source, transformer = trafos[0]["lv_bus"], _transformer(where, trafos[0])
    if any(row["et"] == "b" and row["closed"] for row in _rows(net, "switch")):
        raise ConfigError(f"{where}: a closed switch joins two buses; fuse them (pandapower.toolbox.fuse_buses)")
    buses = {row["index"]: row for row in _rows(net, "bus") if row["in_service"]}
    rows = [
        row
        for row in _rows(net, "line")
        if row["in_service"] and not _cut(net, "l", row) and {row["from_bus"], row["to_bus"]} <= buses.keys()
    ]
    reached = _reached(source, rows)
    names = _names([buses[bus] for bus in buses if bus in reached])
    lines = [_line(where, row, names, float(net["f_hz"])) for row in rows if row["from_bus"] in reached]
    base_kv = float(buses[source]["vn_kv"])
    slack = float(grid["vm_pu"]) * (_ratio(trafos[0], base_kv, buses) if trafos else 1.0)
    fixed, customers = _fixed(where, net, names)
    return Feeder(tuple(names.values()), tuple(lines), base_kv, names[source], slack, transformer, fixed, customers)


def _fixed(where: str, net: dict[str, Any], names: dict[int, str]) -> tuple[tuple[Fixed, ...], tuple[str, ...]]:
    """What is always there, and the buses that have loads; those that are not fed are counted in a warning."""
    found, customers, lost = list[Fixed](), dict[str, None](), list[Row]()
    for table, sign in FIXED.items():
        for row in _rows(net, table):
            if not row["in_service"]:
                continue
            _require_constant(where, table, row)
            if row["bus"] not in names:
                lost.append(row)
                continue
            scale, bus = sign * 1000.0 * _number(where, table, row, "scaling"), names[row["bus"]]
            p, q = (scale * _number(where, table, row, column) for column in ("p_mw", "q_mvar"))
            found.append(Fixed(bus, p, q))
            if table == "load":
                customers[bus] = None
    if lost:
        at = ", ".join(dict.fromkeys(str(row["bus"]) for row in lost))
        power = sum(abs(float(row["p_mw"] or 0.0)) for row in lost)
        warnings.warn(
            f"{where}: {len(lost)} loads or generators of {power:g} MW in all are left out, as the feeder does not "
            f"reach their buses (numbers {at}): on the transformer's high side, out of service or behind an open "
            "switch; move them, or set them out of service",
            HeronWarning,
            stacklevel=4,
        )
    return tuple(found), tuple(customers)


def _require_constant(where: str, table: str, row: Row) -> None:
    """Raise ConfigError for a load that depends on the voltage."""
    for column, value in row.items():
        if column.startswith(("const_z", "const_i")) and value:
            raise ConfigError(
                f"{where}: {table} {row['index']} has {column}={value!r}: loads that depend on the voltage are not "
                "modelled; set it to 0"
            )


def _number(where: str, table: str, row: Row, column: str) -> float:
    value = row[column]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{where}: {table} {row['index']} has {column}={value!r}; write a finite number")
    return float(value)


def _tables(path: Path) -> dict[str, Any]:
    """The network's own dictionary. Raises DataError."""
    try:
        saved = json.loads(read(path))  # with the NaN that pandapower may write
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path.name}: is no JSON ({error}); save the network with pandapower.to_json") from error
    if not isinstance(saved, dict) or not isinstance(net := saved.get("_object"), dict) or "bus" not in net:
        raise DataError(f"{path.name}: is no pandapower network; save one with pandapower.to_json(net, {path.name!r})")
    return net


def _rows(net: dict[str, Any], table: str) -> Iterator[Row]:
    """The rows of a table, each by column, with its `index`; none where there is no such table."""
    saved = net.get(table)
    if saved is None:
        return
    frame = saved["_object"]
    frame = json.loads(frame) if isinstance(frame, str) else frame
    for index, row in zip(frame["index"], frame["data"], strict=True):
        yield {**dict(zip(frame["columns"], row, strict=True)), "index": index}


def _cut(net: dict[str, Any], kind: str, element: Row) -> bool:
    """Is there an open switch at this line ("l") or transformer ("t")?"""
    return any(
        row["et"] == kind and row["element"] == element["index"] and not row["closed"] for row in _rows(net, "switch")
    )


def _reached(source: int, lines: list[Row]) -> set[int]:
    """The buses that lines connect with the source."""
    reached, grew = {source}, True
    while grew:
        more = {bus for row in lines for bus in (row["from_bus"], row["to_bus"]) if _touches(row, reached)}
        grew = not more <= reached
        reached |= more
    return reached


def _touches(line: Row, buses: set[int]) -> bool:
    return line["from_bus"] in buses or line["to_bus"] in buses


def _names(buses: list[Row]) -> dict[int, str]:
    """A name for each bus number: its own if all have one and no two the same, else its number."""
    names = [row["name"] for row in buses]
    own = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    return {row["index"]: row["name"] if own else str(row["index"]) for row in buses}


def _line(where: str, row: Row, names: dict[int, str], hertz: float) -> Line:
    if row.get("g_us_per_km"):
        raise ConfigError(f"{where}: line {row['index']} leaks (g_us_per_km > 0), which is not modelled; set it to 0")
    km, parallel = float(row["length_km"]), float(row["parallel"])
    amperes = 1000.0 * float(row["max_i_ka"] or math.inf) * float(row["df"]) * parallel
    return Line(
        names[row["from_bus"]],
        names[row["to_bus"]],
        float(row["r_ohm_per_km"]) * km / parallel,
        float(row["x_ohm_per_km"]) * km / parallel,
        amperes,
        2.0 * math.pi * hertz * 1e-9 * float(row["c_nf_per_km"]) * km * parallel,
    )


def _transformer(where: str, row: Row) -> Transformer:
    if row["parallel"] != 1:
        raise ConfigError(f"{where}: {row['parallel']} parallel transformers are not modelled; write one of their sum")
    rating = 1000.0 * float(row["sn_mva"])
    return Transformer(
        rating,
        float(row["vk_percent"]) / 100.0,
        float(row["vkr_percent"]) / 100.0 * rating,
        float(row["pfe_kw"]),
        max(float(row["i0_percent"]) / 100.0, float(row["pfe_kw"]) / rating),
    )


def _ratio(row: Row, base_kv: float, buses: dict[int, Row]) -> float:
    """Voltage of the low side at no load, pu, for 1 pu on the high side: rated voltages and tap."""
    steps = float(row["tap_pos"] or 0.0) - float(row["tap_neutral"] or 0.0)
    factor = 1.0 + steps * float(row["tap_step_percent"] or 0.0) / 100.0
    high, low = float(row["vn_hv_kv"]), float(row["vn_lv_kv"])
    if row["tap_side"] == "lv":
        low *= factor
    else:
        high *= factor
    return (float(buses[row["hv_bus"]]["vn_kv"]) / high) * (low / base_kv)
