"""How a question to an endpoint ended, and what its answer held as strict JSON."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from heron_env.files.reading import SURROGATE, HalfCharacter, NotFinite, RepeatedKey, parsed


class Code(StrEnum):
    """What went wrong; empty where nothing did."""

    OK = ""
    TIMEOUT = "TIMEOUT"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL = "INTERNAL"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_RESPONSE = "INVALID_RESPONSE"
    INVALID_ACTION = "INVALID_ACTION"
    RESPONSE_TOO_LARGE = "RESPONSE_TOO_LARGE"
    CONNECTION = "CONNECTION"
    CIRCUIT_OPEN = "CIRCUIT_OPEN"


class Failure(Exception):
    """Ends a question with a code. The message quotes nothing that was sent or received.

    A caller's `check` raises it to refuse an answer; it never leaves `Client.call`.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class RateLimited(Failure):
    """Status 429; `after` is what the endpoint asks to wait, s."""

    def __init__(self, after: float) -> None:
        super().__init__(Code.RATE_LIMITED, "it answered 429: too many requests; lower qps_cap")
        self.after = after


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How one question ended.

    Attributes:
        code: `Code.OK` or what went wrong.
        value: what the question's `check` made of the answer; None where something went wrong.
        attempts: requests that were sent, or tried to be.
        seconds: from the call until the answer, waits included, s.
        circuit: the breaker's state when the question was let in or refused.
        message: what went wrong, where, and how to mend it; empty where nothing did.
    """

    code: Code
    value: Any
    attempts: int
    seconds: float
    circuit: str
    message: str = ""


MOST_DEPTH = 32
MOST_VALUES = 8_192
"""An object of one pair takes 300 bytes of memory, and those who check an answer make copies of it."""
MOST_TEXT = 3 * 2**20
"""Bytes of the text in memory: one character above U+FFFF makes each of the others take four."""

# A string, also one without an end, so that no quote is looked at twice; or a bracket or comma.
TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def parse(body: bytes | bytearray) -> dict[str, Any]:
    """The object of a response's body.

    Raises Failure: RESPONSE_TOO_LARGE for too many values or too long a text, INVALID_ACTION for a number that is not
    finite, INVALID_RESPONSE for all else that is not strict JSON or deeper than 32.
    """
    _check_shape(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise _invalid("empty or not UTF-8")
    if max(sys.getsizeof(text), 4 * len(text) * bool(SURROGATE.search(text))) > MOST_TEXT:
        raise Failure(Code.RESPONSE_TOO_LARGE, f"its text takes more than {MOST_TEXT:,} bytes of memory")
    value = _loaded(text)
    del text
    if not isinstance(value, dict):
        raise _invalid("not an object in valid JSON")
    return value


def _check_shape(body: bytes | bytearray) -> None:
    """Depth and number of values, before anything is built."""
    depth = values = 0
    for token in TOKEN.finditer(body):
        match body[token.start()]:
            case 0x5B | 0x7B:  # [ {
                depth += 1
                values += 1
                if depth > MOST_DEPTH:
                    raise _invalid(f"nested deeper than {MOST_DEPTH}")
            case 0x5D | 0x7D:  # ] }
                depth -= 1
            case 0x2C:  # ,
                values += 1
        if values > MOST_VALUES:
            raise Failure(Code.RESPONSE_TOO_LARGE, f"it has more than {MOST_VALUES:,} values")


def _loaded(text: str) -> Any:
    """The value, or None where it is none: the error of `json` would quote the text."""
    try:
        return parsed(text, hostile=True)
    except NotFinite:
        raise Failure(Code.INVALID_ACTION, "a number that is NaN, infinite, or beyond float64") from None
    except (RepeatedKey, HalfCharacter) as error:
        raise _invalid(str(error)) from None
    except ValueError:
        return None


def _invalid(what: str) -> Failure:
    return Failure(Code.INVALID_RESPONSE, f"its body is no answer: {what}")
