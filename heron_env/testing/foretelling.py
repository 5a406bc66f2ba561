"""Which observed columns may tell of the coming step: written ahead themselves, or equal to what was written ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.envs.base import HeronEnv
from heron_env.testing.boundaries import Boundaries, Columns, Floats

OFTEN = 3
"""Boundaries that are no coincidence."""
MOST_OWNERS = 4
"""Of a cohort, whose observed columns are compared with what was written ahead: the others are alike."""
FINE = 0.9
"""Values of which a greater share is different do not coincide by chance."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Suspect:
    """An observed column that may tell of the coming step.

    Attributes:
        column: of the suspect.
        source: a column that was written ahead, perhaps the suspect itself.
        mean: is it the mean of the source's vector that the suspect shows?
        boundaries: at how many boundaries.
    """

    column: int
    source: int
    mean: bool
    boundaries: int


def written_ahead(boundaries: Boundaries) -> Columns:
    """Columns that `finish` changes often and nothing else does within a step: the source of suspicion."""
    return np.flatnonzero((boundaries.written >= OFTEN) & ~boundaries.moved)


def shown_unmarked(env: HeronEnv) -> Columns:
    """Columns that somebody observes and that are not marked as known ahead, nor told of what is."""
    layout = env.simulation.layout
    seen = np.zeros(layout.size, dtype=bool)
    for view in env.simulation.plan.views:
        seen[view.columns] = True
    marked = layout.foreknown.copy()
    for edge in env.simulation.exchange.edges:
        marked[edge.target] |= layout.foreknown[edge.source]
    return np.flatnonzero(seen & layout.observed & ~marked)


def suspects(env: HeronEnv, boundaries: Boundaries) -> Iterator[Suspect]:
    """Those written ahead themselves first, then those equal to them or to the mean of their vector."""
    ahead, asked, layout = written_ahead(boundaries), shown_unmarked(env), env.simulation.layout
    for column in np.intersect1d(asked, ahead).tolist():
        yield Suspect(column, column, mean=False, boundaries=int(boundaries.written[column]))
    some = asked[_among_the_first(layout)[asked]]
    for span in _quantities(layout, ahead):
        yield from _equal(layout, boundaries.shown, some, span)


def _among_the_first(layout: Layout) -> Bools:
    """Does the column belong to one of the first owners of its cohort?"""
    first = np.zeros(layout.size, dtype=bool)
    for cohort in layout.cohorts:
        first[cohort.offset : cohort.offset + min(cohort.count, MOST_OWNERS) * cohort.width] = True
    return first


def _quantities(layout: Layout, ahead: Columns) -> Iterator[slice]:
    """The places of the quantities, vectors whole, of which something was written ahead."""
    is_ahead = np.zeros(layout.size, dtype=bool)
    is_ahead[ahead] = True
    for row in layout.rows:
        for start, _, q in row.columns():
            if is_ahead[start : start + q.size].any():
                yield slice(start, start + q.size)


def _equal(layout: Layout, shown: list[Floats], some: Columns, span: slice) -> Iterator[Suspect]:
    """Columns among `some` that equal the quantity at `span` and not what it was in the step that has ended."""
    asked = some[(some < span.start) | (some >= span.stop)]
    told = np.concatenate([course[1:, asked] for course in shown])
    changed = np.concatenate([_changed(course, asked) for course in shown])
    coming = np.concatenate([_with_mean(course[1:, span]) for course in shown])
    past = np.concatenate([_with_mean(course[:-1, span]) for course in shown])
    new = ~known_before(coming, past)
    equal = close(told[:, :, None], coming[:, None, :])
    hits = equal & changed[:, :, None] & ~known_before(told, past)[:, :, None]
    for i, j in np.argwhere(hits.sum(axis=0) >= OFTEN).tolist():
        source = span.start + min(j, span.stop - span.start - 1)
        whole = bool(layout.whole[asked[i]] or layout.whole[source])
        if is_no_chance(hits[:, i, j], equal[:, i, j], coming[:, j], new[:, j], whole=whole):
            is_mean = j == span.stop - span.start
            yield Suspect(int(asked[i]), source, mean=is_mean, boundaries=int(hits[:, i, j].sum()))


def _changed(course: Floats, asked: Columns) -> Bools:
    """At which boundaries the columns have another value than at the one before: what stands still tells nothing."""
    return np.asarray(course[1:, asked] != course[:-1, asked])


def _with_mean(values: Floats) -> Floats:
    """`[boundaries, n]`, and for a vector its mean as one more column."""
    return np.column_stack([values, values.mean(axis=1)]) if values.shape[1] > 1 else values


def close(one: Floats, other: Floats) -> Bools:
    """Equal within rounding."""
    return np.asarray(np.abs(one - other) <= 1e-9 * np.abs(other) + 1e-12)


def known_before(values: Floats, past: Floats) -> Bools:
    """Which of the values, `[boundaries, n]`, the step that has ended explains, by its values `[boundaries, m]`."""
    return np.asarray(close(values[:, :, None], past[:, None, :]).any(axis=2))


def is_no_chance(hits: Bools, equal: Bools, values: Floats, new: Bools, *, whole: bool) -> bool:
    """Can't the hits be chance? A source of few different values meets others often: then it must never be missed."""
    if not (new & ~equal).any():
        return True
    fine = len(np.unique(values[new])) >= FINE * new.sum()
    return fine and not whole and len(np.unique(values[hits])) >= OFTEN
