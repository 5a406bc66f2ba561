"""`solve`: one door to six algorithms, from a heuristic to the proven optimum of CP-SAT (OR-Tools, extra `solvers`).

CP-SAT runs in a process of its own: OR-Tools and highspy, which plans EnergyManagement, each bring a libhighs of
another version under one name, and whichever comes second can't be loaded.
"""

from __future__ import annotations

import atexit
import heapq
import importlib.util
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from time import perf_counter
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.problem import Assignment, Codes, Problem
from heron_env.dcop.responses import eliminate
from heron_env.errors import ConfigError, WorkerLost, did_you_mean
from heron_env.given import is_finite, is_one_of, mapping, whole
from heron_env.seeding import stream

Floats = NDArray[np.float64]


class Costs:
    """Costs of a problem for algorithms that go over all nodes at once."""

    def __init__(self, problem: Problem) -> None:
        self.nodes, self.colours = problem.unary.shape
        self.penalty, self.unary = problem.conflict_penalty, problem.unary
        self.tail = np.concatenate(problem.ends).astype(np.int64)
        """Each edge twice, once from each end: where it starts, `[2 * edges]`."""
        self.head = np.concatenate(problem.ends[::-1]).astype(np.int64)
        self.bound = float(self.unary.min(axis=1).sum())
        """No assignment costs less: no conflicts, and every node as it likes best."""
        single = np.abs([self.penalty, *self.unary[np.isfinite(self.unary) & (self.unary != 0.0)]])
        self.unit = min(1.0, float(single.min()))
        """Differences of costs below a millionth of it are rounding."""

    @cached_property
    def slots(self) -> NDArray[np.int64]:
        """`tail` as the first of its node's entries in a table `[nodes, colours]`."""
        return np.asarray(self.tail * self.colours)

    def of_colours(self, codes: NDArray[Any]) -> Floats:
        """What each colour costs each node while its neighbours keep theirs, `[nodes, colours]`."""
        equal = np.bincount(self.slots + codes[self.head], minlength=self.unary.size)
        return self.penalty * equal.reshape(self.unary.shape) + self.unary

    def total(self, codes: NDArray[Any]) -> float:
        """Of an assignment `[nodes]`: penalty times conflicts minus preferences."""
        own = float(self.unary[np.arange(self.nodes), codes].sum())
        return self.penalty * int((codes[self.tail] == codes[self.head]).sum() // 2) + own

    def any_start(self, draws: np.random.Generator) -> Codes:
        """Each node one of the colours that it may take, `[nodes]`."""
        return one_of(np.isfinite(self.unary), draws)


def one_of(allowed: NDArray[np.bool_], draws: np.random.Generator) -> Codes:
    """In each row one of the columns that are allowed, all alike likely, `[rows]`."""
    return np.asarray(np.where(allowed, draws.random(allowed.shape), -1.0).argmax(axis=1), dtype=np.int8)


MOVES: Final = 0.7
"""Probability with which a node of dsa moves that could improve, or is in conflict and could change without loss."""
DRIFTS: Final = 0.2
"""The same of a node without a conflict that could change without loss."""


def greedy(problem: Problem) -> Codes:
    """Colours `[nodes]`: next is the node that sees the most colours, then the one with most neighbours (DSATUR)."""
    costs, near = problem.unary.copy(), _neighbours(problem)
    codes = np.full(len(near), -1, dtype=np.int8)
    seen: list[set[int]] = [set() for _ in near]
    queue = [(-len(problem.domain) * (node in problem.fixed), -len(near[i]), i) for i, node in enumerate(problem.nodes)]
    heapq.heapify(queue)
    while queue:
        *_, node = heapq.heappop(queue)
        if codes[node] >= 0:
            continue  # an older entry of a node that has seen more since
        code = int(costs[node].argmin())
        codes[node] = code
        for other in near[node]:
            costs[other, code] += problem.conflict_penalty
            if codes[other] < 0 and code not in seen[other]:
                seen[other].add(code)
                heapq.heappush(queue, (-len(seen[other]), -len(near[other]), other))
    return codes


def dsa(costs: Costs, draws: np.random.Generator) -> Iterator[Codes]:
    """Colours `[nodes]` after each cycle, the start first.

    Nodes move to one of the best other colours, with probability MOVES or DRIFTS. Between variant B, whose nodes
    without a conflict stay, and C, where they move like the others: either leaves more conflicts.
    """
    codes, everyone = costs.any_start(draws), np.arange(costs.nodes)
    while True:
        yield codes
        table = costs.of_colours(codes)
        now, least = table[everyone, codes], table.min(axis=1)
        best = table == least[:, None]
        best[everyone, codes] &= best.sum(axis=1) == 1  # another one, if there is another one
        torn = now > costs.unary[everyone, codes]
        moving = draws.random(costs.nodes) < np.where(torn | (now > least), MOVES, DRIFTS)
        codes = np.where(moving, one_of(best, draws), codes)


def mgm(costs: Costs, draws: np.random.Generator) -> Iterator[Codes]:
    """Colours `[nodes]` after each cycle, the start first, until nobody can gain.

    Of neighbours that could gain only the one that would gain most moves, of equals the first.
    """
    codes, everyone = costs.any_start(draws), np.arange(costs.nodes)
    by_tail = np.argsort(costs.tail, kind="stable")
    heads, tails = costs.head[by_tail], costs.tail[by_tail]
    firsts = np.flatnonzero(np.diff(tails, prepend=-1))
    while True:
        yield codes
        table = costs.of_colours(codes)
        gain = table[everyone, codes] - table.min(axis=1)
        if not (gain > 0).any():
            return
        rank = np.empty(costs.nodes, dtype=np.int64)
        rank[np.lexsort((-everyone, gain))] = everyone
        rival = np.full(costs.nodes, -1)
        rival[tails[firsts]] = np.maximum.reduceat(rank[heads], firsts) if len(firsts) else -1
        moving = (gain > 0) & (rank > rival)
        codes = np.where(moving, table.argmin(axis=1), codes).astype(np.int8)


def _neighbours(problem: Problem) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in problem.nodes]
    for u, v in problem.ends.T.tolist():
        near[u].append(v)
        near[v].append(u)
    return near


