"""Answers: an action counts if it is one in its space, in the form that the request told; all else has a code.

Planted once and caught: 1.0 for a choice, masks that are not read, numbers that are always clipped, letters to anybody.
"""

import json
from typing import Any

import numpy as np
import pytest
from endpoint_kit import letter, question
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from heron_env import Continuous, Mixed, MultiDiscrete
from heron_env.core.letters import MOST_BYTES
from heron_env.errors import ConfigError
from heron_env.injection import Persona
from heron_env.injection.answers import read
from heron_env.injection.contract import (
    ActionSpace,
    Decision,
    ErrorGiven,
    Illegal,
    LetterGiven,
    Response,
    Wire,
    schema,
)
from heron_env.injection.questions import Questions, Telling
from heron_env.injection.setting import AgentFacts, EnvironmentFacts
from heron_env.net.outcome import Code, Failure

BOX = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 0.3], np.float32))
ONE, MANY = spaces.Discrete(3), spaces.MultiDiscrete([2, 3])
MIXED = spaces.Dict({"c": BOX, "d": ONE})
MIXED_MANY = spaces.Dict({"c": BOX, "d": MANY})
OPEN = np.array([1, 1, 1], np.int8)

GOOD: list[tuple[spaces.Space[Any], Any]] = [
    (BOX, [0.5, 0.1]),
    (BOX, [-1, 0]),
    (BOX, [1.0, 0.30000001192092896]),
    (ONE, 2),
    (MANY, [1, 2]),
    (MIXED, {"c": [0.0, 0.0], "d": 1}),
    (MIXED_MANY, {"c": [0.0, 0.0], "d": [1, 0]}),
]
BAD: list[tuple[str, spaces.Space[Any], Any]] = [
    ("missing", BOX, None),
    ("a number for a list", BOX, 0.5),
    ("too short", BOX, [0.5]),
    ("too long", BOX, [0.5, 0.1, 0.0]),
    ("nested", BOX, [[0.5, 0.1]]),
    ("text", BOX, ["0.5", "0.1"]),
    ("true for a number", BOX, [True, 0.1]),
    ("null", BOX, [None, 0.1]),
    ("an object", BOX, {"0": 0.5, "1": 0.1}),
    ("nan", BOX, [float("nan"), 0.1]),
    ("infinite", BOX, [float("inf"), 0.1]),
    ("beyond float64", BOX, [10**400, 0.1]),
    ("beyond float32", BOX, [1e300, 0.1]),
    ("below", BOX, [-1.1, 0.1]),
    ("above", BOX, [0.0, 0.31]),
    ("true for a choice", ONE, True),
    ("1.0 for a choice", ONE, 1.0),
    ("a list for a choice", ONE, [1]),
    ("text for a choice", ONE, "1"),
    ("negative", ONE, -1),
    ("too many", ONE, 3),
    ("true among choices", MANY, [1, True]),
    ("1.0 among choices", MANY, [1, 1.0]),
    ("one of two", MANY, [1]),
    ("a number of two", MANY, 1),
    ("too many of two", MANY, [2, 0]),
    ("half of mixed", MIXED, {"c": [0.0, 0.0]}),
    ("more than mixed", MIXED, {"c": [0.0, 0.0], "d": 1, "e": 0}),
    ("a list for mixed", MIXED, [0.0, 0.0, 1]),
    ("1.0 in mixed", MIXED, {"c": [0.0, 0.0], "d": 1.0}),
    ("above in mixed", MIXED, {"c": [0.0, 9.0], "d": 1}),
]
BEYOND = ([1e300, 0.1], [-1.1, 0.1], [0.0, 0.31], {"c": [0.0, 9.0], "d": 1})


@pytest.mark.parametrize(("space", "action"), GOOD)
def test_an_action_in_its_space_is_taken_bit_for_bit(space: spaces.Space[Any], action: Any):
    wire = Wire.of(space)
    ours, clipped = wire.read(json.loads(json.dumps(action)))
    assert not clipped
    assert wire.written(ours) == action
    again = wire.ours(wire.written(ours))
    assert str(again) == str(ours)


