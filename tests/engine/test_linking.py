"""Functions that only compiled code calls are linked into it: no machine code of their own, and the same results."""

import ctypes
import math

import pytest
from numba.core.errors import NumbaWarning

from heron_env.engine.kernels import address_of, allocating, leaf, njit, phase, rule_leaf


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


@leaf
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@leaf
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@phase
def parity(n):
    return 10 * is_even(n) + is_odd(n)


@allocating
def printed(x):
    print(x, "was given")
    return x


@njit
def prints(x):
    return math.exp(printed(x))


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


def test_it_is_made_when_its_address_is_asked_for() -> None:
    assert address_of(halved, 1) != 0
    assert all(made.library._made for made in halved.overloads.values())


def test_functions_that_call_each_other_find_each_other_and_are_not_kept() -> None:
    with pytest.warns(NumbaWarning, match="Cannot cache"):  # another process would not find them
        assert parity(7) == 1
    assert parity(10) == 10


def test_a_function_finds_its_environment(capfd: pytest.CaptureFixture[str]) -> None:
    assert prints(1.0) == math.exp(1.0)
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "1.0 was given\n"


@rule_leaf
def fibonacci(n, x):
    if n <= 1:
        return 1.0 / x
    return fibonacci(n - 1, x) + fibonacci(n - 2, x)


@njit
def fifth(x):
    return fibonacci(5, x)


def test_a_function_that_calls_itself_is_found_by_its_version_for_a_constant() -> None:
    assert fifth(0.5) == 16.0
    with pytest.raises(ZeroDivisionError):
        fifth(0.0)