DAMPING: Final = 0.7
"""Share of the old message that a new one keeps."""
TIE: Final = 1e-3
"""Largest random cost of a colour, in conflict penalties: without them all colours of a node look alike for ever."""


def max_sum(costs: Costs, draws: np.random.Generator) -> Iterator[Codes]:
    """Colours `[nodes]` after each cycle, the start first: each node takes the best sum of what its edges told it.

    An edge tells its end what each colour costs there if the other end does its best. Messages are kept for each edge
    and direction, `[2 * edges, colours]`, relative to their least entry.
    """
    own = costs.unary + TIE * costs.penalty * draws.random(costs.unary.shape)
    back = np.roll(np.arange(len(costs.tail)), len(costs.tail) // 2)  # the same edge seen from its other end
    told = np.zeros((len(costs.tail), costs.colours))  # along each tail to head: to the head
    slots = (costs.head * costs.colours)[:, None] + np.arange(costs.colours)
    while True:
        sums = own + np.bincount(slots.ravel(), told.ravel(), minlength=own.size).reshape(own.shape)
        yield sums.argmin(axis=1).astype(np.int8)
        asked = sums[costs.tail] - told[back]
        least = asked.min(axis=1, keepdims=True)
        fresh = _least_elsewhere(asked, costs.penalty)
        told = DAMPING * told + (1.0 - DAMPING) * (fresh - least)


def _least_elsewhere(asked: np.ndarray, penalty: float) -> np.ndarray:
    """For each colour of the head: the tail's least cost, with the penalty if it takes the same colour."""
    two = np.partition(asked, 1, axis=1)[:, :2]
    others = np.where(asked == two[:, :1], two[:, 1:], two[:, :1])
    return np.minimum(asked + penalty, others)


WORKERS: Final = 2
_SCRIPT: Final = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from heron_env.dcop.solving import serve
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
        raise ConfigError("algo='cpsat' needs OR-Tools; install it with: pip install 'heron_env[solvers]'")
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
    costs, unit = problem.unary, Costs(problem).unit  # CP-SAT takes what is far below 1 for 0
    for number, colour in np.argwhere(np.isinf(costs)).tolist():
        model.add(takes[number][colour] == 0)
    told = np.argwhere(np.isfinite(costs) & (costs != 0.0)).tolist()
    liked = sum(float(costs[number, colour] / unit) * takes[number][colour] for number, colour in told)
    if torn or told:
        model.minimize(problem.conflict_penalty / unit * sum(torn) + liked)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.random_seed = WORKERS, seed % 2**31
    if math.isfinite(seconds):
        solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise ConfigError(f"algo='cpsat': found nothing in {seconds:g} s; give more seconds")
    codes = np.array([[solver.value(taken) for taken in node] for node in takes]).argmax(axis=1).astype(np.int8)
    return codes, solver.best_objective_bound * unit


Passes = Callable[[Costs, np.random.Generator], Iterator[Codes]]
PASSES: Final[dict[str, tuple[Passes, int]]] = {"dsa": (dsa, 2), "mgm": (mgm, 4), "maxsum": (max_sum, 4)}
"""Algorithms that go on cycle by cycle, and the messages along an edge in each."""
ALGORITHMS: Final = ("greedy", *PASSES, "elimination", "cpsat")


@dataclass(frozen=True)
class Solution:
    """Solution of an algorithm.

    Attributes:
        algo: the algorithm.
        assignment: the best one.
        conflicts: its conflicts.
        cost: its penalty times conflicts minus preferences.
        curve: the least cost so far, `[cycles + 1]`, from the start on.
        messages: messages between agents, one agent a node; 0 for central algorithms.
        cycles: cycles that were run.
        bound: lower bound on the cost of any assignment.
        seconds: wall time of the algorithm.
    """

    algo: str
    assignment: Assignment
    conflicts: int
    cost: float
    curve: Floats
    messages: int
    cycles: int
    bound: float
    seconds: float

    @property
    def utility(self) -> float:
        """Minus the cost, for problems with `objective="max"`."""
        return -self.cost

    @property
    def proven(self) -> bool:
        """Is it proven that no assignment costs less?"""
        return self.cost <= self.bound


def solve(
    problem: Problem,
    algo: str = "dsa",
    *,
    seed: int = 0,
    cycles: int = 100,
    seconds: float | None = None,
    hold: Assignment | None = None,
) -> Solution:
    """Colour a graph.

    Args:
        problem: what to colour.
        algo: "greedy" (DSATUR: Brélaz, Communications of the ACM 22, 1979), "dsa" (variant B: Zhang et al., Artificial
            Intelligence 161, 2005), "mgm" (Maheswaran et al., PDCS 2004), "maxsum" (Farinelli et al., AAMAS 2008),
            "elimination" (exact), "cpsat" (exact; extra `solvers`).
        seed: of every draw; "greedy" and "elimination" draw nothing.
        cycles: the most of them; an assignment at the bound ends the search, and "mgm" where nobody can gain.
        seconds: of wall time, after which the best so far is the answer.
        hold: nodes that keep a colour beside the fixed ones.

    Raises:
        ConfigError: an argument makes no sense, a table of "elimination" would be too large, or OR-Tools is missing.
    """
    problem, most, limit = _held(problem, hold), whole(cycles, "cycles"), _limit(seconds)
    if not is_one_of(algo, ALGORITHMS):
        near = did_you_mean(algo, ALGORITHMS) or f" There are {', '.join(ALGORITHMS)}."
        raise ConfigError(f"solve(algo={algo!r:.60}): is no algorithm.{near}")
    start, costs = perf_counter(), Costs(problem)
    messages, bound = 0, costs.bound
    if algo in PASSES:
        passes, along = PASSES[algo]
        best, curve = _anytime(passes(costs, stream(seed, "dcop", algo)), costs, most, start + limit)
        messages = along * len(problem.edges) * (len(curve) - 1)
    else:
        best, bound = _at_once(problem, costs, algo, seed, limit)
        curve = np.array([costs.total(best)])
        if curve[0] - bound <= 1e-6 * costs.unit:
            bound = float(curve[0])
    took, cost, conflicts = perf_counter() - start, costs.total(best), problem.conflicts_of(best)
    return Solution(
        algo, problem.assignment(best), conflicts, cost, curve, messages, len(curve) - 1, bound, took
    )  # fmt: skip


def _at_once(problem: Problem, costs: Costs, algo: str, seed: int, limit: float) -> tuple[Codes, float]:
    """The answer of an algorithm without passes, and a bound of the cost."""
    if algo == "greedy":
        return greedy(problem), costs.bound
    if algo == "cpsat":
        return cpsat(problem, seed, limit)
    best: Codes = eliminate(problem.unary, problem.ends, problem.conflict_penalty).assignments()[:, 0]
    return best, costs.total(best)


def _anytime(passes: Iterator[Codes], costs: Costs, most: int, deadline: float) -> tuple[Codes, Floats]:
    """The best of the start and at most so many cycles, and the least cost after each."""
    best, curve = next(passes), []
    curve.append(costs.total(best))
    while len(curve) <= most and curve[-1] > costs.bound and perf_counter() < deadline:
        codes = next(passes, None)
        if codes is None:
            break
        cost = costs.total(codes)
        if cost < curve[-1]:
            best = codes
        curve.append(min(cost, curve[-1]))
    return best, np.array(curve)


def _held(problem: Problem, hold: Any) -> Problem:
    """With the nodes fixed that are held. Raises ConfigError for one that is fixed to another colour."""
    held = {} if hold is None else mapping(hold, "hold")
    if not held:
        return problem
    for node, colour in held.items():
        if (fixed := problem.fixed.get(node)) not in (None, problem.colour(str(colour))):
            raise ConfigError(f"solve(hold={{{node!r}: {colour!r:.60}}}): the node is fixed to {fixed!r}; leave it out")
    return problem.having(fixed={**problem.fixed, **held})


def _limit(seconds: Any) -> float:
    if seconds is None:
        return math.inf
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not is_finite(seconds) or seconds <= 0:
        raise ConfigError(f"solve(seconds={seconds!r:.60}): must be a number > 0, or None for no limit")
    return float(seconds)
