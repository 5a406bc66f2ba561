"""Policies to examine an environment with: deterministic, so that what they see decides what they do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.policy import Answer, Asked
from heron_env.envs.base import HeronEnv
from heron_env.seeding import key, uniforms

Floats = NDArray[np.float64]


def at(spec: ActionSpec, shares: Floats) -> Floats:
    """The action at these shares (in [0, 1), float64 `[size]`) of its ranges."""
    c, d = shares[: spec.dim_c], shares[spec.dim_c :]
    return np.concatenate([spec.low + (spec.high - spec.low) * c, np.floor(spec.ncats * d)])


class Wave:
    """Pseudo-random actions that depend on every bit of the observation and on how often it was asked."""

    def __init__(self, agent: str, spec: ActionSpec) -> None:
        self.agent, self.spec, self.asked = agent, spec, 0

    def __call__(self, vector: Any) -> Floats:
        """The next action."""
        self.asked += 1
        seen = int.from_bytes(hashlib.blake2b(np.asarray(vector).tobytes(), digest_size=8).digest(), "big")
        return at(self.spec, uniforms(key("probe", self.agent, self.asked, seen), self.spec.size))


class Extreme:
    """Only the ends of the range: all low, all high (`end` 0 or 1), or either at random (None)."""

    def __init__(self, agent: str, spec: ActionSpec, end: int | None) -> None:
        self.agent, self.spec, self.end, self.asked = agent, spec, end, 0

    def __call__(self, vector: Any) -> Floats:
        """The next action."""
        self.asked += 1
        drawn = uniforms(key("extreme", self.agent, self.asked), self.spec.size)
        high = drawn >= 0.5 if self.end is None else np.full(self.spec.size, bool(self.end))
        c, d = high[: self.spec.dim_c], high[self.spec.dim_c :]
        return np.concatenate([np.where(c, self.spec.high, self.spec.low), np.where(d, self.spec.ncats - 1, 0)])


class Constant:
    """One action for ever."""

    def __init__(self, action: Floats) -> None:
        self.action = action

    def __call__(self, vector: Any) -> Floats:
        """It."""
        return self.action.copy()


class Answers:
    """The same policies as one that knows who asks, asked for all of an instant together."""

    def __init__(self, policies: Mapping[str, Any]) -> None:
        self.policies = policies

    def answer(self, asked: Asked) -> Answer:
        """What the asking agent's policy decides. Raises ValueError where not each number has its name."""
        if len(asked.names) != len(asked.vector):
            raise ValueError(f"{asked.agent} sees {len(asked.vector)} numbers with {len(asked.names)} names")
        return Answer(self.policies[asked.agent](asked.vector))

    def answer_all(self, questions: Sequence[Asked]) -> list[Answer]:
        """One answer each."""
        return [self.answer(asked) for asked in questions]


def choices(env: HeronEnv, policies: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    """What the living choose on what they see."""
    return {agent: policies[agent](seen[agent]) for agent in env.agents}


def specs(env: HeronEnv) -> dict[str, ActionSpec]:
    """The action of each possible agent."""
    return {agent: env.simulation.specs[env.hierarchy.index[agent]] for agent in env.possible_agents}


def waves(env: HeronEnv) -> dict[str, Any]:
    """A Wave for each possible agent."""
    return {agent: Wave(agent, spec) for agent, spec in specs(env).items()}


def constants(env: HeronEnv, share: float = 0.8) -> dict[str, Any]:
    """The same action for ever, at a share of the range that is seldom the no-op."""
    return {agent: Constant(at(spec, np.full(spec.size, share))) for agent, spec in specs(env).items()}


def extremes(env: HeronEnv, end: int | None) -> dict[str, Any]:
    """An Extreme for each possible agent."""
    return {agent: Extreme(agent, spec, end) for agent, spec in specs(env).items()}


def noops(env: HeronEnv) -> dict[str, Any]:
    """The no-op for ever."""
    return {agent: Constant(spec.noop) for agent, spec in specs(env).items()}