@pytest.mark.parametrize(("space", "action"), [bad[1:] for bad in BAD], ids=[name for name, *_ in BAD])
def test_what_is_no_action_is_an_invalid_action(space: spaces.Space[Any], action: Any):
    for clip in (False, action not in BEYOND):  # which makes no number of what is none
        with pytest.raises(Illegal):
            Wire.of(space).read(action, clip=clip)
    with pytest.raises(Failure) as caught:
        read({"action": action}, question(space=space), questions(), "id")
    assert caught.value.code is Code.INVALID_ACTION


@pytest.mark.parametrize("value", [1.1, -7, 1e300])
def test_clip_brings_numbers_into_their_bounds_and_flags_it(value: float):
    ours, clipped = Wire.of(BOX).read([value, 0.1], clip=True)
    assert clipped
    assert BOX.contains(ours.astype(np.float32))
    assert ours[1] == 0.1
    found = read({"action": [value, 0.1]}, question(space=BOX), questions(), "id", clip=True)
    assert found.code == "CLIPPED"


def test_a_forbidden_choice_is_none_but_the_no_op_may_always_fall():
    wire = Wire.of(ONE, noop=(1.0,))
    mask = np.array([1, 0, 0], np.int8)
    assert wire.read(0, mask) == (0, False)
    assert wire.read(1, mask) == (1, False)
    with pytest.raises(Illegal, match="mask"):
        wire.read(2, mask)
    many, masks = Wire.of(MANY), (np.array([1, 1], np.int8), np.array([1, 0, 1], np.int8))
    assert many.read([1, 2], masks)[0].tolist() == [1, 2]
    with pytest.raises(Illegal, match="mask"):
        many.read([1, 1], masks)
    with pytest.raises(Illegal, match="mask"):
        Wire.of(MIXED).read({"c": [0.0, 0.0], "d": 2}, {"c": None, "d": mask})


@pytest.mark.parametrize(
    "space", [BOX, ONE, MANY, MIXED, MIXED_MANY], ids=["box", "one", "many", "mixed", "mixed many"]
)
def test_the_told_space_says_all_that_the_space_does(space: spaces.Space[Any]):
    told = Wire.of(space).description()
    box = space["c"] if isinstance(space, spaces.Dict) else space
    choices = space["d"] if isinstance(space, spaces.Dict) else space
    if isinstance(box, spaces.Box):
        assert np.array(told.low, np.float32).tobytes() == box.low.tobytes()
        assert np.array(told.high, np.float32).tobytes() == box.high.tobytes()
    n = {spaces.Discrete: lambda: int(choices.n), spaces.MultiDiscrete: lambda: choices.nvec.tolist()}
    assert told.model_dump(mode="json")["n"] == n.get(type(choices), list)()
    assert Wire.of(space).read(told.noop)[1] is False


def test_the_told_no_op_is_the_environments():
    spec = Mixed(Continuous(-1.0, 1.0, noop=0.5), MultiDiscrete([3], noop=[2]))
    told = Wire.of(spec.space(), spec.noop.tolist()).description()
    assert told.noop == {"c": [0.5], "d": 2}


@given(st.integers(0, 2**32), st.sampled_from([BOX, ONE, MANY, MIXED, MIXED_MANY]))
def test_a_drawn_action_is_one_that_is_allowed(seed: int, space: spaces.Space[Any]):
    wire = Wire.of(space)
    rng = np.random.default_rng(seed)
    flags = [(rng.random(n) < 0.5).astype(np.int8) for n in wire.n]
    for each in flags:
        each[rng.integers(len(each))] = 1
    choices: Any = flags[0] if len(flags) == 1 else tuple(flags)
    mask = {"c": None, "d": choices} if wire.kind == "mixed" else choices if flags else None
    noopless = Wire(wire.kind, wire.low, wire.high, wire.n, np.full(len(wire.noop), -1.0))
    noopless.read(wire.sampled(rng.random(len(wire.noop)), mask), mask)


