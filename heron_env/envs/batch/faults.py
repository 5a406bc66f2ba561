"""Faults in the lanes of a batch: each lane's own Course, and what it changes of decisions and of what is seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.blueprint import splits_in_python
from heron_env.engine.lanes import Lanes
from heron_env.envs.batch.lane_groups import Group
from heron_env.envs.batch.lane_hooks import LaneViews
from heron_env.envs.decisions import Source, Vectors, shares
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

    def down(self, lane: int) -> dict[int, str]:
        """Who decides nothing in this lane, and what it does meanwhile, by rank."""
        course = self.courses.get(lane)
        return {} if course is None else course.down

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


class Commands:
    """Decisions that the compiled ones can't know: of agents that are down, and shares of protocols in Python."""

    def __init__(self, lanes: Lanes, views: LaneViews, faults: LaneFaults) -> None:
        self._lanes, self._views, self._faults = lanes, views, faults
        hierarchy, specs = lanes.blueprint.hierarchy, lanes.blueprint.specs
        protocols = (agent.protocol for agent in hierarchy.agents if agent.protocol is not None)
        self._always = any(map(splits_in_python, protocols))
        acting = [rank for rank, spec in enumerate(specs) if spec.size]
        self._acting = [(rank, lanes.position[rank], lanes.action_slice(rank), specs[rank].noop) for rank in acting]

    def decide(self) -> None:
        """All decide, into `source` and `applied`. Nothing has changed if this raises InvalidAction."""
        if not (self._always or any(course.down for course in self._faults.courses.values())):
            self._lanes.decide()
            return
        arrays = self._lanes.arrays
        force = arrays.applied.copy()
        self._lanes.decide()
        for lane in np.flatnonzero(arrays.over == 0).tolist():
            down = self._faults.down(lane)
            if down or self._always:
                self._correct(lane, down, force[lane])

    def _correct(self, lane: int, down: dict[int, str], force: NDArray[np.float64]) -> None:
        """Top-down; `force`: what was in force before."""
        arrays, simulation = (
            self._lanes.arrays,
            self._views.at(lane, int(self._lanes.arrays.steps[lane]), 0.0).simulation,
        )
        codes, applied, alive = arrays.source[lane], arrays.applied[lane], arrays.alive[lane]
        commands: Vectors = {}
        for rank, place, span, noop in self._acting:
            if not alive[place] or codes[place] == Source.HELD:
                continue
            if rank in down:
                idle = down[rank] == "noop"
                codes[place], applied[span] = (Source.NOOP, noop) if idle else (Source.HELD, force[span])
            elif codes[place] == Source.COMMAND:
                told = rank in commands
                codes[place] = Source.COMMAND if told else Source.HELD
                applied[span] = commands[rank] if told else force[span]
            if codes[place] != Source.HELD:
                commands |= shares(simulation, rank, applied[span].copy())
