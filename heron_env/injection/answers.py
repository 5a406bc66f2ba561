"""Decisions of external agents: what of an answer counts, what is kept of it, and how an agent fares in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, ValidationError

from heron_env.core.letters import MOST_BYTES, Letter, sealed
from heron_env.core.plans import Plan
from heron_env.core.policy import Answer, Asked, Origin
from heron_env.declared.configuration import Latency
from heron_env.errors import ConfigError
from heron_env.injection.contract import Illegal, LetterGiven, PlanGiven, Response, Wire, WireModel
from heron_env.injection.questions import Questions
from heron_env.injection.tally import CLIPPED
from heron_env.net.outcome import Code, Failure

PRIVATE: Final = ("reasoning", "chain_of_thought", "thoughts")
"""Fields of a response that are dropped, wherever in it they are."""
ERROR_CODES: Final = ("TIMEOUT", "RATE_LIMITED", "INTERNAL", "INVALID_REQUEST")
"""Errors that an endpoint may report of itself."""
RULES: Final = {"period_s": "period", "start_s": "start", "merge": "merge", "end": "end", "weight": "weight"}
"""Fields of a plan in an answer, and the arguments of `Plan` that they are."""


class Consulted(WireModel):
    """What was asked, what came back, and what became of it.

    Attributes:
        request: at its first attempt, as `Request` has it.
        response: without private fields; None where something stood in, for the reason in `code`.
        action: as it fell, on the wire; the same that `response` means, or what stood in for it.
        plan: in its place, with actions on the wire, too.
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
    plan: PlanGiven | None = None

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
        action = wire.ours(self.action) if self.plan is None else plan_of(self.plan, wire)
        return Answer(action, self.letters_of(query), self.thinking, origin, self.tokens)


def plan_of(plan: PlanGiven, wire: Wire) -> Plan | None:
    """A plan as policies answer it; None: nothing new. Raises ConfigError."""
    rules = {ours: value for name, ours in RULES.items() if (value := getattr(plan, name)) is not None}
    return None if plan.plan is None else Plan([wire.ours(row) for row in plan.plan], **rules)


def on_wire(action: Any, wire: Wire) -> tuple[Any, PlanGiven | None]:
    """What a policy answers, on the wire: an action, or a plan or None in its place. Raises ConfigError."""
    if action is not None and not isinstance(action, Plan):
        return wire.written(action), None
    if action is None:
        return None, PlanGiven(plan=None)
    each = {name: getattr(action, ours) for name, ours in RULES.items()}
    rules = {name: value.item() if isinstance(value, np.generic) else value for name, value in each.items()}
    return None, PlanGiven(plan=[wire.written(row) for row in action.actions], **rules)


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
    """An answer that counts: its response without private fields, its action or plan on the wire, its letters."""

    response: dict[str, Any]
    action: Any
    plan: PlanGiven | None
    letters: tuple[Letter, ...]
    code: str
    dropped: int


def read(value: Any, query: Asked, questions: Questions, request_id: str, clip: bool = False) -> Reading:
    """What an answer means; `value` is its strict JSON. Raises Failure, which quotes nothing of it."""
    response, dropped = response_in(value, request_id)
    letters = _letters(response, query, questions)
    wire = questions.wire(query)
    action, plan, code = wire.written(wire.noop), None, ""
    if not questions.telling.chat and response.action is None and "plan" in response.model_fields_set:
        action, (plan, code) = None, plan_in(response, query.agent, wire, query.mask, clip)
    elif not questions.telling.chat:
        action, code = action_in(response.action, query.agent, wire, query.mask, clip)
    return Reading(response.model_dump(mode="json", exclude_unset=True), action, plan, letters, code, dropped)


def action_in(
    action: Any, agent: str, wire: Wire, mask: Any, clip: bool = False, name: str = "action"
) -> tuple[Any, str]:
    """The action of an answer on the wire, and the code of it. Raises Failure, which has its `name`."""
    try:
        ours, clipped = wire.read(action, mask, clip)
    except Illegal as error:
        raise Failure(Code.INVALID_ACTION, f"its {name} is none of {agent!r}: it {error}") from None
    return wire.written(ours), CLIPPED if clipped else ""


def plan_in(response: Response, agent: str, wire: Wire, mask: Any, clip: bool) -> tuple[PlanGiven, str]:
    """Its plan on the wire, and the code of it; the mask is of the first action's time alone. Raises Failure."""
    rows = [
        action_in(row, agent, wire, None if place or response.start_s else mask, clip, f"plan's action {place}")
        for place, row in enumerate(response.plan or ())
    ]
    rules = {name: getattr(response, name) for name in RULES}
    plan = PlanGiven(plan=[row for row, _ in rows] or None, **rules)
    try:
        plan_of(plan, wire)
    except ConfigError:  # which quotes it
        raise Failure(Code.INVALID_RESPONSE, "its period_s, start_s or weight is none that a plan can have") from None
    return plan, max((code for _, code in rows), default="")


def without_private(document: Any) -> tuple[Any, int]:
    """Parsed JSON without the fields that tell of private reasoning, at any depth, and how many those were.

    What agents say to each other (letters) and do is theirs and stays.
    """
    if isinstance(document, dict):
        remaining, dropped = {}, 0
        for name, value in document.items():
            if name.lower() in PRIVATE:
                dropped += 1
                continue
            remaining[name], more = (value, 0) if name in ("letters", "action", "plan") else without_private(value)
            dropped += more
        return remaining, dropped
    if isinstance(document, list):
        parts = [without_private(value) for value in document]
        return [part for part, _ in parts], sum(more for _, more in parts)
    return document, 0


def response_in(value: Any, request_id: str) -> tuple[Response, int]:
    """The response in strict JSON, and how many private fields were dropped. Raises Failure."""
    remaining, dropped = without_private(value)
    try:
        response = Response.model_validate(remaining)
    except ValidationError as error:
        first = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"]))
        raise Failure(Code.INVALID_RESPONSE, f"its field {first!r:.60} has another type than the contract's") from None
    rules = any(getattr(response, name) is not None for name in RULES)
    if rules if response.plan is None else response.action is not None or remaining.keys() - Response.model_fields:
        words = f"plan stands in the place of action; {', '.join(RULES)} stand beside a plan, and nothing unknown"
        raise Failure(Code.INVALID_RESPONSE, words)
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
