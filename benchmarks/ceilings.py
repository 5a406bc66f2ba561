"""A hand-fused loop: the law of BatteryGrid written once more, for speed alone. That of Spread is in C (spread.c).

No hierarchy, no visibility, no noise, no checks, no seeds: what this machine could do if somebody wrote out a single
environment by hand. Tests compare it with the environment, number by number.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

_fused: Any = numba.njit(error_model="numpy")


class FusedGrid:
    """The law of `heron/BatteryGrid-v0` with batteries that decide for themselves.

    Attributes:
        soc, capacity: float64 `[B, n]`. observations: float32 `[B, n, 2n]` (everybody sees all), or `[B, n, 2]`.
        rewards: float64 `[B, n]`. over: uint8 `[B]`, 1 where the last step ended the episode.
    """

    def __init__(self, lanes: int, n: int, *, public: bool, max_steps: int = 100) -> None:
        self.soc, self.capacity = np.full((lanes, n), 0.5), np.full((lanes, n), 100.0)
        self.observations = np.zeros((lanes, n, 2 * n if public else 2), np.float32)
        self.rewards, self.steps = np.zeros((lanes, n)), np.zeros(lanes, np.int64)
        self.over = np.zeros(lanes, np.uint8)
        self.public, self.max_steps = public, max_steps

    def step(self, actions: NDArray[np.float32]) -> None:
        """One step of all lanes; lanes that end start again. Actions `[B, n]`."""
        _grid(
            self.soc, self.capacity, actions, self.observations, self.rewards, self.steps, self.over, self.max_steps,
            self.public,
        )  # fmt: skip


@_fused
def _grid(  # type: ignore[no-untyped-def]
    soc, capacity, actions, observations, rewards, steps, over, max_steps, public
):
    lanes, n = soc.shape
    for b in range(lanes):
        for i in range(n):
            charge = soc[b, i] + min(max(float(actions[b, i]), -1.0), 1.0) * 0.01
            soc[b, i] = min(max(charge, 0.0), 1.0)
            rewards[b, i] = soc[b, i]
        steps[b] += 1
        over[b] = steps[b] >= max_steps
        if over[b]:
            steps[b] = 0
            for i in range(n):
                soc[b, i] = 0.5
        for i in range(n):
            seen = observations[b, i]
            seen[0], seen[1] = soc[b, i], capacity[b, i]
            if public:
                at = 2
                for j in range(n):
                    if j != i:
                        seen[at], seen[at + 1] = soc[b, j], capacity[b, j]
                        at += 2
