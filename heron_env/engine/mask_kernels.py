"""Masks in compiled code: what a rule `action_mask` reads, the form of what it returns, and what it forbids.

`D` is the address of the table of arrays (arrays.py), `b` the lane, `i` the agent's position. core/masking.py is the
law in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.decision_tables import END, FIRST, GRAIN, HIGH, NOOP
from heron_env.engine.kernels import lane, leaf, table
from heron_env.engine.lane_errors import NOTHING

WRONG = 1
"""The failure of a result that is no mask."""


@leaf
def allow(allowed: Any, b: Any, first: Any, end: Any, values: Any) -> Any:
    """Keep what a rule returned as the agent's mask; a failure if it has another length, or a nan."""
    if len(values) != end - first:
        return WRONG
    for j in range(len(values)):
        value = values[j] * 1.0
        if value != value:
            return WRONG
        allowed[b, first + j] = value != 0.0
    return 0


@lane
def look(D: Any, b: Any, first: Any, width: Any) -> None:
    """What the agent's vector would show of its own columns if it were made now: in float32."""
    t, seen = table(D, "truth"), table(D, "seen")
    for c in range(np.uintp(first), np.uintp(first + width)):
        seen[b, c] = np.float32(t[b, c])


@lane
def nothing_allowed(D: Any, b: Any, i: Any, start: Any) -> Any:
    """The failure of a mask that leaves nothing of a discrete element, else 0. `start`: the mask's first column."""
    who, limits, allowed = table(D, "who"), table(D, "limits"), table(D, "allowed")
    at, number, found = np.int64(start), 0, 0
    for e in range(np.uintp(who[i, FIRST]), np.uintp(who[i, END])):
        if limits[GRAIN, e] == 0.0:
            end, any_allowed = at + np.int64(limits[HIGH, e]) + 1, False
            while at < end:
                any_allowed |= allowed[b, at] != 0
                at += 1
            if not any_allowed and found == 0:
                found = NOTHING + number
            number += 1
    return found


@lane
def forbid(D: Any, b: Any, i: Any, start: Any) -> None:
    """Forbidden choices of the action in force become the no-op, and `masked` tells; the no-op may always fall."""
    who, limits, allowed = table(D, "who"), table(D, "limits"), table(D, "allowed")
    applied, masked = table(D, "applied"), table(D, "masked")
    at = np.int64(start)
    for e in range(np.uintp(who[i, FIRST]), np.uintp(who[i, END])):
        if limits[GRAIN, e] == 0.0:
            if applied[b, e] != limits[NOOP, e] and allowed[b, at + np.int64(applied[b, e])] == 0:
                applied[b, e] = limits[NOOP, e]
                masked[b, i] = 1
            at += np.int64(limits[HIGH, e]) + 1
