"""Which of two ways is the faster, with threads or without, found by trying."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter

TRIES = 4
"""Calls in which both ways, with threads and without, take turns."""
SETTLED = 252
"""Calls after them that go the faster way, before both are tried again."""


class Trial:
    """Tries both ways, then goes the faster one for a while: is a core free for a second thread? Only trying tells."""

    def __init__(self) -> None:
        self._calls, self._took = 0, [inf, inf]

    def faster(self, *ways: Callable[[], int]) -> int:
        """What one of two ways returns; both must return the same."""
        turn = self._calls % (TRIES + SETTLED)
        self._calls += 1
        if turn >= TRIES:
            return ways[self._took[1] < self._took[0]]()
        if turn == 0:
            self._took = [inf, inf]
        way, start = turn % 2, perf_counter()
        result = ways[way]()
        self._took[way] = min(self._took[way], perf_counter() - start)
        return result
