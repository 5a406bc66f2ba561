"""A policy: observation in, action out. Any callable will do; the classes are for those that know more."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heron_env.core.asking import AnsweringPolicy
from heron_env.core.masking import flat


@runtime_checkable
class Policy(Protocol):
    """Anything with `forward`. May also offer `forward_batch(vectors [n, d]) -> [n, k]` and `reset(seed)`.

    One that declares `forward(observation, mask=None)` is given what its agent may choose, in the form that the action
    space's `sample(mask)` takes, or None where nothing is ever forbidden; and one that declares `forward_batch(vectors,
    masks=None)`: int8 `[n, sum(ncats)]`, or None.
    """

    def forward(self, observation: NDArray[np.float32]) -> Any:
        """The action (array, number or Action) for one observation vector, float32 `[d]`."""
        ...


@runtime_checkable
class StatePolicy(Protocol):
    """Anything with `decide_action`: it gets the same observation as a SimulationState."""

    def decide_action(self, state: Any) -> Any:
        """The action (array, number or Action) for one observation in object form."""
        ...


class OnBatches(ABC):
    """A policy that decides on batches; one observation is a batch of one."""

    @abstractmethod
    def forward_batch(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """Actions `[n, k]` of observations `[n, d]`."""

    def forward(self, observation: NDArray[np.float32], mask: Any = None) -> NDArray[np.float64]:
        """The action `[k]` of one observation `[d]`."""
        vectors, decide = np.asarray(observation)[None], cast(Any, self.forward_batch)
        if mask is not None and takes(decide, "masks"):
            return np.asarray(decide(vectors, masks=flat(mask)[None])[0])
        return np.asarray(decide(vectors)[0])


Decide = Callable[[NDArray[np.float32]], Any]
AnyPolicy = Policy | StatePolicy | AnsweringPolicy | Decide
"""A policy in any form. One that has both `answer` and `forward` is asked by `answer`."""
Policies = Mapping[str, AnyPolicy]
DecideAt = Callable[[NDArray[np.float32], int], Any]
"""What the clocks call: (observation vector, turn) -> action."""
Show = Callable[[NDArray[np.float32], int], Any]
"""(observation vector, turn) -> the observation in object form."""


Offer = Callable[[NDArray[np.float32]], Any]
"""observation vector -> the mask that it offers."""


def decide_with(
    policy: Policy | StatePolicy | Decide, show: Callable[[], Show], offer: Offer | None = None
) -> DecideAt:
    """The function that decides: by `policy.forward`, by `policy.decide_action` on what `show()` makes of the vector,
    or by the callable itself. One that declares the keyword `mask` is given what `offer` makes of the vector.
    """
    forward, decide_action = (getattr(policy, name, None) for name in ("forward", "decide_action"))
    if decide_action is not None and forward is None:  # isinstance would look ten times as long, at every step
        shown = show()
        if takes(decide_action, "mask"):
            return lambda vector, turn: decide_action(shown(vector, turn), mask=offer(vector) if offer else None)
        return lambda vector, turn: decide_action(shown(vector, turn))
    decide: Any = policy if forward is None else forward
    if takes(decide, "mask"):
        return lambda vector, turn: decide(vector, mask=offer(vector) if offer else None)
    return lambda vector, turn: decide(vector)


def takes(function: Callable[..., Any], keyword: str) -> bool:
    """Does it declare a parameter of this name?"""
    plain: Any = getattr(function, "__func__", function)
    if isinstance(plain, FunctionType) and not hasattr(plain, "__wrapped__"):  # asked for at every step
        code = plain.__code__
        return keyword in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return keyword in inspect.signature(function).parameters
    except (TypeError, ValueError):  # it is written in C and doesn't tell
        return False
