"""Lanes whose rules, or agents in the imperative style, run in plain Python; each has an environment of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.python_law import PythonLanes
from heron_env.engine.python_rules import PythonRules
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.deciders import Decider
from heron_env.envs.batch.engine import Given
from heron_env.envs.batch.faults import Commands, LaneFaults
from heron_env.envs.batch.groups import Group
from heron_env.envs.batch.hooks import LaneHooks, LaneViews, OwnLanes
from heron_env.envs.batch.lanes import LaneEngine, blueprint_for, late_lanes
from heron_env.envs.hooks import WORLD_HOOKS, is_native

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class PlainLanes(LaneEngine):
    """The rules in plain Python. Each lane begins by its environment's own reset(), with whatever options it takes."""

    lanes: PythonLanes
    _views: OwnLanes
    moves_itself = False
    """Is it the environments that move, and the arrays follow?"""

    def __init__(
        self, env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], envs: Sequence[HeronEnv],
        final: bool,
    ) -> None:  # fmt: skip
        """`envs`: the lanes', which nobody else uses from here on."""
        self._envs = envs

        def rules(lane: int, truth: NDArray[np.float64]) -> PythonRules:
            if not self.moves_itself:
                envs[lane].simulation.run_plain_on(truth)
            return envs[lane].simulation.plain

        blueprint = replace(blueprint_for(env, groups), hooks={}, native=())  # which run as what they are in Python
        lanes = PythonLanes(blueprint, len(envs), rules, final=final)
        super().__init__(env, groups, deciders, lanes, None if self.moves_itself else late_lanes(env, groups, lanes))
        self._faults = LaneFaults(self._views, blueprint.observers)
        self._commands = Commands(self.lanes, self._views, self._faults)
        if self._late is not None:
            self._late.decide = self._decide_all

    def _look(self) -> tuple[LaneViews, LaneHooks]:
        """The environments themselves."""
        env, views = self._env, OwnLanes(self._envs, self.arrays, self.position, self._late, not self.moves_itself)
        names = {
            *env.python_hooks(),
            *env.world_rules(),
            *filter(lambda name: is_native(getattr(env, name)), WORLD_HOOKS),
        }
        return views, LaneHooks(env, self.arrays, views, names, together=False)

    def start(self, lanes: Bools, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin episodes in `lanes`."""
        last = self._faults.shown(lanes & self.over) if self.final.size else {}
        super().start(lanes, seeds, options)
        for lane, vectors in last.items():
            self.final[lane] = vectors

    def _begin(self, lanes: Ints, options: Mapping[str, Any] | None) -> bool:
        """Every environment resets."""
        for lane in lanes.tolist():
            self._views.begin(lane, options)
        self._faults.begin(lanes)
        return True

    def move(self, given: Given, idle: Bools | None) -> None:
        """A control step up to its boundary. What is refused before anything moves leaves all as it was."""
        self.halfway = False
        super().move(given, idle)
        self.halfway = False

    def _act(self) -> None:
        """All decide, and what takes effect now does."""
        if self._late is not None:
            self._late.act()
        else:
            self._decide_all()
            self.lanes.affect()

    def _decide_all(self) -> None:
        """Into `source` and `applied`; from here on agents may refuse what they like."""
        self._commands.decide()
        self.halfway = True

    def conclude(self, running: Ints, members: Bools | None) -> None:
        """What lasts is upheld, neighbours hear, and what is due happens."""
        self._faults.uphold(running)
        super().conclude(running, members)
        self._faults.catch_up(running)

    def observe(self) -> None:
        """Publish observations of now, and rewards and ends of the last `move`."""
        super().observe()
        for lane, vectors in self._faults.shown().items():
            self.published.observations[lane] = vectors

    def active(self, group: Group) -> Bools:
        """Whose action will count in the coming step? (T10)"""
        active = super().active(group)
        self._faults.silence(active, group)
        return active

    def ages(self, group: Group) -> NDArray[np.float64]:
        """How old is what each agent sees of each of its sources, s?"""
        ages = super().ages(group)
        self._faults.age(ages, group)
        return ages

    def _own_infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """By the names that the first agent told that has any."""
        infos = self.lanes.phases.infos
        told = (of_lane[rank] for of_lane in infos if of_lane for rank in group.ranks)
        return {name: partial(self._numbers, group, name) for name in next(filter(None, told), {})}

    def _numbers(self, group: Group, name: str) -> NDArray[np.float64]:
        rows = self.lanes.phases.infos
        return np.array([[row[rank].get(name, 0.0) if row else 0.0 for rank in group.ranks] for row in rows])
