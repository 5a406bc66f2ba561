"""Modules on libraries that are not installed here are not collected for their doctests."""

from importlib.util import find_spec

import heron_env  # noqa: F401  so that pytest does not import heron_env.registry a second time, empty

NEEDED = {
    "adapters/rllib.py": ("ray", "tree", "torch"),  # tree: dm-tree, which only RLlib needs
    "adapters/torchrl.py": ("torchrl",),
    "adapters/benchmarl.py": ("benchmarl",),
    **{f"adapters/jax/{name}.py": ("jax",) for name in ("__init__", "env", "loops", "words")},
    "real/mqtt.py": ("aiomqtt",),
}
collect_ignore = [f"heron_env/{file}" for file, libraries in NEEDED.items() if not all(map(find_spec, libraries))]
