"""The dictionaries of the synchronous clock: actions as step() takes them, and what reset() and step() give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.layout import spans_of
from heron_env.engine.tables import EXPLICIT
from heron_env.envs.masking import Offers

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation
    from heron_env.scheduling.timing import Timing

INT8 = tuple(np.int8(number) for number in range(16))
"""Scalars that all infos share: they can't be changed."""

Five = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]

NUMBERS = {float, int, np.float64, np.float32, np.int64, np.int32}
ARRAYS, REAL = {np.ndarray}, {np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32)}
DTYPE, AXES, ITEM = attrgetter("dtype"), attrgetter("ndim"), methodcaller("item")
Vectors = NDArray[np.float32]


class JointActions:
    """Reads the actions of all deciding agents of a simulation, which all must act; `ids`, `specs`: theirs."""

    def __init__(self, simulation: Simulation, ids: Sequence[str], specs: Sequence[ActionSpec]) -> None:
        self._simulation = simulation
        self._pick = itemgetter(*ids) if len(ids) > 1 else lambda actions: (actions[ids[0]],)
        self._lengths = [spec.size for spec in specs]
        self._single = set(self._lengths) == {1}

    def read(self, actions: Mapping[str, Any]) -> bool:
        """Take all actions, of whatever value, into the lane; False, and nothing counts of them, if it can't."""
        if type(actions) is not dict or len(actions) != len(self._lengths):
            return False
        lane = self._simulation.lane
        try:
            values = self._pick(actions)
            kinds = set(map(type, values))
            if kinds == ARRAYS:
                if list(map(len, values)) != self._lengths:
                    return False
                if self._single and set(map(DTYPE, values)) <= REAL and set(map(AXES, values)) == {1}:
                    lane.joint[:] = list(map(ITEM, values))
                else:
                    np.concatenate(values, 0, lane.joint, casting="same_kind")
            elif self._single and kinds <= NUMBERS:
                lane.joint[:] = values
            else:
                return False
        except (KeyError, TypeError, ValueError, OverflowError):
            return False
        if not lane.joint_step or lane.apart:
            lane.jointly()
        return True


class Publisher:
    """Knows which agents decide and when it is their turn.

    `is_active`: will the action of an agent (rank) in the coming step count?
    always: each of them is active in every step.
    """

    def __init__(self, simulation: Simulation, timings: Sequence[Timing], is_active: Callable[[int], bool]) -> None:
        self._simulation, self._is_active, plan = simulation, is_active, simulation.model.plan
        self._ranks = simulation.model.possible
        self._ids = [simulation.model.hierarchy.ids[rank] for rank in self._ranks]
        clocks = [(timings[rank].tick, timings[rank].phase) for rank in self._ranks]
        self.always = set(clocks) == {(simulation.model.dt_ns, 0)}
        spans = spans_of([plan.size(rank) for rank in self._ranks])
        self._spans = list(zip(self._ids, spans, strict=True))
        ages = spans_of([plan.age_counts[rank] for rank in self._ranks])
        self._all_ages = ages[-1].stop
        deciding = list(zip(self._ids, self._ranks, strict=True))
        self._informed = [(agent, rank) for agent, rank in deciding if simulation.rules.bound[rank].info is not None]
        self.offers = Offers(simulation, self.always)
        self._choosing = any(simulation.model.specs[rank].dim_d for rank in self._ranks)
        self.everybody = bytes([1]) * len(simulation.model.hierarchy)
        lists: list[dict[str, Any]]
        lists = [{"is_active": INT8[1], "decision": INT8[EXPLICIT], "aoi": None} for _ in self._ranks]
        self._usual = list(zip(self._ids, ages, lists, strict=True))

    def observations(self, live: Sequence[str], observed: Vectors | None = None) -> dict[str, Vectors]:
        """The vectors of the agents in `live`: float32, fresh; `observed`: of all that decide, if they are known."""
        return _those(live, self._cut(self._simulation.lane.observed() if observed is None else observed))

    def _cut(self, observed: Vectors) -> dict[str, Vectors]:
        vectors = {}
        for agent, span in self._spans:
            vectors[agent] = observed[span]
        return vectors

    def infos(self, live: Sequence[str], vectors: dict[str, Vectors]) -> dict[str, dict[str, Any]]:
        """What comes with the observations `vectors`."""
        simulation = self._simulation
        codes, active, course = simulation.lane.decisions(), self._active(), simulation.course
        infos: dict[str, dict[str, Any]] = {}
        for (agent, span, _), rank, code, flag in zip(self._usual, self._ranks, codes, active, strict=True):
            ages = np.zeros(span.stop - span.start)
            if course is not None:
                old = course.ages(rank)
                ages[: len(old)] = old
            infos[agent] = {"is_active": flag, "decision": INT8[code], "aoi": ages}
        return _those(live, self._completed(infos, vectors))

    def _completed(self, infos: dict[str, dict[str, Any]], vectors: dict[str, Vectors]) -> dict[str, dict[str, Any]]:
        """With the agents' own numbers, and masks."""
        if self._informed:
            own = self._simulation.lane.own_infos()
            for agent, rank in self._informed:
                infos[agent].update(own[rank])
        if self._choosing:
            self.offers.add_to(infos, vectors)
        return infos

    def results(self, live: Sequence[str], observed: Vectors) -> Five:
        """All that a step gives to the agents in `live`."""
        simulation, ids = self._simulation, self._ids
        lane, everybody = simulation.lane, simulation.lane.living.tobytes() == self.everybody
        usual = everybody and lane.joint_step and self.always and not (simulation.down or simulation.course)
        if not usual:
            return self._results(live, observed)
        observations, infos, ages = self._cut(observed), {}, np.zeros(self._all_ages)
        for agent, span, like in self._usual:
            infos[agent] = info = like.copy()  # what an agent does with its infos is its own
            info["aoi"] = ages[span]
        if self._informed or self._choosing:
            self._completed(infos, observations)
        rewards = dict(zip(ids, lane.rewards.take(lane.deciding).tolist(), strict=True))
        return observations, rewards, dict.fromkeys(ids, False), dict.fromkeys(ids, False), infos

    def _results(self, live: Sequence[str], observed: Vectors) -> Five:
        """The same where somebody has ended, or anything else is out of the ordinary."""
        lane, ids, cut = self._simulation.lane, self._ids, self._cut(observed)
        rewards, *ends = (of.take(lane.deciding) for of in (lane.rewards, lane.terminated, lane.truncated))
        parts = (rewards.tolist(), *(flags.astype(bool).tolist() for flags in ends))
        earned, terminated, truncated = (_those(live, dict(zip(ids, part, strict=True))) for part in parts)
        return _those(live, cut), earned, terminated, truncated, self.infos(live, cut)

    def _active(self) -> Sequence[np.int8]:
        """Whose action will count in the coming step? (T10)"""
        down = self._simulation.down
        return [INT8[self._is_active(rank) and rank not in down] for rank in self._ranks]


def _those(live: Sequence[str], every: dict[str, Any]) -> dict[str, Any]:
    return every if len(live) == len(every) else {agent: every[agent] for agent in live}
