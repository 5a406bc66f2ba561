"""The contract: its schema is published, its ids repeat, its numbers keep their bits.

Planted once and caught: an id without its attempt, a UUID of version 4.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from endpoint_kit import question
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import ValidationError

from heron_env import make
from heron_env.injection.answers import without_private
from heron_env.injection.contract import Request, Response, current, decimals, in_version, schema
from heron_env.injection.questions import Questions, Telling
from heron_env.injection.setting import EnvironmentFacts, Ids, canonical, plain, sha256, uuid8

PUBLISHED = Path(__file__).parents[2] / "docs" / "injection.schema.json"
SETTING = EnvironmentFacts(env_id="heron/BatteryGrid-v0", options={"n": 2}, agents={})
ADR = {
    "schema_version", "request_id", "run_id", "turn_id", "message_id", "simulation_config_hash", "persona_hash",
    "agent_id", "persona_ref", "persona_snapshot", "conversation_context", "current_stimulus", "topology_edge_context",
    "timeout_ms", "response_format", "decision",
}  # fmt: skip


def request(**telling: object) -> Request:
    return Questions(SETTING, Telling(**telling)).request(question())


def test_the_published_schema_is_that_of_the_models():
    assert json.loads(PUBLISHED.read_text("utf-8")) == schema(), "write schema() to docs/..."
    assert {"Request", "Response"} <= set(schema()["$defs"])


def test_every_field_of_the_specification_is_there_and_no_other():
    told = json.loads(request().model_dump_json())
    assert set(told) == ADR
    assert told["schema_version"] == "2.0"
    assert Request.model_validate(told).model_dump() == request().model_dump()


SPACES = {
    "box": spaces.Box(-1.0, 1.0, (1,)),
    "one": spaces.Discrete(3),
    "several": spaces.MultiDiscrete([2, 3]),
    "several of one": spaces.MultiDiscrete([2]),
    "mixed": spaces.Dict({"c": spaces.Box(-1.0, 1.0, (1,)), "d": spaces.Discrete(2)}),
}
MASKS = {"one": (1, 0, 1), "several": ((1, 1), (1, 0, 1)), "several of one": ((1, 0),), "mixed": (1, 0)}
FIRST = {"one": [[1, 0, 1]], "mixed": [[1, 0]]}


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("kind", SPACES)
def test_version_1_lists_what_one_choice_has_and_is_read_as_what_it_means(kind: str, masked: bool):
    given = json.loads(Questions(SETTING, Telling()).request(question(space=SPACES[kind])).model_dump_json())
    mask = MASKS.get(kind) if masked else None
    given["decision"]["action_mask"] = None if mask is None else json.loads(json.dumps(mask))
    old = in_version(given, "1.0")
    n = given["decision"]["action_space"]["n"]
    assert "running" not in old["decision"]
    assert old["decision"]["action_space"]["n"] == (n if isinstance(n, list) else [n])
    assert old["decision"]["action_mask"] == FIRST.get(kind, given["decision"]["action_mask"]) if masked else True
    assert Request.model_validate(current(old)) == Request.model_validate(given)
    assert current(given) == given == in_version(given, "2.0")
    if old["schema_version"] == "1.0":
        with pytest.raises(ValidationError):
            Request.model_validate(old)


@pytest.mark.parametrize(
    "damage", [7, [], None, {}, {"action_space": 3}, {"action_space": {"type": "discrete", "n": []}}]
)
def test_what_is_no_request_of_version_1_is_left_to_the_models(damage: object):
    given = {**json.loads(request().model_dump_json()), "schema_version": "1.0", "decision": damage}
    if damage is None:
        assert Request.model_validate(current(given)).decision is None
    else:
        with pytest.raises(ValidationError):
            Request.model_validate(current(given))


@pytest.mark.parametrize("field", sorted(ADR))
def test_a_request_with_a_missing_or_unknown_field_is_none(field: str):
    told = json.loads(request().model_dump_json())
    with pytest.raises(ValidationError):
        Request.model_validate({name: value for name, value in told.items() if name != field})
    with pytest.raises(ValidationError):
        Request.model_validate({**told, "rewards_of_others": [1.0]})


@given(hnp.arrays(np.float32, st.integers(0, 8), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_an_endpoint_that_casts_back_has_the_same_bits(vector: np.ndarray):
    sent = json.loads(json.dumps(decimals(vector)))
    assert np.array(sent, dtype=np.float64).astype(np.float32).tobytes() == vector.tobytes()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 16777217.0, 1e-45, 3.4028235e38, -0.0])
def test_numbers_are_told_as_short_as_possible(value: float):
    (told,) = decimals(np.array([value], np.float32))
    assert repr(told) == repr(float(str(np.float32(value))))


def test_ids_are_those_of_the_table():
    ids, told = Ids("heron/BatteryGrid-v0", {"n": 2}, "mine, case, delay"), canonical
    base = ["heron/BatteryGrid-v0", {"n": 2}, "mine, case, delay"]
    assert ids.run == uuid8(told(base))
    assert ids.turn((3, "battery_1", 9)) == uuid8(told([*base, 3, "battery_1", 9]))
    assert ids.message((3, "battery_1", 9)) == uuid8(told([*base, 3, "battery_1", 9, "stimulus"]))
    assert ids.request((3, "battery_1", 9), 1) == uuid8(told([*base, 3, "battery_1", 9, 1]))
    assert [ids.run[14], ids.run[19] in "89ab"] == ["8", True]


def test_ids_and_hashes_are_the_same_in_every_process_and_for_every_seed():
    program = (
        "from endpoint_kit import question; from heron_env.injection.setting import EnvironmentFacts; "
        "from heron_env.injection.questions import Questions, Telling; "
        "setting = EnvironmentFacts(env_id='heron/BatteryGrid-v0', options={'n': 2}, agents={}); "
        "print(Questions(setting, Telling(label='a')).request(question(seed=99)).model_dump_json())"
    )
    here = Questions(SETTING, Telling(label="a")).request(question(seed=1)).model_dump_json()
    path = f"import sys; sys.path[:0] = [{str(Path(__file__).parents[1])!r}, {str(Path(__file__).parents[2])!r}]; "
    ran = subprocess.run([sys.executable, "-c", path + program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == here
    assert Questions(SETTING, Telling(label="b")).request(question()).run_id not in here


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x), max_leaves=5
    )
)
def test_anything_has_a_hash(value: object):
    assert sha256({"options": value}).startswith("sha256:")


def test_code_and_models_are_hashed_by_their_names_and_fields():
    assert plain(make) == "heron_env.registry:make"
    assert plain({"a": np.array([1.5, np.inf]), "b": {2, 1}, "c": Path("x"), "d": 2**60, "e": np.int32(3)}) == {
        "a": [1.5, "inf"], "b": ["1", "2"], "c": "x", "d": str(2**60), "e": 3,
    }  # fmt: skip
    assert "0x" not in json.dumps(plain({"policy": object()}))


def test_unknown_fields_of_a_response_are_ignored_and_wrong_types_are_not():
    assert Response.model_validate({"action": [1], "colour": "red"}).model_dump(exclude_unset=True) == {"action": [1]}
    for wrong in ({"confidence": 2.0}, {"confidence": True}, {"latency_ms": "12"}, {"debug": []}, {"letters": {}}, []):
        with pytest.raises(ValidationError):
            Response.model_validate(wrong)


def test_private_reasoning_is_dropped_and_counted_wherever_it_is():
    given = {
        "action": [{"thoughts": 1}],
        "reasoning": "step 1",
        "debug": {"model": "m", "Chain_Of_Thought": "x", "calls": [{"thoughts": "y", "n": 1}]},
        "letters": [{"body": {"reasoning": "mine to tell"}}],
    }
    kept, dropped = without_private(given)
    assert dropped == 3
    assert kept == {
        "action": [{"thoughts": 1}],
        "debug": {"model": "m", "calls": [{"n": 1}]},
        "letters": [{"body": {"reasoning": "mine to tell"}}],
    }
