"""The course of disturbances of one episode: what begins and ends when, for both clocks (T14, T15)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.given import several
from heron_env.scheduling.disturbances import BUILT_IN, CRASH, SENSOR, Disturbance
from heron_env.scheduling.timing import to_seconds

if TYPE_CHECKING:
    from heron_env.agents.proxy import ProxyAgent
    from heron_env.core.world import World
    from heron_env.engine.lanes import Lanes
    from heron_env.envs.simulation import Simulation

Floats = NDArray[np.float64]


class Entry(NamedTuple):
    """A disturbance begins or ends; entries of one instant are ordered: ends first, then as they were given."""

    ns: int
    begins: bool
    place: int


class Muted(NamedTuple):
    """A row whose reports vanish or freeze, as of when (ns) and what it measured last, `[reported columns]`."""

    mode: str
    since: int
    values: Floats


def checked_disturbances(simulation: Simulation, disturbances: Iterable[Disturbance]) -> tuple[Disturbance, ...]:
    """Raise ConfigError, UnknownAgent for what is no disturbance, or can't happen here."""
    if isinstance(disturbances, str) or not isinstance(disturbances, Iterable):
        raise ConfigError(f"disturbances={disturbances!r}: give a list of Disturbance(t, type, payload)")
    checked = several(disturbances, "disturbances")
    for disturbance in checked:
        if not isinstance(disturbance, Disturbance):
            raise ConfigError(f"disturbances: {disturbance!r} is no Disturbance; write Disturbance(t, type, payload)")
        simulation.hooks.require_disturbance(disturbance)
        if disturbance.type in BUILT_IN:
            _require_built_in(simulation, disturbance)
    return checked


def _require_built_in(simulation: Simulation, disturbance: Disturbance) -> None:
    payload = BUILT_IN[disturbance.type].filled(disturbance)
    _ranks_of(simulation, payload["agent"], disturbance.type)
    choices = {"meanwhile": ("hold", "noop"), "mode": ("vanish", "freeze")}
    for name, allowed in choices.items():
        if name in payload and payload[name] not in allowed:
            raise ConfigError(f"disturbance {disturbance.type!r}: {name}={payload[name]!r} must be one of {allowed}")


def _ranks_of(simulation: Simulation, who: Any, where: str) -> tuple[int, ...]:
    """The agents that an id, a group or "*" (those that decide) means. Raises UnknownAgent."""
    hierarchy, groups = simulation.model.hierarchy, simulation.groups
    if who == "*":
        return simulation.model.possible
    if who in hierarchy.index:
        return (hierarchy.index[who],)
    if who in groups:
        return tuple(hierarchy.index[agent] for agent in groups[who])
    named = [*groups, *hierarchy.ids]
    near = did_you_mean(who, named)
    raise UnknownAgent(f"disturbance {where!r}: {who!r} is neither an agent nor a group; there are {named[:12]}.{near}")


