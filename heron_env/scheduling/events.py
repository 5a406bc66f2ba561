"""What happens besides the arrival of messages. Events are data, never callables, so that a run pickles."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AgentTick:
    """An agent starts decision `number`."""

    agent: int
    number: int


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time for decision `number` of the agent has run out: if it is missing, the no-op takes its place."""

    agent: int
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class ActionEffect:
    """Decision `number` of an agent takes effect; `values` `[dim]` is the effect's own copy of the action."""

    agent: int
    number: int
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Simulation:
    """Physics substep `substep` of step `step`."""

    step: int
    substep: int


@dataclass(frozen=True, slots=True)
class CloseEpisode:
    """All scores of step `step` are known: has the episode ended?"""

    step: int
