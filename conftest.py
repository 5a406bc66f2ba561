"""Adapters to libraries that are not installed here are not collected for their doctests."""

from importlib.util import find_spec

import heron_env  # noqa: F401  so that pytest does not import heron_env.registry a second time, empty

NEEDED = {
    "rllib.py": ("ray", "tree", "torch"),  # tree: dm-tree, which only RLlib needs
    "torchrl.py": ("torchrl",),
    "benchmarl.py": ("benchmarl",),
    **{f"jax/{name}.py": ("jax",) for name in ("__init__", "env", "loops", "words")},
}
collect_ignore = [
    f"heron_env/adapters/{file}" for file, libraries in NEEDED.items() if not all(map(find_spec, libraries))
]