def test_other_spaces_are_refused():
    with pytest.raises(ConfigError, match="an endpoint is told Box"):
        Wire.of(spaces.Text(5))
    with pytest.raises(ConfigError, match="bound the action"):
        Wire.of(spaces.Box(-np.inf, 1.0, (1,), np.float32))


def test_a_number_that_json_has_not_is_named():
    with pytest.raises(ConfigError, match=r"'battery_1' sees 'Charge.capacity' as no finite number"):
        questions().request(question(vector=np.array([0.5, np.nan], np.float32)))


def questions(tier: str = "basic", **telling: Any) -> Questions:
    facts = AgentFacts(persona=Persona(name="b"), can_message=("zone_1", "battery_2"))
    setting = EnvironmentFacts(env_id="x/Y-v0", options={}, agents={"battery_1": facts})
    return Questions(setting, Telling(privacy_tier=tier, **telling))


def code_of(value: Any, asker: Questions | None = None, **changes: Any) -> str:
    asker, asked = asker or questions(), question(**changes)
    asker.request(asked)
    try:
        return read(value, asked, asker, "the-id").code
    except Failure as failure:
        return str(failure.code)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"action": [0.5]}, ""),
        ({"action": [0.5], "request_id": "the-id"}, ""),
        ({"action": [0.5], "request_id": "another"}, "INVALID_RESPONSE"),
        ({"action": [0.5], "request_id": 7}, "INVALID_RESPONSE"),
        ({"action": [0.5], "debug": "text"}, "INVALID_RESPONSE"),
        ({}, "INVALID_ACTION"),
        ({"response_text": "charge!"}, "INVALID_ACTION"),
        ({"error": {"code": "TIMEOUT", "message": "m"}}, "TIMEOUT"),
        ({"error": {"code": "RATE_LIMITED"}, "action": [0.5]}, "RATE_LIMITED"),
        ({"error": {"code": "MY OWN"}}, "INTERNAL"),
        ({"error": "oops"}, "INVALID_RESPONSE"),
        ({"action": [0.5], "letters": [{"receiver": "zone_1", "body": {"soc": 0.5}}]}, ""),
        ({"action": [0.5], "letters": [{"receiver": "zone_9", "body": ""}]}, "INVALID_RESPONSE"),
        ({"action": [0.5], "letters": [{"receiver": "battery_1", "body": ""}]}, "INVALID_RESPONSE"),
        ({"action": [0.5], "letters": [{"body": "to nobody"}]}, "INVALID_RESPONSE"),
        ({"action": [0.5], "letters": [{"receiver": "zone_1", "kind": ""}]}, "INVALID_RESPONSE"),
        ({"action": [0.5], "letters": [{"receiver": "zone_1", "body": "x" * MOST_BYTES}]}, "INVALID_RESPONSE"),
    ],
)
def test_each_answer_has_its_code(value: Any, code: str):
    assert code_of(value) == code


def test_every_optional_field_of_an_answer_may_be_null():
    told = schema()["$defs"]
    for model, good in (
        (Response, {"action": [0.5]}),
        (LetterGiven, {"receiver": "zone_1"}),
        (ErrorGiven, {}),
    ):
        optional = [name for name, field in model.model_fields.items() if not field.is_required() and name != "action"]
        unset = {**good, **dict.fromkeys(optional)}
        assert len(optional) >= 2
        for part in (unset, *({**good, name: None} for name in optional)):
            answer = {Response: part, LetterGiven: {"action": [0.5], "letters": [part]}}.get(model, {"error": part})
            assert code_of(answer) == ("INTERNAL" if model is ErrorGiven else ""), part
        for name in optional:
            form = told[model.__name__]["properties"][name]
            assert {"type": "null"} in form.get("anyOf", ()) or "type" not in form, name


