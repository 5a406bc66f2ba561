"""Power flow of radial feeders: exact AC solutions of thousands of load scenarios at once, compiled.

flows = PowerFlow(feeder).solve(p, q)   # kW and kvar of the load, [B, buses]
flows.voltage                           # pu, [B, buses]
"""

from heron_env.power_flow.feeder import Feeder, Fixed, Line, Transformer
from heron_env.power_flow.solver import Flows, PowerFlow

__all__ = ["Feeder", "Fixed", "Flows", "Line", "PowerFlow", "Transformer"]
