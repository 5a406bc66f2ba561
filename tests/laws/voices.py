"""Policies that know who asks, for the laws: what they answer depends on all they were ever asked, in its order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from heron_env import Answer, Asked, Origin
from heron_env.seeding import key, uniforms


class Voice:
    """Answers by other policies, one for each agent; every answer moves a mood that the next ones depend on.

    Attributes: log: all questions in their order; batches: how many were put together, each time; begun: episodes that
        it was told of.
    """

    def __init__(self, policies: Mapping[str, Any], thinking: Callable[[Asked], float], moody: bool) -> None:
        self.policies, self.thinking, self.moody = policies, thinking, moody
        self.log: list[Asked] = []
        self.begun: list[tuple[int, int]] = []
        self.mood = 0

    def begin(self, seed: int, episode: int) -> None:
        """Everything before is forgotten."""
        self.begun.append((seed, episode))
        self.mood = key(seed, episode)

    def answer(self, asked: Asked) -> Answer:
        """What the asking agent's policy decides, with another observation for another mood."""
        assert self.begun and self.begun[-1] == (asked.seed, asked.episode), "asked before it was told of the episode"
        self.log.append(asked)
        self.mood = key(self.mood, asked.agent, asked.number)
        shift = np.float32(self.mood % 1000 / 1000 if self.moody else 0.0)
        action = self.policies[asked.agent](asked.vector + shift)
        return Answer(action, thinking=self.thinking(asked), origin=Origin("replay"))


class Choir(Voice):
    """The same, asked together."""

    def __init__(self, *of_voice: Any) -> None:
        super().__init__(*of_voice)
        self.batches: list[tuple[str, ...]] = []

    def answer_all(self, questions: Sequence[Asked]) -> list[Answer]:
        """One answer each."""
        self.batches.append(tuple(asked.agent for asked in questions))
        return [self.answer(asked) for asked in questions]


def at_once(asked: Asked) -> float:
    """No thinking."""
    return 0.0


def thinks(dt: float, most: int, seed: int = 0) -> Callable[[Asked], float]:
    """Thinking of up to `most` dt in quarters, drawn anew for each question."""
    return lambda asked: int(uniforms(key("thinks", seed, asked.agent, asked.number), 1)[0] * (4 * most + 1)) * dt / 4


def voices(
    kind: type[Voice] = Voice, thinking: Callable[[Asked], float] = at_once, *, moody: bool = False, each: bool = False
) -> Callable[[Mapping[str, Any]], dict[str, Voice]]:
    """What makes one voice for all, or one for `each`, of other policies."""

    def made(policies: Mapping[str, Any]) -> dict[str, Voice]:
        if each:
            return {agent: kind(policies, thinking, moody) for agent in policies}
        return dict.fromkeys(policies, kind(policies, thinking, moody))

    return made
