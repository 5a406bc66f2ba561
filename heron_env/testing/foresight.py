"""Check that what agents are shown has happened: whether an observed column tells of the coming step, by trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.testing.check import Remark, Subject, in_python, passed, warning
from heron_env.testing.rollouts import Columns, Floats, choices, undone, until_the_end, waves

Bools = NDArray[np.bool_]
EPISODES, LEAST_STEPS = 3, 8
MEND = (
    "show the past: write into it, in advance, what has been measured; or hide it: quantity(observed=False); or, if "
    "it is really known ahead (a tariff, a forecast, what is published when it takes effect), say so: "
    "quantity(foreknown=True), in YAML `foreknown: true`"
)

OFTEN = 3
"""Boundaries that are no coincidence."""
MOST_OWNERS = 4
"""Of a cohort, whose observed columns are compared with what was written ahead: the others are alike."""
FINE = 0.9
"""Values of which a greater share is different do not coincide by chance."""
LITTLE = 0.01
"""Of the range that a quantity has passed through."""


def foresight(subject: Subject) -> Iterator[Remark]:
    """What agents are shown has happened; nothing unmarked tells of the coming step."""
    env = in_python(subject.build())
    boundaries, steps = Boundaries(env), max(LEAST_STEPS, subject.steps // 2)
    for seed in range(subject.seed, subject.seed + EPISODES):
        boundaries.record(seed, steps)
    suspected = list(suspects(env, boundaries))
    used = _used_sources(env, boundaries, suspected, subject.seed, steps)
    yield passed(
        f"{EPISODES} times {steps} steps; neither sums nor scaled copies of what is to come would be found, nor what "
        "stood still there"
    )
    names = env.simulation.model.layout.names
    confirmed: dict[str, list[Suspect]] = {}
    for suspect in suspected:
        if _quantity(names, suspect.source) in used:
            confirmed.setdefault(_quantity(names, suspect.column), []).append(suspect)
    for alike in confirmed.values():
        yield warning(_in_words(env, alike), MEND)


def _used_sources(env: HeronEnv, boundaries: Boundaries, suspected: list[Suspect], seed: int, steps: int) -> set[str]:
    """Names of the suspects' sources on which a step depends."""
    names = env.simulation.model.layout.names
    sources = {_quantity(names, suspect.source) for suspect in suspected}
    ahead: dict[str, list[int]] = {}
    for column in written_ahead(boundaries).tolist():
        ahead.setdefault(_quantity(names, column), []).append(column)
    return boundaries.on_which_depends({name: np.asarray(ahead[name]) for name in sorted(sources)}, seed, steps)


def _quantity(names: Sequence[str], column: int) -> str:
    """The column's quantity, whoever owns it: `Meter.load`."""
    return names[column].partition("[")[0]


def _in_words(env: HeronEnv, alike: list[Suspect]) -> str:
    """What the suspects of one quantity tell; the clearest of them stands for all."""
    names = env.state_names
    first = max(alike, key=lambda one: (one.column == one.source, one.boundaries, one.mean))
    others = len({suspect.column for suspect in alike}) - 1
    columns = names[first.column] + (f" and {others} more" if others else "")
    if first.column == first.source:
        why = f"finish writes it ahead (at {first.boundaries} boundaries), and the coming step depends on it"
    else:
        source = names[first.source].partition("[")[0] if first.mean else names[first.source]
        what = f"the mean of {source} over the coming step" if first.mean else source
        why = f"at {first.boundaries} boundaries it equals {what}, on which the coming step depends, not the past one"
    return f"agents see {columns} ahead of time: {why}"


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


def suspects(env: HeronEnv, boundaries: Boundaries) -> Iterator[Suspect]:
    """Those written ahead themselves first, then those equal to them or to the mean of their vector."""
    ahead, asked, layout = written_ahead(boundaries), unmarked_columns(env), env.simulation.model.layout
    for column in np.intersect1d(asked, ahead).tolist():
        yield Suspect(column, column, mean=False, boundaries=int(boundaries.written[column]))
    some = asked[_among_the_first(layout)[asked]]
    for span in _quantities(layout, ahead):
        yield from _equal(layout, boundaries.courses, some, span)


def written_ahead(boundaries: Boundaries) -> Columns:
    """Columns that `finish` changes often and nothing else does within a step: the source of suspicion."""
    return np.flatnonzero((boundaries.written >= OFTEN) & ~boundaries.moved)


def unmarked_columns(env: HeronEnv) -> Columns:
    """Columns that somebody observes and that are not marked as known ahead, nor told of what is."""
    layout = env.simulation.model.layout
    observed = np.zeros(layout.size, dtype=bool)
    for view in env.simulation.model.plan.views:
        observed[view.columns] = True
    marked = layout.foreknown.copy()
    for edge in env.simulation.exchange.edges:
        marked[edge.target] |= layout.foreknown[edge.source]
    return np.flatnonzero(observed & layout.observed & ~marked)


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


def _equal(layout: Layout, courses: list[Floats], some: Columns, span: slice) -> Iterator[Suspect]:
    """Columns among `some` that equal the quantity at `span` and not what it was in the step that has ended."""
    asked = some[(some < span.start) | (some >= span.stop)]
    values = np.concatenate([course[1:, asked] for course in courses])
    changed = np.concatenate([_changed(course, asked) for course in courses])
    coming = np.concatenate([_with_mean(course[1:, span]) for course in courses])
    past = np.concatenate([_with_mean(course[:-1, span]) for course in courses])
    new = ~explained_by_the_past(coming, past)
    equal = close(values[:, :, None], coming[:, None, :])
    hits = equal & changed[:, :, None] & ~explained_by_the_past(values, past)[:, :, None]
    for i, j in np.argwhere(hits.sum(axis=0) >= OFTEN).tolist():
        source = span.start + min(j, span.stop - span.start - 1)
        integer = bool(layout.integer[asked[i]] or layout.integer[source])
        if is_no_chance(hits[:, i, j], equal[:, i, j], coming[:, j], new[:, j], integer=integer):
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


