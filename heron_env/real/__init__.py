"""Agents as processes on a real network: hub, nodes, records, measured networks, predictions.

Public are the names in `__init__.pyi`.
"""

from importlib.util import find_spec

from heron_env.errors import ConfigError
from heron_env.lazily import lazily

if find_spec("msgspec") is None:
    raise ConfigError("heron_env.real needs msgspec: pip install 'heron_env[real]'")

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
