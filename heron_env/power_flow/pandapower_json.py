"""Grids from pandapower: a network saved by `pandapower.to_json`, as a feeder. Needs no pandapower to read.

Read are bus, line, trafo, switch and ext_grid; loads, static generators and storages stay as what is fixed in the
feeder, with their scaling. What the file says beyond that is refused where it would change the solution
(pandapower_tables.py); what lies where nothing is fed is counted in a warning. The solution is that of
`pandapower.runpp(net, trafo_model="pi")`.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from heron_env.errors import ConfigError, DataError, HeronError, HeronWarning
from heron_env.files.reading import read
from heron_env.power_flow.feeder import Feeder, Fixed, Line, Shunt, Transformer
from heron_env.power_flow.pandapower_tables import TableRow, read_tables

FIXED = {"load": 1.0, "storage": 1.0, "sgen": -1.0}
"""Tables of constant powers, and the sign of what they take."""
ENDS = {"line": ("from_bus", "to_bus"), "trafo": ("hv_bus", "lv_bus")}
SWITCHED = {"l": "line", "t": "trafo"}
TAPS = ("", "Ratio", "Symmetrical", "Ideal", "Tabular", "nan")
DAMAGE = (AttributeError, IndexError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError)
"""What tables raise that hold other things than pandapower writes."""


def read_pandapower(path: str | Path) -> Feeder:
    """The feeder in a JSON file that `pandapower.to_json(net, path)` wrote.

    One external grid, at most one transformer, which lies next to it, and lines on its low-voltage side; buses keep
    their names, or their numbers where names are missing or not unique. Elements out of service and lines that are open
    at both ends are left out, with what only they feed; of a line that is open at one end its charging stays, as one of
    the feeder's `shunts`. Its loads, static generators and storages are the feeder's `fixed`, the buses with loads its
    `customers`. A HeronWarning counts those of them in service that nothing on the feeder's side feeds.

    Raises:
        DataError: it is no such file, lacks a column, or a value makes no sense.
        ConfigError: it holds what is not modelled, or is not radial.
    """
    where = Path(path).name
    saved = _saved(Path(path))
    try:
        return Net(where, read_tables(where, saved), _is_old(saved)).feeder()
    except HeronError:
        raise
    except DAMAGE as error:
        told = f"{type(error).__name__}: {error}"
        raise DataError(f"{where}: a table is damaged ({told:.200}); save the network with pandapower anew") from error


def _saved(path: Path) -> dict[str, Any]:
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


def _is_old(saved: dict[str, Any]) -> bool:
    """Was it written before pandapower 3, whose tap changers have no type?"""
    version = str(saved.get("format_version") or saved.get("version") or "2")
    return re.match(r"[012]\.|[012]$|3\.0\.0\.?(dev|a|b|rc)", version) is not None


@dataclass(frozen=True)
class Net:
    """A network's tables, in which all that matters is used.

    Attributes:
        where: name of the file.
        rows: of each table, those out of service, too.
        old: tap changers have no type, and act.
    """

    where: str
    rows: dict[str, list[TableRow]]
    old: bool

    @cached_property
    def buses(self) -> dict[Any, TableRow]:
        """By number."""
        return {row.index: row for row in self.rows["bus"]}

    @cached_property
    def open(self) -> set[tuple[str, Any, Any]]:
        """Table, number and bus of the lines and transformers that a switch cuts off from that bus."""
        found = set()
        for row in self.rows["switch"]:
            kind = row.word("et", ("b", "l", "t", "t3"))
            if row.switch("closed") and kind == "b":
                raise ConfigError(
                    f"{self.where}: a closed switch joins two buses ({row}); fuse them (pandapower.toolbox.fuse_buses)"
                )
            if not row.switch("closed") and (table := SWITCHED.get(kind)):
                at = [one for one in self.rows[table] if one.index == row["element"]]
                if not at or row["bus"] not in (at[0][end] for end in ENDS[table]):
                    raise row.fault("element", f"no {table} with this number ends at bus {row['bus']!r:.60}")
                found.add((table, row["element"], row["bus"]))
        return found

    def feeder(self) -> Feeder:
        """The feeder. Raises DataError and ConfigError."""
        grid, trafo = self._source()
        source, slack, plate = grid["bus"], grid.number("vm_pu", above=0.0), None
        lines = [(row, self._open_ends(row)) for row in self._in_service("line")]
        if trafo is not None:
            source, (plate, ratio) = trafo["lv_bus"], self._transformer(trafo)
            slack *= ratio
        reached = _reached(source, [row for row, cut in lines if not cut])
        fed = [(row, cut) for row, cut in lines if self._closed_ends(row, cut) & reached]
        if trafo is not None:
            self._require_nothing_above(trafo, lines)
        base_kv = self._base_kv(source, [row for row, _ in fed])
        names = _names([row for row in self.rows["bus"] if row.index in reached])
        fixed, customers = self._fixed(names)
        return Feeder(
            tuple(names.values()),
            tuple(self._line(row, *(names[row[end]] for end in ENDS["line"])) for row, cut in fed if not cut),
            base_kv, names[source], slack, plate, fixed, customers,
            tuple(self._open_line(row, names[self._closed_ends(row, cut).pop()]) for row, cut in fed if cut),
        )  # fmt: skip

    def _source(self) -> tuple[TableRow, TableRow | None]:
        """The external grid, and the transformer next to it. Raises ConfigError."""
        grids, trafos = self._in_service("ext_grid"), [row for row in self._in_service("trafo") if not self._cut(row)]
        if len(grids) != 1 or len(trafos) > 1:
            raise ConfigError(
                f"{self.where}: has {len(grids)} external grids and {len(trafos)} transformers in service; a feeder "
                "has one external grid and at most one transformer"
            )
        for row, column in [(grids[0], "bus"), *((row, end) for row in trafos for end in ENDS["trafo"])]:
            bus = self._bus(row, column)
            if not bus.switch("in_service"):
                raise ConfigError(
                    f"{self.where}: {bus} has in_service=False, and is the {column} of {row}, which then feeds "
                    "nothing; set the bus in service"
                )
        if trafos and trafos[0]["hv_bus"] != grids[0]["bus"]:
            raise ConfigError(
                f"{self.where}: the transformer is not next to the external grid ({trafos[0]} has hv_bus="
                f"{trafos[0]['hv_bus']}, {grids[0]} has bus={grids[0]['bus']}); start the feeder there"
            )
        return grids[0], trafos[0] if trafos else None

    def _in_service(self, table: str) -> list[TableRow]:
        return [row for row in self.rows[table] if row.switch("in_service")]

    def _bus(self, row: TableRow, column: str) -> TableRow:
        """The bus that a column names. Raises DataError."""
        if (number := row[column]) not in self.buses:
            raise row.fault(column, "there is no such bus")
        return self.buses[number]

    def _cut(self, trafo: TableRow) -> bool:
        """Do switches cut it off at both ends? Raises ConfigError where one does."""
        cut = [trafo[end] for end in ENDS["trafo"] if ("trafo", trafo.index, trafo[end]) in self.open]
        if len(cut) == 1:
            raise ConfigError(
                f"{self.where}: {trafo} is open at one side (a switch with closed=False at bus {cut[0]}): what it "
                "takes at no load is not modelled; open its other side, too, or set it out of service"
            )
        return bool(cut)

    def _open_ends(self, line: TableRow) -> list[str]:
        """Columns of its ends that a switch, or a bus out of service, cuts off."""
        return [
            end
            for end in ENDS["line"]
            if not self._bus(line, end).switch("in_service") or ("line", line.index, line[end]) in self.open
        ]

    def _closed_ends(self, line: TableRow, cut: list[str]) -> set[Any]:
        """Numbers of the buses that it is connected to."""
        return {line[end] for end in ENDS["line"] if end not in cut}

    def _require_nothing_above(self, trafo: TableRow, lines: list[tuple[TableRow, list[str]]]) -> None:
        """Raise ConfigError for a line at the transformer's high side, which would have losses and charging there."""
        for row, cut in lines:
            if trafo["hv_bus"] in self._closed_ends(row, cut):
                raise ConfigError(
                    f"{self.where}: {row} ends at bus {trafo['hv_bus']}, on the high side of {trafo}, and a feeder has "
                    "lines on its low side only; set it out of service, or save the networks one by one"
                )

    def _base_kv(self, source: Any, lines: list[TableRow]) -> float:
        """The one rated voltage of all buses. Raises ConfigError where there are others."""
        base_kv = self.buses[source].number("vn_kv", above=0.0)
        for row in lines:
            for end in ENDS["line"]:
                if (bus := self._bus(row, end)).number("vn_kv") != base_kv:
                    raise ConfigError(
                        f"{self.where}: {bus} has vn_kv={bus['vn_kv']!r}, and {self.buses[source]}, to which lines "
                        f"connect it, {base_kv!r}; a feeder has one nominal voltage: write it at all of its buses"
                    )
        return base_kv

    def _fixed(self, names: dict[Any, str]) -> tuple[tuple[Fixed, ...], tuple[str, ...]]:
        """What is always there, and the buses that have loads; those that are not fed are counted in a warning."""
        found, customers, lost = list[Fixed](), dict[str, None](), list[TableRow]()
        for table, sign in FIXED.items():
            for row in self._in_service(table):
                if self._bus(row, "bus").index not in names:
                    lost.append(row)
                    continue
                scale, bus = sign * 1000.0 * row.number("scaling"), names[row["bus"]]
                found.append(Fixed(bus, scale * row.number("p_mw"), scale * row.number("q_mvar")))
                if table == "load":
                    customers[bus] = None
        if lost:
            at = ", ".join(dict.fromkeys(str(row["bus"]) for row in lost))
            power = sum(abs(float(row["p_mw"] or 0.0)) for row in lost)
            warnings.warn(
                f"{self.where}: {len(lost)} loads or generators of {power:g} MW in all are left out, as the feeder "
                f"does not reach their buses (numbers {at}): on the transformer's high side, out of service or behind "
                "an open switch; move them, or set them out of service",
                HeronWarning,
                stacklevel=5,
            )
        return tuple(found), tuple(customers)

    def _line(self, row: TableRow, start: str, end: str) -> Line:
        km, parallel = row.number("length_km", 0.0), row.number("parallel", above=0.0)
        amperes = math.inf if row["max_i_ka"] is None else 1000.0 * row.number("max_i_ka", above=0.0)
        return Line(
            start,
            end,
            row.number("r_ohm_per_km", 0.0) * km / parallel,
            row.number("x_ohm_per_km", 0.0) * km / parallel,
            amperes * row.number("df", above=0.0) * parallel,
            2.0 * math.pi * self.hertz * 1e-9 * row.number("c_nf_per_km", 0.0) * km * parallel,
        )

    def _open_line(self, row: TableRow, bus: str) -> Shunt:
        """What a line takes that is open at its other end: half of its charging here, and half behind its impedance."""
        line = self._line(row, bus, "")
        half = 0.5j * line.charging
        taken = half + half / (1.0 + half * complex(line.r, line.x))
        return Shunt(bus, taken.real, taken.imag)

    @property
    def hertz(self) -> float:
        """Its frequency."""
        return self.rows["network"][0].number("f_hz", above=0.0)

    def _transformer(self, row: TableRow) -> tuple[Transformer, float]:
        """It, and the voltage of its low side at no load, pu, for 1 pu on its high side: rated voltages and taps."""
        rated = [row.number(f"vn_{side}_kv", above=0.0) for side in ("hv", "lv")]
        nominal = [self._bus(row, end).number("vn_kv", above=0.0) for end in ENDS["trafo"]]
        rating, derating = 1000.0 * row.number("sn_mva", above=0.0), row.number("df", above=0.0) if "df" in row else 1.0
        high, low = (rated[k] * self._tapped(row, side) / nominal[k] for k, side in enumerate(("hv", "lv")))
        short, losses = row.number("vk_percent", 0.0) / 100.0, row.number("vkr_percent", 0.0) / 100.0 * rating
        iron, ratio = row.number("pfe_kw", 0.0), low / high
        sides = rated[1] / nominal[1] / derating, ratio * rated[0] / nominal[0] / derating
        idle = max(row.number("i0_percent", 0.0) / 100.0, iron / rating)
        return Transformer(rating, short, losses, iron, idle, low, sides), ratio

    def _tapped(self, row: TableRow, side: str) -> float:
        """By what the rated voltage of a side changes with its tap changers; one without a type does not act."""
        factor = 1.0
        for tap in ("tap", "tap2"):
            kind = row.word(f"{tap}_changer_type", TAPS) if f"{tap}_changer_type" in row else "Ratio" * self.old
            at = row.word(f"{tap}_side", ("", "hv", "lv")) if f"{tap}_side" in row else ""
            percent, degree = (row.optional(f"{tap}_step_{unit}") for unit in ("percent", "degree"))
            if kind == "Ideal" and at and percent > 0.0 and degree > 0.0:
                raise row.fault(
                    f"{tap}_step_percent", f"an ideal phase shifter has this or {tap}_step_degree; empty one"
                )
            change = percent / 100.0 * (row.optional(f"{tap}_pos") - row.optional(f"{tap}_neutral"))
            if at == side and kind in ("Ratio", "Symmetrical") and not math.isnan(change):
                angle = math.radians(0.0 if math.isnan(degree) else degree)
                factor *= math.hypot(1.0 + change * math.cos(angle), change * math.sin(angle))
        return factor


def _reached(source: Any, lines: list[TableRow]) -> set[Any]:
    """The buses that lines connect with the source."""
    reached, grew = {source}, True
    while grew:
        more = {row[end] for row in lines for end in ENDS["line"] if {row[one] for one in ENDS["line"]} & reached}
        grew = not more <= reached
        reached |= more
    return reached


def _names(buses: list[TableRow]) -> dict[Any, str]:
    """A name for each bus number: its own if all have one and no two the same, else its number."""
    names = [row["name"] for row in buses]
    own = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    return {row.index: row["name"] if own else str(row.index) for row in buses}
