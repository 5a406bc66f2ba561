"""Faults in the lanes of a batch: each lane's own Course, and what it changes of decisions and of what is seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.batch.lane_groups import Group
from heron_env.envs.batch.lane_hooks import LaneViews
from heron_env.envs.disturbing import Course

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class LaneFaults:
    """The courses of the running episodes, by lane; see Course for what one does."""

    def __init__(self, views: LaneViews, observers: Sequence[int]) -> None:
        """`observers`: ranks in the order in which they are published."""
        self._views, self._observers = views, observers
        self.courses: dict[int, Course] = {}

    def begin(self, lanes: Ints) -> None:
        """Take over what the environments of these lanes have before them; the old is forgotten."""
        for lane in lanes.tolist():
            self.courses.pop(lane, None)
            course = self._views.simulation(lane).course
            if course is not None:
                self.courses[lane] = course

    def uphold(self, lanes: Ints) -> None:
        """After `finish`, in the lanes that moved: what lasts is in force in the next step, too."""
        for course in self._as_now(lanes):
            course.uphold()

    def catch_up(self, lanes: Ints) -> None:
        """At the boundary: everything that fell due since the last."""
        for course in self._as_now(lanes):
            course.catch_up()

    def _as_now(self, lanes: Ints) -> Iterator[Course]:
        """Those of `lanes`, each on its environment as it is now."""
        for lane in lanes.tolist() if self.courses else ():
            if lane in self.courses:
                assert self._views[lane].simulation.course is self.courses[lane]
                yield self.courses[lane]

    def silence(self, active: Bools, group: Group) -> None:
        """Take those who are down out of `active` `[lanes, agents]`."""
        for lane, course in self.courses.items():
            if course.down:
                active[lane] &= [rank not in course.down for rank in group.ranks]

    def age(self, ages: NDArray[np.float64], group: Group) -> None:
        """Write how old what agents see is where sensors are silent, s, into `ages` `[lanes, agents, sources]`."""
        for lane, course in self.courses.items():
            if course.muted:
                for place, rank in enumerate(group.ranks):
                    old = course.ages(rank)
                    ages[lane, place, : len(old)] = old

    def shown(self, lanes: Bools | None = None) -> dict[int, NDArray[np.float32]]:
        """What all observers see, `[floats]`, in the `lanes` `[B]` in which sensors may fail."""
        return {
            lane: np.concatenate([course.vector(rank) for rank in self._observers])
            for lane, course in self.courses.items()
            if course.hides and (lanes is None or lanes[lane])
        }
