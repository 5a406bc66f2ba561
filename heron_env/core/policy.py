"""A policy: observation in, action out. Any callable will do; the class is for those that know more."""

from __future__ import annotations

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


Decide = Callable[[NDArray[np.float32]], Any]
Policies = Mapping[str, "Policy | Decide"]


def decide_with(policy: Policy | Decide) -> Decide:
    """The function that decides: `policy.forward`, or the callable itself."""
    return policy.forward if isinstance(policy, Policy) else policy
