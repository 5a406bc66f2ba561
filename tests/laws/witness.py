"""A witness watches every event of a run: what it did to the truth, to the cache, and to the accounts."""

from collections import Counter
from typing import Any

import numpy as np
from laws.visibility import as_seen, sights
from strategies import Recipe

from heron_env.testing import clock


class Witness:
    """Checks after each event; `settle` checks the books at the end."""

    def __init__(self, run: Any, recipe: Recipe, policies: Any) -> None:
        self.run, self.recipe, self.policies = run, recipe, policies
        self.simulation, self.proxy = run.context.simulation, run.context.proxy
        self.rows = self.simulation.model.layout.rows
        self.past = [[self.simulation.truth[row.reported.columns].tobytes()] for row in self.rows]
        self.known = [0] * len(self.rows)
        self.cancelled = self.steps = 0
        self.handled: set[int] = set()
        self.delivered = Counter[int]()
        self.shown: dict[tuple[int, int], bytes] = {}
        self.sights = [sights(run.env, rank) for rank in range(len(self.rows) - 1)]
        for kind, handler in run._handlers.items():
            run._handlers[kind] = self._wrap(handler)

    def _wrap(self, handler: Any) -> Any:
        def handle(event: Any, now: int) -> None:
            truth, cache = self.simulation.truth.copy(), self.proxy.cache.copy()
            alive, decisions = list(self.simulation.alive), self._decisions(event)
            handler(event, now)
            if isinstance(event, clock.ActionEffect | clock.ObservationReply) and not alive[event.agent]:
                assert np.array_equal(truth, self.simulation.truth), "the effect of an ended agent fell"
                assert decisions == self._decisions(event), "an ended agent decided"
                self.cancelled += isinstance(event, clock.ActionEffect)
            if isinstance(event, clock.Message):
                assert event.id not in self.handled, f"{type(event).__name__} {event.id} was handled twice"
                self.handled.add(event.id)
                self.delivered[event.agent] += 1
            self._check_sight(event, cache)
            self._check_truth(event, truth)
            self._check_cache(event, cache)
            if isinstance(event, clock.Simulation):
                self._check_accounts()

        return handle

    def _decisions(self, event: Any) -> int:
        policy = self.policies.get(self.run.env.hierarchy.ids[event.agent]) if hasattr(event, "agent") else None
        return 0 if policy is None else len(policy.log)

    def _check_sight(self, event: Any, cache: Any) -> None:
        """An agent is told what the cache held when its request came, visible columns only, with its tick's noise."""
        if isinstance(event, clock.ObservationRequest):
            moment = (self.run.env._seed, self.run.env._episode, self._turn(event.agent, event.number))
            seen = as_seen(self.sights[event.agent], cache, moment)
            self.shown[event.agent, event.number] = seen.tobytes()
        elif isinstance(event, clock.ObservationReply):
            seen = event.view.as_differences(event.vector).astype(np.float32).tobytes()
            assert seen == self.shown[event.agent, event.number], "an agent was shown what nobody had reported"

    def _turn(self, rank: int, number: int) -> int:
        """T9: the step in which the tick nominally lies; a further one of the same step adds 2**32 each."""
        timing = self.run.context.timings[self.run.agents.clock[rank]]
        steps = [(timing.phase + n * timing.tick) // self.simulation.model.dt_ns for n in range(number + 1)]
        return int(steps[-1] + 2**32 * (steps.count(steps[-1]) - 1))

    def _check_truth(self, event: Any, before: Any) -> None:
        """Only physics and effects move the truth, an effect only its agent's row."""
        changed = np.flatnonzero(before != self.simulation.truth)
        owners = set(self.simulation.model.layout.owner_of[changed].tolist())
        if isinstance(event, clock.Simulation):
            self.steps += event.substep + 1 == self.simulation.model.substeps
        elif isinstance(event, clock.ActionEffect):
            assert owners <= {event.agent}, "an effect wrote another agent's state"
        else:
            assert not owners, f"{type(event).__name__} wrote the truth"
        for row in owners:
            self.past[row].append(self.simulation.truth[self.rows[row].reported.columns].tobytes())

    def _check_cache(self, event: Any, before: Any) -> None:
        """Only reports move the cache; what it holds was once true, and is never older than what it held."""
        changed = np.flatnonzero(before != self.proxy.cache)
        owners = set(self.simulation.model.layout.owner_of[changed].tolist())
        assert not owners or (isinstance(event, clock.StateReport) and owners == {event.row}), (
            "something else wrote the cache"
        )
        for row in owners:
            value = self.proxy.cache[self.rows[row].reported.columns].tobytes()
            later = [i for i, past in enumerate(self.past[row]) if past == value]
            assert later, "the cache holds a state that never was"
            assert later[-1] >= self.known[row], "the cache went back to an older fact"
            self.known[row] = next(i for i in later if i >= self.known[row])

    def _check_accounts(self) -> None:
        """Each message sent is delivered, lost or on the heap, and each is handed over once."""
        broker, heap = self.run.context.broker, list(self.run.context.scheduler)
        flying = np.bincount([e.agent for e in heap if isinstance(e, clock.Message)], minlength=len(self.rows))
        for rank in range(len(self.rows) - 1):
            counts = broker.counts(rank)
            assert counts.balanced(), f"messages of agent {rank} are missing: {counts}"
            assert counts.in_flight == flying[rank], (
                f"agent {rank} has {flying[rank]} under way, the books say {counts}"
            )
            assert counts.delivered == self.delivered[rank], f"agent {rank} got {self.delivered[rank]}: {counts}"
        assert broker.total().balanced()

    def settle(self, result: Any) -> None:
        """The books at the end: effects, substeps, cancelled effects, and decisions against effects."""
        self._check_accounts()
        ids, layout, truth = self.run.env.hierarchy.ids, self.simulation.model.layout, self.simulation.truth
        elapsed = 0.0
        for _ in range(self.steps * self.recipe.substeps):
            elapsed += self.recipe.dt / self.recipe.substeps
        expected = {"Tally.substeps": self.steps * self.recipe.substeps, "Tally.elapsed": elapsed}
        for column, name in enumerate(layout.names):
            if name in expected:
                assert truth[column] == expected[name], f"{name} is {truth[column]}, not {expected[name]}"
            if name == "Tally.effects" and ids[layout.owner_of[column]] in result.actions:
                happened = len(result.actions[ids[layout.owner_of[column]]])
                assert truth[column] == happened, f"{happened} effects happened, {truth[column]} are in the truth"
        boundaries = max(len(rewards) for rewards in result.rewards.values())
        waiting = [e.agent for e in self.run.context.scheduler if isinstance(e, clock.ActionEffect)]
        dead = sum(len(result.rewards[ids[rank]]) < boundaries for rank in waiting)
        assert result.cancelled_effects == self.cancelled + dead, "cancelled effects are miscounted"
        assert result.unfinished_effects == len(waiting) - dead, "unfinished effects are miscounted"
        for rank, agent in enumerate(ids):
            self._check_effects(rank, result)
            if result.terminated[agent] or result.truncated[agent]:
                last = result.rewards[agent][-1][0]
                late = [t for t, _ in result.actions.get(agent, []) if t >= last]
                assert not late, f"{agent} ended at {last} s and acted at {late}"

    def _check_effects(self, rank: int, result: Any) -> None:
        """What an agent did is what it decided (or was told), in that order, each once, but for what was masked."""
        ids = self.run.env.hierarchy.ids
        if ids[rank] not in result.actions or self.run.agents.failsafe[rank]:
            return
        done = [values.tolist() for _, values in result.actions[ids[rank]]]
        if ids[rank] in self.policies:
            decided = [np.asarray(action).tolist() for action in self.policies[ids[rank]].log]
            pairs = list(zip(decided, done, strict=False))
            kept = len(done) <= len(decided) and all(self._kept(rank, result, *pair) for pair in pairs)
            assert kept, f"{ids[rank]} decided {decided} and did {done}"
            assert sum(a != b for a, b in pairs) == result.masked.get(ids[rank], 0), (
                f"{ids[rank]}: masked ones miscounted"
            )
            return
        parent = self.simulation.model.hierarchy.parent[rank]
        if (
            self.simulation.model.commanded[rank]
            and ids[parent] in self.policies
            and not self.run.agents.failsafe[parent]
        ):
            orders = iter([self._order(rank, np.asarray(a)).tolist() for a in self.policies[ids[parent]].log])
            assert all(any(self._kept(rank, result, order, thing) for order in orders) for thing in done), (
                f"{ids[rank]} did what nobody ordered"
            )

    def _order(self, rank: int, decided: Any) -> Any:
        """What its commander's action means for it."""
        hierarchy = self.simulation.model.hierarchy
        children = hierarchy.children[hierarchy.parent[rank]]
        protocol = hierarchy.agents[hierarchy.parent[rank]].protocol
        return protocol.split(decided, [self.simulation.model.specs[c] for c in children])[list(children).index(rank)]

    def _kept(self, rank: int, result: Any, decided: list[float], done: list[float]) -> bool:
        """Was it carried out, but for choices that a mask made the no-op?"""
        spec, masked = self.simulation.model.specs[rank], self.run.env.hierarchy.ids[rank] in result.masked
        free = [masked and place >= spec.dim_c for place in range(spec.size)]
        return all(
            a == b or (may and b == still)
            for a, b, may, still in zip(np.ravel(decided), done, free, spec.noop, strict=True)
        )
