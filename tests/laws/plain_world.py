"""The world's half of the plain clock: physics, telemetry, what is known at the proxy, what happens from outside.

Rules of agents and of the world are run by a simulation, which knows no time (T1, T3, T4, T12, T14, T18, V8, V11).
"""

from typing import Any

import numpy as np
from laws.plain_agenda import CLOSE, ENV_UPDATE, PHYSICS, REPORT, REWARD, PlainAgenda
from laws.plain_draws import PlainLink
from laws.plain_sight import Pair, PlainSight

from heron_env.testing import clock

SECOND = 1_000_000_000
Measured = tuple[Any, dict[Pair, bool]]
"""The reported columns of a row, and who sees it: one measurement."""
NOBODY = -1


class PlainWorld(PlainAgenda):
    """What happens whether agents decide or not.

    Attributes: cache, as_of: what the proxy knows, `[columns]`, and since when, ns by row; known: who sees whom by what
        the proxy knows; facts: numbers the facts about the world; a report of an earlier one is old; flows: what the
        `per_step` columns came to in the last step that has ended; muted: rows whose sensor has failed: (mode, what was
        measured last, and for whom, known since when, ns).
    """

    def __init__(
        self, env: Any, schedule: Any, seed: int, wait: float | None, t_end: float | None, disturbances: Any
    ) -> None:
        self.timings = env.timings if schedule is None else env.timings_of(schedule)
        env.start_episode(seed)
        self.env, self.simulation, self.keys = env, env.simulation, (seed, env._episode)
        links = [PlainLink(timing, *self.keys) for timing in self.timings]
        super().__init__(links, None if t_end is None else round(t_end * SECOND))
        self.rows, self.views = self.simulation.model.layout.rows, self.simulation.model.plan.views
        self.dt, self.wait = env.dt_ns, env.dt_ns if wait is None else round(wait * SECOND)
        self.interval = self.dt if env.report_interval is None else round(env.report_interval * SECOND)
        self.ranks = range(len(self.rows) - 1)
        self.facts = 0
        self.cache = self.simulation.truth.copy()
        self.sight, self.known = PlainSight(env), dict[Pair, bool]()
        for row in range(len(self.rows)):
            self.known |= self.sight.of(row)
        self.reported = [row.reported.columns[: row.reported.size] for row in self.rows]
        self.as_of, self.version = np.zeros(len(self.rows), np.int64), [0] * len(self.rows)
        self.flows = np.zeros(len(self.simulation.model.layout.per_step))
        self.heard: dict[int, tuple[int, Any]] = {}
        self.news: dict[int, tuple[int, list[Measured], list[int]]] = {}
        self.rewards: list[list[tuple[float, float]]] = [[] for _ in self.ranks]
        self.terminated, self.truncated = [False] * len(self.ranks), [False] * len(self.ranks)
        self.last_members = list(self.ranks)
        self.physics_as_of, self.effect_as_of = 0, [0] * len(self.ranks)
        self.next_substep, self.begun, self.carried_out = 0, 0, 0.0
        self.settled = 0
        self.disturbances = list(disturbances)
        self.muted: dict[int, tuple[str, Measured, int]] = {}
        self._plan_substep(0, 0)
        self._plan_disturbances()

    def on_time_out(self) -> None:
        """At t_end those who are still in it are truncated."""
        self.truncated = [self.truncated[rank] or self.simulation.alive[rank] for rank in self.ranks]

    # Physics (T1, T3, T4)

    def _plan_substep(self, step: int, substep: int) -> None:
        ns = step * self.dt + self.wait * (substep + 1) // self.simulation.model.substeps
        self._plan(ns, PHYSICS, 0, "Simulation", step, substep)

    def on_Simulation(self, rank: int, step: int, substep: int) -> None:
        """A substep, or what disturbances have left of it; then telemetry, and after the last one the scores."""
        simulation, m = self.simulation, self.simulation.model.substeps
        if self.carried_out:
            simulation.piece = (self.carried_out, simulation.model.dt / m - self.carried_out)
        simulation.substep(substep)
        simulation.piece = None
        self.next_substep, self.begun, self.carried_out = (substep + 1) % m, self.now, 0.0
        self.physics_as_of = step * self.dt + self.dt * (substep + 1) // m
        if substep + 1 < m:
            self._plan_substep(step, substep + 1)
        else:
            self._close_step(step)
        reports = round(self.dt / self.interval)
        if reports > 1 and (substep + 1) % (m // reports) == 0:
            self._telemetry(step * reports + (substep + 1) // (m // reports))

    def _close_step(self, step: int) -> None:
        simulation = self.simulation
        members = self.last_members = [rank for rank in self.ranks if simulation.alive[rank]]
        outcome = simulation.close_step()
        self.flows = simulation.truth[simulation.model.layout.per_step]
        for rank in members:
            self.rewards[rank].append(((step + 1) * self.dt / 1e9, outcome.rewards[rank]))
            self.terminated[rank], self.truncated[rank] = outcome.terminated[rank], outcome.truncated[rank]
        self._tell_neighbours(members, step)
        if simulation.over:
            self._plan(self.now, CLOSE, 0, "CloseEpisode", step)
        else:
            self._plan_substep(step + 1, 0)
        self.facts += 1
        self.news[step] = (self.facts, [self._measured(row) for row in range(len(self.rows))], members)
        self._send_surely("CycleToken", 0, step, 1, PHYSICS)

    def on_CloseEpisode(self, rank: int, step: int, content: Any) -> None:
        self.closed = True

    def on_CycleToken(self, rank: int, step: int, leg: int) -> None:
        if leg == 1:
            self._send_surely("CycleToken", 0, step, 2, PHYSICS)
            return
        version, slices, members = self.news[step]
        if self.interval == self.dt:
            for row, measured in enumerate(slices):
                self._report(row, "cycle", step, version, (step + 1) * self.dt, measured, PHYSICS)
        for member in members:
            self._send_surely("CycleCompletion", member, step, None, PHYSICS, at=self.now + self.timings[0].msg)

    def on_CycleCompletion(self, rank: int, step: int, content: Any) -> None:
        self._send_surely("LocalStateRequest", rank, step, None, REWARD)

    def on_LocalStateRequest(self, rank: int, step: int, content: Any) -> None:
        self._send_surely("LocalStateReply", rank, step, None, REWARD)

    def on_LocalStateReply(self, rank: int, step: int, content: Any) -> None:
        self._send_surely("TickResultReport", rank, step, None, REWARD)

    # Measuring and reporting (T12, T18, V11)

    def _measured(self, row: int) -> Measured:
        """What a sensor would say now, `[reported columns]`, and to whom: of a flow what the last step came to."""
        return self._as_measured()[self.reported[row]], self.sight.of(row)

    def _as_measured(self) -> Any:
        truth = self.simulation.truth.copy()
        truth[self.simulation.model.layout.per_step] = self.flows
        return truth

    def _telemetry(self, number: int) -> None:
        self.facts += 1
        for row in range(len(self.rows)):
            self._report(row, "telemetry", number, self.facts, self.physics_as_of, self._measured(row), PHYSICS)

    def _report(
        self, row: int, cause: str, number: int, version: int, as_of: int, measured: Measured, phase: int
    ) -> None:
        """Over the agent's link, the global row over the system agent's, unless the sensor has failed."""
        if not self.rows[row].reported.counts:
            return
        if row in self.muted:
            mode, measured, _ = self.muted[row]
            if mode == "vanish":
                return
        rank, why = (0, f"{cause} of the global row") if row == len(self.rows) - 1 else (row, cause)
        self._send(
            "StateReport", rank, number, (row, as_of, *measured, version, cause), phase, "up", why, clock.Leg.REPORT
        )

    def on_StateReport(self, rank: int, number: int, content: Any) -> None:
        """The cache takes a row only if it is newer."""
        row, as_of, values, bits, version, cause = content
        if version > self.version[row]:
            self.cache[self.reported[row]] = values
            self.known |= bits
            self.version[row], self.as_of[row] = version, as_of
        if cause == "effect":
            self._send("ReportReceived", rank, number, None, REPORT, "receipts", "effect", clock.Leg.REPORT_RECEIVED)

    # What neighbours tell each other (V8, V10)

    def _tell_neighbours(self, members: list[int], step: int) -> None:
        truth, edges = self.simulation.truth, self.simulation.exchange.edges
        for rank in members:
            for edge in edges:
                if edge.sender == rank and (edge.flag < 0 or truth[edge.flag] >= 0.5):
                    content = (edge.index, self.simulation.truth[edge.source].copy())
                    self._send("SharedState", rank, step, content, PHYSICS, "share", edge.route.cause, clock.Leg.SHARE)
        truth[[edge.flag for edge in edges if edge.flag >= 0 and edge.sender in members]] = 0.0

    def on_SharedState(self, rank: int, step: int, content: Any) -> None:
        """An inbox holds the mean of what came last from each who tells the same slot; it is its owner's memory."""
        index, values = content
        edges, layout = self.simulation.exchange.edges, self.simulation.model.layout
        if index in self.heard and step <= self.heard[index][0]:
            return
        self.heard[index] = (step, values)
        target = edges[index].target
        known = [self.heard[edge.index][1] for edge in edges if edge.target == target and edge.index in self.heard]
        total = np.zeros(len(values))
        for told in known:
            total = total + told
        mean = np.clip(total / len(known), layout.low[target], layout.high[target])
        mean = np.where(layout.integer[target], np.rint(mean), mean)
        self.simulation.truth[target] = self.cache[target] = mean

    # What happens from outside (T14): single events of the world, and sensors that fail for a while

    def _plan_disturbances(self) -> None:
        """At one instant ends come first, then the others as they were given."""
        turns = [(d.ns, True, place) for place, d in enumerate(self.disturbances)]
        turns += [(d.end_ns, False, place) for place, d in enumerate(self.disturbances) if d.end_ns is not None]
        for number, (ns, begins, place) in enumerate(sorted(turns)):
            self._plan(ns, ENV_UPDATE, NOBODY, "Disturbed", number, (place, begins))

    def on_Disturbed(self, rank: int, number: int, content: Any) -> None:
        place, begins = content
        disturbance, simulation = self.disturbances[place], self.simulation
        changed = []
        if disturbance.type == "sensor_failure":
            row = self.env.hierarchy.index[disturbance.payload["agent"]]
            if begins:
                known = max(self.physics_as_of, self.effect_as_of[row])
                self.muted[row] = (disturbance.payload["mode"], self._measured(row), known)
            else:
                del self.muted[row]
                changed = [row]
        else:
            before = simulation.truth.copy()
            simulation.world.step, simulation.world.time = simulation.step_index, simulation.time
            self.env.disturb(simulation.world, disturbance)
            simulation.model.layout.clip_columns(simulation.truth)
            differs = before != simulation.truth
            changed = [r for r in range(len(self.rows)) if differs[self.reported[r]].any()]
        for row in changed:
            self.facts += 1
            cause = f"disturbance {number}"
            self._report(row, cause, number, self.facts, self.now, self._measured(row), ENV_UPDATE)
        if disturbance.requires_physics and begins:
            self.settled += 1
            self._plan(self.now, ENV_UPDATE, NOBODY, "Settle", self.settled)

    def on_Settle(self, rank: int, number: int, content: Any) -> None:
        """The part of the substep that has begun, where physics keeps time with the clock; the truth is as of now."""
        if self.now <= self.begun or self.wait != self.dt:
            return
        length = (self.now - self.begun) / 1e9
        self.simulation.piece = (self.carried_out, length)
        self.simulation.substep(self.next_substep)
        self.simulation.piece = None
        self.simulation.model.layout.clip_columns(self.simulation.truth)
        self.physics_as_of, self.begun, self.carried_out = self.now, self.now, self.carried_out + length
