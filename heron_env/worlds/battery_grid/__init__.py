"""BatteryGrid: batteries in zones, the specification's minimal example. An action moves the charge at once.

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `battery_grid`, and `max_cycles` for max_steps.
"""

from functools import partial

from heron_env.registry import make, make_aec
from heron_env.worlds.battery_grid.env import Battery, BatteryChargeFeature, BatteryGridEnv, Zone, battery_grid

parallel_env = partial(make, "heron/BatteryGrid-v0")
env = raw_env = partial(make_aec, "heron/BatteryGrid-v0")

__all__ = [
    "Battery",
    "BatteryChargeFeature",
    "BatteryGridEnv",
    "Zone",
    "battery_grid",
    "env",
    "parallel_env",
    "raw_env",
]
