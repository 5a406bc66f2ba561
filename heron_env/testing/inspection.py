"""`inspect(env)`: what an environment holds at the moment, for tests.

Stable for users: `rank`, `truth`, `layout`, `step`, `alive`, `sources` and the codes of `Source`. What is
compiled (`program`, `lanes`) is for tests of compiled code itself, and changes with it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.envs.base import HeronEnv
from heron_env.envs.decisions import Source

if TYPE_CHECKING:
    from heron_env.engine.lanes import Lanes
    from heron_env.engine.phases import Program


@dataclass(frozen=True, slots=True)
class Inspection:
    """View of an environment in its present state; agents by id. `inspect` makes it."""

    env: HeronEnv

    def rank(self, agent: str) -> int:
        """The agent's number in messages, events and records of a trace: parents before children."""
        return self.env.hierarchy.index[agent]

    @property
    def truth(self) -> NDArray[np.float64]:
        """All quantities, `[columns]`: no copy, so tests may write."""
        return self.env.simulation.truth

    @property
    def layout(self) -> Layout:
        """Places of each agent's features in the truth, and their bounds."""
        return self.env.simulation.model.layout

    @property
    def step(self) -> int:
        """Control steps since the reset."""
        return self.env.simulation.step_index

    @property
    def alive(self) -> tuple[str, ...]:
        """The agents, also those that decide nothing, that have not ended."""
        return tuple(itertools.compress(self.env.hierarchy.ids, self.env.simulation.alive))

    @property
    def sources(self) -> dict[str, Source]:
        """Return the source of each agent's last decision."""
        return dict(zip(self.env.hierarchy.ids, self.env.decided, strict=True))

    @property
    def program(self) -> Program:
        """Source of the compiled rules: `text()`, `key()` in the cache, `compiled()`."""
        from heron_env.engine.phases import Program

        return Program(self.env.simulation.model)

    def lanes(self, count: int, threads: int = 1, *, final: bool = False) -> Lanes:
        """Return so many compiled lanes of this environment, with their own arrays. Raises RuleError where it can't."""
        from heron_env.engine.lanes import Lanes

        return Lanes(self.env.simulation.model, count, threads, final=final)


def inspect(env: HeronEnv) -> Inspection:
    """Return a view of an environment, or of `env.unwrapped` for wrappers of other frameworks."""
    return Inspection(env)
