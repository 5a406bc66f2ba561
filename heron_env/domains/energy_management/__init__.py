"""`heron/EnergyManagement-v0`: prosumers with batteries behind a tight transformer, on real load and weather series."""

from heron_env.domains.energy_management.agents import Battery, GridOperator, TransformerZone
from heron_env.domains.energy_management.env import EnergyManagementEnv
from heron_env.domains.energy_management.factory import energy_management

__all__ = ["Battery", "EnergyManagementEnv", "GridOperator", "TransformerZone", "energy_management"]
