"""The same environments for other frameworks; a name imports its framework when it is first used."""

from typing import TYPE_CHECKING

from heron_env.lazily import lazily

if TYPE_CHECKING:
    from heron_env.adapters.ctde import CentralCriticPolicy
    from heron_env.adapters.mapped import MappedVecEnv
    from heron_env.adapters.rllib import HeronMultiAgentEnv, policy_per_group
    from heron_env.adapters.sb3 import HeronVecEnv
    from heron_env.adapters.vector_env import HeronVectorEnv

_HOMES = {
    "ctde": ("CentralCriticPolicy",),
    "mapped": ("MappedVecEnv",),
    "rllib": ("HeronMultiAgentEnv", "policy_per_group"),
    "sb3": ("HeronVecEnv",),
    "vector_env": ("HeronVectorEnv",),
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "CentralCriticPolicy",
    "HeronMultiAgentEnv",
    "HeronVecEnv",
    "HeronVectorEnv",
    "MappedVecEnv",
    "policy_per_group",
]
