"""Letters that are sealed: what may be in them, and that nobody shares it."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env import Letter
from heron_env.core.letters import LONGEST_KIND, MOST_BYTES, MOST_DEPTH, sealed
from heron_env.errors import ConfigError

PLAIN = Letter("ann", "bob", "offer", {"kwh": [1.5, None, True], "to": "bob"})
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20)
)
BODIES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner)),
    max_leaves=8,
)

LONG = "here: its body is longer than 16,000 bytes as JSON; shorten it"


def nested(depth: int) -> Any:
    """Lists within each other."""
    body: Any = []
    for _ in range(depth - 1):
        body = [body]
    return body


def endless() -> Any:
    """A list that contains itself."""
    body: list[Any] = []
    body.append(body)
    return body


def bush() -> Any:
    """Few objects, but 10**30 as JSON."""
    body: list[Any] = []
    for _ in range(30):
        body = [body] * 10
    return body


@given(BODIES)
def test_a_body_arrives_as_it_was_written(body: Any) -> None:
    letter = sealed(replace(PLAIN, body=body), "here")
    assert json.dumps(letter.opened().body, sort_keys=True) == json.dumps(body, sort_keys=True)
    assert letter.opened() == Letter("ann", "bob", "offer", letter.opened().body)


def test_neither_writer_nor_readers_share_a_body() -> None:
    body: dict[str, Any] = {"kwh": [1.0]}
    letter = sealed(replace(PLAIN, body=body), "here")
    body["kwh"].append(2.0)
    first = letter.opened()
    first.body["kwh"].append(3.0)
    assert letter.opened().body == {"kwh": [1.0]}


def test_the_order_of_keys_does_not_travel() -> None:
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert sealed(replace(PLAIN, body=one), "here") == sealed(replace(PLAIN, body=other), "here")


def test_what_just_fits_is_sealed() -> None:
    for body in ["x" * (MOST_BYTES - 2), "é" * (MOST_BYTES // 2 - 1), nested(MOST_DEPTH)]:
        assert sealed(replace(PLAIN, body=body), "here").opened().body == body


def test_what_is_no_json_of_16_kb_is_refused() -> None:
    for body, said in [
        ({"kwh": [1.0, float("nan")]}, "here: body.kwh[1] is nan; write None, or leave it out"),
        (float("-inf"), "here: body is -inf; write None, or leave it out"),
        ({"a": {1: 2}}, "here: body.a has the key 1; keys are texts"),
        ({"who": {1, 2}}, "here: body.who is a set, {1, 2}; write lists, objects with text keys, text, numbers"),
        ([b"x"], "here: body[0] is a bytes, b'x'"),
        (np.float32(0.5), "here: body is a float32"),
        (np.ones(2), "here: body is a ndarray"),
        (object, "here: body is a type"),
        (nested(MOST_DEPTH + 1), "here: its body is deeper than 32 levels, or contains itself; make it flatter"),
        (endless(), "here: its body is deeper than 32 levels, or contains itself; make it flatter"),
        (bush(), LONG),
        ("x" * (MOST_BYTES - 1), LONG),
        ("é" * (MOST_BYTES // 2), LONG),
        ("x" * 10**6, LONG),
        ({"k" * 10**5: 1}, LONG),
        ("half \ud83d", "here: can't be written as JSON in UTF-8: 'utf-8' codec can't encode"),
        (10**5000, "here: can't be written as JSON in UTF-8: Exceeds the limit"),
    ]:
        with pytest.raises(ConfigError) as caught:
            sealed(replace(PLAIN, body=body), "here")
        assert str(caught.value).startswith(said)


def test_a_kind_is_a_short_text() -> None:
    for kind in ["", None, 3, "k" * (LONGEST_KIND + 1)]:
        with pytest.raises(ConfigError, match=r"here: kind=.*: must be a text of 1 to 100 characters, as 'offer'"):
            sealed(replace(PLAIN, kind=kind), "here")
