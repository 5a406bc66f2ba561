"""A language model behind an OpenAI-compatible endpoint: it puts letters into words and reads them; it decides nothing.

    with Model("http://127.0.0.1:8000/v1/chat/completions", model="name", record="letters.jsonl") as model: ...
    model = Model.recorded("letters.jsonl")   # the same answers, without a socket

Each answer is JSON `{"text": ..., "claims": ["assign b2 red", ...]}`. Recordings are fixtures of `heron_env.injection`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from heron_env.core.policy import Asked, Origin
from heron_env.errors import FixtureError

if TYPE_CHECKING:
    from heron_env.injection.answers import Consulted
    from heron_env.injection.endpoint import Connection, Endpoint
    from heron_env.injection.recording import FixtureWriter

WRITE: Final = (
    "You put a letter between agents that colour a graph into words. Say what the JSON says and nothing else: which "
    "nodes have which colours, what changed, every conflict, the penalty, requests. Short plain sentences. Promise "
    'nothing that is not in it. Answer JSON {"text": the letter, "claims": [each claim in it, as "assign b2 red", '
    '"not changed", "conflict b2 h2", "penalty 10", "satisfied", "request h2 blue", "commit b2 red"]}.'
)
READ: Final = (
    "You read a letter between agents that colour a graph. Answer JSON "
    '{"text": "", "claims": ["assign h2 red" for what has a colour, "request b2 blue" for what shall change]}.'
)


@dataclass(frozen=True)
class ModelReply:
    """What a model answered; `text` is None where it didn't, for the reason in `origin`."""

    text: str | None
    claims: tuple[str, ...]
    origin: Origin
    thinking: float
    tokens: int


class Model:
    """Asks an endpoint.

    Args:
        endpoint: where chats are completed, or its address.
        model: its name there.
        record: fixture that all questions and answers go into; one that was cut off is continued.
        line: the way to the endpoint, where others share it.

    Attributes:
        codes: how the questions ended, "" where nothing went wrong.
    """

    def __init__(
        self,
        endpoint: Endpoint | str,
        *,
        model: str = "",
        record: str | Path | None = None,
        line: Connection | None = None,
    ) -> None:
        from heron_env.injection.endpoint import Connection, Endpoint

        self.endpoint = Endpoint(endpoint, model=model) if isinstance(endpoint, str) else endpoint
        self.line, self.codes = line or Connection(self.endpoint), Counter[str]()
        self._record = None if record is None else Path(record)
        self._writer: FixtureWriter | None = None
        self._kept: dict[tuple[int, str], Consulted] | None = None

    @classmethod
    def recorded(cls, path: str | Path) -> Self:
        """The answers of a fixture. Raises FixtureError: it is damaged, or was cut off."""
        from heron_env.injection.recording import Fixture

        fixture = Fixture(path)
        if not fixture.whole:
            raise FixtureError(f"{fixture.path}: was cut off; continue it first, with Model(..., record=...)")
        made = cls("http://127.0.0.1/", model=fixture.header.baseline_agent["model"])
        made._kept, made._record = fixture.decisions, fixture.path
        return made

    def say(self, asked: Asked, about: str, task: str, told: Any) -> ModelReply:
        """Its answer to one question, of which there is one `about` this in an agent's turn.

        Raises FixtureError where a recording has none, or to another question.
        """
        from heron_env.injection.contract import difference

        content = json.dumps(told, sort_keys=True, ensure_ascii=False)
        request = {
            "turn_id": f"{asked.episode}/{asked.agent}/{asked.number}/{about}",
            "model": self.endpoint.model,
            "temperature": 0,
            "response_format": {"type": "json_object"},
            "messages": [{"role": "system", "content": task}, {"role": "user", "content": content}],
        }
        writer = self._open(asked.seed)
        kept: Any = self._kept if self._kept is not None else writer.done if writer else {}
        found = kept.get((asked.seed, request["turn_id"]))
        if found is None and self._kept is None:
            found = self._consulted(asked, request)
            if writer is not None:
                writer.add([found])
        where = "it holds no answer" if found is None else difference(found.request, request)
        if where:
            raise FixtureError(f"{self._record}: {request['turn_id']}, seed {asked.seed}: {where}; record it again")
        self.codes[found.code] += 1
        source: Any = "replay" if self._kept is not None else found.source
        origin = Origin(source, found.code, found.attempts, found.circuit)
        answer = found.response or {"text": None, "claims": []}
        return ModelReply(answer["text"], tuple(answer["claims"]), origin, found.thinking, found.tokens)

    def _consulted(self, asked: Asked, request: dict[str, Any]) -> Consulted:
        from heron_env.injection.answers import Consulted, require_tokens, tokens_of
        from heron_env.injection.policy import thinking
        from heron_env.net.client import Question

        def check(completion: dict[str, Any]) -> dict[str, Any]:
            require_tokens(latency, completion)
            count = tokens_of(completion)
            return answer_of(completion) | ({} if count is None else {"usage": {"completion_tokens": count}})

        latency = self.endpoint.latency
        body = json.dumps({name: value for name, value in request.items() if name != "turn_id"}).encode()
        outcome = self.line.client.call(Question(lambda attempt, left: body, check))
        return Consulted(
            seed=asked.seed, episode=asked.episode, agent=asked.agent, number=asked.number, request=request,
            response=outcome.value, source="fallback" if outcome.value is None else "external", code=str(outcome.code),
            attempts=outcome.attempts, circuit=str(outcome.circuit), action=None, letters=(),
            thinking=thinking(latency, asked, outcome.seconds, tokens_of(outcome.value) or 0),
            latency_ms=outcome.seconds * 1000.0,
        )  # fmt: skip

    def _open(self, seed: int) -> FixtureWriter | None:
        """The file that grows, if there is one."""
        if self._record is not None and self._kept is None and self._writer is None:
            from heron_env.injection.questions import Questions, Telling
            from heron_env.injection.recording import FixtureWriter, Header
            from heron_env.injection.setting import EnvironmentFacts

            setting = EnvironmentFacts.of(None, env_id="heron/GraphColoring-v0")
            baseline = {"host": self.endpoint.host, "model": self.endpoint.model}
            header = Header.of(Questions(setting, Telling(chat=True)), baseline, seed, lambda: datetime.now(UTC))
            self._writer = FixtureWriter(self._record, header)
        return self._writer

    def close(self, finished: bool = True) -> None:
        """Close connections and file; it gets its footer if all is there."""
        if self._writer is not None:
            self._writer.close(finished)
            self._writer = None
        self.line.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same: one file has one writer."""
        return self

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, at: object) -> None:
        """Close; after an error a recording can be continued."""
        self.close(finished=kind is None)


def answer_of(completion: dict[str, Any]) -> dict[str, Any]:
    """Text and claims in what an endpoint answered. Raises Failure: INVALID_RESPONSE."""
    from heron_env.net.outcome import Code, Failure, parse

    try:
        told = parse(completion["choices"][0]["message"]["content"].encode())
        text, claims = told["text"], told.get("claims")
        claims = [] if claims is None else claims
        if isinstance(text, str) and isinstance(claims, list) and all(isinstance(claim, str) for claim in claims):
            return {"text": text, "claims": claims}
    except (AttributeError, IndexError, KeyError, TypeError, UnicodeEncodeError):
        pass
    raise Failure(Code.INVALID_RESPONSE, 'its content is no JSON {"text": ..., "claims": [...]}; see `Model`')
