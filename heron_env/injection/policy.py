"""A policy whose decisions come from an endpoint; nothing else knows the difference."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from heron_env.core.letters import Letter, sealed
from heron_env.core.plans import Plan
from heron_env.core.policy import Answer, AnsweringPolicy, Asked, Origin, decide_with, draw_of
from heron_env.declared.configuration import Latency, Persona, Strategy
from heron_env.errors import ConfigError, ExternalAgentError, checked_keywords
from heron_env.given import require_switch, require_type
from heron_env.injection.answers import (
    Consulted,
    Reading,
    audience,
    on_wire,
    read,
    require_tokens,
    tokens_of,
)
from heron_env.injection.contract import LetterGiven, in_version
from heron_env.injection.endpoint import Connection, Endpoint
from heron_env.injection.questions import Questions, Telling
from heron_env.injection.setting import EnvironmentFacts
from heron_env.injection.tally import AnswerTally, ExternalAgentMetrics
from heron_env.net.outcome import CallOutcome
from heron_env.seeding import key, standard_normal, uniform, uniforms

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

Fallback = Strategy | Any
"""The name of a strategy, or the local policy of "simulated_agent"."""
STRATEGIES = ("simulated_agent", "error_message", "skip", "fail")


class StandIn:
    """One of the strategies.

    Args:
        fallback: "simulated_agent": the agent's own policy in the environment, where it has none an action drawn
            uniformly from what is allowed; a policy: that; "error_message": the no-op, and a letter with the code to
            who spoke last, else to all it can write to; "skip": the no-op; "fail": ExternalAgentError.
        env: whose agents' own policies stand in.
    """

    def __init__(self, fallback: Fallback, env: HeronEnv | None) -> None:
        if isinstance(fallback, str) and fallback not in STRATEGIES:
            raise ConfigError(f"fallback={fallback!r}: must be one of {', '.join(STRATEGIES)}, or a policy")
        self.strategy: str = fallback if isinstance(fallback, str) else "simulated_agent"
        self._fallback = None if isinstance(fallback, str) else _own_copy(fallback)
        self._own: dict[str, Any] = {}
        self._env = env if self.strategy == "simulated_agent" else None
        if self._env is not None:
            for agent in self._env.hierarchy.agents:
                if agent.policy is not None and not agent.injected:
                    self._own[agent.agent_id] = _own_copy(agent.policy)

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins for the local policies, too."""
        for policy in {id(policy): policy for policy in [self._fallback, *self._own.values()]}.values():
            begin = getattr(policy, "begin", None)
            if begin is not None:
                begin(seed, episode)

    def answer(self, query: Asked, outcome: CallOutcome, questions: Questions) -> tuple[Any, tuple[Letter, ...]]:
        """Action, as policies answer it, and letters. Raises ExternalAgentError if the strategy is "fail"."""
        noop = questions.wire(query).noop
        match self.strategy:
            case "fail":
                raise ExternalAgentError(
                    f"external agent {query.agent!r}, decision {query.number} of episode {query.episode}: "
                    f"{outcome.code}, {outcome.message}; mend the endpoint, or let fallback='simulated_agent' stand in"
                )
            case "simulated_agent":
                return self._simulated(query, questions)
            case "error_message":
                letters = (
                    Letter(query.agent, one, "error", {"code": str(outcome.code)}) for one in audience(query, questions)
                )
                return noop, tuple(letters)
        return noop, ()

    def _simulated(self, query: Asked, questions: Questions) -> tuple[Any, tuple[Letter, ...]]:
        wire = questions.wire(query)
        policy = self._own.get(query.agent) if self._fallback is None else self._fallback
        draw = draw_of(query.seed, query.episode, query.agent, query.number)
        if questions.telling.chat and policy is None:
            return wire.noop, ()
        if policy is None:
            return wire.sampled(uniforms(draw, len(wire.noop)), query.mask), ()
        if hasattr(policy, "reset"):
            policy.reset(draw)
        if isinstance(policy, AnsweringPolicy):
            answer = policy.answer(query)
            for letter in answer.letters:
                sealed(letter, f"local policy of {query.agent!r}")
            return answer.action, tuple(answer.letters)
        show = partial(self._object_view, query.agent)
        decide = decide_with(policy, show, lambda vector: query.mask, lambda: query.running)
        action = decide(query.vector, query.turn, lambda: draw)
        return action if isinstance(action, Plan) else wire.written(action), ()

    def _object_view(self, agent: str) -> Any:
        """How an agent's observations read in object form."""
        if self._env is None:
            raise ConfigError(f"fallback={self._fallback!r:.100}: it wants observations in object form; give env=...")
        return self._env.shown_to(self._env.hierarchy.index[agent])


