"""What is sent to an endpoint and what comes back: schema_version "1.0" of `docs/injection.schema.json`.

A request says who is asked (persona), what was said (conversation_context), and, in `decision`, what the agent sees and
may do. A response has the `action`, or `response_text` in a conversation. Its unknown fields are ignored, and private
reasoning is dropped before anything is kept.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION: Final = "1.0"
PRIVATE: Final = ("reasoning", "chain_of_thought", "thoughts")
"""Fields of a response that are dropped, wherever in it they are."""
ERROR_CODES: Final = ("TIMEOUT", "RATE_LIMITED", "INTERNAL", "INVALID_REQUEST")
"""Errors that an endpoint may report of itself."""

Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")]
Sha256 = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Numbers = Annotated[tuple[float, ...], Field(strict=False)]
Whole = Annotated[tuple[int, ...], Field(strict=False)]
Texts = Annotated[tuple[str, ...], Field(strict=False)]
Masks = Annotated[tuple[Whole, ...], Field(strict=False)]


class Part(BaseModel):
    """Of a request: nothing is missing, nothing is unknown, nothing is converted."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class PersonaRef(Part):
    """Which persona, for endpoints that hold personas of their own."""

    persona_id: str
    persona_version: str
    persona_hash: Sha256


class PersonaSnapshot(Part):
    """The persona itself, as far as the privacy tier lets it be told."""

    name: str
    background: str
    traits: dict[str, float]


class Turn(Part):
    """One letter of the conversation; its time is virtual, counted from 1970-01-01."""

    sender: str
    content: str
    timestamp: str


class ConversationContext(Part):
    """The last letters from and to the agent, oldest first; the oldest are left out where they don't fit."""

    last_k_turns: Annotated[tuple[Turn, ...], Field(strict=False)]
    conversation_summary: str
    token_budget: int
    max_context_chars: int


class TopologyEdgeContext(Part):
    """To whom the agent can write."""

    can_message: Texts


class ResponseFormat(Part):
    """What is needed: an `action`, or in a conversation `response_text`."""

    type: Literal["text", "action"]


class Observed(Part):
    """What the agent sees: float32 numbers in decimals that give the same bits back, their names and units.

    `names` and `units` are empty in the tier minimal, and in basic those of other agents are "".
    """

    vector: Numbers
    names: Texts
    units: Texts


class ActionSpace(Part):
    """What the agent may do.

    box: a list of numbers within `low` and `high`; discrete: a whole number below `n[0]`; multi_discrete: a list, each
    below its `n`; mixed: {"c": as for box, "d": the choices}. `noop`, in the same form, does nothing.
    """

    type: Literal["box", "discrete", "multi_discrete", "mixed"]
    low: Numbers
    high: Numbers
    n: Whole
    noop: Any


class Decision(Part):
    """One decision of a simulation; null in a conversation. A choice whose `action_mask` is 0 is forbidden."""

    kind: Literal["action"]
    step: int
    episode: int
    time_s: float
    observation: Observed
    action_space: ActionSpace
    action_mask: Masks | None
    reward_prev: None


class Request(Part):
    """The body of a POST to the endpoint."""

    schema_version: Literal["1.0"]
    request_id: Uuid
    run_id: Uuid
    turn_id: Uuid
    message_id: Uuid
    simulation_config_hash: Sha256
    persona_hash: Sha256
    agent_id: str
    persona_ref: PersonaRef
    persona_snapshot: PersonaSnapshot
    conversation_context: ConversationContext
    current_stimulus: str
    topology_edge_context: TopologyEdgeContext
    timeout_ms: int
    response_format: ResponseFormat
    decision: Decision | None


class Given(BaseModel):
    """Of a response: nothing is converted; what is unknown is ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class LetterGiven(Given):
    """Words for another agent: JSON of at most 16 kB, which travel on the agent's own link."""

    receiver: str
    kind: Annotated[str, Field(min_length=1, max_length=100)] = "message"
    body: Any = None


class ErrorGiven(Given):
    """Why the endpoint has no answer; the message is for its owner, and kept nowhere."""

    code: str = "INTERNAL"
    message: str = ""


class Response(Given):
    """The body of an answer, status 200: with `action`, or with `response_text` in a conversation."""

    request_id: str | None = None
    response_text: str | None = None
    action: Any = None
    letters: Annotated[tuple[LetterGiven, ...], Field(strict=False)] = ()
    explanation: str | None = None
    debug: dict[str, Any] | None = None
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    latency_ms: Annotated[float, Field(ge=0.0)] | None = None
    error: ErrorGiven | None = None


def without_private(given: Any) -> tuple[Any, int]:
    """Parsed JSON without the fields that tell of private reasoning, at any depth, and how many those were.

    What agents say to each other (letters, actions) is theirs and stays.
    """
    if isinstance(given, dict):
        kept, dropped = {}, 0
        for name, value in given.items():
            if name.lower() in PRIVATE:
                dropped += 1
                continue
            kept[name], more = (value, 0) if name in ("letters", "action") else without_private(value)
            dropped += more
        return kept, dropped
    if isinstance(given, list):
        parts = [without_private(value) for value in given]
        return [part for part, _ in parts], sum(more for _, more in parts)
    return given, 0
