"""One decision of an external agent with all that is kept of it: a line of a fixture."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from heron_env.core.letters import Letter
from heron_env.core.policy import Answer, Asked, Origin
from heron_env.injection.actions import Wire
from heron_env.injection.contract import LetterGiven, Part


class Consulted(Part):
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

    def letters_of(self, asked: Asked) -> tuple[Letter, ...]:
        """As the clocks take them."""
        return tuple(Letter(asked.agent, one.receiver, one.kind, one.body) for one in self.letters)

    def answer(self, asked: Asked, wire: Wire, replayed: bool = False) -> Answer:
        """As the clocks take it: the same for what was recorded as for what happens now, but for its source."""
        source: Literal["external", "fallback", "replay"] = "replay" if replayed else self.source
        origin = Origin(source, self.code, self.attempts, self.circuit)
        return Answer(wire.ours(self.action), self.letters_of(asked), self.thinking, origin)
