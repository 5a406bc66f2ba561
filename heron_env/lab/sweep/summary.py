"""What a report begins with: three sentences about the first policy of its sweeps."""

from __future__ import annotations

from collections.abc import Sequence

from heron_env.lab.sweep.decomposition import Decomposition
from heron_env.lab.sweep.results import Measurements
from heron_env.lab.sweep.sentences import UNCLEAR, Changes, Level


def summary(results: Sequence[Measurements]) -> list[str]:
    """Say in three sentences what the first policy earns, what the network costs it most, and by which cause."""
    policy = results[0].policies[0]
    level, changes = Level(results[0], policy), Changes(results[0], policy)
    texts = [f"{level.earned}{_nearest(level)}."]
    if changes.costs and changes.lowers:
        worst, count = changes.largest, sum(cost.gap.value > 0.0 for cost in changes.significant)
        share = f", {worst.lost.percent()} of its gain over doing nothing" if worst.lost.known else ""
        few = f"; {count} of {len(changes.costs)} conditions lower its return" if len(changes.costs) > 1 else ""
        texts.append(f"The network costs it most under {worst.condition}: {worst.gap}{share}{few}.")
    elif changes.costs:
        texts.append(str(changes).partition(". ")[0].removesuffix(".") + ".")
    by_cause = [each for result in results for each in result.decompositions if each.policy == policy]
    return [*texts, *map(_most, by_cause[-1:])]


def _most(parts: Decomposition) -> str:
    gap, largest = parts.gap.mean, max(parts.parts, key=lambda part: part.mean.value)
    if gap.known and not gap.excludes_zero:
        return f"All causes together take {gap}, {UNCLEAR}: more cases are needed to split it."
    if gap.known and not largest.mean.low > 0.0:
        return f"All causes together take {gap}; no single cause is {UNCLEAR.replace('not ', '')}."
    return f"Of {gap} that all causes take together, {largest.words} takes most: {largest.mean}."


def _nearest(level: Level) -> str:
    """`, 3.10 [2.00, 4.20] less than 'MPC'`: compared with the other policy nearest to it; "" of one."""
    if not level.against:
        return ""
    other, more = min(level.against, key=lambda pair: abs(pair[1].value))
    if more.known and not more.excludes_zero:
        return f"; its difference to {other!r}, {more}, is {UNCLEAR}"
    size, word = (more, "more") if more.value > 0.0 else (more.negative, "less")
    return f", {size} {word} than {other!r}"
