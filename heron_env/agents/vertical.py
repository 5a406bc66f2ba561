"""Vertical protocols: how one joint action of a coordinator becomes the actions of its subordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heron_env.core.action import ActionSpec, join_specs
from heron_env.core.quantity import clip
from heron_env.errors import ConfigError

Floats = NDArray[np.float64]


class Protocol:
    """Split a coordinator's action vector into one vector for each subordinate.

    A subordinate that commands others takes part with its own joint action and splits it when it arrives.
    """

    def joint_spec(self, children: Sequence[ActionSpec]) -> ActionSpec:
        """Return the coordinator's action space for these subordinates."""
        raise TypeError(f"{type(self).__name__} must define joint_spec()")

    def split(self, action: Floats, children: Sequence[ActionSpec]) -> list[Floats]:
        """Return the subordinates' action vectors (float64, c then d), in registration order."""
        raise TypeError(f"{type(self).__name__} must define split()")


class VectorDecomposition(Protocol):
    """The coordinator decides every element: its vector is its subordinates' vectors one after another."""

    def joint_spec(self, children: Sequence[ActionSpec]) -> ActionSpec:
        """Return all continuous parts in order, then all discrete parts."""
        return join_specs(children)

    def split(self, action: Floats, children: Sequence[ActionSpec]) -> list[Floats]:
        """Cut the vector into the subordinates' parts."""
        c, d = 0, sum(child.dim_c for child in children)
        parts = []
        for child in children:
            parts.append(np.concatenate([action[c : c + child.dim_c], action[d : d + child.dim_d]]))
            c, d = c + child.dim_c, d + child.dim_d
        return parts


class Broadcast(Protocol):
    """The coordinator decides once and every subordinate does the same; all must have equal action spaces."""

    def joint_spec(self, children: Sequence[ActionSpec]) -> ActionSpec:
        """Return the subordinates' common action. Raises ConfigError if they differ."""
        first = children[0] if children else ActionSpec()
        for i, child in enumerate(children):
            same = all(np.array_equal(getattr(child, part), getattr(first, part)) for part in ("low", "high", "ncats"))
            if not same:
                raise ConfigError(
                    f"Broadcast: subordinate {i} takes {child.describe()}, subordinate 0 {first.describe()}; "
                    "all must be equal, or use VectorDecomposition"
                )
        return first

    def split(self, action: Floats, children: Sequence[ActionSpec]) -> list[Floats]:
        """Return a copy for each."""
        return [action.copy() for _ in children]


class SetpointSplit(Protocol):
    """One total (say, kW), split by weights: child i gets `total * w_i / sum(w)`, clipped to its own bounds.

    Args:
        weights: one positive number a subordinate; None: equal shares.
    """

    def __init__(self, weights: ArrayLike | None = None) -> None:
        try:
            self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            self.weights = np.zeros(1)
        if self.weights is not None and not (self.weights.ndim == 1 and np.all(self.weights > 0)):
            raise ConfigError(
                f"SetpointSplit(weights={weights!r:.200}): must be a list of positive numbers, one for each subordinate"
            )

    def joint_spec(self, children: Sequence[ActionSpec]) -> ActionSpec:
        """Return one number between the sums of the subordinates' bounds. Raises ConfigError for vectors below."""
        for i, child in enumerate(children):
            if (child.dim_c, child.dim_d) != (1, 0):
                raise ConfigError(f"SetpointSplit: subordinate {i} takes {child.describe()}; each must take one number")
        if self.weights is not None and len(self.weights) != len(children):
            raise ConfigError(
                f"SetpointSplit: {len(self.weights)} weights for {len(children)} subordinates; give one for each"
            )
        low, high, noop = (
            np.array([sum(float(getattr(c, part)[0]) for c in children)]) for part in ("low", "high", "noop")
        )
        return ActionSpec(low, high, noop=noop, unit=children[0].unit if children else "1")

    def split(self, action: Floats, children: Sequence[ActionSpec]) -> list[Floats]:
        """Return the shares of the total, each within its subordinate's bounds."""
        weights = np.ones(len(children)) if self.weights is None else self.weights
        shares = action[0] * weights / weights.sum()
        return [clip(shares[i : i + 1], child.low, child.high) for i, child in enumerate(children)]
