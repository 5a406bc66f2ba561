"""Timing comparisons: all cases of one in turns over the rounds; figures, their spread, and ratios round by round."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.case import Case, Comparison, Role, Setting
from benchmarks.watch import MUCH, Watch


@dataclass(frozen=True)
class Spread:
    """Several figures in three: the median, the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Of at least one figure."""
        return cls(statistics.median(figures), min(figures), max(figures))

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return {"median": self.median, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Measured:
    """One case, timed: a figure for each round."""

    name: str
    role: Role
    rounds: Sequence[float]
    facts: Mapping[str, float] = field(default_factory=dict)
    cores: Sequence[float] = ()
    """CPU seconds for each second on the wall, a figure for each round."""

    @property
    def spread(self) -> Spread:
        """The figure."""
        return Spread.of(self.rounds)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "role": str(self.role),
            **self.spread.to_dict(),
            "rounds": list(self.rounds),
            "facts": dict(self.facts),
            "cores": list(self.cores),
        }


@dataclass(frozen=True)
class Result:
    """One comparison, timed."""

    name: str
    title: str
    unit: str
    cases: Sequence[Measured]
    foreign: Sequence[float | None] = ()
    """Cores that other programs took, for each round; None where the system does not tell."""

    @property
    def disturbed(self) -> list[bool]:
        """Rounds in which other programs took more than a little."""
        return [taken is not None and taken > MUCH for taken in self.foreign]

    def case(self, name: str) -> Measured | None:
        """The case of that name, if it was timed."""
        return next((case for case in self.cases if case.name == name), None)

    def of(self, role: Role) -> list[Measured]:
        """The cases of a role, in their order."""
        return [case for case in self.cases if case.role is role]

    def ratio(self, name: str, to: str) -> Spread | None:
        """How many times as large `name` is as `to`, round by round; None where one of them was not timed.

        The cases of one round ran next to each other, so their ratio holds where the figures themselves drift.
        """
        one, other = self.case(name), self.case(to)
        if one is None or other is None:
            return None
        return Spread.of([a / b for a, b in zip(one.rounds, other.rounds, strict=True)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `ratios` has ours to each of the others."""
        ratios = [
            {"of": ours.name, "to": other.name, **found.to_dict()}
            for ours in self.of(Role.OURS)
            for other in self.cases
            if other.role is not Role.OURS and (found := self.ratio(ours.name, other.name))
        ]
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "better": "more",
            "cases": [case.to_dict() for case in self.cases],
            "ratios": ratios,
            "foreign_cores": list(self.foreign),
            "disturbed": self.disturbed,
        }


def measure(comparison: Comparison, setting: Setting, *, rounds: int, seconds: float) -> Result:
    """Build the cases, run each once unmeasured, then time them in turns: forwards, backwards, forwards, ...

    Garbage is looked for among what they make, not among all that is there already, as in a program of their own.
    """
    with ExitStack() as closing:
        cases = list(comparison.build(setting))
        for case in cases:
            closing.callback(case.close)
        for case in cases:
            case.run(seconds / 4)
        gc.collect()
        gc.freeze()
        closing.callback(gc.unfreeze)
        watch = Watch()
        figures = in_turns(cases, min(rounds, comparison.rounds or rounds), seconds, watch)
        measured = [
            Measured(case.name, case.role, figures[case.name], dict(case.facts()), watch.cores[case.name])
            for case in cases
        ]
    return Result(comparison.name, comparison.title, comparison.unit, measured, watch.foreign)


def in_turns(cases: Sequence[Case], rounds: int, seconds: float, watch: Watch | None = None) -> dict[str, list[float]]:
    """The figures of each case by name, one a round; `watch` looks on."""
    watch = watch or Watch()
    figures: dict[str, list[float]] = {case.name: [] for case in cases}
    for number in range(rounds):
        with watch.round():
            for case in cases if number % 2 == 0 else reversed(cases):
                with watch.case(case.name, case.cpu):
                    figures[case.name].append(case.run(seconds))
    return figures


Progress = Callable[[str, int, int], None]
"""Told the comparison about to be timed, how many are done, and how many there are."""


def measure_all(
    comparisons: Sequence[Comparison], setting: Setting, *, rounds: int, seconds: float, progress: Progress
) -> list[Result]:
    """Time one comparison after another."""
    results = []
    for number, comparison in enumerate(comparisons):
        progress(comparison.name, number, len(comparisons))
        results.append(measure(comparison, setting, rounds=rounds, seconds=seconds))
    return results
