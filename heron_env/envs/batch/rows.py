"""Rows: what a batch on the event clock asks to be decided, and what became of the decisions before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """What became of the last decisions of agents whose episode or life has ended: nothing to answer, n of them.

    Sorted by group, lane and rank; `parts`, `reward`, `steps`, `took` and the rest as in Rows.

    Attributes:
        terminated, truncated: bool `[n]`; only where an agent was cut off (`truncated`) is there a future to estimate.
        obs: what an observation gathered at that instant would show, float32 `[n, d]`.
        state: float32 `[n, columns]`, the truth at that instant; None unless asked for (`with_state`).
    """

    lane: Ints
    rank: Ints
    parts: Mapping[str, slice]
    obs: Vectors
    reward: Floats
    steps: Ints
    took: Bools
    terminated: Bools
    truncated: Bools
    training_reward: Floats | None = None
    state: Vectors | None = None

    def __len__(self) -> int:
        """How many there are, n."""
        return len(self.lane)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Observations that wait for actions: n rows of all lanes, an agent at most once.

    Sorted by group, lane and rank. Actions answer them in this order, `[n, k]`, k of the widest action.

    Attributes:
        lane, rank: int64 `[n]`: of the observation's agent.
        parts: by group, which rows are its own.
        obs: float32 `[n, d]`, d of the widest group; a narrower one has zeros to the right.
        mask: flat masks, bool `[n, m]`, m of the widest, True to the right of a narrower one; None where nothing is
            ever forbidden.
        number: int64 `[n]`, of the tick that asked.
        time: float64 `[n]`, s: when the observation arrived.
        first: bool `[n]`: the first of its agent in this episode; what remembers forgets there.
        reward: float64 `[n]`: what the agent's previous decision brought, sum of gamma**(i-1) * r_i over the control
            steps that ended after it and up to now; 0 where `first`.
        steps: int64 `[n]`: how many control steps that were.
        took: bool `[n]`: did that decision take effect, or will it (False: its agent or its episode ended before)?
            False where `first`.
        ended: what became of the last decisions of those who ended since.
        training_reward: float64 `[n]`: like `reward`, of what a trainer should use instead; None where that is the
            reward itself, or a method of the class and not asked for (`with_state`).
        state: float32 `[n, columns]`: the truth when the observation arrived, for a central critic; None unless asked
            for (`with_state`).
    """

    lane: Ints
    rank: Ints
    parts: Mapping[str, slice]
    obs: Vectors
    mask: Bools | None
    number: Ints
    time: Floats
    first: Bools
    reward: Floats
    steps: Ints
    took: Bools
    ended: Ended
    training_reward: Floats | None = None
    state: Vectors | None = None

    def __len__(self) -> int:
        """How many there are, n."""
        return len(self.lane)
