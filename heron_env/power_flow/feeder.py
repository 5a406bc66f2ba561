"""The feeder: buses, lines and a transformer, as people describe them. Three phases, balanced.

The cable's half of its charging lies at each of its ends (pi model), the transformer's half of its no-load current at
each of its sides. What is always there, `fixed` and `shunts`, belongs to the feeder; all other loads are the solver's
business.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import all_of, is_number, require_type, several


@dataclass(frozen=True)
class Tree:
    """Position k is the k-th bus, breadth first from the source, which is position 0.

    Attributes:
        order: bus at each position.
        parent: position of the bus that feeds it; -1 at the source.
        line: index of the line that does; -1 at the source.
    """

    order: tuple[int, ...]
    parent: tuple[int, ...]
    line: tuple[int, ...]

    @classmethod
    def of(cls, buses: Sequence[str], ends: Sequence[tuple[int, int]], source: int) -> Tree:
        """Of lines by the indices of their ends. Raises ConfigError for a ring or a bus that nothing feeds."""
        at: list[list[tuple[int, int]]] = [[] for _ in buses]
        for number, (start, end) in enumerate(ends):
            at[start].append((number, end))
            at[end].append((number, start))
        order, parent, line, position = [source], [-1], [-1], {source: 0}
        for bus in order:  # grows while it is read
            here = position[bus]
            for number, other in at[bus]:
                if number == line[here]:
                    continue
                if other in position:
                    raise ConfigError(
                        f"Feeder: line {number} from {buses[bus]!r} to {buses[other]!r} closes a ring; a feeder is "
                        "radial: leave out the lines whose switches are open"
                    )
                position[other] = len(order)
                order.append(other)
                parent.append(here)
                line.append(number)
        missing = [name for index, name in enumerate(buses) if index not in position]
        if missing:
            raise ConfigError(
                f"Feeder: no line leads from the source {buses[source]!r} to {missing[:5]}"
                f"{' and others' * (len(missing) > 5)}; add it, or leave those buses out"
            )
        return cls(tuple(order), tuple(parent), tuple(line))


@dataclass(frozen=True)
class Line:
    """A cable or overhead line between two buses, in either direction.

    Attributes:
        start, end: names of buses.
        r, x: ohm of the whole length, positive sequence.
        rating: A that it may carry for long; inf: unknown.
        charging: susceptance to earth of the whole length, S.

    Raises:
        ConfigError: a number makes no sense, or the line ends where it starts.
    """

    start: str
    end: str
    r: float
    x: float
    rating: float = math.inf
    charging: float = 0.0

    def __post_init__(self) -> None:
        where = f"line {self.start!r:.60} to {self.end!r:.60}"
        for name in (self.start, self.end):
            require_type(where, name, str, "between the names of two buses")
        if self.start == self.end:
            raise ConfigError(f"{where}: ends where it starts; name two buses")
        for name, unit in (("r", "ohm"), ("x", "ohm"), ("charging", "S")):
            _require(where, name, getattr(self, name), unit, zero=True)
        if not isinstance(self.rating, float) or self.rating != math.inf:
            _require(where, "rating", self.rating, "A")


@dataclass(frozen=True)
class Transformer:
    """Transformer that feeds the source bus, by its name plate; deviations of its ratio from the nominal one belong
    into the feeder's `slack_voltage`.

    Attributes:
        rating: kVA.
        short_circuit_voltage: share of the rated voltage, 0.04 for 4 %.
        copper_losses: kW at rated current.
        iron_losses: kW at rated voltage, always there.
        no_load_current: share of the rated current.
        voltage: rated voltage of its low side, at its tap, over the feeder's nominal one.
        sides: loading of its low and of its high side where a current of 1 kVA per kVA of rating, at the feeder's
            nominal voltage, flows there: rated voltages, tap and derating.

    Raises:
        ConfigError: a number makes no sense, or the resistive part exceeds the whole.
    """

    rating: float
    short_circuit_voltage: float
    copper_losses: float
    iron_losses: float = 0.0
    no_load_current: float = 0.0
    voltage: float = 1.0
    sides: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        for name, unit, zero in (
            ("rating", "kVA", False),
            ("short_circuit_voltage", "(0.04 is 4 %)", True),
            ("copper_losses", "kW", True),
            ("iron_losses", "kW", True),
            ("no_load_current", "(0.01 is 1 %)", True),
            ("voltage", "pu", False),
        ):
            _require("transformer", name, getattr(self, name), unit, zero=zero)
        sides = several(self.sides, "transformer: sides")
        if len(sides) != 2:
            raise ConfigError(f"transformer: sides={self.sides!r:.60} must be two numbers, of its low and high side")
        for side in sides:
            _require("transformer", "sides", side, "(1.0 is its rating)")
        object.__setattr__(self, "sides", sides)
        for whole, part in (("short_circuit_voltage", "copper_losses"), ("no_load_current", "iron_losses")):
            if getattr(self, part) > getattr(self, whole) * self.rating * (1.0 + 1e-9):
                raise ConfigError(
                    f"transformer: {part}={getattr(self, part)!r} kW are more than {whole}={getattr(self, whole)!r} "
                    f"of {self.rating:g} kVA; one of the three is wrong"
                )

    @property
    def impedance(self) -> complex:
        """Series impedance, per unit of its own rating and the feeder's nominal voltage."""
        r = self.copper_losses / self.rating
        return complex(r, math.sqrt(max(self.short_circuit_voltage**2 - r**2, 0.0))) * self.voltage**2

    @property
    def admittance(self) -> complex:
        """Admittance of the no-load current, per unit of its own rating and the feeder's nominal voltage."""
        g = self.iron_losses / self.rating
        return complex(g, -math.sqrt(max(self.no_load_current**2 - g**2, 0.0))) / self.voltage**2


