"""The oracle: CP-SAT of OR-Tools (extra `dcop`) finds an optimum and proves it."""

from __future__ import annotations

import math

import numpy as np

from heron_env.dcop.problem import Codes, Problem
from heron_env.errors import ConfigError

WORKERS = 2


def cpsat(problem: Problem, seed: int, seconds: float) -> tuple[Codes, float]:
    """Colours `[nodes]` and a proven bound of the cost; equal to its cost if the time was enough.

    Raises:
        ConfigError: OR-Tools is not installed, or it found nothing in time.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise ConfigError("algo='cpsat' needs OR-Tools; install it with: pip install 'heron_env[dcop]'") from error
    model = cp_model.CpModel()
    colours = range(len(problem.domain))
    takes = [[model.new_bool_var("") for _ in colours] for _ in problem.nodes]
    for node in takes:
        model.add_exactly_one(node)
    torn = []
    for u, v in problem.ends.T.tolist():
        conflict = model.new_bool_var("")
        torn.append(conflict)
        for colour in colours:
            model.add_bool_or(takes[u][colour].negated(), takes[v][colour].negated(), conflict)
    costs = problem.unary
    for number, colour in np.argwhere(np.isinf(costs)).tolist():
        model.add(takes[number][colour] == 0)
    told = np.argwhere(np.isfinite(costs) & (costs != 0.0)).tolist()
    liked = sum(float(costs[number, colour]) * takes[number][colour] for number, colour in told)
    if torn or told:
        model.minimize(problem.conflict_penalty * sum(torn) + liked)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.random_seed = WORKERS, seed % 2**31
    if math.isfinite(seconds):
        solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise ConfigError(f"algo='cpsat': found nothing in {seconds:g} s; give more seconds")
    codes = np.array([[solver.value(taken) for taken in node] for node in takes]).argmax(axis=1).astype(np.int8)
    return codes, solver.best_objective_bound
