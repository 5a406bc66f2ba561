"""T13: messages are frozen data, one class a leg, with their dictionaries (others': golden/test_timeline)."""

import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from heron_env import CustomMessage
from heron_env.core.letters import Sealed
from heron_env.testing.clock import (
    SECOND,
    ActionCommand,
    Command,
    CustomLetter,
    CycleCompletion,
    CycleToken,
    Leg,
    LetterUnderWay,
    LocalStateReply,
    LocalStateRequest,
    Message,
    ObservationCopy,
    ObservationPush,
    PushedCommand,
    ReportReceived,
    StateReport,
    TickResultReport,
)


class BatteryView:
    """Stands for the plan's knowledge of one battery's columns."""

    def describe(self, vector: Any, timestamp: float) -> dict[str, Any]:
        return {"timestamp": timestamp, "local": {"Charge": {"soc": float(vector[0])}}, "global_info": {}}


COMMON = {"agent": 1, "number": 4, "id": 17, "sent": 5 * SECOND}
CASES: list[tuple[Any, Leg, dict[str, Any]]] = [
    (Command(**COMMON, values=np.array([0.25, -1.0])), Leg.COMMAND, {"set_action": "local", "body": [0.25, -1.0]}),
    (
        LetterUnderWay(**COMMON, receiver=2, letter=Sealed("b_1", "b_2", "offer", '{"kwh":2.5}')),
        Leg.LETTER,
        {
            "send_letter": "agent",
            "body": {"_owner_id": "b_1", "_receiver_id": "b_2", "kind": "offer", "body": {"kwh": 2.5}},
        },
    ),
    (
        ObservationPush(
            **COMMON,
            turn=4,
            asked=4 * SECOND,
            vector=np.array([0.5], np.float32),
            as_of=np.zeros(1, np.int64),
            view=BatteryView(),
            cause="fault",
            preempt=False,
        ),
        Leg.PUSH,
        {"push_obs": {"body": {"timestamp": 4.0, "local": {"Charge": {"soc": 0.5}}, "global_info": {}}}},
    ),
    (PushedCommand(**COMMON, values=np.array([0.25, -1.0]), cause="fault", fired=4 * SECOND), Leg.COMMAND,
     {"set_action": "local", "body": [0.25, -1.0]}),
    (ObservationCopy(**COMMON, receiver=2, part=1, content=[0.5]), Leg.OBSERVATION_REPLY,
     {"get_obs_response": {"body": {"_receiver": 2, "part": 1, "observation": [0.5]}}}),
    (ActionCommand(**COMMON, action=3), Leg.COMMAND, {"set_action": "local", "body": 3}),
    (CustomLetter(**COMMON, content=CustomMessage("offer", "battery_1", {"kwh": 2.0})), Leg.CUSTOM,
     {"offer": {"body": {"kwh": 2.0}}}),
]  # fmt: skip
each_message = pytest.mark.parametrize(
    ("message", "leg", "dictionary"), CASES, ids=[f"{type(case[0]).__name__}-{case[1].name}" for case in CASES]
)


@each_message
def test_a_message_has_the_dictionary_of_the_specification(message: Any, leg: Leg, dictionary: dict[str, Any]) -> None:
    assert message.to_dict() == dictionary
    assert message.leg is leg


@each_message
def test_a_message_is_frozen_slotted_and_pickles(message: Any, leg: Leg, dictionary: dict[str, Any]) -> None:
    assert [field.name for field in fields(message)][:4] == ["agent", "number", "id", "sent"]
    assert not hasattr(message, "__dict__")
    with pytest.raises(AttributeError):
        message.sent = 0
    copy = pickle.loads(pickle.dumps(message))
    assert copy.to_dict() == dictionary
    assert (copy.agent, copy.number, copy.id, copy.sent, copy.leg) == (1, 4, 17, 5 * SECOND, leg)


def test_messages_are_themselves_and_not_their_contents() -> None:
    assert ReportReceived(**COMMON) != ReportReceived(**COMMON)
    assert len({message for message, *_ in CASES}) == len(CASES)


def test_the_legs_of_the_physics_cycle_have_the_numbers_of_the_specification() -> None:
    assert [leg.value for leg in Leg][:7] == [1, 2, 3, 4, 5, 6, 7]
    assert [CycleToken(**COMMON, leg=leg).leg for leg in (Leg.TOKEN_TO_PROXY, Leg.TOKEN_BACK)] == [1, 2]
    legs = [StateReport.leg, CycleCompletion.leg, LocalStateRequest.leg, LocalStateReply.leg, TickResultReport.leg]
    assert legs == [3, 4, 5, 6, 7]


def test_a_bare_message_has_no_dictionary() -> None:
    with pytest.raises(TypeError, match="Message has no dictionary form"):
        Message(**COMMON).to_dict()
