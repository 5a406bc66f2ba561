"""The messages among agents and proxy, one class a leg; `to_dict()` is their form in traces and over HTTP.

Times are ns, agents are ranks. `agent` is the one whose link is used; `number` is the tick, the cycle (= step) or the
effect that caused the message, and indexes its random draws. Messages are compared by identity, receivers use `id`.
Where many are made, `records.make(Class, (fields))` makes them unchecked.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Reported, Route
from heron_env.core.letters import Sealed
from heron_env.core.plans import SentPlan
from heron_env.observability.plan import ObserverView
from heron_env.scheduling.events import CustomMessage
from heron_env.scheduling.records import record, value
from heron_env.scheduling.timing import to_seconds


class Leg(IntEnum):
    """Legs of one cause, 1 to 7 those of the physics cycle; each has its own random draws."""

    __hash__ = int.__hash__  # that of an Enum is written in Python, and every draw looks its leg up

    TOKEN_TO_PROXY = 1
    TOKEN_BACK = 2
    REPORT = 3
    COMPLETION = 4
    STATE_REQUEST = 5
    STATE_REPLY = 6
    TICK_RESULT = 7
    REPORT_RECEIVED = 8
    OBSERVATION_REQUEST = 9
    OBSERVATION_REPLY = 10
    COMMAND = 11
    GATHERING = 12
    """obs_delay: no message, but a drawn delay."""
    ACTION = 13
    """act_delay: no message, but a drawn delay."""
    SHARE = 14
    PUSH = 15
    CUSTOM = 16
    LETTER = 17
    THINKING = 18
    """thinking: no message, but a drawn time."""


@value
class TickResult(tuple[Any, ...]):
    """An agent's score of one step, computed from the truth at its boundary."""

    __slots__ = ()
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a dictionary."""
        return {
            "reward": self.reward,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "info": dict(self.info),
        }


@record
class Message(tuple[Any, ...]):
    """Common fields; `id` comes from `MessageBroker.next_id()`, `sent` is the departure, ns."""

    __slots__ = ()
    agent: int
    number: int
    id: int
    sent: int
    form: ClassVar[Mapping[str, Any] | None] = None

    def to_dict(self) -> dict[str, Any]:
        """Return this message as a dictionary: `form`, if nothing in it depends on the message."""
        if self.form is None:
            raise TypeError(f"{type(self).__name__} has no dictionary form")
        return dict(self.form)


@record
class ObservationRequest(Message):
    """Agent to proxy: what do I see? `turn` fixes the noise."""

    __slots__ = ()
    turn: int
    leg: ClassVar[Leg] = Leg.OBSERVATION_REQUEST
    form = {"get_info": "obs"}


@record
class ObservationReply(Message):
    """Proxy to agent: `vector` `[columns]` gathered at `gathered` for the tick at `asked`, facts `as_of` per source.

    What the view sees as relative is in it as it is.
    """

    __slots__ = ()
    turn: int
    asked: int
    gathered: int
    vector: NDArray[np.float32] | NDArray[np.float64]
    as_of: NDArray[np.int64]
    view: ObserverView
    leg: ClassVar[Leg] = Leg.OBSERVATION_REPLY

    def to_dict(self) -> dict[str, Any]:
        """`{"get_obs_response": {"body": ...}}`; the timestamp is the time of the tick that asked, s."""
        return {"get_obs_response": {"body": self.view.describe(self.vector, to_seconds(self.asked))}}


@record
class Command(Message):
    """Parent to child: `values` `[dim]`, the child's share of the parent's action `number`, or a plan of such."""

    __slots__ = ()
    values: NDArray[np.float64] | SentPlan
    leg: ClassVar[Leg] = Leg.COMMAND

    def to_dict(self) -> dict[str, Any]:
        """`{"set_action": "local", "body": [...]}`."""
        return {"set_action": "local", "body": self.values.tolist()}


@record
class StateReport(Message):
    """Agent to proxy: the observable part of row `row`, copied from the truth after an effect or a boundary."""

    __slots__ = ()
    row: int
    version: int
    as_of: int
    values: NDArray[np.float64]
    effect: bool
    view: Reported
    leg: ClassVar[Leg] = Leg.REPORT

    def to_dict(self) -> dict[str, Any]:
        """`{"set_state": "local", "body": {"_owner_id", "_owner_level", "_state_type", "features"}}`."""
        return {"set_state": "local", "body": self.view.describe(self.values)}


@record
class ReportReceived(Message):
    """Proxy to agent: the report has come."""

    __slots__ = ()
    leg: ClassVar[Leg] = Leg.REPORT_RECEIVED
    form = {"set_state_completion": "success"}


@record
class CycleToken(Message):
    """System agent to proxy (leg 1) and back (leg 2): it starts the cycle and carries no state."""

    __slots__ = ()
    leg: Leg

    def to_dict(self) -> dict[str, Any]:
        """`{"get_info": "global_state"}` on leg 1, `{"get_global_state_response": "success"}` on leg 2."""
        if self.leg == Leg.TOKEN_TO_PROXY:
            return {"get_info": "global_state"}
        return {"get_global_state_response": "success"}


@record
class CycleCompletion(Message):
    """Proxy to all (leg 4): the reports of this cycle are in, lost ones or not."""

    __slots__ = ()
    leg: ClassVar[Leg] = Leg.COMPLETION
    form = {"set_state_completion": "success"}


@record
class LocalStateRequest(Message):
    """Agent to proxy (leg 5): how did this step go for me?"""

    __slots__ = ()
    leg: ClassVar[Leg] = Leg.STATE_REQUEST
    form = {"get_info": "local_state"}


@record
class LocalStateReply(Message):
    """Proxy to agent (leg 6): the score of the step, never the state."""

    __slots__ = ()
    body: TickResult
    leg: ClassVar[Leg] = Leg.STATE_REPLY

    def to_dict(self) -> dict[str, Any]:
        """`{"get_local_state_response": {"body": ...}}`."""
        return {"get_local_state_response": {"body": self.body.to_dict()}}


@record
class TickResultReport(Message):
    """Agent to proxy (leg 7): the score has been taken note of."""

    __slots__ = ()
    body: TickResult
    leg: ClassVar[Leg] = Leg.TICK_RESULT

    def to_dict(self) -> dict[str, Any]:
        """`{"set_tick_result": "local", "body": ...}`."""
        return {"set_tick_result": "local", "body": self.body.to_dict()}


@record
class LetterUnderWay(Message):
    """Agent to agent `receiver`: words, written with the answer of tick `number`."""

    __slots__ = ()
    receiver: int
    letter: Sealed
    leg: ClassVar[Leg] = Leg.LETTER

    def to_dict(self) -> dict[str, Any]:
        """`{"send_letter": "agent", "body": {"_owner_id", "_receiver_id", "kind", "body"}}`."""
        return {"send_letter": "agent", "body": self.letter.to_dict()}


@record
class SharedState(Message):
    """Agent to a neighbour: `values` `[size]` of one of its quantities at the boundary of step `number`.

    `edge` is the place of the two in the environment's exchange.
    """

    __slots__ = ()
    edge: int
    values: NDArray[np.float64]
    view: Route
    leg: ClassVar[Leg] = Leg.SHARE

    def to_dict(self) -> dict[str, Any]:
        """`{"share_state": "neighbour", "body": {"_owner_id", "_receiver_id", "features"}}`."""
        return {"share_state": "neighbour", "body": self.view.describe(self.values)}


@record
class ObservationPush(Message):
    """Monitor to agent: an observation that nobody asked for, as in ObservationReply; `asked` is when it left.

    `number` is the agent's tick that came before; `cause` names what woke it, and keys what is drawn of its way.
    """

    __slots__ = ()
    turn: int
    asked: int
    vector: NDArray[np.float32] | NDArray[np.float64]
    as_of: NDArray[np.int64]
    view: ObserverView
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
    values: NDArray[np.float64] | SentPlan
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


@record
class ObservationCopy(Message):
    """What agent `receiver` of a black box observed at boundary `number`, over `agent`'s link.

    `part`: 0 the whole; else the elements of one part (W10), which come over the link of whom they are about.
    """

    __slots__ = ()
    receiver: int
    part: int
    content: Any
    leg: ClassVar[Leg] = Leg.OBSERVATION_REPLY

    def to_dict(self) -> dict[str, Any]:
        """`{"get_obs_response": {"body": {"_receiver", "part", "observation"}}}`."""
        body = {"_receiver": self.receiver, "part": self.part, "observation": self.content}
        return {"get_obs_response": {"body": body}}


@record
class ActionCommand(Message):
    """Agent to a black box: its decision `number`, an action of any form, or a plan."""

    __slots__ = ()
    action: Any
    leg: ClassVar[Leg] = Leg.COMMAND

    def to_dict(self) -> dict[str, Any]:
        """`{"set_action": "local", "body": ...}`, of a plan `{"set_plan": ...}`."""
        if isinstance(self.action, SentPlan):
            return {"set_plan": self.action.tolist()}
        return {"set_action": "local", "body": self.action}


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
    | ObservationCopy
    | ActionCommand
)
"""Messages that a link may delay, lose or double; the others belong to the physics cycle and always arrive."""
