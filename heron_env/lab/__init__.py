"""What a policy is worth: run folders and their policies, statistics, both clocks, sweeps of what is wrong with one.

Public are the names in `__init__.pyi`, and the modules `benchmark` (references) and `figure_style` (how figures look).
"""

from heron_env.lazily import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
