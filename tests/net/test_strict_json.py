"""Strict JSON: what is accepted, what is refused and as what, and how little memory either takes."""

import json
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.net import outcome
from heron_env.net.outcome import Code, Failure, parse

MIB = 2**20
TEXT = st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def refused(body: bytes) -> Code:
    with pytest.raises(Failure) as caught:
        parse(body)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or not hasattr(caught.value.__context__, "doc")
    return caught.value.code


@given(st.dictionaries(TEXT, VALUES, max_size=4), st.booleans())
def test_an_object_comes_through_as_it_is(value: dict[str, object], escaped: bool):
    body = json.dumps(value, ensure_ascii=escaped, indent=1 if escaped else None).encode()
    assert parse(body) == value


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", Code.INVALID_RESPONSE),
        (b"[]", Code.INVALID_RESPONSE),
        (b"{} {}", Code.INVALID_RESPONSE),
        (b"{'a': 1}", Code.INVALID_RESPONSE),
        (b'{"a": 1,}', Code.INVALID_RESPONSE),
        (b'{"a": 01}', Code.INVALID_RESPONSE),
        (b'{"a": "\n"}', Code.INVALID_RESPONSE),
        (b'{"a": 1, "a": 1}', Code.INVALID_RESPONSE),
        (b'{"a": {"b": 1, "c": {}, "b": 1}}', Code.INVALID_RESPONSE),
        (b'{"a": "\xc3\x28"}', Code.INVALID_RESPONSE),
        (b'{"a": "\xed\xa0\x80"}', Code.INVALID_RESPONSE),
        (b'{"a": "\\udc00\\ud800"}', Code.INVALID_RESPONSE),
        (b'{"\\ud800": 1}', Code.INVALID_RESPONSE),
        (b"{" + b"[" * 10**6, Code.INVALID_RESPONSE),
        (b'{"a": "' + b'\\"' * 10_000, Code.INVALID_RESPONSE),
        (b'{"a": NaN}', Code.INVALID_ACTION),
        (b'{"a": Infinity}', Code.INVALID_ACTION),
        (b'{"a": -1e400}', Code.INVALID_ACTION),
        (b'{"a": ' + b"9" * 310 + b"}", Code.INVALID_ACTION),
        (b'{"a": [' + b"0," * 40_000 + b"0]}", Code.RESPONSE_TOO_LARGE),
    ],
)
def test_what_is_not_strict_is_refused(body: bytes, code: Code):
    assert refused(body) is code


def test_depth_ends_at_32_and_brackets_in_texts_are_none():
    assert parse(b'{"a":' * 32 + b"0" + b"}" * 32)
    assert refused(b'{"a":' * 33 + b"0" + b"}" * 33) is Code.INVALID_RESPONSE
    deep = {"a": "[{" * 100_000, 'b"\\': ['\\"' + "[" * 99]}
    assert parse(json.dumps(deep).encode()) == deep


def test_a_pair_of_surrogates_is_one_character_and_an_escaped_backslash_hides_none():
    assert parse(b'{"a": "\\ud83d\\ude00", "b": "\\\\ud800"}') == {"a": "😀", "b": "\\ud800"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "' + b"a" * (MIB - 30) + b'\\ud83d\\ude00"}',
        b'{"a": "' + b"a" * (3 * MIB // 4 - 30) + b'\\ud83d\\ude00"}',
        b'{"a": "' + b"a" * (MIB - 30) + b'\\u4e00"}',
        ('{"a": "😀' + "a" * (3 * MIB // 4 - 100) + '"}').encode(),
        ('{"a": "' + "é" * (MIB // 2 - 20) + '"}').encode(),
        b'{"a": [' + b'{"":0},' * 16_000 + b"0]}",
        b'{"a": [' + b"[]," * 16_000 + b"0]}",
        b'{"a": [' + b'"0123456789012345678901234567",' * 32_000 + b"0]}",
        b"{" + b",".join(b'"%020d":0' % number for number in range(32_000)) + b"}",
        b'{"a": ' + b"[" * MIB,
        b'{"a": "' + b"\\" * MIB,
    ],
    ids=lambda body: body[:12].decode(errors="replace"),
)
def test_reading_takes_little_memory_whatever_is_read(body: bytes):
    tracemalloc.start()
    try:
        with suppress(Failure):
            parse(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak + len(body) < 8 * MIB


def test_a_quadratic_pattern_would_be_seen(monkeypatch: pytest.MonkeyPatch):
    """Each byte is looked at once: a text without an end is one token, not one for each of its quotes."""
    body = b'{"a": "' + b'\\"' * 1000 + b"\\"
    assert [body[token.start() :][:3] for token in outcome.TOKEN.finditer(body)] == [b'{"a', b'"a"', b'"\\"']
