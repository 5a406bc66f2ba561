"""Events and messages of a user's own in the event clock: data, handled by the environment's hook `happen` (T2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from heron_env.envs.event.context import EventContext
from heron_env.envs.event.pushing import rank_of, row_of
from heron_env.errors import ConfigError
from heron_env.given import several
from heron_env.scheduling import events
from heron_env.scheduling.broker import Lane
from heron_env.scheduling.events import CustomEvent, CustomMessage, Following, Happening, Push
from heron_env.scheduling.messages import CustomLetter
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import to_ns
from heron_env.scheduling.trace import NOBODY

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.event.disturbing import DisturbanceLoop


def checked_events(env: HeronEnv, custom: Iterable[CustomEvent]) -> tuple[CustomEvent, ...]:
    """Raise ConfigError, UnknownAgent for what is no event, or concerns nobody here."""
    found = several(custom, "events")
    for event in found:
        if not isinstance(event, CustomEvent):
            raise ConfigError(f"events: {event!r} is no CustomEvent; write CustomEvent(t, type, payload)")
        _rank(env, event.agent)
    return found


def _rank(env: HeronEnv, agent: str | None) -> int:
    return NOBODY if agent is None else env.hierarchy.rank(agent, "CustomEvent(agent)")


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
        rank, ns = _rank(self.context.env, event.agent), to_ns(event.t, "CustomEvent(t)")
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
            following.extend(c.env.happen(world, what) or ())
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
                rank = c.env.hierarchy.rank(what.agent, "CustomMessage(agent)")
                letter = make(CustomLetter, (rank, self._count, c.broker.next_id(), now, what))
                self._count += 1
                c.broker.send(letter, int(Phase.ENV_UPDATE), Lane.CUSTOM, c.timings[rank].msg, cause)
            case Push():
                rank = rank_of(c.env, what.agent, "Push(agent)")
                if rank not in self.layer.agents.deciding:
                    raise ConfigError(f"Push(agent={what.agent!r}): it has no policy in this run")
                rows = [row_of(c.env, owner) for owner in what.about or (what.agent,)]
                self.layer.pushes.push(rank, rows, now, cause, preempt=what.preempt)
            case _:
                raise ConfigError(
                    f"happen() returned {what!r}: return a list of CustomEvent, CustomMessage and Push, or None"
                )