def _own_copy(policy: Any) -> Any:
    """Of a policy that can be told which actions to draw: others may ask it, too."""
    return copy.deepcopy(policy) if hasattr(policy, "reset") else policy


class Due:
    """One question that is due: its request, its bodies attempt by attempt, and the check of what comes back."""

    def __init__(self, query: Asked, questions: Questions, endpoint: Endpoint | None = None) -> None:
        self.asked, self.questions, self.endpoint = query, questions, endpoint
        self._where, request = questions.due(query)
        self.request = in_version(request.model_dump(mode="json"), questions.version)
        self._request_id = request.request_id

    @property
    def key(self) -> tuple[int, str]:
        """As `Consulted.key`."""
        return self.asked.seed, str(self.request["turn_id"])

    def body(self, attempt: int, left: float) -> bytes:
        """Of one attempt, counted from 1, with `left` s to go."""
        if attempt > 1:
            self._request_id = self.questions.ids.request(self._where, attempt - 1)
        return self.questions.body({**self.request, "request_id": self._request_id}, left)

    def check(self, value: dict[str, Any]) -> Reading:
        """What the answer of its endpoint means. Raises Failure."""
        assert self.endpoint is not None
        reading = read(value, self.asked, self.questions, self._request_id, self.endpoint.clip)
        require_tokens(self.endpoint.latency, reading.response)
        return reading


