"""What config.json keeps of one group."""

from heron_env.lab.run_files import GroupConfig, group_config, misfit
from heron_env.lab.weights import packed_weights

__all__ = ["GroupConfig", "group_config", "misfit", "packed_weights"]
