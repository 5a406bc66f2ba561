"""Functions that only compiled code calls are linked into it: no machine code of their own, and the same results."""

import pytest

from heron_env.engine.kernels import leaf, njit, rule_leaf


@leaf
def halved(x):
    return x // 2


@rule_leaf
def checked(x):
    if x < 0:
        raise ValueError("x is below 0")
    return 100 // halved(x)


@njit
def called_from_python(x):
    return checked(x) + 1


def test_machine_code_is_made_of_what_python_calls_alone() -> None:
    assert called_from_python(8) == 26
    made = {
        f.py_func.__name__: f.overloads[f.signatures[0]].library._made for f in (called_from_python, checked, halved)
    }
    assert made == {"called_from_python": True, "checked": False, "halved": False}


def test_what_a_linked_function_raises_arrives() -> None:
    with pytest.raises(ValueError, match="x is below 0"):
        called_from_python(-1)
    with pytest.raises(ZeroDivisionError):
        called_from_python(1)