def explained_by_the_past(values: Floats, past: Floats) -> Bools:
    """Which of the values, `[boundaries, n]`, the step that has ended explains, by its values `[boundaries, m]`."""
    return np.asarray(close(values[:, :, None], past[:, None, :]).any(axis=2))


def is_no_chance(hits: Bools, equal: Bools, values: Floats, new: Bools, *, integer: bool) -> bool:
    """Can't the hits be chance? A source of few different values meets others often: then it must never be missed."""
    if not (new & ~equal).any():
        return True
    fine = len(np.unique(values[new])) >= FINE * new.sum()
    return fine and not integer and len(np.unique(values[hits])) >= OFTEN


class Boundaries:
    """Episodes of an environment in plain Python (`in_python`), watched between effects, substeps and `finish`.

    Attributes:
        courses: of each episode, float64 `[boundaries, columns]`: what may be observed there, the first after `begin`.
        written: at how many boundaries `finish` changed the column, int64 `[columns]`.
        moved: has anything else changed it within a step? bool `[columns]`
    """

    def __init__(self, env: HeronEnv) -> None:
        self.env, self.simulation = env, env.simulation
        size = self.simulation.model.layout.size
        self.courses: list[Floats] = []
        self.written, self.moved = np.zeros(size, np.int64), np.zeros(size, dtype=bool)
        self._start = self._end = self.simulation.truth.copy()
        self._recording = self._trying = False
        self._run_hook, lanes = env.run_hook, self.simulation.lane.lanes
        env.run_hook = self._watched_hook  # type: ignore[method-assign]
        lanes.follow([lanes.called.native(place, self._note) for place in ("before_physics", "physics")])

    def record(self, seed: int, steps: int) -> None:
        """So many steps, from the beginning of an episode of this seed on, and of the following ones if it ends."""
        policies, (observations, _) = waves(self.env), self.env.reset(seed=seed)
        course, self._recording = [self._boundary()], True
        for _ in range(steps):
            if not self.env.agents:
                self.courses.append(np.array(course))
                observations, _ = self.env.reset()
                course = [self._boundary()]
            observations, *_ = self.env.step(choices(self.env, policies, observations))
            course.append(self._boundary())
        self.courses.append(np.array(course))
        self._recording = False

    def _boundary(self) -> Floats:
        self._start = self.simulation.truth.copy()
        return self._start

    def _note(self, first: int, last: int) -> None:
        if self._recording:  # before physics: what effects have done
            self.moved |= self.simulation.truth != self._start

    def _watched_hook(self, name: str, world: World, *more: float) -> None:
        if name != "finish":
            self._run_hook(name, world, *more)
            return
        self._end = self.simulation.truth.copy()
        if self._trying:
            return
        self._run_hook(name, world, *more)
        if self._recording:
            after = self.simulation.truth.copy()
            self.simulation.model.layout.clip_columns(after)
            self.written += after != self._end

    def on_which_depends(self, quantities: Mapping[str, Columns], seed: int, steps: int) -> set[str]:
        """Those of the quantities (columns by name) for other values of which a step comes out different."""
        env, pending, used = self.env, dict(quantities), set[str]()
        policies, (observations, _) = waves(env), env.reset(seed=seed)
        before = self.simulation.truth.copy()
        for step in range(steps):
            if not (pending and env.agents):
                break
            actions = choices(env, policies, observations)
            if step and self._differs(np.concatenate(list(pending.values())), before, actions):
                used |= {name for name, columns in pending.items() if self._differs(columns, before, actions)}
                pending = {name: columns for name, columns in pending.items() if name not in used}
            before = self.simulation.truth.copy()
            observations, *_ = env.step(actions)
        return used

    def _differs(self, columns: Columns, before: Floats, actions: Mapping[str, Any]) -> bool:
        """Does the coming step come out different if these columns are a little different, or as they were `before`?"""
        plain = self._tried(columns, None, actions)
        others = (self._a_little_different(columns), before[columns])
        return any(not np.array_equal(plain, self._tried(columns, values, actions)) for values in others)

    def _a_little_different(self, columns: Columns) -> Floats:
        layout, now = self.simulation.model.layout, self.simulation.truth[columns]
        passed = np.concatenate([course[:, columns] for course in self.courses])
        change = np.where(layout.integer[columns], 1.0, LITTLE * (passed.max(axis=0) - passed.min(axis=0)))
        return np.asarray(np.where(now + change <= layout.high[columns], now + change, now - change))

    def _tried(self, columns: Columns, values: Floats | None, actions: Mapping[str, Any]) -> Floats:
        """What the coming step makes of all other columns, and the rewards; everything is put back."""
        self._trying = True
        try:
            with undone(self.env):
                if values is not None:
                    self.simulation.truth[columns] = values
                until_the_end(self.env, actions)
                rewards = self.simulation.close_step().rewards
                return np.concatenate([np.delete(self._end, columns), rewards])
        except Exception:  # noqa: BLE001  a step that breaks off comes out different
            return np.array([np.nan])
        finally:
            self._trying = False
