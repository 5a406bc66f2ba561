"""Deciding in compiled code: are given actions legal, who acts in this step, with what, and what masks leave of it.

`D` is the address of the table of arrays (arrays.py), `b` the lane, `i` an agent's position; loop_kernels.py and
generated text run these over lanes. core/masking.py is the law of masks in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.kernels import failure, flat_of, inlined, leaf, number, table, within
from heron_env.engine.lane_errors import ILLEGAL, NOTHING
from heron_env.engine.tables import (
    CLOCK,
    COMMAND,
    COMMANDER,
    END,
    FIRST,
    GRAIN,
    HELD,
    HIGH,
    LEAST,
    LOW,
    MOST,
    NOOP,
    NOOP_VALUE,
    PHASE,
    PLAN,
    TICK,
    TOTAL,
    WEIGHT,
)
from heron_env.scheduling import ticks

ticks_at: Any = inlined(ticks.ticks_at)
WRONG = 1
"""The failure of a result that is no mask."""


@inlined
def refused_action(D: Any, b: Any) -> Any:
    """The failure code of the first given action that is illegal, 0 if there is none; nothing changes.

    Bounds are compared in float32, in which actions are sampled; choices are whole numbers.
    """
    actions, single, limits = table(D, "actions"), table(D, "single"), table(D, "limits")
    source_in, owner = table(D, "source_in"), table(D, "owner")
    for e in range(limits.shape[1]):
        value = actions[b, e]
        inside = single[0, e] <= np.float32(value) <= single[1, e]
        if source_in[b, owner[e]] != 0 and (not inside or value - np.floor(value) > limits[GRAIN, e]):
            return failure(owner[e], ILLEGAL, 1)
    return 0


@inlined
def any_refused(D: Any, start: Any) -> Any:
    """Is any action illegal in the block of LANES that begins here, whoever is given what? In one plain loop."""
    actions, single, limits = flat_of(table(D, "actions")), table(D, "block_single"), table(D, "block_limits")
    base, bad = np.uintp(start * table(D, "actions").shape[1]), False
    for e in range(np.uintp(0), np.uintp(limits.shape[1])):
        value = actions[base + e]
        rounded = np.float32(value)
        broken = value - np.floor(value) > limits[2, e]
        bad |= (rounded < single[0, e]) | (rounded > single[1, e]) | (value != value) | broken
    return bad


@inlined
def accept_action(D: Any, b: Any, i: Any) -> None:
    """What agent i is given becomes its action in force, within its bounds."""
    actions, applied, who, limits = table(D, "actions"), table(D, "applied"), table(D, "who"), table(D, "limits")
    for e in range(np.uintp(who[i, FIRST]), np.uintp(who[i, END])):
        applied[b, e] = within(actions[b, e], limits[LOW, e], limits[HIGH, e])


@inlined
def decide_block(D: Any, start: Any) -> Any:
    """`decide_lane` in a block of LANES where everyone lives and is given an action, in plain loops; else False."""
    alive, source_in, sized = flat_of(table(D, "alive")), flat_of(table(D, "source_in")), table(D, "block_sized")
    source, base, missing = flat_of(table(D, "source")), np.uintp(start * table(D, "alive").shape[1]), False
    for i in range(np.uintp(0), np.uintp(len(sized))):
        missing |= (alive[base + i] == 0) | ((sized[i] != 0) & (source_in[base + i] == 0))
    if missing:
        return False
    for i in range(np.uintp(0), np.uintp(len(sized))):
        source[base + i] = source_in[base + i] * sized[i]
    actions, applied, limits = flat_of(table(D, "actions")), flat_of(table(D, "applied")), table(D, "block_limits")
    base = np.uintp(start * table(D, "actions").shape[1])
    for e in range(np.uintp(0), np.uintp(limits.shape[1])):
        applied[base + e] = within(actions[base + e], limits[LOW, e], limits[HIGH, e])
    return True


@inlined
def decide_lane(D: Any, b: Any) -> None:
    """Who acts in this step, top-down (T10, T11, D7), and with what: `source` and `applied`."""
    source, sized, who = table(D, "source"), table(D, "sized"), table(D, "who")
    now, source_in = table(D, "steps")[b] * number(D, "dt_ns"), table(D, "source_in")
    alive, clock, ticks = table(D, "alive"), np.int64(-1), False
    for i in range(len(sized)):
        if who[i, CLOCK] != clock:  # neighbours often share one
            clock = who[i, CLOCK]
            ticks = (alive[b, np.uintp(clock)] != 0) & ticks_at(now, who[clock, TICK], who[clock, PHASE])
        if sized[i] != 0 and alive[b, i] != 0:
            source[b, i] = decide_one(D, b, i) if ticks or source_in[b, i] == PLAN else HELD


@inlined
def share_of(command: Any, limits: Any, e: Any) -> Any:
    """What a number of a command makes of element `e`."""
    return within(command * limits[WEIGHT, e] / limits[TOTAL, e], limits[LEAST, e], limits[MOST, e])


@inlined
def decide_one(D: Any, b: Any, i: Any) -> Any:
    """The decision of an agent whose clock ticks: its code; what it decides goes into `applied`."""
    source_in, source, alive = table(D, "source_in"), table(D, "source"), table(D, "alive")
    applied, who, limits, command = table(D, "applied"), table(D, "who"), table(D, "limits"), table(D, "command")
    if source_in[b, i] != 0:
        accept_action(D, b, i)
        return np.int64(source_in[b, i])
    first, end = np.uintp(who[i, FIRST]), np.uintp(who[i, END])
    if who[i, COMMANDER] < 0:
        for e in range(first, end):
            applied[b, e] = limits[NOOP_VALUE, e]
        return NOOP
    commander = np.uintp(who[i, COMMANDER])
    if alive[b, commander] == 0 or source[b, commander] == HELD:
        return HELD
    for e in range(first, end):
        applied[b, e] = share_of(applied[b, command[e]], limits, e)
    return COMMAND


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


@inlined
def look(D: Any, b: Any, first: Any, width: Any) -> None:
    """What the agent's vector would show of its own columns if it were made now: in float32."""
    t, visible = table(D, "truth"), table(D, "visible")
    for c in range(np.uintp(first), np.uintp(first + width)):
        visible[b, c] = np.float32(t[b, c])


