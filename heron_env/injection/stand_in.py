"""What stands in for an answer that does not come: a local policy, a letter that says so, nothing, or an error."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from heron_env.core.letters import Letter, sealed
from heron_env.core.policy import AnsweringPolicy, Asked, decide_with, draw_of
from heron_env.declared.injected import Strategy
from heron_env.errors import ConfigError, ExternalAgentError
from heron_env.injection.answers import heard_by
from heron_env.injection.questions import Questions
from heron_env.net.outcome import Outcome
from heron_env.seeding import uniforms

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
        self._given = None if isinstance(fallback, str) else _own_copy(fallback)
        self._own: dict[str, Any] = {}
        self._env = env if self.strategy == "simulated_agent" else None
        if self._env is not None:
            for agent in self._env.hierarchy.agents:
                if agent.policy is not None and not agent.injected:
                    self._own[agent.agent_id] = _own_copy(agent.policy)

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins for the local policies, too."""
        for policy in {id(policy): policy for policy in [self._given, *self._own.values()]}.values():
            begin = getattr(policy, "begin", None)
            if begin is not None:
                begin(seed, episode)

    def answer(self, asked: Asked, outcome: Outcome, questions: Questions) -> tuple[Any, tuple[Letter, ...]]:
        """Action, as it is written, and letters. Raises ExternalAgentError if the strategy is "fail"."""
        wire = questions.wire(asked)
        match self.strategy:
            case "fail":
                raise ExternalAgentError(
                    f"external agent {asked.agent!r}, decision {asked.number} of episode {asked.episode}: "
                    f"{outcome.code}, {outcome.message}; mend the endpoint, or let fallback='simulated_agent' stand in"
                )
            case "simulated_agent":
                return self._simulated(asked, questions)
            case "error_message":
                letters = (
                    Letter(asked.agent, one, "error", {"code": str(outcome.code)}) for one in heard_by(asked, questions)
                )
                return wire.written(wire.noop), tuple(letters)
        return wire.written(wire.noop), ()

    def _simulated(self, asked: Asked, questions: Questions) -> tuple[Any, tuple[Letter, ...]]:
        wire = questions.wire(asked)
        policy = self._own.get(asked.agent) if self._given is None else self._given
        draw = draw_of(asked.seed, asked.episode, asked.agent, asked.number)
        if questions.telling.chat and policy is None:
            return wire.written(wire.noop), ()
        if policy is None:
            return wire.sampled(uniforms(draw, len(wire.noop)), asked.mask), ()
        if hasattr(policy, "reset"):
            policy.reset(draw)
        if isinstance(policy, AnsweringPolicy):
            answer = policy.answer(asked)
            for letter in answer.letters:
                sealed(letter, f"local policy of {asked.agent!r}")
            return wire.written(answer.action), tuple(answer.letters)
        decide = decide_with(policy, lambda: self._shown_to(asked.agent), lambda vector: asked.mask)
        return wire.written(decide(asked.vector, asked.turn, lambda: draw)), ()

    def _shown_to(self, agent: str) -> Any:
        """How an agent's observations read in object form."""
        if self._env is None:
            raise ConfigError(f"fallback={self._given!r:.100}: it wants observations in object form; give env=...")
        return self._env.shown_to(self._env.hierarchy.index[agent])


def _own_copy(policy: Any) -> Any:
    """Of a policy that can be told which actions to draw: others may ask it, too."""
    return copy.deepcopy(policy) if hasattr(policy, "reset") else policy
