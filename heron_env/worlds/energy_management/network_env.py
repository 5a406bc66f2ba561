"""The environment with network physics: each substep ends with the power flow of every zone."""

from typing import Any

from heron_env.core.world import World
from heron_env.envs.hooks import natively
from heron_env.worlds.energy_management.agents import GridOperator
from heron_env.worlds.energy_management.day import Site
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.features import Constants
from heron_env.worlds.energy_management.network import Network
from heron_env.worlds.energy_management.network_features import ConnectedBattery, NetworkZone
from heron_env.worlds.energy_management.network_tables import networks_of


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
        self.networks = networks_of(self.site, self.network, self.hierarchy, self.simulation.layout)

    def begin(self, world: World) -> None:
        """As without a network; what is first seen is the network before midnight with the batteries at rest."""
        super().begin(world)
        meter, flow = world[ConnectedBattery].Meter, world[ConnectedBattery].Flow
        flow.grid[...] = meter.load - meter.pv
        self._solve(world, 0.0)
        flow.grid[...] = 0.0

    @natively(lambda env: env.networks)
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
