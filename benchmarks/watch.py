"""What the processor did while cases ran: the CPU time of who was timed, and what other programs took."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

STAT: Final = Path("/proc/stat")
MUCH: Final = 0.1
"""Cores that others take, from which on a round is disturbed."""
SLACK: Final = 0.03  # s, what the system's own count is off by
IDLE: Final = (3, 4)
"""Places of idle and of waiting among the ticks of /proc/stat."""
GUESTS: Final = 8
"""From here on ticks are counted among the others already."""


def own_cpu() -> float:
    """CPU seconds of this process, all its threads, and its children that are done."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


def busy_seconds(text: str | None = None) -> float | None:
    """Seconds that all cores were busy since the system started; None where the system does not tell.

    >>> busy_seconds("cpu  100 50 50 9000 10 0 0 0 0 0") == 200 / os.sysconf("SC_CLK_TCK")
    True
    """
    try:
        line = (STAT.read_text(encoding="ascii") if text is None else text).split("\n", 1)[0].split()
    except OSError:
        return None
    ticks = [int(field) for place, field in enumerate(line[1 : 1 + GUESTS]) if place not in IDLE]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Watches the rounds of one comparison.

    Attributes:
        cores: by case, for each round: CPU seconds for each second on the wall.
        foreign: for each round: cores that other programs took; None where the system does not tell.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, busy: Callable[[], float | None] = busy_seconds
    ) -> None:
        self._clock, self._busy, self._own = clock, busy, 0.0
        self.cores: dict[str, list[float]] = {}
        self.foreign: list[float | None] = []

    @contextmanager
    def round(self) -> Iterator[None]:
        """Around all cases of a round."""
        self._own, start, before = 0.0, self._clock(), self._busy()
        yield
        after, elapsed = self._busy(), self._clock() - start
        if before is None or after is None or not elapsed > 0.0:
            self.foreign.append(None)
        else:
            self.foreign.append(max(after - before - self._own - SLACK, 0.0) / elapsed)

    @contextmanager
    def case(self, name: str, cpu: Callable[[], float]) -> Iterator[None]:
        """Around a case whose CPU seconds so far `cpu` tells."""
        start, before = self._clock(), cpu()
        yield
        spent, elapsed = cpu() - before, self._clock() - start
        self._own += spent
        self.cores.setdefault(name, []).append(spent / elapsed if elapsed > 0.0 else 0.0)
