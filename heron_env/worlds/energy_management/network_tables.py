"""The networks of a site as compiled code reads them: whose columns of the truth are where, and at which bus."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.engine.arrays import address_table, addresses
from heron_env.engine.cache import cached_file
from heron_env.power_flow import PowerFlow
from heron_env.worlds.energy_management.agents import Battery, TransformerZone
from heron_env.worlds.energy_management.day import Site
from heron_env.worlds.energy_management.network import Connections, Network

KERNEL = Path(__file__).with_name("network_kernel.py")
OF_ZONES = (
    "Background.power", "Ledger.amount", "Grid.transformer_loading", "Grid.line_loading", "Grid.losses",
    "Grid.lowest_voltage", "Grid.highest_voltage", "GridTally.outside_minutes", "GridTally.collapsed_minutes",
    "GridTally.max_loading", "GridTally.lost",
)  # fmt: skip
"""Quantities in the columns of the array `zones`, `[Z, 11]`."""
(BACKGROUND, AMOUNT, TRANSFORMER_LOADING, LINE_LOADING, LOSSES, LOWEST_VOLTAGE, HIGHEST_VOLTAGE, OUTSIDE_MINUTES,
 COLLAPSED_MINUTES, MAX_LOADING, LOST) = range(len(OF_ZONES))  # fmt: skip
(REACTIVE, LOWEST_ALLOWED, HIGHEST_ALLOWED, VOLTAGE_PRICE, LOADING_PRICE, RATING, FAR_LOSSES, AMPERE, SLACK, TOLERANCE,
 ITERATIONS) = range(11)  # fmt: skip
"""Places in the array `law`: of Network, of the transformer, of PowerFlow."""
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
    """The networks of zones of one size, which have equal feeders: native physics (engine/blueprint.py).

    Args:
        connections: who is connected where.
        network: the law.
        flow: of their feeder.
        hierarchy, layout: of the environment.
    """

    def __init__(
        self, connections: Connections, network: Network, flow: PowerFlow, hierarchy: Hierarchy, layout: Layout
    ) -> None:
        self.connections, self.flow = connections, flow
        place = {name: column for column, name in enumerate(layout.full_names)}

        def columns(kind: type[Agent], field: str) -> NDArray[np.int64]:
            return np.array([place[f"{a.agent_id}.{field}"] for a in hierarchy.agents if isinstance(a, kind)])

        tree, branch, shunt, slack, tolerance, iterations = flow.tables
        transformer, (lowest, highest) = flow.feeder.transformer, network.voltage_band
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
                math.inf if transformer is None else transformer.rating, flow.far_side.real, flow.ampere,
                slack, tolerance, iterations,
            ]),
        }  # fmt: skip
        self._arrays, self._table = arrays, addresses(FORMS, arrays)  # compiled code knows addresses only
        self.at = int(self._table.ctypes.data)

    def loop(self) -> Callable[[int, int, int, int], int]:
        """A substep in the engine's lanes: flows in force, paid and counted."""
        made: Callable[[int, int, int, int], int] = kernel().substep
        return made

    def substep(self, rows: NDArray[np.float64], dt: float) -> None:
        """The same in a truth `[B, columns]`, for `dt` s; with 0 nothing is paid and nothing counted."""
        lanes, truth = len(rows), np.ascontiguousarray(rows)
        over = np.zeros(lanes, np.uint8)
        table = address_table({"truth": truth, "over": over}, {"dt_piece": dt})
        self.loop()(table.ctypes.data, self.at, 0, lanes)
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
        connections = Connections.of(zones, [members[zone] for zone in zones], connected - size, feeder)
        made.append(ZoneNetworks(connections, network, PowerFlow(feeder), hierarchy, layout))
    return made
