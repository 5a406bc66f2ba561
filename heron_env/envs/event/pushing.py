"""Observations that are pushed: conditions on the truth wake agents, which then decide out of turn (T14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.layout import GLOBAL
from heron_env.envs.answering import Asking
from heron_env.envs.event.agents import COMING, NEVER, REPLY, AgentLoop
from heron_env.envs.event.context import EventContext
from heron_env.envs.event.thinking import AnswerLoop
from heron_env.errors import ConfigError, UnknownAgent, UnknownFeature, did_you_mean
from heron_env.given import several
from heron_env.scheduling import events
from heron_env.scheduling.broker import Queue
from heron_env.scheduling.events import ConditionMonitor
from heron_env.scheduling.messages import ObservationPush, PushedCommand
from heron_env.scheduling.records import make
from heron_env.scheduling.ticks import step_of
from heron_env.scheduling.timing import to_ns

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

PUSHES = 2**31
"""Turns of pushed observations, in units of 2**32, begin here: far from those of further requests in a step (T9)."""


def checked_monitors(simulation: Simulation, monitors: Iterable[ConditionMonitor]) -> tuple[ConditionMonitor, ...]:
    """Raise ConfigError, UnknownAgent, UnknownFeature for monitors that watch nothing, or wake nobody, here."""
    checked = several(monitors, "monitors")
    for monitor in checked:
        if not isinstance(monitor, ConditionMonitor):
            raise ConfigError(f"monitors: {monitor!r} is no ConditionMonitor; write ConditionMonitor(agent=...)")
        rank_of(simulation, monitor.agent, "ConditionMonitor(agent)")
        for owner in monitor.about or ():
            row_of(simulation, owner)
        if monitor.watch is not None:
            column_of(simulation, monitor.watch)
    labels = [monitor.label for monitor in checked]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"monitors: two are called {label!r}; give each a name=... of its own")
    return checked


def rank_of(simulation: Simulation, agent: str, where: str) -> int:
    """An agent with an action. Raises UnknownAgent, ConfigError."""
    rank = simulation.model.hierarchy.rank(agent, where)
    if not simulation.model.specs[rank].size:
        raise ConfigError(f"{where}: {agent!r} has no action to decide; name one that has")
    return rank


def row_of(simulation: Simulation, owner: str) -> int:
    """The row of an agent, or of the global features. Raises UnknownAgent."""
    rows = [row.owner_id for row in simulation.model.layout.rows]
    if owner not in rows:
        raise UnknownAgent(f"no row of {owner!r}; there are {rows[:12]}.{did_you_mean(owner, rows)}")
    return rows.index(owner)


def column_of(simulation: Simulation, name: str) -> int:
    """The place of a number in the truth. Raises UnknownFeature."""
    names = list(simulation.model.layout.full_names)
    if name not in names:
        shown = f"write owner.Feature.field, as {names[0]!r}" if names else "there are none"
        raise UnknownFeature(f"ConditionMonitor(watch={name!r}): no such number; {shown}.{did_you_mean(name, names)}")
    return names.index(name)


class PushLoop:
    """One leg with an observation, a decision out of turn, its commands and its effect."""

    def __init__(self, context: EventContext, agents: AgentLoop, answers: AnswerLoop) -> None:
        self.context, self.agents, self.answers = context, agents, answers
        self._pushed: dict[int, tuple[int, int]] = {}  # by rank: the step of its last push, and how many in that step

    def push(self, rank: int, rows: Sequence[int], now: int, cause: str, *, preempt: bool) -> None:
        """Send an observation in which `rows` are as they are now; of the others it has what the proxy knows."""
        c = self.context
        if not c.simulation.alive[rank]:
            return
        view, cache, as_of = c.simulation.model.plan.views[rank], c.proxy.cache.copy(), c.proxy.as_of.copy()
        for row in rows:
            columns = c.simulation.model.layout.rows[row].reported.columns
            values = c.measuring.reported(row, c.measuring.row(row))
            if values is not None:
                cache[columns], as_of[row] = values, now
        turn = self._turn(rank, now // c.dt_ns)
        vector = view.receive(cache, c.moment(turn)).astype(view.carried)
        number, sent = self._tick_before(rank, now), c.broker.next_id()
        message = make(
            ObservationPush, (rank, number, sent, now, turn, now, vector, as_of[view.sources], view, cause, preempt)
        )
        c.broker.send(message, REPLY, Queue.PUSH, c.timings[rank].msg, cause)

    def _turn(self, rank: int, step: int) -> int:
        """T9: noise of its own for each push of a step."""
        last, count = self._pushed.get(rank, (NEVER, 0))
        count = count + 1 if last == step else 0
        self._pushed[rank] = (step, count)
        return step + (PUSHES + count << 32)

    def _tick_before(self, rank: int, now: int) -> int:
        """The number of the last nominal tick of the agent's clock; -1 before the first."""
        return max(int(self.context.timings[self.agents.clock[rank]].number(now)), NEVER)

    def receive_push(self, push: ObservationPush, now: int) -> None:
        """AgentLoop.receive_reply; newer than the observation of its tick, older than that of a later one."""
        c, a, rank = self.context, self.agents, push.agent
        if not c.simulation.alive[rank] or push.number < a.decided[rank]:
            return
        if rank in self.answers.thinking and not push.preempt:
            self.answers.miss(rank)
            return
        if push.preempt:
            self._cancel(rank, now)
        vector, asking = a.complete_observation(push, now), a.policies[rank]
        if isinstance(asking, Asking):
            self._ask(asking, vector, push, now)
        else:
            number = push.number + push.turn - step_of(push.turn)
            values = a.ask(rank, vector.copy(), number, push.turn, now, push.asked)
            a.commit(rank, push.number, values, now, push.cause, (push.asked,))

    def _ask(self, asking: Asking, vector: Any, push: ObservationPush, now: int) -> None:
        """AnswerLoop.receive_reply, of one agent alone."""
        rank, number, answers = push.agent, push.number, self.answers
        asking.about = push.id
        [answer] = answers.ask([(asking, asking.question(vector, number, step_of(push.turn), push.asked))], now)
        event = answers.accept(answer, events.PushedAnswer, rank, number, now, push.cause, push.asked)
        if event is not None:
            self.agents.commit(rank, number, event.values, now, push.cause, (push.asked,))

    def conclude(self, answer: events.PushedAnswer, now: int) -> None:
        """AnswerLoop.conclude."""
        rank, number = answer.agent, answer.number
        if self.answers.finish(answer, number >= self.agents.decided[rank]):
            self.agents.commit(rank, number, answer.values, now, answer.cause, (answer.fired,))

    def receive_command(self, command: PushedCommand, now: int) -> None:
        """AgentLoop.receive_command."""
        rank, number = command.agent, command.number
        if self.context.simulation.alive[rank] and number >= self.agents.decided[rank]:
            self.agents.commit(rank, number, command.values.copy(), now, command.cause, (command.fired,))

    def _cancel(self, rank: int, now: int) -> None:
        """The agent's effects under way never take place, and it thinks no further."""
        heap = self.context.scheduler.heap

        def pending(event: Any) -> bool:
            return isinstance(event, COMING) and event.agent == rank

        remaining = [entry for entry in heap if not pending(entry[4])]
        self.agents.cancelled += len(heap) - len(remaining)
        self.agents.last_effect[rank] = now
        self.answers.cancel(rank)
        heap[:] = remaining
        heapify(heap)


