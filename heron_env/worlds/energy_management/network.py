"""The low-voltage network of a zone: where its homes are connected, what it may carry, and what misuse costs.

Sources. Cable: NAYY 4x150 SE, 0.208 and 0.080 ohm/km, 0.261 uF/km, 270 A (pandapower's standard types). Transformers:
ratings and the greatest load and no-load losses of Commission Regulation (EU) 548/2014, tier 2, and 4 % short-circuit
voltage, usual up to 630 kVA. Voltage: EN 50160 asks for 0.9 to 1.1 pu; 0.95 to 1.05 is a usual band for planning.
Design choices, no data: rated power per home, distance between connections, both prices.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.world import World
from heron_env.engine.arrays import address_table, addresses
from heron_env.engine.cache import cached_file
from heron_env.engine.model import Native
from heron_env.envs.hooks import natively
from heron_env.errors import ConfigError, checked_keywords
from heron_env.given import is_number
from heron_env.power_flow import Feeder, Line, PowerFlow, Transformer
from heron_env.worlds.energy_management.agents import Battery, Constants, GridOperator, TransformerZone
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.site import Site

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
class HomeConnections:
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
    def of(cls, zones: list[int], members: list[list[int]], passive: int, feeder: Feeder) -> HomeConnections:
        """Of zones with `passive` homes without battery each; `members`: the batteries of each zone, equally many."""
        size = len(members[0])
        buses = np.array(feeder.connecting())
        turns = sorted([(k + 0.5, True) for k in range(size)] + [(k + 1.0, False) for k in range(passive)])
        battery = np.array([False, *(home for _, home in turns)])
        place = buses[np.arange(len(battery)) % len(buses)]
        return cls(np.array(zones), np.array(members), np.concatenate([place[battery], place[~battery]]))


KERNEL = Path(__file__).with_name("network_kernel.py")
OF_ZONES = (
    "Background.power", "Ledger.amount", "Grid.transformer_loading", "Grid.line_loading", "Grid.losses",
    "Grid.lowest_voltage", "Grid.highest_voltage", "GridTally.outside_minutes", "GridTally.collapsed_minutes",
    "GridTally.max_loading", "GridTally.lost",
)  # fmt: skip
"""Quantities in the columns of the array `zones`, `[Z, 11]`."""
(BACKGROUND, AMOUNT, TRANSFORMER_LOADING, LINE_LOADING, LOSSES, LOWEST_VOLTAGE, HIGHEST_VOLTAGE, OUTSIDE_MINUTES,
 COLLAPSED_MINUTES, MAX_LOADING, LOST) = range(len(OF_ZONES))  # fmt: skip
(REACTIVE, LOWEST_ALLOWED, HIGHEST_ALLOWED, VOLTAGE_PRICE, LOADING_PRICE, LOW_SIDE, HIGH_SIDE, FAR_LOSSES, AMPERE,
 SLACK, TOLERANCE, ITERATIONS) = range(12)  # fmt: skip
"""Places in the array `law`: of Network, then of PowerFlow."""
FORMS: dict[str, tuple[str, int]] = {
    "zones": ("int64", 2),  # a zone's columns of the truth, `[Z, OF_ZONES]`
    "grid": ("int64", 2), "load": ("int64", 2), "voltage": ("int64", 2),  # of its homes with batteries, `[Z, k]`
    "buses": ("int64", 1),  # of its connections, these homes first
    "low": ("float64", 1), "high": ("float64", 1),  # of the truth
    "tree": ("int64", 2), "branch": ("float64", 2), "shunt": ("float64", 2),  # of the feeder (sweep_kernel.py)
    "fixed": ("float64", 2),  # kW and kvar by bus that are always there, `[2, buses]`
    "shares": ("float64", 1),  # of its rating that each line carries with 1 A
    "law": ("float64", 1),
}  # fmt: skip


class ZoneNetworks:
    """The networks of zones of one size, which have equal feeders: native physics (engine/model.py).

    Args:
        connections: who is connected where.
        network: the law.
        flow: of their feeder.
        hierarchy, layout: of the environment.
    """

    def __init__(
        self, connections: HomeConnections, network: Network, flow: PowerFlow, hierarchy: Hierarchy, layout: Layout
    ) -> None:
        self.connections, self.flow = connections, flow
        place = {name: column for column, name in enumerate(layout.full_names)}

        def columns(kind: type[Agent], field: str) -> NDArray[np.int64]:
            return np.array([place[f"{a.agent_id}.{field}"] for a in hierarchy.agents if isinstance(a, kind)])

        tree, branch, shunt, slack, tolerance, iterations = flow.tables
        lowest, highest = network.voltage_band
        arrays = {
            "zones": np.stack([columns(TransformerZone, field)[connections.zones] for field in OF_ZONES], axis=1),
            "grid": columns(Battery, "Flow.grid")[connections.batteries],
            "load": columns(Battery, "Flow.load")[connections.batteries],
            "voltage": columns(Battery, "Terminal.voltage")[connections.batteries],
            "buses": connections.buses, "low": layout.low, "high": layout.high,
            "tree": tree, "branch": branch, "shunt": shunt, "fixed": flow.feeder.fixed_power,
            "shares": flow.shares,
            "law": np.array([
                network.reactive, lowest, highest, network.voltage_price, network.loading_price,
                *flow.sides, flow.far_side.real, flow.ampere, slack, tolerance, iterations,
            ]),
        }  # fmt: skip
        self._arrays, self._table = arrays, addresses(FORMS, arrays)  # compiled code knows addresses only
        self.at = int(self._table.ctypes.data)

    def natives(self) -> tuple[Native, ...]:
        """In the engine's lanes: flows in force, paid and counted."""
        return (Native("physics", kernel().substep, self.at),)

    def substep(self, rows: NDArray[np.float64], dt: float) -> None:
        """The same in a truth `[B, columns]`, for `dt` s; with 0 nothing is paid and nothing counted."""
        lanes, truth = len(rows), np.ascontiguousarray(rows)
        over = np.zeros(lanes, np.uint8)
        table = address_table({"truth": truth, "over": over}, {"dt_piece": dt})
        kernel().substep(table.ctypes.data, self.at, 0, lanes)
        rows[...] = truth


