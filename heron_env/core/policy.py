"""A policy: observation in, action out. Any callable will do; the classes are for those that know more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Policy(Protocol):
    """Anything with `forward`. May also offer `forward_batch(vectors [n, d]) -> [n, k]` and `reset(seed)`."""

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

    def forward(self, observation: NDArray[np.float32]) -> NDArray[np.float64]:
        """The action `[k]` of one observation `[d]`."""
        return np.asarray(self.forward_batch(np.asarray(observation)[None])[0])


Decide = Callable[[NDArray[np.float32]], Any]
AnyPolicy = Policy | StatePolicy | Decide
Policies = Mapping[str, AnyPolicy]
DecideAt = Callable[[NDArray[np.float32], int], Any]
"""What the clocks call: (observation vector, turn) -> action."""
Show = Callable[[NDArray[np.float32], int], Any]
"""(observation vector, turn) -> the observation in object form."""


def decide_with(policy: AnyPolicy, show: Callable[[], Show]) -> DecideAt:
    """The function that decides: by `policy.forward`, by `policy.decide_action` on what `show()` makes of the vector,
    or by the callable itself.
    """
    if isinstance(policy, StatePolicy) and not isinstance(policy, Policy):
        shown, decide_action = show(), policy.decide_action
        return lambda vector, turn: decide_action(shown(vector, turn))
    decide: Decide = policy.forward if isinstance(policy, Policy) else policy
    return lambda vector, turn: decide(vector)