@pytest.mark.parametrize(
    "space", [BOX, ONE, MANY, MIXED, MIXED_MANY, spaces.MultiDiscrete([3])],
    ids=["box", "one", "many", "mixed", "mixed many", "many of one"],
)  # fmt: skip
def test_a_single_choice_is_plain_in_every_field_and_several_are_lists(space: spaces.Space[Any]):
    wire = Wire.of(space)
    flags = tuple(np.ones(n, np.int8) for n in wire.n)
    choices: Any = flags if wire.kind == "multi_discrete" or len(flags) > 1 else (flags or [None])[0]
    mask = {"c": None, "d": choices} if wire.kind == "mixed" else choices
    told = json.loads(questions().request(question(space=space, mask=mask)).model_dump_json())["decision"]
    n, noop, offered = told["action_space"]["n"], told["action_space"]["noop"], told["action_mask"]
    picked = noop["d"] if wire.kind == "mixed" else noop
    if wire.kind == "box":
        assert (n, offered) == ([], None)
    elif isinstance(picked, int):
        assert (n, offered) == (wire.n[0], [1] * n)
    else:
        assert (n, offered) == ([*wire.n], [[1] * each for each in wire.n])
    again = Wire.of_description(ActionSpace.model_validate(told["action_space"]))
    assert again.read(noop, again.flags(Decision.model_validate(told).action_mask))[1] is False


@pytest.mark.parametrize("space", [ONE, MANY, MIXED, MIXED_MANY], ids=["one", "many", "mixed", "mixed many"])
def test_a_mask_of_another_form_is_none(space: spaces.Space[Any]):
    wire = Wire.of(space)
    lists = tuple((1,) * n for n in wire.n)
    right = lists[0] if wire.single else lists
    assert wire.flags(right) == lists
    for wrong in ((right,), right[:-1], (), lists if wire.single else lists[0]):
        with pytest.raises(ValueError, match="its mask has another length"):
            wire.flags(wrong)


def test_a_refusal_quotes_nothing_of_the_answer():
    secret = "sk-secret"
    for value in (
        {"debug": secret},
        {"request_id": secret},
        {"error": {"code": secret, "message": secret}},
        {"action": secret},
    ):
        with pytest.raises(Failure) as caught:
            read(value, question(), questions(), "the-id")
        assert secret not in repr(caught.value)
        assert caught.value.__cause__ is None


def test_letters_go_to_whom_the_endpoint_means_by_a_pseudonym():
    asker, asked = questions("minimal"), question(letters=(letter("zone_1", "battery_1"),))
    assert asker.request(asked).conversation_context.last_k_turns[0].sender == "a2"
    found = read({"action": [0.0], "letters": [{"receiver": "a2", "kind": None, "body": "yes"}]}, asked, asker, "id")
    (one,) = found.letters
    assert (one.sender, one.receiver, one.kind, one.body) == ("battery_1", "zone_1", "message", "yes")
    assert code_of({"action": [0.0], "letters": [{"receiver": "zone_1"}]}, questions("minimal")) == "INVALID_RESPONSE"


def test_in_a_conversation_words_go_to_who_spoke_last():
    asker = questions(chat=True)
    spoken = (letter("battery_2", "battery_1"), letter("zone_1", "battery_1"))
    found = read({"response_text": "well"}, question(letters=spoken), asker, "id")
    assert [(one.receiver, one.kind, one.body) for one in found.letters] == [("zone_1", "message", "well")]
    assert found.action == [0.0]
    first = read({"response_text": "hello"}, question(), asker, "id")
    assert [one.receiver for one in first.letters] == ["zone_1", "battery_2"]
    assert code_of({"action": [0.5]}, questions(chat=True)) == "INVALID_RESPONSE"
