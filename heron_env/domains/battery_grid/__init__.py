"""BatteryGrid: batteries in zones, the specification's minimal example. An action moves the charge at once."""

from heron_env.domains.battery_grid.env import Battery, BatteryChargeFeature, BatteryGridEnv, Zone, battery_grid

__all__ = ["Battery", "BatteryChargeFeature", "BatteryGridEnv", "Zone", "battery_grid"]
