"""Graph colouring as a distributed constraint optimisation problem: problems, files, generators, solvers.

solution = solve(g15(), "dsa", seed=0)   # .assignment, .conflicts, .curve
Knows no environment.
"""

from heron_env.dcop.problem import Optimum, Part, Problem

__all__ = ["Optimum", "Part", "Problem"]
