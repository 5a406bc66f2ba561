"""Graph colouring as a distributed constraint optimisation problem: problems, files, generators, solvers.

solution = solve(g15(), "dsa", seed=0)   # .assignment, .conflicts, .curve
Knows no environment.
"""

from heron_env.lazily import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
