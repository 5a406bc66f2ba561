"""Graph colouring as a distributed constraint optimisation problem: problems, files, generators, solvers.

solution = solve(g15(), "dsa", seed=0)   # .assignment, .conflicts, .curve
Knows no environment.
"""

from typing import TYPE_CHECKING

from heron_env.lazily import lazily

if TYPE_CHECKING:
    from heron_env.dcop.formats import g15, problem_of, read_problem, ring50, write_problem
    from heron_env.dcop.generators import erdos_renyi, grid, planted, ring_of_clusters
    from heron_env.dcop.problem import Optimum, Part, Problem
    from heron_env.dcop.responses import Counterfactuals, best_response, best_responses, counterfactuals
    from heron_env.dcop.solving import ALGORITHMS, Solution, solve

_HOMES = {
    "formats": ("g15", "problem_of", "read_problem", "ring50", "write_problem"),
    "generators": ("erdos_renyi", "grid", "planted", "ring_of_clusters"),
    "problem": ("Optimum", "Part", "Problem"),
    "responses": ("Counterfactuals", "best_response", "best_responses", "counterfactuals"),
    "solving": ("ALGORITHMS", "Solution", "solve"),
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "ALGORITHMS",
    "Counterfactuals",
    "Optimum",
    "Part",
    "Problem",
    "Solution",
    "best_response",
    "best_responses",
    "counterfactuals",
    "erdos_renyi",
    "g15",
    "grid",
    "planted",
    "problem_of",
    "read_problem",
    "ring50",
    "ring_of_clusters",
    "solve",
    "write_problem",
]
