"""The low-voltage network of a zone: where its homes are connected, what it may carry, and what misuse costs.

Sources. Cable: NAYY 4x150 SE, 0.208 and 0.080 ohm/km, 0.261 uF/km, 270 A (pandapower's standard types). Transformers:
ratings and the greatest load and no-load losses of Commission Regulation (EU) 548/2014, tier 2, and 4 % short-circuit
voltage, usual up to 630 kVA. Voltage: EN 50160 asks for 0.9 to 1.1 pu; 0.95 to 1.05 is a usual band for planning.
Design choices, no data: rated power per home, distance between connections, both prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, checked_keywords
from heron_env.given import is_number
from heron_env.power_flow import Feeder, Line, Transformer

BASE_KV: Final = 0.4
CABLE_R: Final = 0.208  # ohm/km
CABLE_X: Final = 0.080  # ohm/km
CABLE_C: Final = 0.261e-6  # F/km
CABLE_A: Final = 270.0
FREQUENCY: Final = 50.0  # Hz
ON_A_CABLE: Final = 10
"""Connections at one cable; more cables leave the busbar where there are more."""
KVA_PER_HOME: Final = 4.0
TRANSFORMERS: Final = (
    (25.0, 0.600, 0.063), (50.0, 0.750, 0.081), (100.0, 1.250, 0.130), (160.0, 1.750, 0.189), (250.0, 2.350, 0.270),
    (315.0, 2.800, 0.324), (400.0, 3.250, 0.387), (500.0, 3.900, 0.459), (630.0, 4.600, 0.540),
)  # fmt: skip
"""kVA, load losses and no-load losses in kW."""


@checked_keywords
@dataclass(frozen=True)
class Network:
    """A radial network behind each zone's transformer: `make(..., network=Network(voltage_band=(0.95, 1.05)))`.

    Attributes:
        voltage_band: pu, lowest and highest; EN 50160's, or a narrower one.
        power_factor: of what homes and businesses draw, lagging; batteries and roofs feed in at 1.
        voltage_price: EUR an hour for each connection and 0.01 pu outside of the band.
        loading_price: EUR an hour for 100 % above the rating of the transformer or the cable that is loaded most.
        distance: m of cable from one connection to the next.
        slack_voltage: pu on the transformer's far side.
        grid: every zone's feeder, instead of the one made here. Homes are connected in turns to the buses that have
            loads, if any has (`Feeder.customers`), else to all; its own loads and generators, `Feeder.fixed`, stay
            beside them: they load the network, and are not part of what the zone's limit counts.

    Raises:
        ConfigError: a value is out of its range.
    """

    voltage_band: tuple[float, float] = (0.9, 1.1)
    power_factor: float = 0.95
    voltage_price: float = 0.1
    loading_price: float = 10.0
    distance: float = 40.0
    slack_voltage: float = 1.0
    grid: Feeder | None = None

    def __post_init__(self) -> None:
        band = self.voltage_band
        pair = isinstance(band, tuple | list) and len(band) == 2 and all(map(is_number, band))
        if not (pair and 0.5 <= band[0] < 1.0 < band[1] <= 1.5):
            raise ConfigError(f"network: voltage_band={band!r:.200} must be two pu around 1, as (0.9, 1.1)")
        for name, low, high, unit in (
            ("power_factor", 0.1, 1.0, ""),
            ("voltage_price", 0.0, 1e3, " EUR/h"),
            ("loading_price", 0.0, 1e4, " EUR/h"),
            ("distance", 0.0, 5e3, " m"),
            ("slack_voltage", 0.8, 1.2, " pu"),
        ):
            value = getattr(self, name)
            if not is_number(value) or not low <= value <= high:
                raise ConfigError(f"network: {name}={value!r} must be a number from {low:g} to {high:g}{unit}")
        if not isinstance(self.grid, Feeder | None):
            raise ConfigError(f"network: grid={self.grid!r} must be a Feeder; read_pandapower(path) makes one")

    @classmethod
    def of(cls, given: object) -> Network | None:
        """From the option: None, "radial", a Network, or the path of a pandapower JSON. Raises ConfigError."""
        if given is None or isinstance(given, Network):
            return given
        if isinstance(given, str) and given == "radial":
            return cls()
        if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".json")):
            from heron_env.power_flow.pandapower_json import read_pandapower

            return cls(grid=read_pandapower(given))
        raise ConfigError(
            f"network={given!r} must be None, 'radial', a Network, or the path of a pandapower .json file"
        )

    @property
    def reactive(self) -> float:
        """kvar for each kW drawn."""
        return math.sqrt(1.0 / self.power_factor**2 - 1.0)

    def feeder(self, connections: int, homes: int) -> Feeder:
        """The feeder of a zone with so many connections, of which so many are homes."""
        if self.grid is not None:
            return self.grid
        names, km = [f"connection {k + 1}" for k in range(connections)], self.distance / 1000.0
        charging = 2.0 * math.pi * FREQUENCY * CABLE_C * km
        lines = tuple(
            Line(
                names[k - 1] if k % ON_A_CABLE else "busbar",
                names[k],
                CABLE_R * km,
                CABLE_X * km,
                CABLE_A,
                charging,
            )
            for k in range(connections)
        )
        return Feeder(
            ("busbar", *names), lines, BASE_KV, slack_voltage=self.slack_voltage, transformer=transformer_for(homes)
        )


def transformer_for(homes: int) -> Transformer:
    """The smallest transformer with 4 kVA for each home. Raises ConfigError above 630 kVA."""
    for rating, load_losses, no_load_losses in TRANSFORMERS:
        if rating >= KVA_PER_HOME * homes:
            return Transformer(rating, 0.04, load_losses, no_load_losses, no_load_losses / rating)
    raise ConfigError(
        f"network='radial': {homes} homes behind one transformer need more than {TRANSFORMERS[-1][0]:g} kVA; "
        "choose a smaller zone_size or passive_per_zone, or give a grid of your own"
    )


Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Connections:
    """Zones of one size, and which bus of their feeder everyone in them is connected to.

    The business comes first, then homes with and without battery in turns; background power, which is measured as one,
    is spread evenly over homes without battery and the business. Where a feeder has fewer buses to connect them to than
    there are connections, they go round.

    Attributes:
        zones: numbers of the zones `[Z]`.
        batteries: numbers of their batteries `[Z, k]`.
        buses: `[connections]`: of the k homes with a battery, then of the business and the other homes.
    """

    zones: Indices
    batteries: Indices
    buses: Indices

    @classmethod
    def of(cls, zones: list[int], members: list[list[int]], passive: int, feeder: Feeder) -> Connections:
        """Of zones with `passive` homes without battery each; `members`: the batteries of each zone, equally many."""
        size = len(members[0])
        buses = np.array(feeder.connecting())
        turns = sorted([(k + 0.5, True) for k in range(size)] + [(k + 1.0, False) for k in range(passive)])
        battery = np.array([False, *(home for _, home in turns)])
        place = buses[np.arange(len(battery)) % len(buses)]
        return cls(np.array(zones), np.array(members), np.concatenate([place[battery], place[~battery]]))
