"""`heron/EnergyManagement-v1`: prosumers with batteries behind a tight transformer, on real load and weather series.

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `energy_management`, and `max_cycles` for max_steps.
"""

from functools import partial

from heron_env.registry import make, make_aec
from heron_env.worlds.energy_management.agents import Battery, GridOperator, TransformerZone
from heron_env.worlds.energy_management.baselines import MPC, STRONGEST, Foresight, TunedRule, Tuning
from heron_env.worlds.energy_management.central import Central
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.example_site import write_example
from heron_env.worlds.energy_management.factory import energy_management

parallel_env = partial(make, "heron/EnergyManagement-v1")
env = raw_env = partial(make_aec, "heron/EnergyManagement-v1")

__all__ = [
    "MPC",
    "STRONGEST",
    "Battery",
    "Central",
    "EnergyManagementEnv",
    "Foresight",
    "GridOperator",
    "TransformerZone",
    "TunedRule",
    "Tuning",
    "energy_management",
    "env",
    "parallel_env",
    "raw_env",
    "write_example",
]
