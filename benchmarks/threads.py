"""Threads for floors and ceilings: equal parts of the lanes, one each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Threads:
    """Runs a loop over lanes in equal contiguous parts, one a thread; the caller's thread takes the last."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count - 1) if count > 1 else None
        self.count = count

    def over(self, lanes: int, loop: Any, *arguments: Any) -> None:
        """`loop(first, last, *arguments)` over all lanes; the loop must let go of the interpreter to gain anything."""
        if self._pool is None:
            loop(0, lanes, *arguments)
            return
        cuts = [part * lanes // self.count for part in range(self.count + 1)]
        others = [self._pool.submit(loop, *cuts[i : i + 2], *arguments) for i in range(self.count - 1)]
        loop(*cuts[-2:], *arguments)
        for other in others:
            other.result()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