@functools.cache
def kernel() -> Any:
    """network_kernel.py, compiled once for an installation."""
    return cached_file(KERNEL)


def networks_of(site: Site, network: Network, hierarchy: Hierarchy, layout: Layout) -> list[ZoneNetworks]:
    """The networks of a site's zones, zones of one size together. Raises ConfigError."""
    homes = site.neighbourhood
    members = [np.flatnonzero(row[: homes.batteries]).tolist() for row in homes.membership]
    by_size: dict[tuple[int, int], list[int]] = {}
    for zone, batteries in enumerate(members):
        by_size.setdefault((len(batteries), homes.connected(zone)), []).append(zone)
    made = []
    for (size, connected), zones in by_size.items():
        feeder = network.feeder(connected + 1, connected)
        connections = HomeConnections.of(zones, [members[zone] for zone in zones], connected - size, feeder)
        made.append(ZoneNetworks(connections, network, PowerFlow(feeder), hierarchy, layout))
    return made


class Terminal(FeatureProvider):
    """Voltage where the home is connected; 0 where the grid has collapsed."""

    visibility = ("owner", "upper_level")
    voltage: float = quantity(default=1.0, low=0.0, high=2.0, unit="pu")


class Grid(FeatureProvider):
    """The state of the zone's network in the last substep; loadings are shares of ratings."""

    visibility = ("owner", "subordinates", "system")
    transformer_loading: float = quantity(default=0.0, low=0.0, high=100.0, unit="1")
    line_loading: float = quantity(default=0.0, low=0.0, high=100.0, unit="1")
    losses: float = quantity(default=0.0, low=0.0, high=1e4, unit="kW")
    lowest_voltage: float = quantity(default=1.0, low=0.0, high=2.0, unit="pu")
    highest_voltage: float = quantity(default=1.0, low=0.0, high=2.0, unit="pu")


class GridTally(FeatureProvider):
    """The day so far in the zone's network."""

    outside_minutes: float = quantity(default=0.0, low=0.0, high=1440.0, unit="min", observed=False)
    collapsed_minutes: float = quantity(default=0.0, low=0.0, high=1440.0, unit="min", observed=False)
    max_loading: float = quantity(default=0.0, low=0.0, high=100.0, unit="1", observed=False)
    lost: float = quantity(default=0.0, low=0.0, high=1e6, unit="kWh", observed=False)


class ConnectedBattery(Battery):
    """A battery that sees the voltage at its home."""

    features = (*Battery.features, Terminal)


class NetworkZone(TransformerZone):
    """A zone that sees what its transformer and cables carry."""

    features = (*TransformerZone.features, Grid, GridTally)


class NetworkedEnergyManagementEnv(EnergyManagementEnv):
    """As EnergyManagementEnv, with voltages, loading and losses. Networks of different zones do not meet.

    The optimum knows nothing of the network: it is a bound from above, which need not be reachable.

    Args:
        network: what lies behind each transformer.
        others: as for EnergyManagementEnv.
    """

    def __init__(
        self, system: GridOperator, site: Site, constants: Constants, *, network: Network, **options: Any
    ) -> None:
        self.network = network
        super().__init__(system, site, constants, **options)

    def _build(self) -> None:
        super()._build()
        self.networks = networks_of(self.site, self.network, self.hierarchy, self.simulation.model.layout)

    def begin(self, world: World) -> None:
        """As without a network; what is first seen is the network before midnight with the batteries at rest."""
        super().begin(world)
        meter, flow = world[ConnectedBattery].Meter, world[ConnectedBattery].Flow
        flow.grid[...] = meter.load - meter.pv
        self._solve(world, 0.0)
        flow.grid[...] = 0.0

    @natively(lambda env, lanes: [native for networks in env.networks for native in networks.natives()])
    def advance(self, world: World, dt: float) -> None:
        """Voltages, loading and losses from the powers of the substep, and what they cost the zone."""
        self._solve(world, dt)

    def _solve(self, world: World, dt: float) -> None:
        """Put the networks' flows in force; with dt = 0 nothing is paid."""
        for networks in self.networks:
            networks.substep(world.rows, dt)

    def kpis(self) -> dict[str, float]:
        """As without a network, and of all zones' networks so far today.

        outside_minutes and collapsed_minutes (sums over the zones), max_loading (share of a rating, the highest),
        lost_energy (kWh in cables and transformers).
        """
        tally = self.world[NetworkZone].GridTally
        return {
            **super().kpis(),
            "outside_minutes": float(tally.outside_minutes.sum()),
            "collapsed_minutes": float(tally.collapsed_minutes.sum()),
            "max_loading": float(tally.max_loading.max()),
            "lost_energy": float(tally.lost.sum()),
        }

    def __getstate__(self) -> dict[str, Any]:
        """As in EnergyManagementEnv; the networks' tables are made again."""
        state = super().__getstate__()
        del state["declared"]["networks"]
        return state
