"""The dictionaries of the synchronous clock: actions as step() takes them, and what reset() and step() give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.layout import spans_of
from heron_env.envs.lane import StepOutcome
from heron_env.envs.masking import Offers

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation
    from heron_env.scheduling.timing import Timing

INT8 = tuple(np.int8(number) for number in range(16))
"""Scalars that all infos share: they can't be changed."""

Five = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]

NUMBERS = {float, int, np.float64, np.float32, np.int64, np.int32}
Floats = NDArray[np.float64]


class JointActions:
    """Reads the actions of some agents, which all must act; `ids`, `specs`: theirs, in one order."""

    def __init__(self, ids: Sequence[str], specs: Sequence[ActionSpec]) -> None:
        self._pick = itemgetter(*ids) if len(ids) > 1 else lambda actions: (actions[ids[0]],)
        self._lengths = [spec.size for spec in specs]
        self._single = set(self._lengths) == {1}

    def read_into(self, joint: Floats, actions: Mapping[str, Any]) -> bool:
        """Write all actions into `joint` `[elements]`, of whatever value; False, and anything in it, if it can't."""
        if type(actions) is not dict or len(actions) != len(self._lengths):
            return False
        try:
            values = self._pick(actions)
            if set(map(type, values)) == {np.ndarray}:
                if list(map(len, values)) != self._lengths:
                    return False
                np.concatenate(values, 0, joint, casting="same_kind")
            elif self._single and set(map(type, values)) <= NUMBERS:
                joint[:] = values
            else:
                return False
        except (KeyError, TypeError, ValueError, OverflowError):
            return False
        return True


class Publisher:
    """Knows which agents decide and when it is their turn.

    `is_active`: will the action of an agent (rank) in the coming step count?
    always: each of them is active in every step.
    """

    def __init__(self, simulation: Simulation, timings: Sequence[Timing], is_active: Callable[[int], bool]) -> None:
        self._simulation, self._is_active, plan = simulation, is_active, simulation.plan
        self._ranks, self._ids = simulation.possible, [simulation.hierarchy.ids[rank] for rank in simulation.possible]
        clocks = [(timings[rank].tick, timings[rank].phase) for rank in self._ranks]
        self.always = set(clocks) == {(simulation.dt_ns, 0)}
        spans = spans_of([plan.size(rank) for rank in self._ranks])
        self._spans = list(zip(self._ids, spans, strict=True))
        ages = spans_of([plan.told_sources[rank] for rank in self._ranks])
        self._ages, self._all_ages = list(zip(self._ids, ages, strict=True)), ages[-1].stop
        deciding = list(zip(self._ids, self._ranks, strict=True))
        self._informed = [(agent, rank) for agent, rank in deciding if simulation.rules.bound[rank].info is not None]
        self.offers = Offers(simulation, self.always)
        self._choosing = any(simulation.specs[rank].dim_d for rank in self._ranks)
        self._codes: list[int] = []
        self._flags: Sequence[np.int8] = ()
        self._told: list[dict[str, Any]] = []
        self._all_active = (INT8[1],) * len(self._ranks)

    def observations(self, live: Sequence[str], outcome: StepOutcome | None = None) -> dict[str, NDArray[np.float32]]:
        """The vectors of the agents in `live`: float32, fresh."""
        seen = None if outcome is None else outcome.seen
        if seen is None:
            seen = self._simulation.lane.observed()
        found = {agent: seen[span] for agent, span in self._spans}
        return found if len(live) == len(found) else _those(live, found)

    def infos(
        self, live: Sequence[str], outcome: StepOutcome | None, seen: dict[str, NDArray[np.float32]] | None = None
    ) -> dict[str, dict[str, Any]]:
        """What comes with the observations `seen`, or those of now; `outcome` is None at reset."""
        codes, active = self._simulation.lane.decisions(), self._active()
        if codes is not self._codes or active is not self._flags:
            self._codes, self._flags = codes, active
            both = zip(active, codes, strict=False)
            self._told = [{"is_active": flag, "decision": INT8[code], "aoi": None} for flag, code in both]
        course, ages = self._simulation.course, np.zeros(self._all_ages)
        if course is not None:
            for rank, (_, span) in zip(self._ranks, self._ages, strict=True):
                old = course.ages(rank)
                ages[span.start : span.start + len(old)] = old
        found: dict[str, dict[str, Any]] = {}
        for (agent, span), told in zip(self._ages, self._told, strict=True):
            info = found[agent] = told.copy()  # made anew it would take half as long again
            info["aoi"] = ages[span]
        if self._informed:
            own = self._simulation.lane.own_infos() if outcome is None else outcome.infos
            for agent, rank in self._informed:
                found[agent].update(own[rank])
        if self._choosing:
            self.offers.add_to(found, self.observations(live) if seen is None else seen)
        return found if len(live) == len(found) else _those(live, found)

    def results(self, live: Sequence[str], outcome: StepOutcome) -> Five:
        """All that a step gives to the agents in `live`."""
        ids = self._ids
        observations = self.observations(live, outcome)
        infos = self.infos(live, outcome, observations)
        rewards, terminated, truncated = outcome.published()
        earned = dict(zip(ids, rewards, strict=False))
        if not outcome.ended and len(live) == len(ids):
            return observations, earned, dict.fromkeys(ids, False), dict.fromkeys(ids, False), infos
        ends = [dict(zip(ids, flags or [False] * len(ids), strict=True)) for flags in (terminated, truncated)]
        return observations, _those(live, earned), _those(live, ends[0]), _those(live, ends[1]), infos

    def _active(self) -> Sequence[np.int8]:
        """Whose action will count in the coming step? (T10)"""
        simulation, is_active = self._simulation, self._is_active
        if down := simulation.down:
            return [INT8[is_active(rank) and rank not in down] for rank in self._ranks]
        if not self.always:
            return [INT8[is_active(rank)] for rank in self._ranks]
        if simulation.everyone:
            return self._all_active
        return [INT8[simulation.alive[rank]] for rank in self._ranks]


def _those(live: Sequence[str], found: dict[str, Any]) -> dict[str, Any]:
    return {agent: found[agent] for agent in live}
