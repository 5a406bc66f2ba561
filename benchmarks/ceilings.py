"""Hand-fused loops: the laws of two environments written once more, for speed alone.

No hierarchy, no visibility, no noise, no checks, no seeds: what this machine could do if somebody wrote out a single
environment by hand. Tests compare them with the environments, number by number.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.case import EPISODE
from benchmarks.threads import Threads

_fused: Any = numba.njit(nogil=True, error_model="numpy")


class FusedGrid:
    """The law of `heron/BatteryGrid-v0` with batteries that decide for themselves.

    Attributes:
        soc, capacity: float64 `[B, n]`. observations: float32 `[B, n, 2n]` (everybody sees all), or `[B, n, 2]`.
        rewards: float64 `[B, n]`. over: uint8 `[B]`, 1 where the last step ended the episode.
    """

    def __init__(self, lanes: int, n: int, *, public: bool, max_steps: int = 100, threads: int = 1) -> None:
        self.soc, self.capacity = np.full((lanes, n), 0.5), np.full((lanes, n), 100.0)
        self.observations = np.zeros((lanes, n, 2 * n if public else 2), np.float32)
        self.rewards, self.steps = np.zeros((lanes, n)), np.zeros(lanes, np.int64)
        self.over = np.zeros(lanes, np.uint8)
        self.public, self.max_steps, self.threads = public, max_steps, Threads(threads)

    def step(self, actions: NDArray[np.float32]) -> None:
        """One step of all lanes; lanes that end start again. Actions `[B, n]`."""
        self.threads.over(
            len(self.soc), _grid, self.soc, self.capacity, actions, self.observations, self.rewards, self.steps,
            self.over, self.max_steps, self.public,
        )  # fmt: skip


@_fused
def _grid(  # type: ignore[no-untyped-def]
    first, last, soc, capacity, actions, observations, rewards, steps, over, max_steps, public
):
    n = soc.shape[1]
    for b in range(first, last):
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


class FusedSpread:
    """The law of `heron/Spread-v0` with discrete actions.

    Attributes:
        x, y, vx, vy: of the agents, float64 `[B, n]`. landmark_x, landmark_y: float64 `[B, n]`.
        observations: float32 `[B, n, 6n]`. rewards: float64 `[B, n]`. over: uint8 `[B]`.
    """

    def __init__(self, lanes: int, n: int, *, threads: int = 1) -> None:
        self.x, self.y, self.vx, self.vy, self.landmark_x, self.landmark_y = np.zeros((6, lanes, n))
        self.observations = np.zeros((lanes, n, 6 * n), np.float32)
        self.rewards, self.steps = np.zeros((lanes, n)), np.zeros(lanes, np.int64)
        self.over = np.ones(lanes, np.uint8)
        self.draws = np.arange(lanes, dtype=np.uint64) << np.uint64(40)
        self.threads = Threads(threads)
        _spread_restart(
            0, lanes, self.x, self.y, self.vx, self.vy, self.landmark_x, self.landmark_y, self.over, self.draws
        )
        self.over[:] = 0

    def step(self, actions: NDArray[np.int64]) -> None:
        """One step of all lanes; lanes that end start again anywhere. Actions `[B, n]`, 0 to 4."""
        self.threads.over(
            len(self.x), _spread, self.x, self.y, self.vx, self.vy, self.landmark_x, self.landmark_y, actions,
            self.observations, self.rewards, self.steps, self.over, self.draws, EPISODE,
        )  # fmt: skip


@_fused
def _uniform(draws, b):  # type: ignore[no-untyped-def]
    """The next of the lane's draws in [-1, 1): splitmix64."""
    draws[b] += np.uint64(1)
    z = draws[b] * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64(z >> np.uint64(11)) * 2.0**-52 - 1.0


@_fused
def _spread_restart(first, last, x, y, vx, vy, lx, ly, over, draws):  # type: ignore[no-untyped-def]
    for b in range(first, last):
        if over[b]:
            for i in range(x.shape[1]):
                x[b, i], y[b, i] = _uniform(draws, b), _uniform(draws, b)
                lx[b, i], ly[b, i] = _uniform(draws, b), _uniform(draws, b)
                vx[b, i] = vy[b, i] = 0.0


@_fused
def _spread_move(b, x, y, vx, vy, actions, fx, fy):  # type: ignore[no-untyped-def]
    n = x.shape[1]
    for i in range(n):
        choice = actions[b, i]
        fx[i] = 5.0 * ((choice == 2) - 1.0 * (choice == 1))
        fy[i] = 5.0 * ((choice == 4) - 1.0 * (choice == 3))
    for i in range(n):
        for j in range(i):
            dx, dy = x[b, i] - x[b, j], y[b, i] - y[b, j]
            square = dx * dx + dy * dy
            if 0.0 < square < 0.1225:  # farther than 0.35 the push is below 1e-23
                distance = math.sqrt(square)
                z = (0.3 - distance) / 1e-3
                push = 0.1 / distance * (max(z, 0.0) + math.log1p(math.exp(-abs(z))))
                fx[i] += push * dx
                fy[i] += push * dy
                fx[j] -= push * dx
                fy[j] -= push * dy
    for i in range(n):
        x[b, i] += vx[b, i] * 0.1
        y[b, i] += vy[b, i] * 0.1
        vx[b, i] = vx[b, i] * 0.75 + fx[i] * 0.1
        vy[b, i] = vy[b, i] * 0.75 + fy[i] * 0.1


@_fused
def _spread_reward(b, x, y, lx, ly, rewards):  # type: ignore[no-untyped-def]
    n, total = x.shape[1], 0.0
    for k in range(n):
        least = np.inf
        for i in range(n):
            dx, dy = x[b, i] - lx[b, k], y[b, i] - ly[b, k]
            least = min(least, dx * dx + dy * dy)
        total += math.sqrt(least)
    for i in range(n):
        touching = 0.0
        for j in range(n):
            dx, dy = x[b, j] - x[b, i], y[b, j] - y[b, i]
            touching += dx * dx + dy * dy < 0.09
        rewards[b, i] = -0.5 * total - 0.5 * (touching - 1.0)  # everybody touches itself


@_fused
def _spread_observe(b, x, y, vx, vy, lx, ly, observations):  # type: ignore[no-untyped-def]
    n = x.shape[1]
    for i in range(n):
        seen = observations[b, i]
        seen[0], seen[1], seen[2], seen[3] = vx[b, i], vy[b, i], x[b, i], y[b, i]
        at = 4
        for k in range(n):
            seen[at], seen[at + 1] = lx[b, k] - x[b, i], ly[b, k] - y[b, i]
            at += 2
        for j in range(n):
            if j != i:
                seen[at], seen[at + 1] = x[b, j] - x[b, i], y[b, j] - y[b, i]
                at += 2


@_fused
def _spread(  # type: ignore[no-untyped-def]
    first, last, x, y, vx, vy, lx, ly, actions, observations, rewards, steps, over, draws, max_steps
):
    fx, fy = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for b in range(first, last):
        _spread_move(b, x, y, vx, vy, actions, fx, fy)
        _spread_reward(b, x, y, lx, ly, rewards)
        steps[b] += 1
        over[b] = steps[b] >= max_steps
        if over[b]:
            steps[b] = 0
            _spread_restart(b, b + 1, x, y, vx, vy, lx, ly, over, draws)
        _spread_observe(b, x, y, vx, vy, lx, ly, observations)
