"""A policy: observation in, action out. Any callable will do; the classes are for those that know more.

One that knows who asks and when, and has words, gets an `Asked` and gives an `Answer`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
from gymnasium.spaces import Space
from numpy.typing import NDArray

from heron_env.core.letters import Letter
from heron_env.core.masking import flat
from heron_env.core.plans import NOTHING, Running
from heron_env.seeding import key, keys

Keys = NDArray[np.uint64]


@runtime_checkable
class Policy(Protocol):
    """Policy with `forward`. It may also have `forward_batch(vectors [n, d]) -> [n, k]` and `reset(seed)`.

    With the keyword `mask=None`, `forward` gets the allowed choices, in the form of `space.sample(mask)`; None: there
    is no mask. `forward_batch` gets `masks=None`: int8 `[n, sum(ncats)]`.

    A random policy declares `draw=None` (in a batch `draws=None`): a uint64 key for this decision (see `draw_of`). Then
    its actions are equal on both clocks and in every batch.
    """

    def forward(self, observation: NDArray[np.float32]) -> Any:
        """Return the action (array, number or Action) for one observation vector, float32 `[d]`."""
        ...


@runtime_checkable
class StatePolicy(Protocol):
    """Anything with `decide_action`: it gets the same observation as a SimulationState."""

    def decide_action(self, state: Any) -> Any:
        """The action (array, number or Action) for one observation in object form."""
        ...


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of an answer.

    Attributes:
        source: an endpoint, its fallback where it fails, or a recording.
        code: what went wrong, such as `TIMEOUT`; empty where nothing did.
        attempts: requests that were sent.
        circuit: `CLOSED`, `OPEN` or `HALF_OPEN`; empty where there is none.
    """

    source: Literal["external", "fallback", "replay"]
    code: str = ""
    attempts: int = 0
    circuit: str = ""

    @property
    def words(self) -> str:
        """`fallback TIMEOUT`."""
        return f"{self.source} {self.code}".strip()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Question to a policy.

    Attributes:
        vector: the observation, float32 `[n]`.
        names: names of its elements, as `env.observation_names(agent)`.
        number: the agent's tick, from 0; a commanded agent's is its commander's.
        turn: the control step of that tick.
        time: the nominal time of that tick, s.
        mask: the allowed choices, in the form of `space.sample(mask)`; None: the agent has no mask.
        letters: letters since the last question, by arrival, then by the sender's place.
        running: state of the agent's actuator, for policies that plan.
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
    running: Running = NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Answer of a policy.

    Attributes:
        action: array, number or Action; a `Plan` of several; None: no message is sent, and the action in force
            continues. Runs play plans; a step takes one action.
        letters: letters to send with the decision, in this order; `sender` must be the agent that was asked.
        thinking: simulated time that the answer took, s; the synchronous clock ignores it.
        origin: source of the answer, for policies that ask others.
        tokens: number of tokens that a language model wrote; results sum them. For their time write
            `thinking=tokens / tokens_per_second`.
    """

    action: Any
    letters: tuple[Letter, ...] = ()
    thinking: float = 0.0
    origin: Origin | None = None
    tokens: int = 0


@runtime_checkable
class AnsweringPolicy(Protocol):
    """Policy with `answer`. It may also have `answer_all([Asked, ...]) -> [Answer, ...]`: all questions of one instant
    together, in registration order.
    """

    def answer(self, asked: Asked) -> Answer:
        """Answer one question."""
        ...


class OnBatches(ABC):
    """A policy that decides on batches; one observation is a batch of one."""

    @abstractmethod
    def forward_batch(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """Actions `[n, k]` of observations `[n, d]`."""

    def forward(
        self, observation: NDArray[np.float32], mask: Any = None, draw: int | None = None
    ) -> NDArray[np.float64]:
        """Return the action `[k]` for one observation `[d]`."""
        return np.asarray(
            forward_rows(
                self.forward_batch,
                np.asarray(observation)[None],
                lambda: None if mask is None else flat(mask)[None],
                lambda: None if draw is None else np.array([draw], dtype=np.uint64),
            )[0]
        )


Decide = Callable[[NDArray[np.float32]], Any]
AnyPolicy = Policy | StatePolicy | AnsweringPolicy | Decide
"""A policy in any form. One that has both `answer` and `forward` is asked by `answer`."""
Policies = Mapping[str, AnyPolicy]
DecideAt = Callable[[NDArray[np.float32], int, Callable[[], int]], Any]
"""What the clocks call: (observation vector, turn, what makes the key of this decision's draws) -> action."""
Show = Callable[[NDArray[np.float32], int], Any]
"""(observation vector, turn) -> the observation in object form."""
Offer = Callable[[NDArray[np.float32]], Any]
"""observation vector -> the mask that it offers."""


def decide_with(
    policy: Policy | StatePolicy | Decide, show: Callable[[], Show], offer: Offer | None = None,
    running: Callable[[], Running] | None = None,
) -> DecideAt:  # fmt: skip
    """The function that decides: by `policy.forward`, by `policy.decide_action` on what `show()` makes of the vector,
    or by the callable itself. One that declares the keyword `mask` is given what `offer` makes of the vector, one that
    declares `draw` the key of its draws, one that declares `running` what its actuator is doing.
    """
    forward, decide_action = (getattr(policy, name, None) for name in ("forward", "decide_action"))
    if decide_action is not None and forward is None:  # one that has both decides on the vector
        shown, decide = show(), decide_action
    else:
        shown, decide = None, cast(Any, policy if forward is None else forward)
    masked, draws = takes(decide, "mask"), takes(decide, "draw")
    plans = running is not None and takes(decide, "running")
    if shown is None and not masked and not draws and not plans:
        return lambda vector, turn, draw: decide(vector)

    def decide_at(vector: NDArray[np.float32], turn: int, draw: Callable[[], int]) -> Any:
        more: dict[str, Any] = {}
        if masked:
            more["mask"] = offer(vector) if offer else None
        if draws:
            more["draw"] = draw()
        if running is not None and plans:
            more["running"] = running()
        return decide(vector if shown is None else shown(vector, turn), **more)

    return decide_at


def wants_running(policy: Any) -> bool:
    """Does a policy that is not asked declare the keyword `running`?"""
    decide = getattr(policy, "forward", None) or getattr(policy, "decide_action", None) or policy
    return takes(decide, "running")


def forward_rows(
    decide: Callable[..., Any],
    vectors: NDArray[np.float32],
    masks: Callable[[], NDArray[np.int8] | None],
    draws: Callable[[], Keys | None],
    **more: Any,
) -> Any:
    """What a `forward_batch` makes of observations `[n, d]`, given `masks()` and `draws()` where it declares them."""
    if takes(decide, "masks"):
        more["masks"] = masks()
    if takes(decide, "draws"):
        more["draws"] = draws()
    return decide(vectors, **more)


def draw_of(seed: int, episode: int, agent: str, number: int) -> int:
    """The key of what an agent draws for its decision of tick `number`: the same in every clock and every batch."""
    return key(_agent_key(seed, episode, agent), number)


def own_draws(generator: np.random.Generator, n: int) -> Keys:
    """The next `n` draws of a policy that is called by hand, without any."""
    return generator.integers(2**64, size=n, dtype=np.uint64)


_agent_key = lru_cache(maxsize=65536)(lambda *agent: key("decision", *agent))


def draws_of(seeds: Keys, episodes: Keys, agents: Keys, numbers: NDArray[np.int64]) -> Keys:
    """`draw_of` of many decisions at once, `[n]`; `agents`: `seeding.h` of their ids."""
    return keys(keys("decision", seeds, episodes, agents), numbers.astype(np.uint64))


def takes(function: Callable[..., Any], keyword: str) -> bool:
    """Does it declare a parameter of this name?"""
    plain: Any = getattr(function, "__func__", function)
    if isinstance(plain, FunctionType) and not hasattr(plain, "__wrapped__"):  # its own code says it
        code = plain.__code__
        return keyword in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return keyword in inspect.signature(function).parameters
    except (TypeError, ValueError):  # it is written in C and doesn't tell
        return False
