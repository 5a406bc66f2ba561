"""A policy that travels to other processes."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Push:
    """Always the same action."""

    size: float

    def build(self, env, seed):
        return {"*": lambda vector: np.array([self.size])}
