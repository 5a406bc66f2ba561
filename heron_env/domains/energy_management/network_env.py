"""The environment with network physics: each substep ends with the power flow of every zone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.domains.energy_management.agents import GridOperator
from heron_env.domains.energy_management.day import Site
from heron_env.domains.energy_management.env import EnergyManagementEnv
from heron_env.domains.energy_management.features import Constants
from heron_env.domains.energy_management.network import Connections, Network
from heron_env.domains.energy_management.network_features import ConnectedBattery, NetworkZone
from heron_env.power_flow import Flows, PowerFlow

Array = NDArray[np.float64]


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
        self.networks = networks_of(site, network)
        super().__init__(system, site, constants, **options)

    def begin(self, world: World) -> None:
        """As without a network; what is first seen is the network with the batteries at rest."""
        super().begin(world)
        meter = world[ConnectedBattery].Meter
        self._solve(world, meter.load - meter.pv)

    def advance(self, world: World, dt: float) -> None:
        """Voltages, loading and losses from the powers of the substep, and what they cost the zone."""
        hours, minutes = dt / 3600.0, dt / 60.0
        zones = world[NetworkZone]
        tally, seen = zones.GridTally, zones.Grid
        outside, collapsed = self._solve(world, world[ConnectedBattery].Flow.grid)
        loading = np.maximum(seen.transformer_loading, seen.line_loading)
        paid = self.network.voltage_price * 100.0 * outside + self.network.loading_price * np.maximum(
            loading - 1.0, 0.0
        )
        zones.Ledger.amount[...] -= paid * hours
        tally.outside_minutes[...] += minutes * (outside > 0.0)
        tally.collapsed_minutes[...] += minutes * collapsed
        tally.max_loading[...] = np.maximum(tally.max_loading, loading)
        tally.lost[...] += seen.losses * hours

    def _solve(self, world: World, power: Array) -> tuple[Array, Array]:
        """Put the flows of `power` (kW of each battery's home, `[..., batteries]`) in force.

        Returns pu outside of the band, summed over connections, and 1 where the grid has collapsed, `[..., zones]`.
        """
        low, high = self.network.voltage_band
        voltage, grid = world[ConnectedBattery].Terminal.voltage, world[NetworkZone].Grid
        outside, collapsed = np.zeros(grid.losses.shape), np.zeros(grid.losses.shape)
        for at, solver in self.networks:
            flows = self._flows(world, power, at, solver)
            ok, shape = flows.converged, (*power.shape[:-1], len(at.zones))
            level = np.where(ok[:, None], flows.voltage, 0.0)
            for members, buses in at.batteries:
                voltage[..., members] = level.reshape(*shape, -1)[..., buses]
            beyond = np.maximum(level - high, 0.0) + np.maximum(low - level, 0.0)
            for column, values in (
                (outside, (beyond * at.count).sum(axis=1)),
                (collapsed, np.where(ok, 0.0, 1.0)),
                (grid.transformer_loading, np.where(ok, flows.transformer, 0.0)),
                (grid.line_loading, np.where(ok, flows.loading.max(axis=1, initial=0.0), 0.0)),
                (grid.losses, np.where(ok, flows.losses, 0.0)),
                (grid.lowest_voltage, level.min(axis=1)),
                (grid.highest_voltage, level.max(axis=1)),
            ):
                column[..., at.zones] = values.reshape(shape)
        return outside, collapsed

    def _flows(self, world: World, power: Array, at: Connections, solver: PowerFlow) -> Flows:
        """The flows of all lanes' zones of one size, `[lanes x Z]` scenarios."""
        load, background = world[ConnectedBattery].Meter.load, world[NetworkZone].Background.power
        reactive, shape = self.network.reactive, (*power.shape[:-1], len(at.zones), len(solver.feeder.buses))
        p, q = np.zeros(shape), np.zeros(shape)
        for members, buses in at.batteries:
            p[..., buses] += power[..., members]
            q[..., buses] += reactive * load[..., members]
        share = background[..., at.zones, None] / sum(len(buses) for buses in at.others)
        for buses in at.others:
            p[..., buses] += share
            q[..., buses] += reactive * np.maximum(share, 0.0)
        return solver.solve(p.reshape(-1, shape[-1]), q.reshape(-1, shape[-1]))

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


def networks_of(site: Site, network: Network) -> list[tuple[Connections, PowerFlow]]:
    """The networks of a site's zones, zones of one size together. Raises ConfigError."""
    homes = site.neighbourhood
    members = [np.flatnonzero(row[: homes.batteries]).tolist() for row in homes.membership]
    by_size: dict[tuple[int, int], list[int]] = {}
    for zone, batteries in enumerate(members):
        by_size.setdefault((len(batteries), homes.connected(zone)), []).append(zone)
    made = []
    for (size, connected), zones in by_size.items():
        feeder = network.feeder(connected + 1, connected)
        at = Connections.of(zones, [members[zone] for zone in zones], connected - size, feeder)
        made.append((at, PowerFlow(feeder)))
    return made
