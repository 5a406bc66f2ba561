"""The same environments for other frameworks; a name imports its framework when it is first used.

What needs a library that few have is in a module of its own: `heron_env.adapters.rllib`.
"""

from typing import TYPE_CHECKING

from heron_env.lazily import lazily

if TYPE_CHECKING:
    from heron_env.adapters.benchmarl import HeronTask
    from heron_env.adapters.ctde import CentralCriticPolicy
    from heron_env.adapters.datasets import AgentEpisode, record_decisions, write_minari
    from heron_env.adapters.gymnasium import HeronVectorEnv
    from heron_env.adapters.sb3 import HeronVecEnv, MappedVecEnv
    from heron_env.adapters.torchrl import HeronTorchEnv

_HOMES = {
    "benchmarl": ("HeronTask",),
    "ctde": ("CentralCriticPolicy",),
    "datasets": ("AgentEpisode", "record_decisions", "write_minari"),
    "gymnasium": ("HeronVectorEnv",),
    "sb3": ("HeronVecEnv", "MappedVecEnv"),
    "torchrl": ("HeronTorchEnv",),
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