@checked_keywords
class ExternalPolicy:
    """AnsweringPolicy that asks an endpoint, all questions of one instant together.

    Args:
        endpoint: or its address.
        env: the environment of its agents: their personas, units, no-ops, whom they can write to, and their
            fallback. Without it an endpoint receives less, and letters go to nobody.
        fallback: what is used where no answer counts: "simulated_agent", "error_message", "skip", "fail", or a
            policy.
        label: policy, case, condition: runs that differ in it have other ids. Never a seed.
        personas: by agent or group, instead of what the environment's classes say.
        env_id, options: as the environment was made with; None: what it says of itself.
        chat: a conversation: `response_text` is wanted and becomes a letter; actions are the no-op.
        line: the way to the endpoint, where others share its breaker and caps.

    Raises ConfigError.
    """

    def __init__(
        self,
        endpoint: Endpoint | str,
        *,
        env: HeronEnv | None = None,
        fallback: Fallback = "simulated_agent",
        label: str = "",
        personas: Mapping[str, Persona] | None = None,
        env_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        chat: bool = False,
        line: Connection | None = None,
    ) -> None:
        self.endpoint = Endpoint(endpoint) if isinstance(endpoint, str) else endpoint
        if not isinstance(self.endpoint, Endpoint):
            raise ConfigError(f"ExternalPolicy({endpoint!r:.100}): give an Endpoint, or its address as text")
        require_type(f"ExternalPolicy(label={label!r:.60})", label, str, "a text")
        require_switch(f"ExternalPolicy(chat={chat!r:.60})", chat)
        setting = EnvironmentFacts.of(env, env_id=env_id, options=options, personas=personas)
        receiver = self.endpoint
        telling = Telling(
            privacy_tier=receiver.privacy_tier,
            send_persona_details_externally=receiver.send_persona_details_externally,
            redact_pii_patterns=receiver.redact_pii_patterns,
            label=label,
            timeout_ms=round(receiver.timeout * 1000),
            chat=chat,
        )
        self.questions = Questions(setting, telling.of_a_run())
        self._stand_in = StandIn(fallback, env)
        require_type(f"ExternalPolicy(line={line!r:.60})", line, (Connection, type(None)), "a Line, or None")
        self.line = line or Connection(self.endpoint)
        self._tallies: defaultdict[str | None, AnswerTally] = defaultdict(AnswerTally.empty)

    def begin(self, seed: int, episode: int) -> None:
        """Begin an episode: forget pseudonyms and conversations; the circuit stays."""
        self.questions.begin()
        self._stand_in.begin(seed, episode)

    def answer(self, asked: Asked) -> Answer:
        """Answer one question. Raises ExternalAgentError where `fallback` is "fail"."""
        return self.answer_all([asked])[0]

    def answer_all(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answer questions together."""
        decisions = self.consult(self.due(asked))
        return [each.answer(one, self.questions.wire(one)) for one, each in zip(asked, decisions, strict=True)]

    def due(self, queries: Sequence[Asked]) -> list[Due]:
        """Return the questions to ask, and count them as asked."""
        return [Due(one, self.questions, self.endpoint) for one in queries]

    def consult(self, due: Sequence[Due]) -> list[Consulted]:
        """Return the answers with all that a recording keeps."""
        from heron_env.net.client import Question

        outcomes = self.line.client.call_all([Question(each.body, each.check) for each in due])
        return [self._consulted(each, outcome) for each, outcome in zip(due, outcomes, strict=True)]

    def _consulted(self, due: Due, outcome: CallOutcome) -> Consulted:
        query, reading = due.asked, outcome.value
        response = reading.response if isinstance(reading, Reading) else None
        if isinstance(reading, Reading):
            action, plan, letters = reading.action, reading.plan, reading.letters
        else:
            ours, letters = self._stand_in.answer(query, outcome, self.questions)
            action, plan = on_wire(ours, self.questions.wire(query))
        decision = Consulted(
            seed=query.seed,
            episode=query.episode,
            agent=query.agent,
            number=query.number,
            request=due.request,
            response=response,
            source="external" if isinstance(reading, Reading) else "fallback",
            code=reading.code if isinstance(reading, Reading) else str(outcome.code),
            attempts=outcome.attempts,
            circuit=str(outcome.circuit),
            action=action,
            plan=plan,
            letters=tuple(LetterGiven(receiver=one.receiver, kind=one.kind, body=one.body) for one in letters),
            thinking=thinking(self.endpoint.latency, query, outcome.seconds, tokens_of(response) or 0),
            latency_ms=outcome.seconds * 1000.0,
        )
        self.happened(query, decision, reading.dropped if isinstance(reading, Reading) else 0)
        return decision

    def happened(self, query: Asked, decision: Consulted, dropped: int = 0) -> None:
        """Remember what the agent wrote, and count."""
        self.questions.said(query, decision.letters_of(query))
        origin = Origin(decision.source, decision.code, decision.attempts, decision.circuit)
        for agent in (None, query.agent):
            self._tallies[agent].add(origin, decision.latency_ms, dropped)

    def metrics(self, agent: str | None = None) -> ExternalAgentMetrics:
        """Return the figures of one agent, or of all."""
        return self._tallies.get(agent, AnswerTally.empty()).metrics()

    @property
    def tally(self) -> AnswerTally:
        """Return the counts of all agents."""
        return self._tallies[None]

    def close(self) -> None:
        """Close the connections."""
        self.line.close()

    def __repr__(self) -> str:
        """Where it asks, without path and query."""
        return f"ExternalPolicy({self.endpoint.host!r})"


def thinking(latency: Latency, query: Asked, measured: float, tokens: int = 0) -> float:
    """Virtual time that an answer takes, s; drawn as delays are: mean exact, standard deviation `ratio * mean`."""
    match latency.mode:
        case "ignored":
            return 0.0
        case "measured":
            return measured
        case "tokens":
            return tokens / (latency.tokens_per_second or 1.0)
    spread = math.sqrt(math.log1p(latency.ratio**2))
    normal = standard_normal(uniform(key(query.seed, "thinking", query.episode, query.agent, query.number)))
    return latency.mean * math.exp(spread * normal - spread**2 / 2.0)