@dataclass(frozen=True)
class Fixed:
    """Constant load or generator; the loads of solve() are added.

    Attributes:
        bus: its name.
        p, q: kW and kvar of all three phases; negative feeds in.

    Raises:
        ConfigError: a number is not finite.
    """

    bus: str
    p: float
    q: float = 0.0

    def __post_init__(self) -> None:
        for name, unit in (("p", "kW"), ("q", "kvar")):
            if not is_number(value := getattr(self, name)):
                raise ConfigError(f"fixed load at {self.bus!r}: {name}={value!r:.60} {unit} must be a finite number")


@dataclass(frozen=True)
class Shunt:
    """What takes a current in proportion to the voltage; its active power counts among the feeder's losses.

    Attributes:
        bus: its name.
        g, b: conductance and susceptance to earth, S; b > 0 is a capacity.

    Raises:
        ConfigError: a number is not finite.
    """

    bus: str
    g: float
    b: float

    def __post_init__(self) -> None:
        for name in ("g", "b"):
            if not is_number(value := getattr(self, name)):
                raise ConfigError(f"shunt at {self.bus!r}: {name}={value!r:.60} S must be a finite number")


@dataclass(frozen=True)
class Feeder:
    """A radial feeder: every bus has exactly one way to the source.

    Attributes:
        buses: names; their order is that of the columns of loads and voltages.
        lines: one fewer than buses; their order is that of the columns of currents.
        base_kv: nominal voltage between phases, kV.
        source: the bus that is fed; the first one if not given.
        slack_voltage: pu of what feeds it, on the transformer's far side if there is one.
        transformer: None: the source bus itself has the slack voltage.
        fixed: static loads and generators, in every scenario beside what solve() is given; a bus may have several.
        customers: buses where somebody is connected; none: any bus but the source may be.
        shunts: admittances to earth, as of a cable that is open at its far end; a bus may have several.

    Raises:
        ConfigError: it is no tree that reaches every bus, a name is unknown or not unique, a number makes no sense.
    """

    buses: tuple[str, ...]
    lines: tuple[Line, ...]
    base_kv: float
    source: str = ""
    slack_voltage: float = 1.0
    transformer: Transformer | None = None
    fixed: tuple[Fixed, ...] = ()
    customers: tuple[str, ...] = ()
    shunts: tuple[Shunt, ...] = ()

    def __post_init__(self) -> None:
        parts = (("buses", str), ("lines", Line), ("fixed", Fixed), ("customers", str), ("shunts", Shunt))
        for name, kind in parts:
            object.__setattr__(self, name, all_of(getattr(self, name), f"Feeder({name})", kind))
        if not self.buses:
            raise ConfigError("Feeder(buses=()): a feeder has at least one bus")
        require_type(f"Feeder(source={self.source!r:.60})", self.source, str, "the name of a bus")
        words = "a Transformer, or None"
        require_type(
            f"Feeder(transformer={self.transformer!r:.60})", self.transformer, (Transformer, type(None)), words
        )
        object.__setattr__(self, "source", self.source or self.buses[0])
        twice = [name for name, count in Counter(self.buses).items() if count > 1]
        if twice:
            raise ConfigError(f"Feeder: the bus {twice[0]!r} is there twice; give every bus a name of its own")
        used = [("source", self.source)]
        used += [(f"line {k}", end) for k, line in enumerate(self.lines) for end in (line.start, line.end)]
        used += [("fixed load", load.bus) for load in self.fixed] + [("customers", name) for name in self.customers]
        used += [("shunt", shunt.bus) for shunt in self.shunts]
        for where, name in used:
            if name not in self.buses:
                raise ConfigError(
                    f"Feeder: {where} names the bus {name!r}, which is not there.{did_you_mean(name, self.buses)}"
                )
        _require("Feeder", "base_kv", self.base_kv, "kV")
        _require("Feeder", "slack_voltage", self.slack_voltage, "pu")
        self.tree  # noqa: B018  # raises what is wrong with the shape

    @cached_property
    def fixed_power(self) -> NDArray[np.float64]:
        """kW and kvar of what is fixed, by bus: float64 `[2, buses]`."""
        place = {name: index for index, name in enumerate(self.buses)}
        found = np.zeros((2, len(self.buses)))
        for load in self.fixed:
            found[:, place[load.bus]] += load.p, load.q
        return found

    def connecting(self) -> list[int]:
        """Places of the buses for homes: the customers', else all but the source."""
        wanted = self.customers or tuple(name for name in self.buses if name != self.source) or self.buses
        return [index for index, name in enumerate(self.buses) if name in set(wanted)]

    @cached_property
    def tree(self) -> Tree:
        """Its shape, from the source outwards."""
        place = {name: index for index, name in enumerate(self.buses)}
        ends = [(place[line.start], place[line.end]) for line in self.lines]
        return Tree.of(self.buses, ends, place[self.source])


def _require(where: str, name: str, value: object, unit: str, *, zero: bool = False) -> None:
    """Raise ConfigError unless the value is a finite number above 0, or 0 where that is allowed."""
    if not is_number(value) or value < 0.0 or (value == 0.0 and not zero):
        raise ConfigError(f"{where}: {name}={value!r:.60} {unit} must be a finite number {'>=' if zero else '>'} 0")
