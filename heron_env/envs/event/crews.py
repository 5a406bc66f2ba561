"""The handlers of same-time groups: what AgentLoop and PhysicsCycle do for one agent, for a crew of them as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import ByVector, DecideAt
from heron_env.envs.event.agents import ACTION_EFFECT, AGENT_TICK, REPLY, REPORT, REQUEST, AgentLoop, step_of, turn_of
from heron_env.envs.event.context import EventContext
from heron_env.envs.event.groups import Crew, Facts, Group, Reports, Seen, Turn, together
from heron_env.errors import InvalidAction
from heron_env.scheduling import events, messages
from heron_env.scheduling.timing import SECOND, Timing

Vectors = NDArray[np.float32]


class CrewLoop:
    """Ticks, requests, replies, effects, reports and receipts of whole crews."""

    def __init__(self, context: EventContext, agents: AgentLoop) -> None:
        self.context, self.agents = context, agents
        self.bind()

    def bind(self) -> None:
        """Forget what was compiled for a crew: the environment has been rebuilt."""
        self._readers: dict[tuple[int, ...], _Reader] = {}
        self._reports: dict[tuple[int, ...], Reports] = {}
        self._books: dict[tuple[int, ...], _Books] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Nothing that `bind` forgets."""
        return {"context": self.context, "agents": self.agents}

    def start(self) -> frozenset[int]:
        """Schedule the first ticks of crews; the ranks of whom they take care."""
        c = self.context
        if c.traced or not c.grouping:
            return frozenset()
        deciding = [rank for rank in sorted(self.agents.deciding) if self._plain(rank)]
        crews, _ = together(deciding, lambda rank: _rhythm(c.timings[rank]))
        for crew in crews:
            first = c.timings[crew.ranks[0]].nominal(0)
            c.scheduler.schedule_group(first, AGENT_TICK, Group(events.AgentTick, crew, 0))
        return frozenset(rank for crew in crews for rank in crew.ranks)

    def _plain(self, rank: int) -> bool:
        """Does the agent's every cycle take the same course, and concern nobody but itself?"""
        a = self.agents
        alone = a.clock[rank] == rank and not a.followers[rank] and not a.commanding[rank]
        return alone and not a.failsafe[rank] and self.context.links[rank].ideal

    def tick(self, group: Group, now: int) -> None:
        """AgentLoop.tick for all."""
        c, number = self.context, group.number
        crew = c.living(group.crew)
        if not crew.ranks:
            return
        timing = c.timings[crew.ranks[0]]
        later = max(now, timing.nominal(number + 1))
        c.scheduler.schedule_group(later, AGENT_TICK, Group(events.AgentTick, crew, number + 1))
        turn = Turn(turn_of(timing, number, c.dt_ns))
        request = Group(messages.ObservationRequest, crew, number, c.broker.next_ids(len(crew.ranks)), now, turn)
        c.broker.send_group(request, REQUEST, now + timing.msg)

    def gather(self, group: Group, now: int) -> None:
        """AgentLoop.gather for all: one gather."""
        c, crew, turn = self.context, group.crew, group.body.turn
        timing = c.timings[crew.ranks[0]]
        reader = self._readers.get(crew.ranks)
        if reader is None:
            self._readers.clear()  # of a crew that has shrunk: its columns may be many
            reader = self._readers[crew.ranks] = _Reader(c, crew)
        leaves = now + timing.obs
        vectors, views = reader.read(turn), reader.views
        seen = Seen(turn, timing.nominal(group.number), now, vectors, c.proxy.as_of.copy(), views)
        first = c.broker.next_ids(len(crew.ranks))
        reply = Group(messages.ObservationReply, crew, group.number, first, leaves, seen)
        c.broker.send_group(reply, REPLY, leaves + timing.msg)

    def decide(self, group: Group, now: int) -> None:
        """AgentLoop.decide for all: one call of each policy that can decide for several."""
        c, a, seen, number = self.context, self.agents, group.body, group.number
        vectors, crew = seen.vectors, c.living(group.crew)
        if crew is not group.crew:
            vectors = [vector for vector, rank in zip(vectors, group.ranks, strict=True) if c.simulation.alive[rank]]
        if not crew.ranks:
            return
        books, received = self._book(crew), (seen.as_of, now, True)
        for book in books.received:
            book.append(received)
        if "observations" in c.record:
            self._record(crew, vectors, seen.asked)
        c.proxy.time = now / SECOND
        values = self._decisions(crew, vectors, step_of(seen.turn))
        due = now + c.timings[crew.ranks[0]].act
        decided, last_effect = a.decided, a.last_effect
        for rank in crew.ranks:
            decided[rank], last_effect[rank] = number, due
        c.scheduler.schedule_group(due, ACTION_EFFECT, Group(events.ActionEffect, crew, number, body=values))

    def _record(self, crew: Crew, vectors: Any, asked: int) -> None:
        """Keep copies of what is shown: a policy may work in place."""
        c, at = self.context, asked / SECOND
        for rank, vector in zip(crew.ranks, vectors, strict=True):
            c.result.observations[c.env.hierarchy.ids[rank]].append((at, np.array(vector)))

    def _decisions(self, crew: Crew, vectors: Any, step: int) -> list[NDArray[np.float64]]:
        """Everyone's action, checked."""
        policies, specs, ids = self.agents.policies, self.context.simulation.specs, self.context.env.hierarchy.ids
        books = self._book(crew)
        if books.policies is not policies:
            books.policies, books.batch = policies, _common_batch(crew, policies)
        if books.batch is None or not isinstance(vectors, np.ndarray):
            parse = self.agents.parse
            return [parse[rank](policies[rank](vector, step)) for rank, vector in zip(crew.ranks, vectors, strict=True)]
        actions = np.asarray(books.batch(vectors))
        if actions.shape == books.shape and actions.dtype.kind == "f":
            exact = np.array(actions, dtype=np.float64)
            if ((exact >= books.low) & (exact <= books.high)).all():
                return list(exact)
        if actions.ndim == 0 or len(actions) != len(crew.ranks):
            who = getattr(policies[crew.ranks[0]], "policy", None)
            raise InvalidAction(
                f"forward_batch() of {type(who).__name__} returned shape {actions.shape} "
                f"for {len(crew.ranks)} observations; one row each is needed"
            )
        return [specs[rank].parse(action, ids[rank]) for rank, action in zip(crew.ranks, actions, strict=True)]

    def _book(self, crew: Crew) -> _Books:
        found = self._books.get(crew.ranks)
        if found is None:
            found = self._books[crew.ranks] = _Books(self.context, crew)
        return found

    def act(self, group: Group, now: int) -> None:
        """AgentLoop.act for all, and for whoever else acts at this instant: effects fall by rank, over all groups."""
        c, a = self.context, self.agents
        heap, found = c.scheduler.heap, [group]
        while heap and heap[0][0] == now and heap[0][1] == ACTION_EFFECT:
            found.append(heappop(heap)[4])
        if any(not isinstance(event, Group) for event in found):
            singles = (each for event in found for each in (event.each() if isinstance(event, Group) else (event,)))
            for effect in sorted(singles, key=lambda effect: int(effect.agent)):
                a.act(effect, now)
            return
        if len(found) == 1 and c.living(group.crew) is group.crew:
            c.simulation.apply_group(group.ranks, group.body)
        else:
            alive = c.simulation.alive
            effects = [(rank, v) for e in found for rank, v in zip(e.ranks, e.body, strict=True) if alive[rank]]
            a.cancelled += sum(len(event.ranks) for event in found) - len(effects)
            effects.sort(key=lambda effect: effect[0])
            c.simulation.apply_group([rank for rank, _ in effects], [values for _, values in effects])
        for event in found:
            self._note(event, now)
            self._report(c.living(event.crew), event.number, now)

    def _note(self, group: Group, now: int) -> None:
        """AgentLoop.note_effect for all that live."""
        c, crew = self.context, self.context.living(group.crew)
        if not crew.ranks:
            return
        if crew is not group.crew:
            for rank, values in zip(group.ranks, group.body, strict=True):
                if c.simulation.alive[rank]:
                    self.agents.note_effect(rank, group.number, values, now)
            return
        books, at = self._book(crew), now / SECOND
        if "actions" in c.record:
            for record, values in zip(books.actions, group.body, strict=True):
                record.append((at, values))
        latency = (now - c.timings[crew.ranks[0]].nominal(group.number)) / SECOND
        for measured in books.latency:
            measured.append(latency)

    def _report(self, crew: Crew, number: int, now: int) -> None:
        """The reports of effects leave: of those in whose rows there is something to report."""
        c = self.context
        part = self.part(crew)
        count = len(part.crew.ranks)
        if not count:
            return
        versions = np.arange(c.version + 1, c.version + 1 + count)
        c.version += count
        facts = Facts(versions, now, c.simulation.truth[part.columns], True, part)
        report = Group(messages.StateReport, part.crew, number, c.broker.next_ids(count), now, facts)
        c.broker.send_group(report, REPORT, now + c.timings[part.crew.ranks[0]].msg)

    def part(self, crew: Crew) -> Reports:
        """What a crew's effects report."""
        found = self._reports.get(crew.ranks)
        if found is None:
            found = self._reports[crew.ranks] = Reports(self.context, crew.of_those(self.agents.reporting))
        return found

    def receive(self, group: Group, now: int) -> None:
        """AgentLoop.receive_report for all: one scatter where all is news."""
        c, proxy, facts = self.context, self.context.proxy, group.body
        if (facts.versions > proxy.version[group.members]).all():
            proxy.cache[facts.part.columns] = facts.values
            proxy.version[group.members] = facts.versions
            proxy.as_of[group.members] = facts.as_of
        else:
            for report in group.each():
                proxy.receive(report.row, report.version, report.as_of, report.values)
        if facts.effect:
            first = c.broker.next_ids(len(group.ranks))
            receipt = Group(messages.ReportReceived, group.crew, group.number, first, now)
            c.broker.send_group(receipt, REPORT, now + c.timings[group.ranks[0]].msg)


