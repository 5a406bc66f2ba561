"""Letters in the event clock: they leave with a decision, over the sender's link, in phase 9 (T24)."""

from __future__ import annotations

from collections import Counter

from heron_env.envs.event.context import EventContext
from heron_env.scheduling.broker import Lane
from heron_env.scheduling.events import Answered, PushedAnswer
from heron_env.scheduling.messages import LetterUnderWay
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import Phase


def send_letters(c: EventContext, answer: Answered, now: int) -> None:
    """The letters of an answer leave; those to one receiver are numbered, which keeps their draws apart (T8)."""
    sender, numbers = answer.agent, Counter[int]()
    occasion = f" on {answer.cause}" if isinstance(answer, PushedAnswer) else ""
    for receiver, letter in answer.letters:
        message = make(LetterUnderWay, (sender, answer.number, c.broker.next_id(), now, receiver, letter))
        cause = f"letter {numbers[receiver]} to {letter.receiver}{occasion}"
        arrival = c.broker.send(message, int(Phase.REPORT), Lane.LETTER, c.timings[sender].msg, cause)
        c.simulation.post.book(sender, lost=arrival is None)
        numbers[receiver] += 1


def receive_letter(c: EventContext, message: LetterUnderWay, now: int) -> None:
    """A letter has come to its receiver; it waits for the next question."""
    c.simulation.post.arrive(message.receiver, message.agent, message.letter, now)
