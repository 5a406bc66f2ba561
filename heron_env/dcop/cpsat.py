"""The oracle: CP-SAT of OR-Tools (extra `dcop`) finds an optimum and proves it.

It runs in a process of its own: OR-Tools and highspy, which plans EnergyManagement, each bring a libhighs of another
version under one name, and whichever comes second can't be loaded.
"""

from __future__ import annotations

import atexit
import importlib.util
import math
import pickle
import subprocess
import sys
from functools import cache
from threading import Lock
from typing import IO, Any, Final

import numpy as np

from heron_env.dcop.problem import Codes, Problem
from heron_env.errors import ConfigError, WorkerLost

WORKERS: Final = 2
_SCRIPT: Final = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from heron_env.dcop.cpsat import serve
serve(sys.stdin.buffer, sys.stdout.buffer)
"""
_turn = Lock()


def cpsat(problem: Problem, seed: int, seconds: float) -> tuple[Codes, float]:
    """Colours `[nodes]` and a proven bound of the cost; equal to its cost if the time was enough.

    Raises:
        ConfigError: OR-Tools is not installed, or it found nothing in time.
        WorkerLost: its process ended.
    """
    if importlib.util.find_spec("ortools") is None:
        raise ConfigError("algo='cpsat' needs OR-Tools; install it with: pip install 'heron_env[dcop]'")
    with _turn:
        worker = _worker()
        assert worker.stdin is not None and worker.stdout is not None
        try:
            pickle.dump((problem, seed, seconds), worker.stdin)
            worker.stdin.flush()
            answer = pickle.load(worker.stdout)
        except BaseException as error:  # what it may still say is no answer to the next question
            _worker.cache_clear()
            _end(worker)
            if isinstance(error, EOFError | OSError):
                raise WorkerLost("algo='cpsat': its process ended; was there enough memory?") from error
            raise
    if isinstance(answer, ConfigError):
        raise answer
    return answer  # type: ignore[no-any-return]


@cache
def _worker() -> subprocess.Popen[bytes]:
    """The process, begun with the first question; it ends with this one."""
    worker = subprocess.Popen([sys.executable, "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin is not None
    pickle.dump(sys.path, worker.stdin)
    atexit.register(_end, worker)
    return worker


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.communicate()


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more questions; in the process of its own."""
    while True:
        try:
            question = pickle.load(questions)
        except EOFError:
            return
        try:
            answer: Any = _solved(*question)
        except ConfigError as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


def _solved(problem: Problem, seed: int, seconds: float) -> tuple[Codes, float]:
    from ortools.sat.python import cp_model

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
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise ConfigError(f"algo='cpsat': found nothing in {seconds:g} s; give more seconds")
    codes = np.array([[solver.value(taken) for taken in node] for node in takes]).argmax(axis=1).astype(np.int8)
    return codes, solver.best_objective_bound