class _Books:
    """What is noted of each of a crew, and what its actions must be: float64 `[k, size]` within `low` and `high`."""

    def __init__(self, context: EventContext, crew: Crew) -> None:
        ids, actions = context.env.hierarchy.ids, context.result.actions
        self.received = [context.received[rank] for rank in crew.ranks]
        self.latency = [context.latency[rank] for rank in crew.ranks]
        self.actions = [actions[ids[rank]] for rank in crew.ranks]
        specs = [context.simulation.specs[rank] for rank in crew.ranks]
        alike = len({spec.size for spec in specs}) == 1 and not any(spec.dim_d for spec in specs)
        self.shape = (len(specs), specs[0].size) if alike else None
        bounded = specs if alike else specs[:1]
        self.low, self.high = np.stack([s.low for s in bounded]), np.stack([s.high for s in bounded])
        self.policies: Mapping[int, DecideAt] | None = None
        self.batch: Callable[[Any], Any] | None = None


class _Reader:
    """Reads what a crew observes, in one go."""

    def __init__(self, context: EventContext, crew: Crew) -> None:
        plan = context.simulation.plan
        self.context = context
        self.views = [plan.views[rank] for rank in crew.ranks]
        self._exact = all(view.noise is None for view in self.views)
        self._columns = np.concatenate([view.columns for view in self.views])
        self._joined = None if self._exact else plan.reader(crew.ranks)
        lengths = [len(view.columns) for view in self.views]
        self._shape = (len(lengths), lengths[0]) if len(set(lengths)) == 1 else None
        self._stops = np.cumsum(lengths[:-1])

    def read(self, turn: int) -> Any:
        """float32 `[k, d]`, or a list of `[d_i]` where agents see unequally much."""
        cache = self.context.proxy.cache
        if self._joined is None:
            values = cache.astype(np.float32).take(self._columns)
        else:
            values = self._joined(cache, self.context.moment(turn)).astype(np.float32)
        return values.reshape(self._shape) if self._shape else np.split(values, self._stops)


def _rhythm(timing: Timing) -> tuple[int, ...]:
    """Agents equal in this do everything at the same times."""
    return timing.tick, timing.phase, timing.obs, timing.act, timing.msg


def _common_batch(crew: Crew, policies: Mapping[int, DecideAt]) -> Callable[[Any], Any] | None:
    """How the one policy of the whole crew decides for all at once, if it is one and can."""
    first = policies[crew.ranks[0]]
    if not isinstance(first, ByVector) or first.batch is None:
        return None
    same = all(getattr(policies[rank], "policy", None) is first.policy for rank in crew.ranks)
    return first.batch if same else None
