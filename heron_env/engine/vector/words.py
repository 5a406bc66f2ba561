"""What converted text calls (branches.py), by its name: of numbers, and of vectors of them."""

from __future__ import annotations

import math
import operator
from types import ModuleType
from typing import Any

import numpy as np
from numba import types

from heron_env.engine.vector.elements import item, length, store
from heron_env.engine.vector.masks import any_of, both, either, fail_where, negated, truth_of, where
from heron_env.engine.vector.numbers import cast_to, dividing, extreme, of_numbers, under_mask, word
from heron_env.engine.vector.types import ALL, UNSET


def _functions(module: ModuleType, more: dict[str, Any]) -> ModuleType:
    """The module with these functions in the place of its own."""
    twin = ModuleType(module.__name__)
    vars(twin).update(vars(module))
    vars(twin).update(more)
    return twin


def _of(module: ModuleType, names: str, count: int) -> dict[str, Any]:
    return {name: word(under_mask(getattr(module, name)), count, name, masked=True) for name in names.split()}


_BINARY: dict[str, Any] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
WORDS: dict[str, Any] = {
    "ALL": ALL, "UNSET": UNSET, "where": where, "item": item, "store": store, "both": both, "either": either,
    "negated": negated, "truth_of": truth_of, "any_of": any_of, "fail_where": fail_where,
    **{name: word(of_numbers(function), 2, f"{name}_") for name, function in _BINARY.items()},
    "pow": word(of_numbers(operator.pow), 2, "pow_", literal=True),
    "div": word(dividing(operator.truediv), 3, "div_"), "mod": word(dividing(operator.mod), 3, "mod_"),
    "floordiv": word(dividing(operator.floordiv), 3, "floordiv_"),
    "neg": word(of_numbers(operator.neg), 1, "neg_"), "invert": word(of_numbers(operator.invert), 1, "invert_"),
}  # fmt: skip
"""What branches.py calls."""
_ONE = "exp expm1 log log1p log2 log10 sqrt sin cos tan sinh cosh tanh fabs floor ceil trunc isnan isinf isfinite"
_MATH = {
    **_of(math, f"{_ONE} asin acos atan erf erfc gamma lgamma", 1),
    **_of(math, "hypot atan2 pow fmod copysign", 2),
}
_KINDS = ("float64", "float32", "int64", "uint64")
CASTS = (*_KINDS, "uintp")
_NUMPY = {
    **_of(np, f"{_ONE} arcsin arccos arctan exp2 rint abs sign", 1),
    **_of(np, "hypot arctan2 power maximum minimum fmod copysign", 2),
    **{name: word(cast_to(getattr(types, name), getattr(np, name)), 1, name) for name in _KINDS},
    "uintp": word(cast_to(types.uint64, np.uintp), 1, "uintp"),
}  # fmt: skip
_MIN, _MAX = (word(extreme(compare), 2, name) for compare, name in ((operator.lt, "min_"), (operator.gt, "max_")))


VALUES: list[tuple[Any, Any]] = [
    (math, _functions(math, _MATH)), (np, _functions(np, _NUMPY)), (len, length), (min, _MIN), (max, _MAX),
    (abs, word(of_numbers(abs), 1, "abs_")), (round, word(of_numbers(round), 1, "round_")),
    (int, word(cast_to(types.int64, int), 1, "int_")), (float, word(cast_to(types.float64, float), 1, "float_")),
    (bool, truth_of),
    *((getattr(math, name), word) for name, word in _MATH.items()),
]  # fmt: skip
"""What stands in the place of what rules call."""
MASKED = [
    getattr(module, name) for module, names in ((math, _MATH), (np, _NUMPY)) for name in names if name not in CASTS
]
"""Those that take the mask."""
