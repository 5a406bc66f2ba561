"""`solve`: one door to six algorithms, from a heuristic to the proven optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.costs import Costs
from heron_env.dcop.cpsat import cpsat
from heron_env.dcop.elimination import eliminate
from heron_env.dcop.local_search import dsa, greedy, mgm
from heron_env.dcop.max_sum import max_sum
from heron_env.dcop.problem import Assignment, Codes, Problem
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_finite, is_one_of, mapping, whole
from heron_env.seeding import stream

Floats = NDArray[np.float64]
Passes = Callable[[Costs, np.random.Generator], Iterator[Codes]]
PASSES: Final[dict[str, tuple[Passes, int]]] = {"dsa": (dsa, 2), "mgm": (mgm, 4), "maxsum": (max_sum, 4)}
"""Algorithms that go on cycle by cycle, and the messages along an edge in each."""
ALGORITHMS: Final = ("greedy", *PASSES, "elimination", "cpsat")


@dataclass(frozen=True)
class Solution:
    """What an algorithm found.

    Attributes:
        algo: which one.
        assignment: the best seen.
        conflicts: of it.
        cost: penalty times conflicts minus preferences, of it.
        curve: the least cost seen so far, `[cycles + 1]`; the first is the start's.
        messages: that agents, one a node, would have sent; 0 for what solves in one place.
        cycles: that were run.
        bound: no assignment costs less.
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
    def proven(self) -> bool:
        """Does no assignment cost less?"""
        return self.cost <= self.bound + 1e-6


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
            "elimination" (exact), "cpsat" (exact; extra `dcop`).
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
        if algo == "greedy":
            best = greedy(problem)
        elif algo == "cpsat":
            best, bound = cpsat(problem, seed, limit)
        else:
            best = eliminate(problem.unary, problem.ends, problem.conflict_penalty).assignments()[:, 0]
            bound = costs.total(best)
        curve = np.array([costs.total(best)])
    took, cost = perf_counter() - start, costs.total(best)
    conflicts = problem.conflicts_of(best)
    return Solution(
        algo, problem.assignment(best), conflicts, cost, curve, messages, len(curve) - 1, bound, took
    )  # fmt: skip


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
