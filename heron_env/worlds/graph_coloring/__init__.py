"""`heron/GraphColoring-v0`: clusters colour a graph together, each knowing its own part and what others report.

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `graph_coloring`, and `max_cycles` for max_steps.
"""

from functools import partial

from heron_env.dcop import Problem, g15, solve
from heron_env.dcop.cluster import ClusterAgent
from heron_env.registry import make, make_aec
from heron_env.worlds.graph_coloring.env import GraphColoringEnv, graph_coloring

parallel_env = partial(make, "heron/GraphColoring-v0")
env = raw_env = partial(make_aec, "heron/GraphColoring-v0")

__all__ = [
    "ClusterAgent",
    "GraphColoringEnv",
    "Problem",
    "env",
    "g15",
    "graph_coloring",
    "parallel_env",
    "raw_env",
    "solve",
]
