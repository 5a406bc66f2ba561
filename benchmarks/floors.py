"""Floors: what five dictionaries cost, what a heap costs, and the usual way in numpy."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.case import EPISODE

Floats = NDArray[np.float64]
DIRECTIONS = np.array([[0.0, -5.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, -5.0, 5.0]])
"""Force `[2, 5]` of each of MPE's choices."""


Five = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]


def five_dictionaries(agents: Sequence[str], widths: Sequence[int]) -> Callable[[Mapping[str, Any]], Five]:
    """A step that does nothing: it gathers the agents' actions and builds the five dictionaries of PettingZoo.

    Observations are views of one fresh array, as wide as `widths` say; infos are empty.
    """
    ids, stops = list(agents), np.cumsum([0, *widths]).tolist()
    spans = [slice(a, b) for a, b in pairwise(stops)]

    def step(actions: Mapping[str, Any]) -> Five:
        values = np.concatenate([actions[agent] for agent in ids])
        seen = np.zeros(stops[-1], np.float32)
        return (
            {agent: seen[span] for agent, span in zip(ids, spans, strict=True)},
            dict(zip(ids, values.tolist(), strict=True)),
            dict.fromkeys(ids, False),
            dict.fromkeys(ids, False),
            {agent: {} for agent in ids},
        )

    return step


def bare_heap(pending: int = 64, events: int = 1000) -> Callable[[], None]:
    """`events` times the earliest of so many pending tuples is taken off the heap and put back later."""
    heap = [(number * 7919 % 1000, 0, number, number) for number in range(pending)]
    heapq.heapify(heap)

    def work() -> None:
        pop, push = heapq.heappop, heapq.heappush
        for number in range(events):
            at, phase, rank, _ = pop(heap)
            push(heap, (at + 1000, phase, rank, number))

    return work


class NumpySpread:
    """simple_spread for all environments at once, in the usual numpy: whole arrays, an axis over environments.

    Attributes:
        points, velocity, landmarks: float64 `[2, B, n]`. observations: float32 `[B, n, 6n]`. rewards: float64 `[B, n]`.
    """

    def __init__(self, lanes: int, n: int) -> None:
        self._draw = np.random.default_rng(0)
        self.points, self.velocity, self.landmarks = np.zeros((3, 2, lanes, n))
        self.steps = 0
        every = np.arange(n)
        self._others = (..., every[:, None], np.array([np.delete(every, i) for i in every], np.int64).reshape(n, n - 1))
        self.observations, self.rewards = np.zeros((lanes, n, 6 * n), np.float32), np.zeros((lanes, n))
        self.reset()

    def reset(self) -> None:
        """Everything lies somewhere else, and nobody moves."""
        self.points, self.landmarks = self._draw.uniform(-1.0, 1.0, (2, *self.points.shape))
        self.velocity = np.zeros(self.points.shape)
        self.steps = 0

    def step(self, actions: NDArray[np.int64]) -> None:
        """One step of all environments, `[B, n]` choices; all end together and start again."""
        way = self.points[..., None, :] - self.points[..., :, None]
        distance = np.sqrt((way * way).sum(axis=0))
        overlap = np.logaddexp(0.0, (0.3 - distance) / 1e-3) * 1e-3
        share = 100.0 * overlap / np.where(distance > 0.0, distance, 1.0)
        force = DIRECTIONS[:, actions] - (share * way).sum(axis=-1)
        self.points = self.points + self.velocity * 0.1
        self.velocity = self.velocity * 0.75 + force * 0.1
        way = (self.points[..., None, :] - self.points[..., :, None])[self._others]
        to_landmarks = self.landmarks[..., None, :] - self.points[..., :, None]
        nearest = np.sqrt((to_landmarks**2).sum(axis=0)).min(axis=-2).sum(axis=-1)
        touching = (np.sqrt((way**2).sum(axis=0)) < 0.3).sum(axis=-1)
        self.rewards = -0.5 * nearest[:, None] - 0.5 * touching
        self.steps += 1
        if self.steps >= EPISODE:
            self.reset()
            way = (self.points[..., None, :] - self.points[..., :, None])[self._others]
            to_landmarks = self.landmarks[..., None, :] - self.points[..., :, None]
        self._observe(to_landmarks, way)

    def _observe(self, to_landmarks: Floats, way: Floats) -> None:
        n, seen = self.points.shape[-1], np.zeros(self.observations.shape, np.float32)
        seen[..., 0], seen[..., 1] = self.velocity
        seen[..., 2], seen[..., 3] = self.points
        seen[..., 4 : 4 + 2 * n : 2], seen[..., 5 : 5 + 2 * n : 2] = to_landmarks
        seen[..., 4 + 2 * n : 2 + 4 * n : 2], seen[..., 5 + 2 * n : 2 + 4 * n : 2] = way
        self.observations = seen
