"""Messages out of turn: observations that are pushed, the commands that follow, and messages of a user's own."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heron_env.scheduling.custom import CustomMessage
from heron_env.scheduling.messages import (
    Command,
    Leg,
    LetterUnderWay,
    Message,
    ObservationReply,
    ObservationRequest,
    ObservationView,
    ReportReceived,
    SharedState,
    StateReport,
)
from heron_env.scheduling.records import record
from heron_env.scheduling.timing import to_seconds


@record
class ObservationPush(Message):
    """Monitor to agent: an observation that nobody asked for, as in ObservationReply; `asked` is when it left.

    `number` is the agent's tick that came before; `cause` names what woke it, and keys what is drawn of its way.
    """

    __slots__ = ()
    turn: int
    asked: int
    vector: NDArray[np.float32]
    as_of: NDArray[np.int64]
    view: ObservationView
    cause: str
    preempt: bool
    leg: ClassVar[Leg] = Leg.PUSH

    def to_dict(self) -> dict[str, Any]:
        """`{"push_obs": {"body": ...}}`; the timestamp is the time at which it left, s."""
        return {"push_obs": {"body": self.view.describe(self.vector, to_seconds(self.asked))}}


@record
class PushedCommand(Message):
    """A Command that follows from an observation pushed at `fired`, ns."""

    __slots__ = ()
    values: NDArray[np.float64]
    cause: str
    fired: int
    leg: ClassVar[Leg] = Leg.COMMAND

    def to_dict(self) -> dict[str, Any]:
        """`{"set_action": "local", "body": [...]}`."""
        return {"set_action": "local", "body": self.values.tolist()}


@record
class CustomLetter(Message):
    """A message of a user's own under way."""

    __slots__ = ()
    content: CustomMessage
    leg: ClassVar[Leg] = Leg.CUSTOM

    def to_dict(self) -> dict[str, Any]:
        """`{type: {"body": payload}}`."""
        return {self.content.type: {"body": dict(self.content.payload)}}


Routed = (
    ObservationRequest
    | ObservationReply
    | ObservationPush
    | Command
    | PushedCommand
    | StateReport
    | ReportReceived
    | SharedState
    | LetterUnderWay
    | CustomLetter
)
"""Messages that a link may delay, lose or double; the others belong to the physics cycle and always arrive."""
