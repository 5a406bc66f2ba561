"""When messages and answers came in a run whose network or deciders were no simulation: enough to repeat it (R1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from heron_env.core.letters import Sealed
from heron_env.core.plans import SentPlan
from heron_env.core.policy import Answer, Asked, Origin
from heron_env.errors import TraceError

SCHEMA: Final = 1
"""Version of the form on disk; it grows when a reader of the old one would be misled."""


@runtime_checkable
class Delivery(Protocol):
    """What the event clock asks of a network that its schedule does not describe: carried, recorded or measured.

    Attributes:
        places: by agent, the process that it lives in; all others live with the proxy. Who shares a place needs no
            network; with no places at all every message travels as the schedule says.
        thinks: agents whose answers take the time that `answered` says.
    """

    @property
    def places(self) -> Mapping[str, str]: ...

    @property
    def thinks(self) -> Collection[str]: ...

    def seed_of(self, seed: int | None) -> int | None:
        """The seed of an episode that is started with `seed`."""
        ...

    def times(self, number: int, message: Any, phase: int) -> Sequence[int]:
        """When the copies of a message that leaves for another place arrive, ns; none: it is lost, or not there yet.

        `number` counts these messages, from 0: ids are others where a trace is kept. `phase`: as of `schedule`.
        """
        ...

    def answered(self, agent: str, question: int, now: int) -> tuple[int, bool] | None:
        """When the answer to an agent's question, counted from 0 and put at `now`, counts, ns; None: never.

        And is who was asked gone by then, so that nothing comes of it?
        """
        ...


@dataclass(frozen=True, slots=True)
class Passage:
    """One message over a real network.

    Attributes:
        link: from where to where, as "battery_1 to proxy".
        sent: when it left, ns: the nominal time, so that what the hosts take is a part of the delay.
        came: when each copy arrived, ns; none: it never did.
    """

    link: str
    sent: int
    came: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer to a question that was put at `asked`, ns, and counted from `at` on.

    Attributes:
        action: `[size]`, as the agent's action space reads it; None: the process that had been asked is gone.
        letters: (rank of the receiver, letter).
        origin: where it came from, of policies that say it.
        tokens: that a language model wrote for it.
        plan: in the place of an action, which is empty then, `SentPlan.tolist()`.
    """

    asked: int
    at: int
    action: tuple[float, ...] | None
    letters: tuple[tuple[int, Sealed], ...] = ()
    origin: Origin | None = None
    tokens: int = 0
    plan: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The record of a run by the wall clock. `env.run_event_driven(policies, arrivals=...)` repeats it bit for bit.

    Attributes:
        seed: of the episode, which is the first of it.
        places: as of Delivery.
        messages: by number, all that left for another place.
        answers: by agent, one for each question that it was asked, in their order; None: it never counted.
        begins: by agent, before which of these questions its policy began anew, for its process had been started again.
        until: the run was ended from outside after this time, ns; None: it ended by itself.
        course: digests of what came of it, by part (`EpisodeResult.digests`); empty where nothing is to be compared.
        schema: version of this form.
    """

    seed: int
    places: Mapping[str, str] = field(default_factory=dict)
    messages: Mapping[int, Passage] = field(default_factory=dict)
    answers: Mapping[str, tuple[RecordedAnswer | None, ...]] = field(default_factory=dict)
    begins: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    until: int | None = None
    course: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def seed_of(self, seed: int | None) -> int:
        """The seed of a repeated run that names `seed`. Raises TraceError for another one."""
        if seed is not None and seed != self.seed:
            raise TraceError(f"seed={seed!r:.60}: the recorded run has the seed {self.seed}; leave seed out")
        return self.seed

    @property
    def thinks(self) -> Collection[str]:
        """Agents whose answers are recorded."""
        return self.answers.keys()

    def times(self, number: int, message: Any, phase: int) -> Sequence[int]:
        """When the copies of a message arrived, ns. Raises TraceError for one that the recorded run did not send."""
        passage = self.messages.get(number)
        if passage is None or passage.sent != message.sent:
            then = "never" if passage is None else f"at {passage.sent} ns"
            raise TraceError(
                f"arrivals: message {number} leaves at {message.sent} ns, and in the recorded run it left {then}: "
                "this is another run, or the record was changed"
            )
        if any(ns < message.sent for ns in passage.came):
            raise TraceError(f"arrivals: message {number} arrives before it leaves, at {message.sent} ns: restore them")
        return passage.came

    def answered(self, agent: str, question: int, now: int) -> tuple[int, bool] | None:
        """When an answer counted, ns, and whether nothing came of it. Raises TraceError where that was before it."""
        answers = self.answers[agent]
        answer = answers[question] if question < len(answers) else None
        if answer is None:
            return None
        if answer.asked != now or answer.at < now:
            raise TraceError(
                f"arrivals: {agent!r} is asked question {question} at {now} ns, and in the recorded run at "
                f"{answer.asked} ns, with an answer at {answer.at} ns: this is another run, or the record was changed"
            )
        return answer.at, answer.action is None

    def policies(self) -> dict[str, RecordedPolicy]:
        """By agent, policies that answer as was recorded, for those that can't be asked again: people, endpoints."""
        return {agent: RecordedPolicy(answers) for agent, answers in self.answers.items()}

    def require_course(self, course: Mapping[str, str]) -> None:
        """Raise TraceError naming the first part in which a repeated run's digests are not those of the record."""
        for part, digest in self.course.items():
            if course.get(part, digest) != digest:
                raise TraceError(
                    f"arrivals: the {part} came out otherwise than in the recorded run; give the environment, the "
                    "policies, the seed and the options of that run, and the record as it was written"
                )


class RecordedPolicy:
    """Gives one agent's recorded answers, one after another; what never counted is no action."""

    def __init__(self, answers: Sequence[RecordedAnswer | None]) -> None:
        self.answers, self._asked = answers, 0

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins: from the first answer on."""
        self._asked = 0

    def answer(self, asked: Asked) -> Answer:
        """The next answer."""
        place, self._asked = self._asked, self._asked + 1
        answer = self.answers[place] if place < len(self.answers) else None
        if answer is None or answer.action is None:
            return Answer(None)
        letters = tuple(sealed.opened() for _, sealed in answer.letters)
        action = list(answer.action) if answer.plan is None else SentPlan.of(answer.plan)
        return Answer(action, letters, origin=answer.origin, tokens=answer.tokens)
