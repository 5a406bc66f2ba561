"""The event clock (T1 to T13, V8) once more: plain, slow, and written from the law.

A list that is searched for its minimum; an event is a tuple; a method for each kind, named as the trace names it. The
rules of agents and of the world are run by a simulation, which knows no time; all the rest is here.
"""

from collections import Counter
from typing import Any

import numpy as np
from laws.plain_draws import PlainLink

from heron_env.observability.noise import Moment
from heron_env.scheduling.messages import Leg

PHYSICS, REWARD, CLOSE, _, TICK, REQUEST, REPLY, COMMAND, EFFECT, REPORT = range(10)
"""What comes first within one instant (T2)."""
SECOND = 1_000_000_000


class PlainClock:
    """One event-driven episode of an environment of its own; `run` carries it on.

    Attributes:
        cache, as_of: what the proxy knows, `[columns]`, and since when, ns by row.
        counts: sent, duplicated, delivered, lost, dropped; what is in flight is counted when asked for.
        seen: what happened: (ns, kind, rank, number, content).
    """

    def __init__(
        self, env: Any, policies: Any, schedule: Any = None, *, seed: int, wait: float | None, t_end: float | None
    ) -> None:
        self.timings = env.timings if schedule is None else env.timings_of(schedule)
        env.start_episode(seed)
        self.env, self.simulation, self.keys = env, env.simulation, (seed, env._episode)
        self.agents, self.children, self.parent = env.hierarchy.agents, env.hierarchy.children, env.hierarchy.parent
        self.rows, self.views = self.simulation.layout.rows, self.simulation.plan.views
        self.dt, self.wait = env.dt_ns, env.dt_ns if wait is None else round(wait * SECOND)
        self.t_end = None if t_end is None else round(t_end * SECOND)
        self.links = [PlainLink(timing, *self.keys) for timing in self.timings]
        self.ranks = range(len(self.agents))
        self.policies = {rank: policies.get(agent.agent_id) for rank, agent in enumerate(self.agents)}
        for rank in self.simulation.possible:
            self.policies[rank] = self.policies[rank] or self.agents[rank].policy
        self.clock = [self._clock(rank) for rank in self.ranks]
        self._begin()

    def _begin(self) -> None:
        n = len(self.agents)
        self.agenda: list[Any] = []
        self.now = self.scheduled = self.letters = self.facts = 0
        self.closed = False
        self.counts: Counter[str] = Counter()
        self.last_arrival: Counter[tuple[int, str]] = Counter()
        self.arrived: set[int] = set()
        self.cache = self.simulation.truth.copy()
        self.as_of, self.version = np.zeros(len(self.rows), np.int64), [0] * len(self.rows)
        self.decided, self.last_effect = [-1] * n, [0] * n
        self.heard: dict[int, tuple[int, Any]] = {}
        self.boundaries: dict[int, tuple[Any, Any, list[int]]] = {}
        self.rewards: list[list[tuple[float, float]]] = [[] for _ in self.ranks]
        self.terminated, self.truncated = [False] * n, [False] * n
        self.effects: list[list[tuple[float, Any]]] = [[] for _ in self.ranks]
        self.shown: list[list[tuple[float, Any]]] = [[] for _ in self.ranks]
        self.ages: list[list[float]] = [[] for _ in self.ranks]
        self.latency: list[list[float]] = [[] for _ in self.ranks]
        self.cancelled = 0
        self.seen: list[tuple[Any, ...]] = []
        self._plan_substep(0, 0)
        for rank in self.ranks:
            if self._acts(rank) and self.clock[rank] == rank:
                self._plan(self.links[rank].tick(0, 0), TICK, rank, "AgentTick", 0)

    def _acts(self, rank: int) -> bool:
        return self.simulation.specs[rank].size > 0

    def _commanded(self, rank: int) -> bool:
        return self._acts(rank) and self.parent[rank] >= 0 and self.agents[self.parent[rank]].protocol is not None

    def _clock(self, rank: int) -> int:
        """Whose ticks count for an agent: its commander's, and of nested ones the topmost's (T10)."""
        return self._clock(self.parent[rank]) if self._commanded(rank) else rank

    def _nominal(self, rank: int, number: int) -> int:
        timing = self.timings[self.clock[rank]]
        return int(timing.phase + number * timing.tick)

    # The list

    def _plan(self, ns: int, phase: int, rank: int, kind: str, number: int, content: Any = None, letter: int = 0) -> None:
        self.scheduled += 1
        self.agenda.append((ns, phase, rank, self.scheduled, kind, number, content, letter))

    def run(self, until: int | None) -> None:
        """Carry on up to and including `until`, ns; None: to the end."""
        while not self.closed:
            entry = min(self.agenda)
            if until is not None and entry[0] > until:
                return
            if self.t_end is not None and entry[:2] > (self.t_end, CLOSE):
                self.closed = True
                self.truncated = [self.truncated[r] or self.simulation.alive[r] for r in self.ranks]
                return
            self.agenda.remove(entry)
            self._handle(*entry)

    def _handle(
        self, ns: int, phase: int, rank: int, order: int, kind: str, number: int, content: Any, letter: int
    ) -> None:
        self.now = ns
        if letter:
            self.counts["delivered"] += 1
            if letter in self.arrived:
                self.counts["dropped_duplicates"] += 1
                return
            self.arrived.add(letter)
        self.seen.append((ns, kind, rank, number, content))
        if handler := getattr(self, f"on_{kind}", None):
            handler(rank, number, content)

    # The post

    def _send(
        self, kind: str, rank: int, number: int, content: Any, phase: int, queue: str, cause: str, leg: int, at: int = -1
    ) -> None:
        """Over the agent's link, with all that may befall a message on it (T7); a lost one keeps its place in the queue."""
        link = self.links[rank]
        twins = ["", "twin "] if link.duplicated(cause, leg, number) else [""]
        self.letters += 1
        self.counts["sent"] += 1
        self.counts["duplicated"] += len(twins) - 1
        for twin in twins:
            arrival = (self.now if at < 0 else at) + link.delay(link.timing.msg, cause, leg, number, twin)
            if not link.config.reorder:
                arrival = self.last_arrival[rank, queue] = max(arrival, self.last_arrival[rank, queue])
            if link.lost(cause, leg, number, twin):
                self.counts["lost"] += 1
            else:
                self._plan(arrival, phase, rank, kind, number, content, self.letters)

    def _send_surely(self, kind: str, rank: int, number: int, content: Any, phase: int, at: int = -1) -> None:
        """A leg of the physics cycle other than a report (T3)."""
        self.letters += 1
        self.counts["sent"] += 1
        leaves = self.now if at < 0 else at
        self._plan(leaves + self.timings[rank].msg, phase, rank, kind, number, content, self.letters)

    def messages(self) -> dict[str, int]:
        """What became of the messages so far."""
        names = ("sent", "duplicated", "delivered", "lost", "dropped_duplicates")
        return {name: self.counts[name] for name in names} | {"in_flight": sum(entry[7] > 0 for entry in self.agenda)}

    # The world (T1, T3, T4)

    def _plan_substep(self, step: int, substep: int) -> None:
        ns = step * self.dt + self.wait * (substep + 1) // self.simulation.substeps
        self._plan(ns, PHYSICS, 0, "Simulation", step, substep)

    def on_Simulation(self, rank: int, step: int, substep: int) -> None:
        simulation = self.simulation
        simulation.substep(substep)
        if substep + 1 < simulation.substeps:
            self._plan_substep(step, substep + 1)
            return
        members = [r for r in self.ranks if simulation.alive[r]]
        outcome = simulation.close_step(deliver=False)
        for r in members:
            self.rewards[r].append(((step + 1) * self.dt / SECOND, outcome.rewards[r]))
            self.terminated[r], self.truncated[r] = outcome.terminated[r], outcome.truncated[r]
        self._tell_neighbours(members, step)
        if simulation.over:
            self._plan(self.now, CLOSE, 0, "CloseEpisode", step)
        else:
            self._plan_substep(step + 1, 0)
        self.facts += 1
        slices = [simulation.truth[row.reported.columns].copy() for row in self.rows]
        self.boundaries[step] = (self.facts, slices, members)
        self._send_surely("CycleToken", 0, step, 1, PHYSICS)

    def on_CloseEpisode(self, rank: int, step: int, content: Any) -> None:
        self.closed = True

    def on_CycleToken(self, rank: int, step: int, leg: int) -> None:
        if leg == 1:
            self._send_surely("CycleToken", 0, step, 2, PHYSICS)
            return
        version, slices, members = self.boundaries[step]
        for row in range(len(self.rows)):
            self._report(row, "cycle", step, version, (step + 1) * self.dt, slices[row], PHYSICS)
        for r in members:
            self._send_surely("CycleCompletion", r, step, None, PHYSICS, at=self.now + self.timings[0].msg)

    def on_CycleCompletion(self, rank: int, step: int, content: Any) -> None:
        self._send_surely("LocalStateRequest", rank, step, None, REWARD)

    def on_LocalStateRequest(self, rank: int, step: int, content: Any) -> None:
        self._send_surely("LocalStateReply", rank, step, None, REWARD)

    def on_LocalStateReply(self, rank: int, step: int, content: Any) -> None:
        self._send_surely("TickResultReport", rank, step, None, REWARD)

    # What neighbours tell each other (V8)

    def _tell_neighbours(self, members: list[int], step: int) -> None:
        edges = self.simulation.exchange.edges
        for r in members:
            for edge in edges:
                if edge.sender == r:
                    values = self.simulation.truth[edge.source].copy()
                    content = (edge.index, values)
                    self._send("SharedState", r, step, content, PHYSICS, "share", edge.route.cause, Leg.SHARE)

    def on_SharedState(self, rank: int, step: int, content: Any) -> None:
        """The inbox holds the mean of what has been heard last from each that tells the same slot."""
        index, values = content
        edges, layout = self.simulation.exchange.edges, self.simulation.layout
        if step <= self.heard.get(index, (-1, None))[0]:
            return
        self.heard[index] = (step, values)
        target = edges[index].target
        known = [self.heard[e.index][1] for e in edges if e.target == target and e.index in self.heard]
        total = np.zeros(len(values))
        for told in known:
            total = total + told
        mean = np.clip(total / len(known), layout.low[target], layout.high[target])
        mean = np.where(layout.whole[target], np.rint(mean), mean)
        self.simulation.truth[target] = self.cache[target] = mean

    # What the proxy knows (T12)

    def _report(self, row: int, cause: str, number: int, version: int, as_of: int, values: Any, phase: int) -> None:
        """The global row goes over the system agent's link."""
        if not self.rows[row].reported.counts:
            return
        rank, why = (0, f"{cause} of the global row") if row == len(self.rows) - 1 else (row, cause)
        self._send("StateReport", rank, number, (row, as_of, values, version, cause), phase, "up", why, Leg.REPORT)

    def on_StateReport(self, rank: int, number: int, content: Any) -> None:
        row, as_of, values, version, cause = content
        if version > self.version[row]:
            self.cache[self.rows[row].reported.columns] = values
            self.version[row], self.as_of[row] = version, as_of
        if cause == "effect":
            self._send("ReportReceived", rank, number, None, REPORT, "receipts", "effect", Leg.REPORT_RECEIVED)

    # Ticks (T7, T10, T11)

    def on_AgentTick(self, rank: int, number: int, content: Any) -> None:
        if not self.simulation.alive[rank]:
            return
        if self.clock[rank] == rank:
            self._plan(self.links[rank].tick(number + 1, self.now), TICK, rank, "AgentTick", number + 1)
            for follower in self.ranks:
                if follower != rank and self.clock[follower] == rank:
                    self._tick_follower(follower, number)
            if self._failsafe(rank):
                self._replace_missing(rank, number - 1)
        if self.policies[rank] is not None:
            turn = self._turn(rank, number)
            self._send("ObservationRequest", rank, number, turn, REQUEST, "up", "tick", Leg.OBSERVATION_REQUEST)

    def _tick_follower(self, follower: int, number: int) -> None:
        if self.policies[follower] is not None:
            self._plan(self.now, TICK, follower, "AgentTick", number)
        if self._failsafe(follower):
            self._plan(max(self.now, self._nominal(follower, number + 1)), TICK, follower, "Deadline", number)

    def _failsafe(self, rank: int) -> bool:
        return bool(self.timings[rank].config.on_missing == "noop")

    def on_Deadline(self, rank: int, number: int, content: Any) -> None:
        """Nobody waits for those who have ended: through whom commands come, and who gives the ticks."""
        above = [rank]
        while self.policies[above[-1]] is None:
            above.append(self.parent[above[-1]])
        if all(self.simulation.alive[r] for r in [*above[1:], self.clock[rank]]):
            self._replace_missing(rank, number)

    def _replace_missing(self, rank: int, number: int) -> None:
        if number >= 0 and number > self.decided[rank] and self.simulation.alive[rank]:
            self._decide(rank, number, self.simulation.specs[rank].noop.copy(), 0)

    def _turn(self, rank: int, number: int) -> int:
        """T9: the step of the nominal tick; each further request of it adds 2**32."""
        steps = [self._nominal(rank, k) // self.dt for k in range(number + 1)]
        return steps[-1] + (steps.count(steps[-1]) - 1) * 2**32

    # Seeing, deciding, acting

    def on_ObservationRequest(self, rank: int, number: int, turn: int) -> None:
        view = self.views[rank]
        vector = view.read(self.cache, Moment(*self.keys, turn)).astype(np.float32)
        leaves = self.now + self.links[rank].delay(self.timings[rank].obs, "tick", Leg.GATHERING, number)
        content = (vector, self.as_of[view.sources].copy())
        self._send("ObservationReply", rank, number, content, REPLY, "down", "tick", Leg.OBSERVATION_REPLY, at=leaves)

    def on_ObservationReply(self, rank: int, number: int, content: Any) -> None:
        vector, as_of = content
        if not self.simulation.alive[rank] or number <= self.decided[rank]:
            return
        ages = [max(self.now - int(since), 0) / SECOND for since in as_of]
        self.ages[rank] += ages
        if self.simulation.plan.observe_age:
            vector = np.concatenate([vector, np.array(ages, np.float32)])
        self.shown[rank].append((self._nominal(rank, number) / SECOND, vector))
        policy, spec = self.policies[rank], self.simulation.specs[rank]
        values = spec.parse(policy(vector.copy()), self.agents[rank].agent_id)
        self._decide(rank, number, values, self.links[rank].delay(self.timings[rank].act, "tick", Leg.ACTION, number))

    def on_Command(self, rank: int, number: int, values: Any) -> None:
        if self.simulation.alive[rank] and number > self.decided[rank]:
            delay = self.links[rank].delay(self.timings[rank].act, "command", Leg.ACTION, number)
            self._decide(rank, number, values.copy(), delay)

    def _decide(self, rank: int, number: int, values: Any, delay: int) -> None:
        """Commands leave at once, the own effect follows; none of an agent overtakes another."""
        self.decided[rank] = number
        protocol, children = self.agents[rank].protocol, self.children[rank]
        if protocol is not None:
            parts = protocol.split(values.copy(), [self.simulation.specs[child] for child in children])
            for child, part in zip(children, parts, strict=True):
                if self._acts(child) and self.policies[child] is None:
                    self._send("Command", child, number, part, COMMAND, "command", "command", Leg.COMMAND)
        self.last_effect[rank] = max(self.now + delay, self.last_effect[rank])
        self._plan(self.last_effect[rank], EFFECT, rank, "ActionEffect", number, values)

    def on_ActionEffect(self, rank: int, number: int, values: Any) -> None:
        if not self.simulation.alive[rank]:
            self.cancelled += 1
            return
        self.simulation.apply(rank, values)
        self.effects[rank].append((self.now / SECOND, values))
        self.latency[rank].append((self.now - self._nominal(rank, number)) / SECOND)
        columns = self.rows[rank].reported.columns
        if self.simulation.acts_itself(rank) and len(columns):
            self.facts += 1
            self._report(rank, "effect", number, self.facts, self.now, self.simulation.truth[columns].copy(), REPORT)

    def all_cancelled(self) -> int:
        """Effects of agents that had ended, fallen due or not."""
        pending = [entry[2] for entry in self.agenda if entry[4] == "ActionEffect"]
        return self.cancelled + sum(not self.simulation.alive[rank] for rank in pending)
