"""The event clock (T1 to T14, T17 to T19, T22, T23, V11) once more: plain, slow, written from the law: the agents.

A list that is searched for its minimum, events as tuples, and a method for each kind, named as the trace names it.
"""

from collections import Counter
from typing import Any

from laws.plain_agenda import COMMAND, EFFECT, REPLY, REPORT, REQUEST, TICK
from laws.plain_draws import ages_by_clocks
from laws.plain_world import SECOND, PlainWorld

from heron_env import Asked
from heron_env.core.masking import shaped
from heron_env.observability.noise import Moment
from heron_env.testing.clock import Leg


class PlainClock(PlainWorld):
    """One event-driven episode, on an environment of its own: agents ask, decide, command, act."""

    def __init__(
        self,
        env: Any,
        policies: Any,
        schedule: Any = None,
        *,
        seed: int = 0,
        wait: float | None = None,
        t_end: float | None = None,
        disturbances: Any = (),
    ) -> None:
        super().__init__(env, schedule, seed, wait, t_end, disturbances)
        self.agents, self.children, self.parent = env.hierarchy.agents, env.hierarchy.children, env.hierarchy.parent
        self.policies = {rank: policies.get(agent.agent_id) for rank, agent in enumerate(self.agents)}
        for rank in self.simulation.model.possible:
            self.policies[rank] = self.policies[rank] or self.agents[rank].policy
        self.clock = [self._clock(rank) for rank in self.ranks]
        self.decided, self.last_effect = [-1 for _ in self.ranks], [0 for _ in self.ranks]
        self.effects: list[list[tuple[float, Any]]] = [[] for _ in self.ranks]
        self.shown: list[list[tuple[float, Any]]] = [[] for _ in self.ranks]
        self.ages: list[list[float]] = [[] for _ in self.ranks]
        self.latency: list[list[float]] = [[] for _ in self.ranks]
        self.cancelled = 0
        self.thoughts: dict[int, int] = {}
        self.busy, self.dropped = Counter[int](), Counter[int]()
        for rank in self.ranks:
            if self._acts(rank) and self.clock[rank] == rank:
                self._plan(self.links[rank].tick(0, 0), TICK, rank, "AgentTick", 0)

    def _acts(self, rank: int) -> bool:
        return bool(self.simulation.model.specs[rank].size)

    def _commanded(self, rank: int) -> bool:
        return self._acts(rank) and self.parent[rank] >= 0 and self.agents[self.parent[rank]].protocol is not None

    def _clock(self, rank: int) -> int:
        """Whose ticks count for an agent: its commander's, and of nested ones the topmost's (T10)."""
        return self._clock(self.parent[rank]) if self._commanded(rank) else rank

    def _nominal(self, rank: int, number: int) -> int:
        timing = self.timings[self.clock[rank]]
        return int(timing.phase + number * timing.tick)

    def _cancel(self) -> None:
        """What is happening happens no more: its agent has ended (T5, T22)."""
        self.seen[-1][-1] = True

    # Ticks (T7, T10, T11)

    def on_AgentTick(self, rank: int, number: int, content: Any) -> None:
        if not self.simulation.alive[rank]:
            self._cancel()
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
            self._decide(rank, number, self.simulation.model.specs[rank].noop.copy(), 0)

    def _turn(self, rank: int, number: int) -> int:
        """T9: the step of the nominal tick; each further request of it adds 2**32."""
        steps = [self._nominal(rank, k) // self.dt for k in range(number + 1)]
        return steps[-1] + (steps.count(steps[-1]) - 1) * 2**32

    # Seeing (T9, T12, T13, T19)

    def on_ObservationRequest(self, rank: int, number: int, turn: int) -> None:
        view = self.views[rank]
        values = self.cache[view.columns]
        if view.noise is not None:
            view.noise.add_noise(values, Moment(*self.keys, turn))
        late = self.links[rank].delay(self.timings[rank].obs, "tick", Leg.GATHERING, number, self.now)
        leaves = min(self.now + late, 2**63 - 1)  # T1: no draw is of a later time
        content = (values.astype(view.carried), self.as_of[view.sources].copy(), self.sight.unseen(rank, self.known))
        self._send("ObservationReply", rank, number, content, REPLY, "down", "tick", Leg.OBSERVATION_REPLY, at=leaves)

    def on_ObservationReply(self, rank: int, number: int, content: Any) -> None:
        newest = max(self.decided[rank], self.thoughts.get(rank, -1))
        if not self.simulation.alive[rank] or number <= newest:
            self.dropped[rank] += 1
            return
        if rank in self.thoughts:
            self.busy[rank] += 1
            return
        received, as_of, unseen = self.seen[-1][4] = (*self._with_own_rows(rank, *content[:2]), content[2])
        ages = [max(self.now - since, 0) / 1e9 for since in as_of.tolist()]
        self.ages[rank] += ages
        shown = self.simulation.model.plan.observe_age
        ages = ages_by_clocks(self.timings, rank, self.views[rank].sources, as_of, self.now) if shown else []
        vector = self.sight.vector(rank, received, unseen, ages)
        self.shown[rank].append((self._nominal(rank, number) / 1e9, vector))
        policy, spec = self.policies[rank], self.simulation.model.specs[rank]
        if not hasattr(policy, "answer"):
            values = spec.parse(policy(vector.copy()), self.agents[rank].agent_id)
            self._decide_on_it(rank, number, values)
            return
        answer = policy.answer(self._question(rank, number, vector))
        values = spec.parse(answer.action, self.agents[rank].agent_id)
        if answer.thinking:
            self.thoughts[rank] = number
            self._plan(self.now + round(answer.thinking * SECOND), REQUEST, rank, "Answered", number, values)
        else:
            self.seen.append([self.now, "Answered", rank, number, values, False])
            self._decide_on_it(rank, number, values)

    def _decide_on_it(self, rank: int, number: int, values: Any) -> None:
        late = self.links[rank].delay(self.timings[rank].act, "tick", Leg.ACTION, number, self.now)
        self._decide(rank, number, values, late)

    def _question(self, rank: int, number: int, vector: Any) -> Asked:
        agent, turn = self.agents[rank].agent_id, self._nominal(rank, number) // self.dt
        masks, choice = self.simulation.masks, self.simulation.model.specs[rank]
        mask = shaped(choice, masks.offered(rank, vector)) if rank in masks.ranks else None
        seed, episode = self.keys
        return Asked(
            agent, vector.copy(), tuple(self.env.observation_names(agent)), number, turn,
            self._nominal(rank, number) / 1e9, seed, episode, self.env.action_space(agent), mask,
        )  # fmt: skip

    def on_Answered(self, rank: int, number: int, values: Any) -> None:
        """T23: what was thought counts, unless its agent has ended or the no-op has taken its place."""
        del self.thoughts[rank]
        if self.simulation.alive[rank] and number > self.decided[rank]:
            self._decide_on_it(rank, number, values)
        else:
            self.cancelled += 1
            self._cancel()

    def _with_own_rows(self, rank: int, vector: Any, as_of: Any) -> tuple[Any, Any]:
        """T19: who reads its own rows by wire has them as they are, or as they last were before the sensor failed."""
        if (self.timings[rank].config.own_rows or self.agents[rank].own_rows) == "proxy":
            return vector, as_of
        vector, as_of, view = vector.copy(), as_of.copy(), self.views[rank]
        measured, since = self._as_measured(), max(self.physics_as_of, self.effect_as_of[rank])
        if rank in self.muted:
            mode, (values, _), before = self.muted[rank]
            measured[self.reported[rank]] = values
            since = before if mode == "vanish" else since  # a frozen sensor does not say that it is old
        own = self.simulation.model.layout.owner_of[view.columns] == rank
        vector[own] = measured[view.columns[own]]
        as_of[view.sources == rank] = since
        return vector, as_of

    # Deciding and acting (T7, T11)

    def on_Command(self, rank: int, number: int, values: Any) -> None:
        if self.simulation.alive[rank] and number > self.decided[rank]:
            delay = self.links[rank].delay(self.timings[rank].act, "command", Leg.ACTION, number, self.now)
            self._decide(rank, number, values.copy(), delay)

    def _decide(self, rank: int, number: int, values: Any, delay: int) -> None:
        """Commands leave at once, the own effect follows; none of an agent overtakes another."""
        self.decided[rank] = number
        protocol, children = self.agents[rank].protocol, self.children[rank]
        if protocol is not None:
            parts = protocol.split(values.copy(), [self.simulation.model.specs[child] for child in children])
            for child, part in zip(children, parts, strict=True):
                if self._acts(child) and self.policies[child] is None:
                    self._send("Command", child, number, part, COMMAND, "command", "command", Leg.COMMAND)
        self.last_effect[rank] = max(self.now + delay, self.last_effect[rank])
        self._plan(self.last_effect[rank], EFFECT, rank, "ActionEffect", number, values)

    def on_ActionEffect(self, rank: int, number: int, values: Any) -> None:
        if not self.simulation.alive[rank]:
            self.cancelled += 1
            self._cancel()
            return
        values = self.simulation.apply(rank, values)
        self.effect_as_of[rank] = self.now
        self.effects[rank].append((self.now / 1e9, values))
        self.latency[rank].append((self.now - self._nominal(rank, number)) / 1e9)
        if self.simulation.acts_itself(rank) and len(self.rows[rank].reported.columns):
            self.facts += 1
            self._report(rank, "effect", number, self.facts, self.now, self._measured(rank), REPORT)

    def effects_never_fallen(self) -> tuple[int, int]:
        """T22: effects of agents that had ended before the end, and effects under way at the end."""
        alive = self.simulation.alive
        in_it = self.last_members if self.simulation.over else [rank for rank in self.ranks if alive[rank]]
        pending = [entry[2] for entry in self.agenda if entry[4] in ("ActionEffect", "Answered")]
        unfinished = sum(rank in in_it for rank in pending)
        return self.cancelled + len(pending) - unfinished, unfinished
