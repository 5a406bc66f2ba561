"""What generated code calls: how its functions are compiled, clipping, storing, columns over scattered children.

Compiled with `error_model="numpy"`: x / 0 is inf or nan and no exception leaves a loop; a result that is not finite
is refused when it is stored, with the agent, the rule and the quantity. Plain Python raises ZeroDivisionError at the
division, which the binder turns into the same kind of RuleError. They differ where x / 0 never reaches a result
(`min(power, x / 0)`): compiled code goes on. Without fastmath, so that every loop gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic, overload

F = TypeVar("F", bound=Callable[..., Any])
Jit = Callable[[F], F]
_njit: Any = numba.njit  # its types know no _nrt
_nothing: Any = cgutils.get_null_value

_WITHIN: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
leaf: Jit[Any] = _njit(_nrt=False, **_WITHIN)
"""Called from compiled code only, and never allocates: no reference counts, which would cost most of the speed."""
allocating: Jit[Any] = _njit(**_WITHIN)
"""Called from compiled code only, for a rule that makes arrays or lists."""
rule_leaf: Jit[Any] = _njit(_nrt=False, boundscheck=True, **_WITHIN)
"""A leaf of the user's: an index too large is an IndexError, and no look at the neighbour's numbers."""
rule_allocating: Jit[Any] = _njit(boundscheck=True, **_WITHIN)
"""The same for a rule that allocates."""
entry: Jit[Any] = _njit(cache=True, nogil=True, no_cfunc_wrapper=True, error_model="numpy")
"""Called from Python; kept on disk with all that it calls."""


@intrinsic
def bare(context: Any, array: Any) -> Any:
    """The same array without its reference count, so that views of it cost nothing; the caller holds its owner."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(array)(context, builder, value=args[0])
        made.meminfo = _nothing(made.meminfo.type)
        made.parent = _nothing(made.parent.type)
        return made._getvalue()

    return array(array), build


@leaf
def refused(value: Any) -> Any:
    """Is this no finite number?"""
    number = float(value)
    return number - number != 0.0


@leaf
def within(value: Any, low: Any, high: Any) -> Any:
    """`value` within its bounds."""
    number = float(value)
    return low if number < low else high if number > high else number


@leaf
def whole(value: Any) -> Any:
    """The nearest whole number, the even one of two; never -0.0."""
    return np.rint(float(value)) + 0.0


def floats(values: Any) -> Any:
    """The elements of a returned vector: an array as it is, a tuple with every element a float."""
    return values


@overload(floats)
def _floats(values):  # type: ignore[no-untyped-def]
    if isinstance(values, numba.types.BaseTuple):
        parts = "".join(f"float(values[{j}]), " for j in range(len(values)))
        scope: dict[str, Any] = {"__name__": __name__}
        exec(f"def made(values):\n    return ({parts})", scope)
        return scope["made"]
    return lambda values: values


@leaf
def refused_vector(values: Any, size: Any) -> Any:
    """Are these not `size` finite numbers?"""
    bad = len(values) != size
    for j in range(len(values)):
        bad |= refused(values[j])
    return bad


@leaf
def store(t: Any, b: Any, at: Any, size: Any, values: Any, low: Any, high: Any, rounded: Any) -> None:
    """Write a vector into lane `b`, clipped element by element, rounded first where it is of whole numbers."""
    for j in range(size):
        value = float(values[j])
        t[b, at + j] = within(np.rint(value) if rounded else value, low, high)


@leaf
def column(t: Any, b: Any, gather: Any, first: Any, index: Any, step: Any, n: Any) -> Any:
    """Where a field over the n children lies: first column, one past the last, step.

    Evenly spaced children (step > 0): in place. Else `gather[first]` is a place behind the state that serves as
    scratch, and the next n entries are the children's columns; nothing is allocated.
    """
    if step > 0:
        return first + index, first + index + (n - 1) * step + 1, step
    at = gather[first] + index * n
    for j in range(n):
        t[b, at + j] = t[b, gather[first + 1 + j] + index]
    return at, at + n, 1
