"""A problem as arrays: what every colour would cost every node beside its neighbours, in one pass over the edges."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.problem import Codes, Problem

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
