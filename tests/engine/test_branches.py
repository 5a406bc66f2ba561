"""What can't be made a function without branches is named, with its line and a remedy (what can: test_vectors.py)."""

from typing import Any

import pytest

from heron_env.engine.vector.compiling import converter
from heron_env.errors import RuleError


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
        converter().function(function)
    assert str(error.value) == f"{__file__}:{function.__code__.co_firstlineno + line}: {text}"


def test_a_lambda_and_what_has_no_source_are_refused():
    with pytest.raises(RuleError, match=r"write it as `def`; a lambda can't be converted"):
        converter().function(lambda x: x)
    space: dict[str, Any] = {}
    exec("def made(x): return x", space)
    with pytest.raises(RuleError, match="made: its source can't be read"):
        converter().function(space["made"])
