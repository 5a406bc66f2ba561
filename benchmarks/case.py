"""What is timed: cases, and the comparisons they stand in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from benchmarks.watch import own_cpu

EPISODE: Final = 25
"""Steps between two resets, for everybody."""


class Role(StrEnum):
    """What a case stands for in its comparison."""

    OURS = "ours"
    CEILING = "ceiling"
    """What the machine could do: the same law, written by hand for this one purpose."""
    FLOOR = "floor"
    """What the same interface costs with nothing behind it, or the usual way to write it."""
    PEER = "peer"


def nothing() -> None:
    """The case holds nothing that must be closed."""


def no_facts() -> dict[str, float]:
    """The case has nothing more to tell."""
    return {}


@dataclass(frozen=True)
class Case:
    """One thing that is timed.

    Attributes:
        name: unique in its comparison.
        run: works for about so many seconds and returns the figure, in the comparison's unit.
        role: what it stands for.
        facts: further figures by name, asked for after the last round.
        close: ends what the case started.
        cpu: CPU seconds so far of who does the work.
    """

    name: str
    run: Callable[[float], float]
    role: Role = Role.OURS
    facts: Callable[[], Mapping[str, float]] = no_facts
    close: Callable[[], None] = nothing
    cpu: Callable[[], float] = own_cpu


@dataclass(frozen=True)
class Setting:
    """How this run is made.

    Attributes:
        quick: leave out what takes long.
        peers: the interpreter of each peer's virtual environment.
        threads: of ceilings and floors that can use more than one.
    """

    quick: bool = False
    peers: Mapping[str, Path] = field(default_factory=dict)
    threads: int = 1


@dataclass(frozen=True)
class Comparison:
    """Cases that are timed in turns, so that whatever else the machine does hits all of them alike.

    Attributes:
        name: `group-detail`; `--only` takes either.
        title: what is done, for the table.
        unit: of the figures.
        build: makes the cases; what must be compiled or loaded is, here or in their first run.
        quick: is it part of a quick run?
        rounds: at most so many; None: as many as asked for.
    """

    name: str
    title: str
    unit: str
    build: Callable[[Setting], Sequence[Case]]
    quick: bool = False
    rounds: int | None = None


def rate(
    work: Callable[[], Any], per_call: float, seconds: float, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Units a second: `work` does `per_call` of them and is called until `seconds` have passed, at least once."""
    calls, chunk, start = 0, 1, clock()
    while True:
        for _ in range(chunk):
            work()
        calls += chunk
        elapsed = clock() - start
        if elapsed >= seconds:
            return per_call * calls / elapsed
        if elapsed < seconds / 16:  # the clock is asked more rarely while much time is left
            chunk *= 2


def timed(
    work: Callable[[], Any], per_call: float, clock: Callable[[], float] = time.perf_counter
) -> Callable[[float], float]:
    """The `run` of a case whose `work` does `per_call` units."""
    return lambda seconds: rate(work, per_call, seconds, clock)
