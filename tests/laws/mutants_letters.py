"""Mutants: faults in how letters travel, wait, and are counted."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from laws.mutants import mutant_in

from heron_env import MessageBroker
from heron_env.envs import mail
from heron_env.testing.clock import Leg, Link, Queue

MUTANTS: dict[str, Any] = {}
mutant = mutant_in(MUTANTS)


@mutant(mail.Post, "take")
def read_in_the_same_step(original: Any) -> Any:
    """Synchronously, whoever is asked later in a step reads what was written in it."""
    return lambda self, receiver, before=None: original(self, receiver)


@mutant(mail, "sealed")
def bodies_are_shared(original: Any) -> Any:
    """The letter is handed over as it is."""
    return lambda letter, where: SimpleNamespace(opened=lambda: letter, receiver=letter.receiver)


@mutant(mail.Post, "counts")
def only_those_that_wait_are_unread(original: Any) -> Any:
    """Letters to those who do not read are gone."""
    return lambda self: replace(original(self), unread=sum(map(len, self._waiting.values())))


@mutant(mail.Post, "_keep")
def by_rank_alone(original: Any) -> Any:
    """Whose rank is lower is read first, whenever its letter came."""
    return lambda self, receiver, waiting: original(self, receiver, (0, *waiting[1:]))


@mutant(mail.Post, "_keep")
def everybody_reads(original: Any) -> Any:
    """One board for all."""

    def keep(self: Any, receiver: int, waiting: Any) -> None:
        for reader in sorted(self.readers):
            original(self, reader, waiting)

    return keep


@mutant(MessageBroker, "send")
def in_the_queue_of_reports(original: Any) -> Any:
    """A report waits for the letters before it."""

    def send(self: Any, message: Any, phase: int, lane: int, *rest: Any) -> Any:
        return original(self, message, phase, Queue.UP if lane == Queue.LETTER else lane, *rest)

    return send


@mutant(Link, "draw")
def drawn_from_one_stream(original: Any) -> Any:
    """Each draw takes the next number of its link."""
    count: dict[int, int] = {}

    def draw(self: Any, what: int, nominal: int, cause: str, leg: int, number: int, *sent: int) -> Any:
        count[id(self)] = number = count.get(id(self), 0) + 1
        return original(self, what, nominal, "all", Leg.CUSTOM, number, *sent)

    return draw


@mutant(mail.Post, "state")
def waiting_letters_are_not_stored(original: Any) -> Any:
    """A snapshot has the counts alone."""
    return lambda self: original(self) | {"waiting": {}}
