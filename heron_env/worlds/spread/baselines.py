"""Rules that drive to landmarks. They use what the agent sees, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy, OnBatches
from heron_env.worlds.spread.agents import DIRECTIONS
from heron_env.worlds.spread.features import FULL_FORCE
from heron_env.worlds.spread.physics import KEPT, STEP

if TYPE_CHECKING:
    from heron_env.worlds.spread.env import SpreadEnv

Array = NDArray[np.float64]
Vectors = NDArray[np.float32]

HASTE = 4.0
"""Speed towards the landmark per distance that will be left, 1/s."""
IDLE = 0.1
"""With discrete actions: a push below this share of the full force is left out."""


class Drive(OnBatches):
    """Drive to a landmark and stop there.

    Args:
        agents: number of agents, and of landmarks.
        continuous: which kind of action.
    """

    def __init__(self, agents: int, continuous: bool) -> None:
        self.agents, self.continuous = agents, continuous

    def choose(self, landmarks: Array, others: Array) -> NDArray[np.int64]:
        """Index `[b]` of the landmark to drive to; `landmarks` `[b, n, 2]` and `others` `[b, n - 1, 2]` from here."""
        return np.asarray(np.hypot(landmarks[..., 0], landmarks[..., 1]).argmin(axis=-1))

    def forward_batch(self, vectors: Vectors) -> Array:
        """Actions `[b, 5]` or `[b, 1]` for observations `[b, d]`."""
        n, b = self.agents, len(vectors)
        seen = vectors.astype(np.float64)
        velocity, landmarks = seen[:, :2], seen[:, 4 : 4 + 2 * n].reshape(b, n, 2)
        others = seen[:, 4 + 2 * n : 2 + 4 * n].reshape(b, n - 1, 2)
        way = landmarks[np.arange(b), self.choose(landmarks, others)]
        wanted = HASTE * (way - STEP * velocity)
        push = np.clip((wanted - KEPT * velocity) / (STEP * FULL_FORCE), -1.0, 1.0)
        if self.continuous:
            x, y = push.T
            return np.asarray(np.stack([0.0 * x, -x, x, -y, y], axis=-1).clip(0.0))
        strong = np.abs(push)
        axis = strong.argmax(axis=-1)
        positive = push[np.arange(b), axis] > 0.0
        choice = np.where(strong.max(axis=-1) < IDLE, DIRECTIONS.index("stay"), 1 + 2 * axis + positive)
        return choice[:, None].astype(np.float64)


class Assigned(Drive):
    """Drive to the landmark that the rule which everybody can work out assigns to oneself.

    The nearest pair of an agent and a landmark belong together; so does the nearest pair of those left, and so on.
    """

    def choose(self, landmarks: Array, others: Array) -> NDArray[np.int64]:
        """Row 0 of the table of distances is oneself."""
        b, n, _ = landmarks.shape
        everybody = np.concatenate([np.zeros((b, 1, 2)), others], axis=1)
        ways = landmarks[:, None] - everybody[:, :, None]
        left, lane = np.hypot(ways[..., 0], ways[..., 1]), np.arange(b)
        mine = np.zeros(b, dtype=np.int64)
        for _ in range(n):
            agent, landmark = np.divmod(left.reshape(b, -1).argmin(axis=-1), n)
            mine = np.where(agent == 0, landmark, mine)
            left[lane, agent], left[lane, :, landmark] = np.inf, np.inf
        return mine


def baselines(env: SpreadEnv) -> dict[str, dict[str, AnyPolicy]]:
    """Policies by name of the baseline, for all agents."""
    continuous = env.simulation.specs[env.simulation.possible[0]].dim_c > 0
    rules = {"nearest landmark": Drive, "assigned landmark": Assigned}
    return {name: {"*": rule(len(env.possible_agents), continuous)} for name, rule in rules.items()}
