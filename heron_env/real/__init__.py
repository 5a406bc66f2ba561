"""Agents as processes on a real network: hub and nodes, their record, the measured network and what it predicts.

Public are the names in `__init__.pyi`.
"""

from heron_env.lazily import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
