"""`heron/TrafficCorridor-v0`: signals along an arterial road; minimum green is a mask, a coordinator sets offsets.

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `traffic_corridor`, and `max_cycles` for max_steps.
"""

from functools import partial

from heron_env.registry import make, make_aec
from heron_env.worlds.traffic_corridor.env import TrafficCorridorEnv, traffic_corridor

parallel_env = partial(make, "heron/TrafficCorridor-v0")
env = raw_env = partial(make_aec, "heron/TrafficCorridor-v0")

__all__ = ["TrafficCorridorEnv", "env", "parallel_env", "raw_env", "traffic_corridor"]
