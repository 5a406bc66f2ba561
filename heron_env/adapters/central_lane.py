"""CentralLane: one environment as rows of arrays that a central critic reads."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from heron_env.adapters.lane import Floats, Lane
from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, did_you_mean

CRITICS = ("local", "central")


def require_critic(critic: str, caller: str) -> bool:
    """Is it the central one? Raises ConfigError for a word that is neither."""
    if critic not in CRITICS:
        raise ConfigError(f"{caller}(critic={critic!r}): must be one of {CRITICS}.{did_you_mean(critic, CRITICS)}")
    return critic == "central"


class CentralLane(Lane):
    """A lane whose rows go on after what the agent sees: `env.state()`, then which agent of the group is meant.

    The latter is one-hot `[agents]`, and absent in a group of one. Without it two agents that see the same would have
    one value, though the state lists them at different places: their neighbours, and so their futures, differ.
    """

    def __init__(self, env: HeronEnv, agents: list[str], others: Policies, use_training_signal: bool) -> None:
        super().__init__(env, agents, others, use_training_signal)
        self.seen = self.width
        space = env.state_space
        self.identity: Floats = np.eye(len(agents)) if len(agents) > 1 else np.zeros((1, 0))
        unit = np.ones(self.identity.shape[1], dtype=np.float32)
        self.state_space = spaces.Box(np.concatenate([space.low, 0 * unit]), np.concatenate([space.high, unit]))
        self.width += self.state_space.shape[0]

    def observe(self, out: Floats) -> None:
        """Write what all agents see, the state and who they are into `out` `[agents, width]`."""
        super().observe(out[:, : self.seen])
        columns = self.identity.shape[1]
        out[:, self.seen : self.width - columns] = self.env.state()
        out[:, self.width - columns :] = self.identity
