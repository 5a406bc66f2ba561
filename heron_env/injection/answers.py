"""Decisions of external agents: what of an answer counts, what is kept of it, and how an agent fares in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from heron_env.core.letters import MOST_BYTES, Letter, sealed
from heron_env.core.policy import Answer, Asked, Origin
from heron_env.declared.configuration import Latency
from heron_env.errors import ConfigError
from heron_env.injection.contract import ERROR_CODES, Illegal, LetterGiven, Response, Wire, WireModel, without_private
from heron_env.injection.questions import Questions
from heron_env.injection.tally import CLIPPED
from heron_env.net.outcome import Code, Failure


class Consulted(WireModel):
    """What was asked, what came back, and what became of it.

    Attributes:
        request: at its first attempt, as `Request` has it.
        response: without private fields; None where something stood in, for the reason in `code`.
        action: as it fell, on the wire; the same that `response` means, or what stood in for it.
        thinking: virtual time, s.
        latency_ms: wall time, waits and retries included.
    """

    seed: int
    episode: int
    agent: str
    number: int
    request: dict[str, Any]
    response: dict[str, Any] | None
    source: Literal["external", "fallback"]
    code: str
    attempts: int
    circuit: str
    action: Any
    letters: Annotated[tuple[LetterGiven, ...], Field(strict=False)]
    thinking: float
    latency_ms: float

    @property
    def key(self) -> tuple[int, str]:
        """Which decision it is: the seed, and the turn of a labelled run."""
        return self.seed, str(self.request["turn_id"])

    @property
    def tokens(self) -> int:
        """That its response counts."""
        return tokens_of(self.response) or 0

    def letters_of(self, query: Asked) -> tuple[Letter, ...]:
        """As the clocks take them."""
        return tuple(Letter(query.agent, one.receiver, one.kind or WORDS, one.body) for one in self.letters)

    def answer(self, query: Asked, wire: Wire, replayed: bool = False) -> Answer:
        """As the clocks take it: the same for what was recorded as for what happens now, but for its source."""
        source: Literal["external", "fallback", "replay"] = "replay" if replayed else self.source
        origin = Origin(source, self.code, self.attempts, self.circuit)
        return Answer(wire.ours(self.action), self.letters_of(query), self.thinking, origin, self.tokens)


def tokens_of(response: Mapping[str, Any] | None) -> int | None:
    """What an answer counts in `usage`, as OpenAI-compatible endpoints do; None: it doesn't."""
    usage = (response or {}).get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return count if type(count) is int and 0 <= count < 2**31 else None


def require_tokens(latency: Latency, response: Mapping[str, Any]) -> None:
    """Raise Failure where they are to be time, and an answer does not count them."""
    if latency.mode == "tokens" and tokens_of(response) is None:
        words = "it has no usage.completion_tokens, which Latency(mode='tokens') needs"
        raise Failure(Code.INVALID_RESPONSE, words)


WORDS: Final = "message"
"""The kind of a letter that `response_text` becomes."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer that counts: its response without private fields, its action on the wire, its letters."""

    response: dict[str, Any]
    action: Any
    letters: tuple[Letter, ...]
    code: str
    dropped: int


def read(value: Any, query: Asked, questions: Questions, request_id: str, clip: bool = False) -> Reading:
    """What an answer means; `value` is its strict JSON. Raises Failure, which quotes nothing of it."""
    response, dropped = response_in(value, request_id)
    letters = _letters(response, query, questions)
    wire = questions.wire(query)
    if questions.telling.chat:
        action, code = wire.written(wire.noop), ""
    else:
        action, code = action_in(response, query.agent, wire, query.mask, clip)
    return Reading(response.model_dump(mode="json", exclude_unset=True), action, letters, code, dropped)


def action_in(response: Response, agent: str, wire: Wire, mask: Any, clip: bool = False) -> tuple[Any, str]:
    """Its action on the wire, and the code of it. Raises Failure."""
    try:
        ours, clipped = wire.read(response.action, mask, clip)
    except Illegal as error:
        raise Failure(Code.INVALID_ACTION, f"its action is none of {agent!r}: it {error}") from None
    return wire.written(ours), CLIPPED if clipped else ""


def response_in(value: Any, request_id: str) -> tuple[Response, int]:
    """The response in strict JSON, and how many private fields were dropped. Raises Failure."""
    remaining, dropped = without_private(value)
    try:
        response = Response.model_validate(remaining)
    except ValidationError as error:
        first = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"]))
        raise Failure(Code.INVALID_RESPONSE, f"its field {first!r:.60} has another type than the contract's") from None
    if response.request_id not in (None, request_id):
        raise Failure(Code.INVALID_RESPONSE, "it answers another request_id than that it was asked with")
    if response.error is not None:
        code = response.error.code or ""
        code = code if code in ERROR_CODES else "INTERNAL"
        raise Failure(Code(code), f"it reports an error of its own, {code}")
    return response, dropped


def _letters(response: Response, query: Asked, questions: Questions) -> tuple[Letter, ...]:
    """To agents that it can write to, under the names that it was told; in a conversation what it says, too."""
    sender, written = query.agent, []
    for entry in response.letters or ():
        written.append(Letter(sender, questions.aliases.real(entry.receiver), entry.kind or WORDS, entry.body))
    if questions.telling.chat:
        if response.response_text is None:
            raise Failure(Code.INVALID_RESPONSE, "it has no response_text")
        receivers = audience(query, questions)
        written += [Letter(sender, receiver, WORDS, response.response_text) for receiver in receivers]
    reachable = questions.setting.facts(sender).can_message
    for letter in written:
        try:
            sealed(letter, "its letter")
        except ConfigError:  # which quotes it
            reachable = ()
        if letter.receiver not in reachable:
            words = f"a letter to nobody that {sender!r} can write to, or of more than {MOST_BYTES:,} bytes"
            raise Failure(Code.INVALID_RESPONSE, words) from None
    return tuple(written)


def audience(query: Asked, questions: Questions) -> tuple[str, ...]:
    """Who hears what an agent says to nobody by name: the last who wrote to it, else all it can write to."""
    reachable = questions.setting.facts(query.agent).can_message
    senders = [letter.sender for letter in query.letters if letter.sender in reachable]
    return tuple(senders[-1:]) or reachable
