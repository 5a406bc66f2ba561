"""How a question to an endpoint ended: a code, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
class Outcome:
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