@inlined
def nothing_allowed(D: Any, b: Any, i: Any, start: Any) -> Any:
    """The failure of a mask that leaves nothing of a discrete element, else 0. `start`: the mask's first column."""
    who, limits, allowed = table(D, "who"), table(D, "limits"), table(D, "allowed")
    at, number, refused = np.int64(start), 0, 0
    for e in range(np.uintp(who[i, FIRST]), np.uintp(who[i, END])):
        if limits[GRAIN, e] == 0.0:
            end, any_allowed = at + np.int64(limits[HIGH, e]) + 1, False
            while at < end:
                any_allowed |= allowed[b, at] != 0
                at += 1
            if not any_allowed and refused == 0:
                refused = NOTHING + number
            number += 1
    return refused


@inlined
def forbid(D: Any, b: Any, i: Any, start: Any) -> None:
    """Forbidden choices of the action in force become the no-op, and `masked` tells; the no-op is always allowed."""
    who, limits, allowed = table(D, "who"), table(D, "limits"), table(D, "allowed")
    applied, masked = table(D, "applied"), table(D, "masked")
    at = np.int64(start)
    for e in range(np.uintp(who[i, FIRST]), np.uintp(who[i, END])):
        if limits[GRAIN, e] == 0.0:
            if applied[b, e] != limits[NOOP_VALUE, e] and allowed[b, at + np.int64(applied[b, e])] == 0:
                applied[b, e] = limits[NOOP_VALUE, e]
                masked[b, i] = 1
            at += np.int64(limits[HIGH, e]) + 1
