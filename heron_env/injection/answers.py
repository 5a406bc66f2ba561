"""What of an endpoint's answer counts: its form, its letters, its action; everything else has a code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from heron_env.core.asking import Asked, Letter
from heron_env.injection.actions import Illegal
from heron_env.injection.contract import ERROR_CODES, Response, without_private
from heron_env.injection.questions import Questions
from heron_env.net.outcome import Code, Failure

LONGEST: Final = 16 * 1024
"""Bytes of a letter's body as JSON."""
CLIPPED: Final = "CLIPPED"
"""The code of an answer whose numbers were brought into their bounds."""
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


def read(value: Any, asked: Asked, questions: Questions, request_id: str, clip: bool = False) -> Reading:
    """What an answer means; `value` is its strict JSON. Raises Failure, which quotes nothing of it."""
    kept, dropped = without_private(value)
    response = _response(kept, request_id)
    letters = _letters(response, asked, questions)
    action, code = None, ""
    wire = questions.wire(asked)
    if questions.telling.chat:
        action = wire.written(wire.noop)
        letters += _words(response, asked, questions)
    else:
        try:
            ours, clipped = wire.read(response.action, asked.mask, clip)
        except Illegal as error:
            raise Failure(Code.INVALID_ACTION, f"its action is none of {asked.agent!r}: it {error}") from None
        action, code = wire.written(ours), CLIPPED if clipped else ""
    return Reading(response.model_dump(mode="json", exclude_unset=True), action, letters, code, dropped)


def _response(kept: Any, request_id: str) -> Response:
    try:
        response = Response.model_validate(kept)
    except ValidationError as error:
        first = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"]))
        raise Failure(Code.INVALID_RESPONSE, f"its field {first!r:.60} has another type than the contract's") from None
    if response.request_id not in (None, request_id):
        raise Failure(Code.INVALID_RESPONSE, "it answers another request_id than that it was asked with")
    if response.error is not None:
        code = response.error.code if response.error.code in ERROR_CODES else "INTERNAL"
        raise Failure(Code(code), f"it reports an error of its own, {code}")
    return response


def _letters(response: Response, asked: Asked, questions: Questions) -> tuple[Letter, ...]:
    """To agents that it can write to, under the names that it was told."""
    letters = []
    reachable = questions.setting.facts(asked.agent).can_message
    for given in response.letters:
        receiver = questions.aliases.real(given.receiver)
        if receiver not in reachable or len(json.dumps(given.body)) > LONGEST:
            words = f"a letter to nobody that {asked.agent!r} can write to, or of more than {LONGEST:,} bytes"
            raise Failure(Code.INVALID_RESPONSE, words)
        letters.append(Letter(asked.agent, receiver, given.kind, given.body))
    return tuple(letters)


def _words(response: Response, asked: Asked, questions: Questions) -> tuple[Letter, ...]:
    """What is said in a conversation goes to who spoke last, else to all who can be reached."""
    text = response.response_text
    if text is None or len(json.dumps(text)) > LONGEST:
        raise Failure(Code.INVALID_RESPONSE, f"no response_text of at most {LONGEST:,} bytes")
    return tuple(Letter(asked.agent, receiver, WORDS, text) for receiver in heard_by(asked, questions))


def heard_by(asked: Asked, questions: Questions) -> tuple[str, ...]:
    """Who hears what an agent says to nobody by name: the last who wrote to it, else all it can write to."""
    reachable = questions.setting.facts(asked.agent).can_message
    senders = [letter.sender for letter in asked.letters if letter.sender in reachable]
    return tuple(senders[-1:]) or reachable
