"""The world as physics hooks see it: whole columns of the truth, nominal time, keyed draws."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import FeatureProvider
from heron_env.core.layout import Cohort, Layout
from heron_env.errors import RuleError, UnknownFeature, did_you_mean
from heron_env.seeding import key, uniforms


class Columns:
    """One feature of a cohort: `.soc` is a float64 view `[n]` (`[n, k]` for a vector quantity) on the truth.

    In a batch all of them have the lanes in front: `[B, n]`.
    """

    def __init__(self, feature: type[FeatureProvider], block: NDArray[np.float64]) -> None:
        views = {
            name: block[..., q.index] if not q.shape else block[..., q.index : q.index + q.size]
            for name, q in feature.quantities.items()
        }
        self.__dict__.update(views, _feature=feature)

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        feature = self.__dict__["_feature"]
        fields = list(feature.quantities)
        raise UnknownFeature(
            f"{feature.__name__} has no field {name!r}; fields are {fields}.{did_you_mean(name, fields)}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """`columns.soc = values` writes into the truth."""
        if name not in self.__dict__["_feature"].quantities:
            self.__getattr__(name)
        self.__dict__[name][...] = value


class CohortColumns:
    """All features of one agent class: `world[Battery].Charge.soc`."""

    def __init__(self, cohort: Cohort, array: NDArray[np.float64]) -> None:
        part = array[..., cohort.offset : cohort.offset + cohort.width * cohort.count]
        block = part.reshape(*array.shape[:-1], cohort.count, cohort.width)
        start = 0
        for feature in cohort.features:
            self.__dict__[feature.feature_name] = Columns(feature, block[..., start : start + feature.width])
            start += feature.width

    def __getattr__(self, name: str) -> Columns:
        raise UnknownFeature(
            f"no feature {name!r} here; there are {list(self.__dict__)}.{did_you_mean(name, self.__dict__)}"
        )


class World:
    """True state in columns. `world[Battery].Charge.soc` is `[n]`, a global `world.Price.value` is `[1]`.

    `time` is nominal, in seconds: the start of the substep; in `finish` the end of the step. `step` counts control
    steps. What hooks write is clipped to the declared bounds afterwards. `lanes` is 0; in a batch, this world's lanes.
    """

    lanes: int = 0
    _reads: bool = False

    def __init__(self, layout: Layout, array: NDArray[np.float64], *, reads: bool = False) -> None:
        """`reads`: it may only be read, and who draws or writes is refused with RuleError, or numpy's ValueError."""
        if reads:
            self._reads, array = True, array.view()
            array.flags.writeable = False
        self._array = array
        self.seed = 0
        self.episode = 0
        self.step = 0
        self.time = 0.0
        self._classes = [cohort.cls for cohort in layout.cohorts[:-1]]
        self._cohorts = [CohortColumns(cohort, array) for cohort in layout.cohorts[:-1]]
        self._by_class: dict[type, CohortColumns] = {}
        self._globals = CohortColumns(layout.cohorts[-1], array)

    @property
    def rows(self) -> NDArray[np.float64]:
        """The true state `[1, columns]`, numbered as `layout.full_names`; in a batch `[B, columns]`."""
        return self._array[None]

    def __getitem__(self, cls: type) -> CohortColumns:
        """The columns of all agents of this class, in registration order. Raises UnknownFeature.

        A base class stands for the one class of agents that derives from it.
        """
        columns = self._by_class.get(cls)
        if columns is None:
            columns = self._by_class[cls] = self._cohorts[cohort_of(self._classes, cls)]
        return columns

    def __getattr__(self, name: str) -> Columns:
        if name.startswith("_"):
            raise AttributeError(name)
        columns: Columns | None = vars(self._globals).get(name)
        if columns is None:
            carriers = ((cls.__name__, vars(c)) for cls, c in zip(self._classes, self._cohorts, strict=True))
            raise UnknownFeature(no_global(name, list(vars(self._globals)), carriers))
        return columns

    def draw(self, name: str, shape: int | tuple[int, ...] = 1) -> NDArray[np.float64]:
        """Draw uniforms in [0, 1), float64 `[*shape]`, keyed by (seed, episode, step, name)."""
        if self._reads:
            raise RuleError(f"world.draw({name!r}): it draws, where it may only read; draw in begin or finish")
        return drawn(self.seed, self.episode, self.step, name, shape)

    def put(self, columns: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Write `values` `[k]` into `columns` `[k]` of the truth, numbered as `layout.full_names`: one write for many.

        In a batch `values` are `[B, k]`.
        """
        self._array[columns] = values

    def get(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a copy of `columns` `[k]` of the truth, `[k]`; in a batch `[B, k]`."""
        return self._array[columns]


def drawn(seed: int, episode: int, step: int, name: str, shape: int | tuple[int, ...] = 1) -> NDArray[np.float64]:
    """What `World.draw` gives, float64 `[*shape]`, for given keys: draws of a single lane of a batch."""
    return uniforms(key("world", seed, episode, step, name), shape)


def no_global(name: str, names: Sequence[str], carriers: Iterable[tuple[str, Collection[str]]]) -> str:
    """Why `world.NAME` is refused; `carriers`: names of the classes of agents, and of their features."""
    of_agents = dict.fromkeys(f"world[{cls}].{name}" for cls, features in carriers if name in features)
    if of_agents:
        return f"world.{name}: no global feature, but one of agents; write {' or '.join(of_agents)}"
    return f"no feature {name!r} here; there are {names}.{did_you_mean(name, names)}"


def cohort_of(classes: Sequence[type], cls: type) -> int:
    """Which of the cohorts' classes `world[cls]` means. Raises UnknownFeature if it is none, or several."""
    matches = [i for i, candidate in enumerate(classes) if candidate is cls]
    matches = matches or [i for i, candidate in enumerate(classes) if issubclass(candidate, cls)]
    if len(matches) == 1:
        return matches[0]
    where, names = f"world[{cls.__name__}]", list(dict.fromkeys(candidate.__name__ for candidate in classes))
    derived = list(dict.fromkeys(classes[i].__name__ for i in matches))
    if len(derived) > 1:
        raise UnknownFeature(f"{where}: agents of the classes {derived} derive from it; name one of them")
    if matches:
        raise UnknownFeature(f"{where}: agents of that class carry different features; give each set its own class")
    near = did_you_mean(cls.__name__, names)
    raise UnknownFeature(f"{where}: no agent of that class; classes are {names}.{near}")
