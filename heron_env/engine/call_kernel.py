"""What compiled code calls in place of a function of Python (called.py). Compiled from a copy in the cache folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from heron_env.engine.called import DONE, FORMS
from heron_env.engine.kernels import phase, table_of
from heron_env.engine.linking import intrinsic

of = table_of(FORMS)


@intrinsic
def call_c(context: Any, address: Any, first: Any, last: Any) -> Any:
    """Call the C function at this address with two numbers."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(number, [number, number]).as_pointer())
        return builder.call(function, [args[1], args[2]])

    return types.int64(types.int64, types.int64, types.int64), build


@phase
def python(D: Any, at: Any, first: Any, last: Any) -> Any:
    """Call a function of Python (blueprint.Native): 1 if it, or one before it, has failed."""
    state = of(at, "state")
    if state[0] != 0:
        return np.int64(1)
    answer = call_c(of(at, "function")[0], first, last)
    if answer != DONE:
        state[0] = answer + 1
    return np.int64(answer != DONE)
