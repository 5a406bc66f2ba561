"""Masks: which choices of an action are allowed. The one owner of their form, of what they forbid, and of the words.

Inside, a mask is flat: int8 `[sum(ncats)]`, 1 where a choice is allowed, one discrete element after another. Outside it
has the form that Gymnasium's `space.sample(mask)` takes. engine/decision_kernels.py says the same in compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.layout import spans_of
from heron_env.core.quantity import clip
from heron_env.errors import RuleError

Flags = NDArray[np.int8]
"""A flat mask, `[sum(ncats)]`."""
Floats = NDArray[np.float64]


def everything(spec: ActionSpec) -> Flags:
    """All choices."""
    return np.ones(int(spec.ncats.sum()), dtype=np.int8)


def noop_alone(spec: ActionSpec) -> Flags:
    """The no-op's choices and no others: the mask of an agent whose action does not count."""
    flags = np.zeros(int(spec.ncats.sum()), dtype=np.int8)
    flags[_starts(spec) + spec.noop[spec.dim_c :].astype(np.int64)] = 1
    return flags


def _starts(spec: ActionSpec) -> NDArray[np.int64]:
    """Where each discrete element's choices begin in a flat mask."""
    return np.cumsum(spec.ncats) - spec.ncats


def parts(spec: ActionSpec) -> list[slice]:
    """The place of each discrete element's choices in a flat mask."""
    return spans_of(spec.ncats)


def shaped(spec: ActionSpec, flags: Flags) -> Any:
    """A flat mask as `space.sample(mask)` takes it: an array for Discrete, a tuple of them for MultiDiscrete, and
    {"c": None, "d": that} where numbers and choices are mixed.
    """
    each = tuple(flags[part] for part in parts(spec))
    choices = each[0] if spec.dim_d == 1 else each
    return {"c": None, "d": choices} if spec.dim_c else choices


def flat(mask: Any) -> Flags:
    """The flat mask of what `shaped` gave."""
    choices = mask["d"] if isinstance(mask, Mapping) else mask
    flags: Flags = np.concatenate(choices) if isinstance(choices, tuple) else np.asarray(choices)
    return flags


def checked(spec: ActionSpec, result: Any, source: str) -> Flags:
    """What a rule returned as a flat mask. Raises RuleError; `source`: the rule and its agent."""
    try:
        numbers = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros(0)
    if numbers.shape != (int(spec.ncats.sum()),) or np.isnan(numbers).any():
        raise RuleError(wrong_form(spec, source, f"{result!r}"))
    for number, part in enumerate(parts(spec)):
        if not numbers[part].any():
            raise RuleError(nothing_allowed(spec, source, number))
    flags: Flags = (numbers != 0).astype(np.int8)
    return flags


def enforced(spec: ActionSpec, values: Floats, flags: Flags) -> tuple[Floats, bool]:
    """An action `[size]` with the no-op in place of each forbidden choice, and whether there was any.

    The no-op itself does nothing, so it is always allowed, even where it is not offered.
    """
    noop, choices = spec.noop[spec.dim_c :], values[spec.dim_c :]
    bad = (flags[_starts(spec) + choices.astype(np.int64)] == 0) & (choices != noop)
    if not bad.any():
        return values, False
    return np.concatenate([values[: spec.dim_c], np.where(bad, noop, choices)]), True


def drawn(spec: ActionSpec, u: Floats, flags: NDArray[np.int8] | None = None) -> Floats:
    """Actions `[n, size]` drawn uniformly from what is allowed.

    Args:
        u: uniforms in [0, 1), `[n, size]`.
        flags: flat masks `[n, sum(ncats)]`; None: every choice is allowed.
    """
    actions, c = np.empty(u.shape), spec.dim_c
    actions[:, :c] = clip((1.0 - u[:, :c]) * spec.low + u[:, :c] * spec.high, spec.low, spec.high)
    for place, (part, n) in enumerate(zip(parts(spec), spec.ncats.tolist(), strict=True), c):
        if flags is None:
            actions[:, place] = np.floor(u[:, place] * n)
        else:
            counted = np.cumsum(flags[:, part] != 0, axis=1)
            actions[:, place] = (counted > np.floor(u[:, place] * counted[:, -1])[:, None]).argmax(axis=1)
    return actions


def wrong_form(spec: ActionSpec, source: str, what: str) -> str:
    """The words for a result that is no mask."""
    choices = int(spec.ncats.sum())
    return (
        f"{source} returned {what}: a flat tuple or array of {choices} numbers is needed, one for each choice of "
        f"{spec.describe()}; 0 forbids it"
    )


def nothing_allowed(spec: ActionSpec, source: str, number: int) -> str:
    """The words for a mask that leaves nothing of a discrete element."""
    which = f" of element {number}" if spec.dim_d > 1 else ""
    return (
        f"{source} forbids every choice{which} of {spec.describe()}; where nothing else is allowed the no-op "
        f"({int(spec.noop[spec.dim_c + number])}) must be"
    )