class Course:
    """Carries out disturbances on a simulation. A disturbance writes the truth; agents and reports are told to wait.

    Attributes:
        simulation: whose they are.
        disturbances: all of the episode.
        entries: their beginnings and ends in order; `done` of them are over.
        muted: by rank: whose reports vanish or freeze.
        measured: what a row measures now, and as of when: (row, ns) -> (values `[reported columns]`, ns).
    """

    def __init__(self, simulation: Simulation, proxy: ProxyAgent, disturbances: Sequence[Disturbance]) -> None:
        self.simulation, self._proxy = simulation, proxy
        self.disturbances = tuple(disturbances)
        entries = [Entry(d.ns, True, index) for index, d in enumerate(self.disturbances)]
        ends = ((d.end_ns, index) for index, d in enumerate(self.disturbances))
        self.entries = sorted(entries + [Entry(ns, False, index) for ns, index in ends if ns is not None])
        self.done = 0
        self._active: list[int] = []
        self.muted: dict[int, Muted] = {}
        self._believed: Floats | None = None
        self.measured: Callable[[int, int], tuple[Floats, int]] = self._at_a_boundary
        simulation.follow_course(self)

    def __getstate__(self) -> dict[str, Any]:
        """Never pickled with the environment: it is part of its state."""
        raise TypeError("a Course is saved by state()")

    # Both clocks

    def carry_out(self, number: int, now: int) -> Disturbance:
        """Entry `number` happens at `now` ns."""
        entry = self.entries[number]
        self.done = number + 1
        disturbance = self.disturbances[entry.place]
        lasting = disturbance.duration is not None
        if lasting and entry.begins:
            self._active.append(entry.place)
            self._active.sort(key=lambda index: (self.disturbances[index].ns, index))
        elif lasting:
            self._active.remove(entry.place)
        if disturbance.type == CRASH:
            self._find_down()
        elif disturbance.type == SENSOR:
            self._find_muted(now)
        else:
            if entry.begins:
                self.simulation.hooks.disturb(self._world(), disturbance)
            if lasting:
                self._uphold()
            self.simulation._check(f"the disturbance {disturbance.type!r}")
        return disturbance

    def uphold(self) -> None:
        """After `finish`: what lasts is in force in the next step, too."""
        if self._of_environment():
            self._uphold()
            self.simulation._check("uphold()")

    def _world(self) -> World:
        """The world at the last boundary, whatever hook used it last."""
        simulation = self.simulation
        simulation.world.step, simulation.world.time = simulation.step_index, simulation.time
        return simulation.world

    def _uphold(self) -> None:
        self.simulation.hooks.uphold(self._world(), self._of_environment())

    def _of_environment(self) -> list[Disturbance]:
        active = (self.disturbances[index] for index in self._active)
        return [disturbance for disturbance in active if disturbance.type not in BUILT_IN]

    def _built_in(self, kind: str) -> list[tuple[tuple[int, ...], Mapping[str, Any]]]:
        """Whom those in force of a built-in type concern, and their payloads; later ones last."""
        active = [d for d in (self.disturbances[index] for index in self._active) if d.type == kind]
        payloads = [BUILT_IN[kind].filled(d) for d in active]
        return [(_ranks_of(self.simulation, payload["agent"], kind), payload) for payload in payloads]

    def _find_down(self) -> None:
        down = {rank: payload["meanwhile"] for ranks, payload in self._built_in(CRASH) for rank in ranks}
        self.simulation.down = down

    def _find_muted(self, now: int) -> None:
        """Who goes on being muted keeps what was reported last; frozen reports vanish from now on only."""
        before = self.muted
        modes = {rank: payload["mode"] for ranks, payload in self._built_in(SENSOR) for rank in ranks}
        self.muted = {}
        for rank, mode in modes.items():
            muted, (values, since) = before.get(rank), self.measured(rank, now)
            if muted is None:
                muted = Muted(mode, since, values)
            self.muted[rank] = Muted(mode, muted.since if muted.mode == mode else since, muted.values)

    def reported(self, row: int, values: Floats) -> Floats | None:
        """What a report of a row says where `values` are true; None: it does not leave."""
        muted = self.muted.get(row)
        if muted is None:
            return values
        return muted.values.copy() if muted.mode == "freeze" else None

    # The synchronous clock

    def _at_a_boundary(self, row: int, now: int) -> tuple[Floats, int]:
        """What a row measures, and as of when, ns: there the truth is what is measured."""
        simulation = self.simulation
        simulation.look(row)
        return simulation.facts[simulation.model.layout.rows[row].reported.columns], now

    def begin(self) -> None:
        """At reset: what is due at time 0; the proxy's knowledge is its own array if reports may fail."""
        if any(disturbance.type == SENSOR for disturbance in self.disturbances):
            self.simulation.look()
            self._know(self.simulation.facts.copy())
        self.catch_up()
        self.simulation.lane.inform()

    def catch_up(self) -> None:
        """At a boundary, everything that fell due since the last; nothing any more when the episode is over."""
        simulation = self.simulation
        now = simulation.step_index * self.simulation.model.dt_ns
        while not simulation.over and self.done < len(self.entries) and self.entries[self.done].ns <= now:
            self.carry_out(self.done, now)
        if self._believed is not None:
            simulation.look()
            self._believed[:] = simulation.facts
            for rank, muted in self.muted.items():
                self._believed[simulation.model.layout.rows[rank].reported.columns] = muted.values

    def _know(self, array: Floats) -> None:
        self._believed = array
        self._proxy.keep(array)

    @property
    def hides(self) -> bool:
        """May anything that agents are shown be other than the truth?"""
        return self._believed is not None

    @property
    def believed(self) -> Floats:
        """What agents are shown of the truth: the proxy's knowledge."""
        return self.simulation.facts if self._believed is None else self._believed

    def ages(self, rank: int) -> Floats:
        """How old that is for an agent, s, one for each of its sources."""
        simulation = self.simulation
        now = simulation.step_index * simulation.model.dt_ns
        sources = simulation.model.plan.views[rank].sources.tolist()
        old = {row: now - muted.since for row, muted in self.muted.items() if muted.mode == "vanish"}
        return np.array([to_seconds(old.get(row, 0)) for row in sources])

    def vector(self, rank: int) -> NDArray[np.float32]:
        """What an agent sees, float32 `[n]`, fresh."""
        simulation = self.simulation
        ages = self.ages(rank) if simulation.model.plan.observe_age else None
        return simulation.model.plan.vector(rank, self.believed, simulation.moment, ages)

    # Snapshots

    def state(self) -> dict[str, Any]:
        """Where the course stands: the disturbances and plain lists, numbers and arrays."""
        return {
            "disturbances": list(self.disturbances),
            "done": self.done,
            "active": list(self._active),
            "muted": {rank: (muted.mode, muted.since, muted.values.copy()) for rank, muted in self.muted.items()},
            "known": None if self._believed is None else self._believed.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`; what is in force is written into the truth already."""
        self.done, self._active = state["done"], list(state["active"])
        self._find_down()
        self.muted = {rank: Muted(mode, since, values.copy()) for rank, (mode, since, values) in state["muted"].items()}
        if state["known"] is not None:
            self._know(state["known"].copy())


class Courses:
    """What compiled code can't know of some lanes, as what follows phases: disturbances, and protocols of the user's.

    Who is down decides nothing; what lasts is upheld after `finish`; what is due happens when neighbours have heard;
    what failing sensors hide is not published.

    Args:
        look: brings what somebody sees of a lane up to date.

    Attributes:
        of: the course of each lane that has one; splitting: simulations with protocols of the user's.
    """

    def __init__(self, lanes: Lanes, look: Callable[[int], Any] | None = None) -> None:
        self._lanes, self._arrays, self._look = lanes, lanes.arrays, look
        self.of: dict[int, Course] = {}
        self.splitting: list[Simulation] = []
        self._force = np.zeros(0)
        after = {
            "check": self._before_decisions, "decide": self._correct, "finish": self._uphold,
            "deliver": self._catch_up, "add_noise_to_final": self._hide_final, "begin_episodes": self._forget,
            "publish": self._hide,
        }  # fmt: skip
        lanes.follow([lanes.called.native(place, function) for place, function in after.items()])

    def _before_decisions(self, first: int, last: int) -> None:
        self._force = self._arrays.applied.copy()

    def _correct(self, first: int, last: int) -> None:
        down = [course.simulation for course in self.of.values() if course.simulation.down]
        for simulation in {one.lane.number: one for one in (*self.splitting, *down)}.values():
            if first <= simulation.lane.number < last and not simulation.over:
                simulation.lane.correct(self._force[simulation.lane.number])

    def _in_step(self, first: int, last: int) -> Iterator[Course]:
        """Those of lanes that were in the step, each on its simulation as it is now."""
        for lane, course in self.of.items():
            if first <= lane < last and (not self._arrays.over[lane] or self._arrays.ended[lane]):
                if self._look is not None:
                    self._look(lane)
                yield course

    def _uphold(self, first: int, last: int) -> None:
        for course in self._in_step(first, last):
            course.uphold()

    def _catch_up(self, first: int, last: int) -> None:
        for course in self._in_step(first, last):
            course.catch_up()

    def _hide(self, first: int, last: int) -> None:
        self._write(self._lanes.published.observations, range(first, last))

    def _hide_final(self, first: int, last: int) -> None:
        ended = self._arrays.chosen[first:last] & self._arrays.ended[first:last]
        if self._lanes.published.final.size:
            self._write(self._lanes.published.final, (first + np.flatnonzero(ended)).tolist())

    def _write(self, out: NDArray[np.float32], lanes: Collection[int]) -> None:
        """What all observers see, where it may be other than the truth."""
        for lane, course in self.of.items():
            if lane in lanes and course.hides:
                out[lane] = np.concatenate([course.vector(rank) for rank in self._lanes.model.observers])

    def _forget(self, first: int, last: int) -> None:
        """The next episode has no disturbances, unless they are given again."""
        for lane in [lane for lane in self.of if first <= lane < last and self._arrays.chosen[lane]]:
            simulation = self.of.pop(lane).simulation
            simulation.course, simulation.down = None, {}
