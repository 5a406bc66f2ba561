"""Rules that play the particle worlds: where to go and what to say, decided on what an agent sees.

A rule takes the parts of a view by name, `[b, size]` each, and gives the ways `[b, 2]` to where the agents of a batch
want to be, and the numbers `[b]` of the words that they say; what the agent can't do, None.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.policy import OnBatches
from heron_env.worlds.particles.bodies import MOVES
from heron_env.worlds.spread.discs import STEP

Array = NDArray[np.float64]
Seen = Mapping[str, Array]
Decide = Callable[[Seen], tuple[Array | None, Any]]

HASTE = 2.0
"""Share of the full force per distance that is left."""
IDLE = 0.1
"""A direction with less than this share of the full force is not chosen."""


class ByRule(OnBatches):
    """Play by a rule.

    Args:
        decide: the rule.
        parts: names and sizes of the parts of the view.
        spec: of the action.
    """

    def __init__(self, decide: Decide, parts: Mapping[str, int], spec: ActionSpec) -> None:
        self.decide, self.parts, self.spec = decide, dict(parts), spec

    def forward_batch(self, vectors: NDArray[np.float32]) -> Array:
        """Actions `[b, size]` for observations `[b, d]`."""
        *cuts, end = np.cumsum([*self.parts.values()])
        seen = dict(zip(self.parts, np.split(vectors[:, :end].astype(np.float64), cuts, axis=1), strict=True))
        ways, words = self.decide(seen)
        if ways is not None:
            ways = np.clip(HASTE * (ways - STEP * seen.get("velocity", 0.0)), -1.0, 1.0)
        return self._numbers(ways, words) if self.spec.dim_c else self._choices(ways, words)

    def _numbers(self, pushes: Array | None, words: Any) -> Array:
        parts = []
        if pushes is not None:
            x, y = pushes.T
            parts.append(np.stack([0.0 * x, -x, x, -y, y], axis=-1).clip(0.0))
        if words is not None:
            said = self.spec.dim_c - MOVES * (pushes is not None)
            parts.append(np.eye(said)[words])
        return np.concatenate(parts, axis=1)

    def _choices(self, pushes: Array | None, words: Any) -> Array:
        moves: Any = 0
        if pushes is not None:
            strong, lane = np.abs(pushes), np.arange(len(pushes))
            axis = strong.argmax(axis=1)
            moves = np.where(strong.max(axis=1) < IDLE, 0, 1 + 2 * axis + (pushes[lane, axis] > 0.0))
        each = 1 if pushes is None else MOVES
        return np.asarray(moves + each * (0 if words is None else words), dtype=np.float64)[:, None]


def pairs(part: Array) -> Array:
    """The ways `[b, n, 2]` that a part `[b, 2 n]` holds."""
    return part.reshape(len(part), -1, 2)


def nearest(ways: Array) -> Array:
    """The shortest `[b, 2]` of ways `[b, n, 2]`."""
    return np.asarray(ways[np.arange(len(ways)), np.hypot(ways[..., 0], ways[..., 1]).argmin(axis=1)])


def numbered(ways: Array, numbers: NDArray[np.int64]) -> Array:
    """Of ways `[b, n, 2]` those `[b, 2]` with the numbers `[b]`."""
    return np.asarray(ways[np.arange(len(ways)), numbers])


def with_company(landmarks: Array, others: Array) -> Array:
    """Of the ways `[b, n, 2]` to landmarks the one `[b, 2]` to that which is nearest to one of the others."""
    apart = landmarks[:, :, None] - others[:, None]
    return numbered(landmarks, np.hypot(apart[..., 0], apart[..., 1]).min(axis=2).argmin(axis=1))


def chase(seen: Seen) -> tuple[Array, None]:
    """To the nearest prey."""
    return nearest(pairs(seen["others"])[:, -seen["velocities"].shape[1] // 2 :]), None


def flee(seen: Seen) -> tuple[Array, None]:
    """Away from the hunters, the nearer the more, and back to the middle from where leaving costs."""
    many = (seen["others"].shape[1] - seen["velocities"].shape[1]) // 2
    ways = pairs(seen["others"])[:, :many]
    apart = np.hypot(ways[..., 0], ways[..., 1])[..., None]
    return -0.1 * (ways / apart**3 * (apart < 1.0)).sum(axis=1) - 2.0 * seen["position"] * np.abs(
        seen["position"]
    ) ** 3, None


def lead(seen: Seen) -> tuple[Array, Any]:
    """Chase; the word is always the first."""
    return chase(seen)[0], np.zeros(len(seen["position"]), dtype=np.int64)


def graze(seen: Seen) -> tuple[Array, None]:
    """To the nearest food."""
    return nearest(pairs(seen["food"])), None