@dataclass(slots=True)
class Watch:
    """How one monitor stands."""

    was_true: bool = False
    fired: int | None = None


class ConditionLoop:
    """Asks the monitors."""

    def __init__(self, context: EventContext, pushes: PushLoop, monitors: Sequence[ConditionMonitor]) -> None:
        self.context, self.pushes = context, pushes
        self.monitors = tuple(monitors)
        self.watches = [Watch() for _ in self.monitors]
        simulation = context.simulation
        for monitor in self.monitors:
            if simulation.model.hierarchy.index[monitor.agent] not in pushes.agents.deciding:
                decide = [simulation.model.hierarchy.ids[rank] for rank in sorted(pushes.agents.deciding)]
                raise ConfigError(
                    f"ConditionMonitor(agent={monitor.agent!r}): has no policy in this run; {decide[:12]} decide"
                )
        self._tests = [_test(simulation, monitor) for monitor in self.monitors]
        self._rows = [_about(simulation, monitor) for monitor in self.monitors]

    @property
    def watching(self) -> bool:
        """Is there anything to ask?"""
        return bool(self.monitors)

    def __getstate__(self) -> dict[str, Any]:
        saved = ("context", "pushes", "monitors", "watches", "_rows")
        return {name: getattr(self, name) for name in saved}

    def bind(self) -> None:
        """The simulation has been rebuilt."""
        self._tests = [_test(self.context.simulation, monitor) for monitor in self.monitors]

    def fire(self, now: int) -> None:
        """Push what is due."""
        ranks = self.context.simulation.model.hierarchy.index
        for monitor, watch, test, rows in zip(self.monitors, self.watches, self._tests, self._rows, strict=True):
            rises, watch.was_true = not watch.was_true, bool(test())
            if watch.was_true and self._due(monitor, watch, now, rises=rises):
                watch.fired = now
                self.pushes.push(ranks[monitor.agent], rows, now, f"{monitor.label} at {now}", preempt=monitor.preempt)

    @staticmethod
    def _due(monitor: ConditionMonitor, watch: Watch, now: int, *, rises: bool) -> bool:
        """A rise within the cooldown fires when that is over, if the condition still holds."""
        if watch.fired is None:
            return True
        cooldown = to_ns(monitor.cooldown, "cooldown")
        return not monitor.one_shot and now - watch.fired >= cooldown and (rises or cooldown > 0)


def _test(simulation: Simulation, monitor: ConditionMonitor) -> Callable[[], bool]:
    """Does the condition hold now?"""
    when = monitor.when
    if when is not None:
        return lambda: when(simulation.world)
    assert monitor.watch is not None
    place = column_of(simulation, monitor.watch)
    low = -np.inf if monitor.below is None else monitor.below
    high = np.inf if monitor.above is None else monitor.above
    return lambda: not low <= simulation.truth[place] <= high


def _about(simulation: Simulation, monitor: ConditionMonitor) -> list[int]:
    """The rows that the monitor measures itself."""
    if monitor.about is not None:
        return [row_of(simulation, owner) for owner in monitor.about]
    if monitor.watch is None:
        return [row_of(simulation, monitor.agent)]
    place = column_of(simulation, monitor.watch)
    rows = simulation.model.layout.rows
    owner = next(row.owner_id for row in rows if row.slice.start <= place < row.slice.stop)
    assert owner == GLOBAL or owner in simulation.model.hierarchy.index
    return [row_of(simulation, owner)]
