"""What compiled code calls in place of a function of Python (called.py). Compiled from a copy in the cache folder."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from heron_env.engine.called import FORMS
from heron_env.engine.kernels import phase, table_of
from heron_env.engine.linking import intrinsic

of = table_of(FORMS)


@intrinsic
def call_c(context: Any, address: Any, first: Any, last: Any, turn: Any) -> Any:
    """Call the C function at this address with three numbers."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(number, [number] * 3).as_pointer())
        return builder.call(function, args[1:])

    return types.int64(*(types.int64,) * 4), build


@phase
def python(D: Any, at: Any, first: Any, last: Any) -> Any:
    """Call a function of Python (model.Native): 1 if it, or one before it, has failed."""
    failed, turns = of(at, "failed"), of(at, "turn")
    if failed[0] == 0:
        turns[0] += 1
        turn = turns[0]  # calls within this one have their own
        failed[0] = call_c(of(at, "function")[0], first, last, turn) != turn
    return failed[0]
