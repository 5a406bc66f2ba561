"""Where a mean first falls below 0 along rising levels: the level up to which it is above, with 95 %.

A ladder of levels first, then at most `PROBES` more between the last level that is confirmed above 0 and the first one
that is confirmed below. Each level is looked at after 32, 64, 128 and 256 cases, and decided by Student's t at
ALPHA / (planned levels x planned looks) on the side where it could err. By Bonferroni all verdicts together are right
with 1 - ALPHA. A level that stays undecided is near the truth: the levels left and right of it are tried next.
A dip below 0 that no level of the ladder meets stays unseen.

How often its intervals hold the truth: docs/how_to/tolerance.md, measured in `tests/lab/test_crossing.py`.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from heron_env.lab.robust_stats import t_quantile

ALPHA: Final = 0.05
"""The chance that any verdict errs."""
LOOKS: Final = (32, 64, 128, 256)
"""Cases after which a level is looked at."""
PROBES: Final = 8
"""Levels that are tried beside those of the ladder, at most."""
LEAST, MOST = 0.3, 0.75
"""Of the way to the next level: what a further one must promise, and how far it goes, for a curve may be no line."""
Evaluate = Callable[[float, range], NDArray[np.float64]]
"""The values at a level, of the cases with these numbers, `[n]`."""


@dataclass(frozen=True)
class Probe:
    """One level: the mean of its cases, and the half width of the bound that decides."""

    level: float
    cases: int
    mean: float
    half: float

    @property
    def verdict(self) -> Literal["kept", "lost", "undecided"]:
        """Is the mean confirmed above 0, below 0, or neither?"""
        return "kept" if self.mean > self.half else "lost" if self.mean < -self.half else "undecided"


@dataclass(frozen=True)
class Crossing:
    """What `first_crossing` found: the levels that were tried, rising."""

    probes: tuple[Probe, ...]

    @property
    def low(self) -> float:
        """The largest amount that is confirmed above 0, with all smaller ones; nan: none."""
        above = list(takewhile(lambda probe: probe.verdict == "kept", self.probes))
        return above[-1].level if above else math.nan

    @property
    def high(self) -> float:
        """The smallest amount that is confirmed below 0; inf: none."""
        return next((probe.level for probe in self.probes if probe.verdict == "lost"), math.inf)

    @property
    def estimate(self) -> float:
        """First zero of the line through the means; inf: there is none, nan: nothing is above 0."""
        if math.isnan(self.low):
            return math.nan
        for left, right in pairwise(self.probes):
            if right.mean <= 0.0:
                return left.level + (right.level - left.level) * left.mean / (left.mean - right.mean)
        return math.inf

    @property
    def above_again(self) -> tuple[float, ...]:
        """Amounts beyond `high` that are confirmed above 0: there the curve is not monotone."""
        return tuple(probe.level for probe in self.probes if probe.level > self.high and probe.verdict == "kept")


def first_crossing(evaluate: Evaluate, ladder: Sequence[float], cases: int, *, step: float) -> Crossing:
    """Where the mean first falls below 0, between two levels.

    Args: evaluate: the values at a level, of some cases; each is asked for once; ladder: rising levels. Where the mean
        of the first is not confirmed above 0, no other is tried; cases: how many there are, 2 at least; more than the
        last of `LOOKS` are not looked at; step: between levels that can differ, counted from the first one.
    """
    last = min(cases, LOOKS[-1])
    looks = (*(look for look in LOOKS if look < last), last)
    chance = ALPHA / (len(looks) * (len(ladder) + PROBES))
    probes = [_probed(evaluate, ladder[0], looks, chance)]
    if probes[0].verdict == "kept":
        probes += [_probed(evaluate, level, looks, chance) for level in ladder[1:]]
    for _ in range(PROBES):
        further = _between(Crossing(tuple(probes)), ladder[0], step)
        if further is None:
            break
        insort(probes, _probed(evaluate, further, looks, chance), key=lambda probe: probe.level)
    return Crossing(tuple(probes))


def _probed(evaluate: Evaluate, level: float, looks: Sequence[int], chance: float) -> Probe:
    """A level, after as many cases as decide it."""
    values = np.zeros(0)
    for look in looks:
        values = np.concatenate([values, evaluate(level, range(len(values), look))])
        half = t_quantile(1.0 - 2.0 * chance, look - 1) * float(values.std(ddof=1)) / math.sqrt(look)
        probe = Probe(level, look, float(values.mean()), half)
        if probe.verdict != "undecided":
            break
    return probe


def _between(crossing: Crossing, start: float, step: float) -> float | None:
    """The next level to try, in whole steps: where it may move one end of the interval most; None if nowhere.

    Beside an undecided level that is where the line through the means meets its bound: nearer to it nothing would be
    decided, either.
    """
    inside = [probe for probe in crossing.probes if crossing.low <= probe.level <= crossing.high]
    ends = [inside[:2], inside[:-3:-1]][: 1 if crossing.high == math.inf else 2]
    moves = {}
    for end, near in (pair for pair in ends if len(pair) == 2):
        share = 0.5
        if near.verdict == "undecided":
            share = min(MOST, (abs(end.mean) - near.half) / abs(end.mean - near.mean))
        steps = round((end.level + share * (near.level - end.level) - start) / step)
        level = round(start + step * steps, 9)
        if share >= LEAST and min(end.level, near.level) < level < max(end.level, near.level):
            moves[level] = abs(level - end.level)
    return max(moves, key=moves.__getitem__, default=None)
