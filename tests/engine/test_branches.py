"""Functions without branches give what the functions give, for each of many numbers at once."""

import builtins
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.engine.branches import Converter
from heron_env.errors import RuleError

UNSET = object()


def where(mask: Any, value: Any, other: Any) -> Any:
    if value is UNSET or value is None:  # of a function that was called where no mask holds
        return other
    if other is UNSET:
        return value
    if isinstance(value, tuple):
        return tuple(where(mask, *parts) for parts in zip(value, other, strict=True))
    return np.where(mask, value, other)


def item(array: Any, key: Any) -> Any:
    if isinstance(array, np.ndarray) and array.ndim == 2:
        return array[np.arange(len(array)), key]
    return np.asarray(array)[key]


def store(array: Any, key: Any, value: Any, mask: Any) -> Any:
    lanes = np.arange(len(array))
    array[lanes, key] = np.where(mask, value, array[lanes, key])
    return array


def loop(holds: Any, turn: Any, values: tuple[Any, ...], mask: Any) -> tuple[Any, ...]:
    while np.any(now := np.logical_and(mask, holds(*values))):
        values = turn(*values, now)
    return values


WORDS = {
    "where": where, "item": item, "store": store, "both": np.logical_and, "either": np.logical_or,
    "negated": np.logical_not, "truth_of": lambda value: np.asarray(value) != 0, "any_of": np.any, "loop": loop,
    "UNSET": UNSET, "ALL": True,
}  # fmt: skip
VALUES = [(builtins.max, np.maximum), (abs, np.abs), (int, lambda x: np.trunc(x).astype(int)), (math.exp, np.exp)]
SCALE = (0.5, 2.0, 4.0)


def branches(x: float, y: float) -> float:
    z = 1.0
    if x > 0.0:
        z = x
        if y > x:
            z += y
    elif x < -1.0:
        z = -x
    else:
        z *= y
    return z


def returns(x: float, y: float) -> float:
    if x > 1.0:
        return x
    if y > 1.0:
        if x > 0.0:
            return y
        x = x - 1.0
    return x + y


def continues(x: float, y: float) -> float:
    total = 0.0
    for k in range(4):
        if x > k:
            total += 1.0
            continue
        if y > k:
            return total + 10.0
        total += x * k
    return total


def chains(x: float, y: float) -> float:
    a = 1.0 if -1.0 < x <= y < 2.0 else 2.0 if x > y else 3.0
    b = (x > 0.0 and y > 0.0) or not (x < -0.5 or y < -0.5)
    return a + (10.0 if b else 20.0)


def whiles(x: float, y: float) -> float:
    count, reached = 0, x
    while abs(reached) < 3.0 and count < 9:
        reached = reached * 1.5 + 0.25
        if reached > y:
            reached += 0.5
        count += 1
    return count + reached


def helped(x: float, y: float) -> float:
    if x > 0.0:
        return branches(x, returns(y, y) if y > 0.0 else 0.5) + SCALE[int(abs(x)) % 3]
    return returns(y, x)


def stores(x: float, y: float, kept: Any) -> float:
    kept[0] = x
    if y > 0.0:
        kept[1] = y
        kept[0] += 1.0
    if x > y:
        return kept[0]
    kept[2], kept[1] = kept[1], kept[2] - 1.0
    return kept[1] + kept[2]


PLAIN = [branches, returns, continues, chains, whiles, helped]
NUMBERS = st.lists(st.tuples(*[st.floats(-4.0, 4.0, width=16)] * 2), min_size=1, max_size=12)


@pytest.mark.parametrize("function", PLAIN, ids=lambda function: function.__name__)
@given(pairs=NUMBERS)
def test_of_many_numbers_it_is_the_function_of_each(function: Any, pairs: Any):
    x, y = np.array(pairs, dtype=np.float64).T
    found = Converter(WORDS, VALUES).function(function)(x, y)
    expected = [function(*pair) for pair in pairs]
    np.testing.assert_array_equal(np.broadcast_to(found, len(x)), expected)


@given(pairs=NUMBERS)
def test_what_is_stored_is_stored_where_the_mask_holds(pairs: Any):
    x, y = np.array(pairs, dtype=np.float64).T
    kept = np.zeros((len(x), 3))
    found = Converter(WORDS, VALUES).function(stores)(x, y, kept)
    for lane, pair in enumerate(pairs):
        alone = np.zeros(3)
        assert stores(*pair, alone) == found[lane]
        np.testing.assert_array_equal(kept[lane], alone)


def breaks(x: float) -> float:
    for _ in range(3):
        if x > 0.0:
            break
        x += 1.0
    return x


def comprehends(x: float) -> float:
    return sum([x for _ in range(3)])


def lambdas(x: float) -> float:
    double = lambda value: 2.0 * value  # noqa: E731
    return double(x)


def leaves(x: float) -> float:
    while x < 3.0:
        if x == 1.0:
            return x
        x += 1.0
    return x


def tries(x: float) -> float:
    try:
        return x
    finally:
        x = 1.0


def deletes(x: float) -> float:
    x.part = 1.0  # type: ignore[attr-defined]
    return x


REFUSED = {
    breaks: (3, "`break`: this statement can't be converted; write it with if, for, while and assignments"),
    comprehends: (1, "`[x for _ in range(3)]`: write it as a loop"),
    lambdas: (1, "`lambda value: 2.0 * value`: write it as a function of its own"),
    leaves: (2, "`if x == 1.0:`: a `while` can't be left from within; say it in its condition"),
    tries: (1, "`try:`: this statement can't be converted; write it with if, for, while and assignments"),
    deletes: (1, "`x.part`: only names and elements of arrays can be assigned"),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_can_not_be_converted_is_named_with_its_line_and_a_remedy(function: Any):
    line, text = REFUSED[function]
    with pytest.raises(RuleError) as error:
        Converter(WORDS, VALUES).function(function)
    assert str(error.value) == f"{__file__}:{function.__code__.co_firstlineno + line}: {text}"


def test_a_lambda_and_what_has_no_source_are_refused():
    with pytest.raises(RuleError, match=r"write it as `def`; a lambda can't be converted"):
        Converter(WORDS, VALUES).function(lambda x: x)
    space: dict[str, Any] = {}
    exec("def made(x): return x", space)
    with pytest.raises(RuleError, match="made: its source can't be read"):
        Converter(WORDS, VALUES).function(space["made"])
