"""A policy that knows who asks and when, and has words: it gets an `Asked` and gives an `Answer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from gymnasium.spaces import Space
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Letter:
    """Words from one agent to another: they travel on the sender's own link, like its reports.

    Attributes:
        body: JSON (objects with text keys, lists, text, numbers, booleans, None) of at most 16 kB.
    """

    sender: str
    receiver: str
    kind: str
    body: Any


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an answer came from.

    Attributes:
        source: an endpoint, what stands in for it where it fails, or a recording.
        code: what went wrong, such as `TIMEOUT`; empty where nothing did.
        attempts: requests that were sent.
        circuit: `CLOSED`, `OPEN` or `HALF_OPEN`; empty where there is none.
    """

    source: Literal["external", "fallback", "replay"]
    code: str = ""
    attempts: int = 0
    circuit: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One question to a policy; equal in both clocks where their runs are.

    Attributes:
        vector: the observation, float32 `[n]`.
        names: what each of its numbers is, as `env.observation_names(agent)` has it.
        number: the agent's tick that asks, from 0; a commanded agent's is its commander's.
        turn: the control step of that tick.
        time: the nominal time of that tick, s.
        mask: what the agent may choose, in the form that `space.sample(mask)` takes; None where nothing is ever
            forbidden.
        letters: those that arrived since the last question, by arrival, then by the sender's place.
    """

    agent: str
    vector: NDArray[np.float32]
    names: tuple[str, ...]
    number: int
    turn: int
    time: float
    seed: int
    episode: int
    space: Space[Any]
    mask: Any = None
    letters: tuple[Letter, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a policy answers.

    Attributes:
        action: array, number or Action.
        letters: to be sent when the decision is made, in this order; `sender` must be the agent that was asked.
        thinking: virtual time that the answer took, s; the synchronous clock ignores it, as it ignores delays.
        origin: where the answer came from, for policies that ask others.
    """

    action: Any
    letters: tuple[Letter, ...] = ()
    thinking: float = 0.0
    origin: Origin | None = None


@runtime_checkable
class AnsweringPolicy(Protocol):
    """Anything with `answer`. May also offer `answer_all([Asked, ...]) -> [Answer, ...]`: all questions of one instant
    together, in registration order.
    """

    def answer(self, asked: Asked) -> Answer:
        """The answer to one question."""
        ...
