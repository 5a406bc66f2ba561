"""The same environments for other frameworks; a name imports its framework when it is first used.

What needs a library that few have is in a module of its own: `heron_env.adapters.rllib`.
"""

from typing import TYPE_CHECKING

from heron_env.lazily import lazily

if TYPE_CHECKING:
    from heron_env.adapters.benchmarl import HeronTask
    from heron_env.adapters.ctde import CentralCriticPolicy
    from heron_env.adapters.decision_records import AgentEpisode, record_decisions
    from heron_env.adapters.mapped import MappedVecEnv
    from heron_env.adapters.minari import write_minari
    from heron_env.adapters.sb3 import HeronVecEnv
    from heron_env.adapters.torchrl import HeronTorchEnv
    from heron_env.adapters.vector_env import HeronVectorEnv

_HOMES = {
    "benchmarl": ("HeronTask",),
    "ctde": ("CentralCriticPolicy",),
    "decision_records": ("AgentEpisode", "record_decisions"),
    "mapped": ("MappedVecEnv",),
    "minari": ("write_minari",),
    "sb3": ("HeronVecEnv",),
    "torchrl": ("HeronTorchEnv",),
    "vector_env": ("HeronVectorEnv",),
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "AgentEpisode",
    "CentralCriticPolicy",
    "HeronTask",
    "HeronTorchEnv",
    "HeronVecEnv",
    "HeronVectorEnv",
    "MappedVecEnv",
    "record_decisions",
    "write_minari",
]
