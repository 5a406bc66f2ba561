"""BatchWorld: the world of all lanes, or of some of them, as hooks with `batched = True` see it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import FeatureProvider
from heron_env.core.layout import Cohort, Layout
from heron_env.core.world import CohortColumns, Columns, World
from heron_env.errors import RuleError
from heron_env.seeding import keys, uniform_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]


class LaneColumns(Columns):
    """One feature of a cohort in all lanes: `.soc` is a view `[B, n]` (`[B, n, k]` for a vector quantity)."""

    def __init__(self, feature: type[FeatureProvider], block: Floats) -> None:
        views = {
            name: block[..., q.index] if not q.shape else block[..., q.index : q.index + q.size]
            for name, q in feature.quantities.items()
        }
        self.__dict__.update(views, _feature=feature)


class LaneCohort(CohortColumns):
    """All features of one agent class in all lanes."""

    def __init__(self, cohort: Cohort, truth: Floats) -> None:
        part = truth[:, cohort.offset : cohort.offset + cohort.width * cohort.count]
        block = part.reshape(len(truth), cohort.count, cohort.width)
        start = 0
        for feature in cohort.features:
            self.__dict__[feature.feature_name] = LaneColumns(feature, block[..., start : start + feature.width])
            start += feature.width


class BatchWorld(World):
    """World with a leading axis: columns `[B, n]`, globals `[B, 1]`; what hooks write is clipped afterwards.

    Attributes:
        lanes: which lanes these are, int64 `[B]`; in `begin` only those that start, else those that run.
        seed, episode: of each, uint64 `[B]`.
        step: control steps of each, int64 `[B]`.
        time: nominal, s, float64 `[B, 1]`.
        touched: may a hook have written anything that is not yet within its bounds? It has if it asked for columns,
            and has not if it only used `get` and `put`. Columns are for the call in which they were asked for.
    """

    lanes: Any
    seed: Any
    episode: Any
    step: Any
    time: Any

    def __init__(self, layout: Layout, truth: Floats, lanes: Ints, seeds: Keys, episodes: Keys) -> None:
        self._array, self._layout, self.touched = truth, layout, False
        self._limits: dict[int, tuple[Ints, Floats, Floats, bool]] = {}
        self.lanes, self.seed, self.episode = lanes, seeds, episodes
        self.step, self.time = np.zeros(len(truth), dtype=np.int64), np.zeros((len(truth), 1))
        self._classes = [cohort.cls for cohort in layout.cohorts[:-1]]
        self._known = {}

    @cached_property
    def _cohorts(self) -> list[LaneCohort]:  # type: ignore[override]
        """Made where somebody looks: many hooks use `get` and `put` alone."""
        return [LaneCohort(cohort, self._array) for cohort in self._layout.cohorts[:-1]]

    @cached_property
    def _globals(self) -> LaneCohort:  # type: ignore[override]
        return LaneCohort(self._layout.cohorts[-1], self._array)

    def draw(self, name: str, shape: int | tuple[int, ...] = 1) -> Floats:
        """Uniforms in [0, 1), `[B, *shape]`: each lane's are those that its own World draws."""
        return uniform_rows(keys("world", self.seed, self.episode, self.step.astype(np.uint64), name), shape)

    @property
    def rows(self) -> Floats:
        """As in World, `[B, columns]`."""
        self.touched = True
        return self._array

    def __getitem__(self, cls: type) -> CohortColumns:
        """As in World, `[B, n]`."""
        self.touched = True
        return super().__getitem__(cls)

    def __getattr__(self, name: str) -> Columns:
        """As in World, `[B, 1]`."""
        columns = super().__getattr__(name)
        self.touched = True
        return columns

    def get(self, columns: Ints) -> Floats:
        """As in World, `[B, k]`."""
        return self._array.take(columns, axis=1)

    def put(self, columns: Ints, values: Floats) -> None:
        """Write `values` `[B, k]` into `columns` `[k]` of every lane's truth, within their bounds."""
        from heron_env.engine.phases import shared_loops

        if np.shape(values) != (shape := (len(self.lanes), len(columns))):  # compiled code would read past the end
            raise RuleError(f"world.put(columns, values): values have the shape {np.shape(values)}, expected {shape}")
        if id(columns) not in self._limits:
            low, high, whole = (of[columns] for of in (self._layout.low, self._layout.high, self._layout.whole))
            self._limits[id(columns)] = (columns, low, high, bool(whole.any()))
        _, low, high, rounded = self._limits[id(columns)]
        nan = shared_loops().put(*self._target(), columns, values, low, high)
        self.touched |= nan or rounded

    def _target(self) -> tuple[Floats, Ints]:
        """Whose rows `put` writes, and which."""
        return self._array, np.arange(len(self._array))


class SomeLanes(BatchWorld):
    """The world of some `lanes` of a whole one: a compacted copy, made where somebody looks, for `write_back`.

    What is only put goes straight to the whole.
    """

    def __init__(self, whole: BatchWorld, lanes: Ints) -> None:
        self._whole, self._layout, self.touched = whole, whole._layout, False
        self._limits, self._classes, self._known = whole._limits, whole._classes, {}
        self.lanes, self.seed, self.episode = lanes, whole.seed[lanes], whole.episode[lanes]

    @cached_property
    def _array(self) -> Floats:  # type: ignore[override]
        rows: Floats = self._whole._array[self.lanes]
        return rows

    def _target(self) -> tuple[Floats, Ints]:
        return super()._target() if "_array" in self.__dict__ else (self._whole._array, self.lanes)

    def write_back(self) -> None:
        """Into the whole, what may have been changed in the copy."""
        if "_array" in self.__dict__:
            self._whole._array[self.lanes] = self._array
