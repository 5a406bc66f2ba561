"""What happens to a run from outside: disturbances, conditions and events of a user's own (T2, T14), as a layer.

Runs without them never come here. At one instant, phase ENV_UPDATE: disturbances in their order, each followed by the
reports of the rows that it changed; then physics, where one asked for it; then the monitors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heron_env.envs.disturbing import Course, checked_disturbances
from heron_env.envs.event.context import EventContext
from heron_env.envs.event.physics import PhysicsCycle
from heron_env.envs.event.pushing import ConditionLoop, PushLoop, checked_monitors, rank_of, row_of
from heron_env.envs.event.thinking import AnswerLoop
from heron_env.errors import ConfigError
from heron_env.given import several
from heron_env.scheduling import events, messages
from heron_env.scheduling.broker import Queue
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.events import ConditionMonitor, CustomEvent, CustomMessage, Following, Happening, Push
from heron_env.scheduling.messages import CustomLetter
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import to_ns, to_seconds
from heron_env.scheduling.trace import NOBODY

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

ENV_UPDATE = int(Phase.ENV_UPDATE)


@dataclass(frozen=True)
class Happenings:
    """All that happens to a run from outside, checked."""

    disturbances: tuple[Disturbance, ...] = ()
    monitors: tuple[ConditionMonitor, ...] = ()
    events: tuple[CustomEvent, ...] = ()

    @classmethod
    def of(
        cls,
        simulation: Simulation,
        disturbances: Iterable[Disturbance],
        monitors: Iterable[ConditionMonitor],
        custom: Iterable[CustomEvent],
    ) -> Happenings | None:
        """None if there are none. Raises ConfigError, UnknownAgent, UnknownFeature."""
        happenings = cls(
            checked_disturbances(simulation, disturbances),
            checked_monitors(simulation, monitors),
            checked_events(simulation, custom),
        )
        return happenings if happenings.disturbances or happenings.monitors or happenings.events else None


class DisturbanceLoop:
    """The layer: it handles events of its own, and stands before the handlers that must know of it."""

    def __init__(
        self, context: EventContext, physics: PhysicsCycle, answers: AnswerLoop, happenings: Happenings
    ) -> None:
        self.context, self.physics, self.agents = context, physics, answers.agents
        Course(context.simulation, context.proxy, happenings.disturbances)
        self.bind()
        self.pushes = PushLoop(context, self.agents, answers)
        self.conditions = ConditionLoop(context, self.pushes, happenings.monitors)
        self.custom = CustomLoop(context, self, happenings.events)
        self._settled = 0
        self._settling = -1  # the instant for which a Settle is on the heap, ns
        self._open = (0, 0)  # the substep that comes next: number, and where its part under way began, ns
        self._cut = 0.0  # how much of it has been carried out, s

    @property
    def course(self) -> Course:
        """It belongs to the simulation, which a restored run rebuilds."""
        course = self.context.simulation.course
        assert course is not None
        return course

    def bind(self) -> None:
        """The course asks how rows are measured here; again when the environment has been rebuilt."""
        measuring = self.context.measuring
        self.course.measured = lambda row, now: (measuring.row(row), measuring.as_of(row))

    def start(self) -> None:
        """Schedule everything that is known."""
        for number, entry in enumerate(self.course.entries):
            event = events.Disturbed(number, self.course.disturbances[entry.place], not entry.begins)
            self.context.scheduler.schedule(entry.ns, ENV_UPDATE, NOBODY, event)
        self.custom.start()

    def dispatch(self, handlers: dict[type, Callable[[Any, int], None]]) -> dict[type, Callable[[Any, int], None]]:
        """The handlers of a run with these things in it, for those of a run without."""
        pushes = self.pushes
        return handlers | {
            events.Simulation: self.simulate,
            events.AgentTick: self.tick,
            events.Disturbed: self.disturb,
            events.Settle: self.settle,
            events.Custom: self.custom.happen,
            events.PushedEffect: self.agents.take_effect,
            events.PushedAnswer: pushes.conclude,
            messages.ObservationReply: self._unless_down(handlers[messages.ObservationReply]),
            messages.ObservationPush: self._unless_down(pushes.receive_push),
            messages.Command: self.receive_command,
            messages.PushedCommand: self._unless_down(pushes.receive_command),
            messages.CustomLetter: self.custom.arrive,
        }

    def disturb(self, event: events.Disturbed, now: int) -> None:
        """A disturbance begins or ends; what it changed is reported at once, and sensors that are back report."""
        muted = self.course.muted
        changed = self.changing(lambda: self.course.carry_out(event.number, now))
        silent = {row for row, m in self.course.muted.items() if m.mode == "vanish"}
        changed |= {row for row, m in muted.items() if m.mode == "vanish" or row not in self.course.muted} - silent
        self.report(changed, event.number, f"disturbance {event.number}", now)
        self.settle_later(now, physics=event.disturbance.requires_physics and not event.ends)

    def changing(self, change: Callable[[], Any]) -> set[int]:
        """The rows of whose reported columns `change()` changed any."""
        simulation = self.context.simulation
        before = simulation.truth.copy()
        change()
        differs = before != simulation.truth
        return {
            i
            for i, row in enumerate(simulation.model.layout.rows)
            if differs[row.reported.columns[: row.reported.size]].any()
        }

    def report(self, rows: Iterable[int], number: int, cause: str, now: int) -> None:
        """The reports of some rows leave."""
        for row in sorted(rows):
            self.context.send_report(row, self.context.measuring.row(row), number, now, now, None, ENV_UPDATE, cause)

    def simulate(self, event: events.Simulation, now: int) -> None:
        """PhysicsCycle.simulate, of what is left of the substep; the conditions are asked afterwards."""
        c = self.context
        if self._cut:
            c.simulation.piece = (self._cut, c.simulation.model.dt / c.simulation.model.substeps - self._cut)
        try:
            self.physics.simulate(event, now)
        finally:
            c.simulation.piece = None
        self._open, self._cut = ((event.substep + 1) % c.simulation.model.substeps, now), 0.0
        if self.conditions.watching:
            self.settle_later(now)

    def settle_later(self, now: int, *, physics: bool = False) -> None:
        """After everything else of this instant that is known already; physics at the first asking is for all."""
        if physics or (self.conditions.watching and self._settling != now):
            self._settled += 1
            self._settling = now
            self.context.scheduler.schedule(now, ENV_UPDATE, NOBODY, events.Settle(self._settled, physics))

    def settle(self, event: events.Settle, now: int) -> None:
        """Carry physics on to this instant if that was asked for, then ask the monitors."""
        self._settling = -1
        if event.physics:
            self._advance(now)
        self.conditions.fire(now)

    def _advance(self, now: int) -> None:
        """The part of the substep that has begun; none where physics runs ahead of its step (wait < dt)."""
        c, (number, since) = self.context, self._open
        if now <= since or c.wait_ns != c.dt_ns:
            return
        begun, length = self._cut, to_seconds(now - since)
        c.simulation.piece = (begun, length)
        try:
            c.simulation.substep(number)
        finally:
            c.simulation.piece = None
        c.simulation._check("advance()")
        self._open, self._cut = (number, now), begun + length
        c.measuring.physics = now

    def tick(self, event: events.AgentTick, now: int) -> None:
        """AgentLoop.tick; one that is down only keeps its ticks going."""
        a, c, rank, number = self.agents, self.context, event.agent, event.number
        if rank not in c.simulation.down or not c.simulation.alive[rank]:
            a.tick(event, now)
            return
        if a.clock[rank] == rank:
            a.tick_on(rank, number, now)
        if rank in a.deciding:
            self._idle(rank, number, now)

    def receive_command(self, command: messages.Command, now: int) -> None:
        """AgentLoop.receive_command; at one that is down a command does nothing."""
        rank = command.agent
        if rank not in self.context.simulation.down or not self.context.simulation.alive[rank]:
            self.agents.receive_command(command, now)
        elif command.number > self.agents.decided[rank]:
            self._idle(rank, command.number, now)

    def _idle(self, rank: int, number: int, now: int) -> None:
        """Decision `number` of one that is down: its no-op, or that its set-point holds."""
        if self.context.simulation.down[rank] == "noop":
            self.agents.commit(rank, number, self.context.simulation.model.specs[rank].noop.copy(), now, None)
        else:
            self.agents.decided[rank] = max(number, self.agents.decided[rank])

    def _unless_down(self, handle: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        """What comes to an agent that is down is gone."""

        def handled(message: Any, now: int) -> None:
            if message.agent not in self.context.simulation.down:
                handle(message, now)

        return handled


def checked_events(simulation: Simulation, custom: Iterable[CustomEvent]) -> tuple[CustomEvent, ...]:
    """Raise ConfigError, UnknownAgent for what is no event, or concerns nobody here."""
    checked = several(custom, "events")
    for event in checked:
        if not isinstance(event, CustomEvent):
            raise ConfigError(f"events: {event!r} is no CustomEvent; write CustomEvent(t, type, payload)")
        _rank(simulation, event.agent)
    return checked


def _rank(simulation: Simulation, agent: str | None) -> int:
    return NOBODY if agent is None else simulation.model.hierarchy.rank(agent, "CustomEvent(agent)")


class CustomLoop:
    """Hands custom events and messages to the hook, and does what it returns."""

    def __init__(self, context: EventContext, layer: DisturbanceLoop, first: Sequence[CustomEvent]) -> None:
        self.context, self.layer, self._first = context, layer, tuple(first)
        self._count = 0

    def start(self) -> None:
        """Schedule what is known from the beginning."""
        for event in self._first:
            self._schedule(event)

    def _schedule(self, event: CustomEvent) -> None:
        rank, ns = _rank(self.context.simulation, event.agent), to_ns(event.t, "CustomEvent(t)")
        self.context.scheduler.schedule(ns, event.phase, rank, events.Custom(self._count, event))
        self._count += 1

    def happen(self, event: events.Custom, now: int) -> None:
        """A custom event is due."""
        self._hand_over(event.event, event.number, now)

    def arrive(self, letter: CustomLetter, now: int) -> None:
        """A custom message has come."""
        self._hand_over(letter.content, letter.number, now)

    def _hand_over(self, what: Happening, number: int, now: int) -> None:
        c, layer = self.context, self.layer
        following: list[Following] = []

        def change() -> None:
            world = c.simulation.world
            world.step, world.time = c.simulation.step_index, c.simulation.time
            following.extend(c.simulation.hooks.happen(world, what) or ())
            c.simulation._check(f"happen() of {what.type!r}")

        changed = layer.changing(change)
        layer.report(changed, number, f"custom {what.type}", now)
        for place, follows in enumerate(following):
            self._follow(follows, f"custom {what.type} {number}, {place}", now)
        layer.settle_later(now)

    def _follow(self, what: Following, cause: str, now: int) -> None:
        c = self.context
        match what:
            case CustomEvent():
                self._schedule(what)
            case CustomMessage():
                rank = c.simulation.model.hierarchy.rank(what.agent, "CustomMessage(agent)")
                letter = make(CustomLetter, (rank, self._count, c.broker.next_id(), now, what))
                self._count += 1
                c.broker.send(letter, ENV_UPDATE, Queue.CUSTOM, c.timings[rank].msg, cause)
            case Push():
                rank = rank_of(c.simulation, what.agent, "Push(agent)")
                if rank not in self.layer.agents.deciding:
                    raise ConfigError(f"Push(agent={what.agent!r}): it has no policy in this run")
                rows = [row_of(c.simulation, owner) for owner in what.about or (what.agent,)]
                self.layer.pushes.push(rank, rows, now, cause, preempt=what.preempt)
            case _:
                raise ConfigError(
                    f"happen() returned {what!r}: return a list of CustomEvent, CustomMessage and Push, or None"
                )
