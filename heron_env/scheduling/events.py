"""What happens besides the arrival of messages. Events are data, never callables, so that a run pickles."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.asking import Origin
from heron_env.core.letters import Written
from heron_env.scheduling.custom import CustomEvent
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.records import record, value


@value
class AgentTick(tuple[Any, ...]):
    """An agent starts decision `number`."""

    __slots__ = ()
    agent: int
    number: int


@value
class Deadline(tuple[Any, ...]):
    """The time for decision `number` of the agent has run out: if it is missing, the no-op takes its place."""

    __slots__ = ()
    agent: int
    number: int


@record
class ActionEffect(tuple[Any, ...]):
    """Decision `number` of an agent takes effect; `values` `[dim]` is the effect's own copy of the action."""

    __slots__ = ()
    agent: int
    number: int
    values: NDArray[np.float64]


@record
class Answered(tuple[Any, ...]):
    """The policy of an agent, asked at `asked` ns for decision `number`, has thought: now the decision falls."""

    __slots__ = ()
    agent: int
    number: int
    values: NDArray[np.float64]
    asked: int
    origin: Origin | None
    letters: tuple[Written, ...]


@value
class Simulation(tuple[Any, ...]):
    """Physics substep `substep` of step `step`."""

    __slots__ = ()
    step: int
    substep: int


@value
class CloseEpisode(tuple[Any, ...]):
    """All scores of step `step` are known: has the episode ended?"""

    __slots__ = ()
    step: int


@record
class PushedEffect(ActionEffect):
    """The same of a decision on an observation that was pushed at `fired`, ns."""

    __slots__ = ()
    fired: int


@record
class PushedAnswer(Answered):
    """The same of a question on an observation that was pushed at `fired`, ns, because of `cause`."""

    __slots__ = ()
    cause: str
    fired: int


@record
class Disturbed(tuple[Any, ...]):
    """Entry `number` of the course of disturbances: one of them begins, or `ends`."""

    __slots__ = ()
    number: int
    disturbance: Disturbance
    ends: bool


@record
class Custom(tuple[Any, ...]):
    """Number `number` of the events of a user's own."""

    __slots__ = ()
    number: int
    event: CustomEvent


@value
class Settle(tuple[Any, ...]):
    """All disturbances and physics of this instant are in the truth: which conditions hold? `number` counts."""

    __slots__ = ()
    number: int
    physics: bool
