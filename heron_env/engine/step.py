"""A control step (T15): which phase comes when. Batches, single environments and the event clock all run this text.

`D` is the address of the table of arrays (arrays.py). A *place* is a phase and what follows it: compiled code of an
environment's own, then Python (called.py), which nobody calls any more once something has failed. A place without
either costs a comparison. Compiled once for an installation, from a copy of this file in the cache folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.arrays import (
    ADD_NOISE,
    ADD_NOISE_TO_FINAL,
    AFFECT,
    APPLY,
    AT_CLOSE,
    BEFORE_PHYSICS,
    BEGIN,
    BEGIN_EPISODES,
    CHECK,
    CLEAR,
    CLOSE,
    DECIDE,
    DELIVER,
    END,
    FINISH,
    KEEP_FINAL,
    LANES,
    OFFER,
    PHYSICS,
    PUBLISH,
    PUBLISH_OTHERS,
    PYTHON,
    RULED,
    SIGHT,
    SIGHT_OF,
    STEP,
    TILES,
)
from heron_env.engine.kernels import call, general, leaf, natively, number, phase, table

# order of a step


@phase
def step(D: Any, first: Any, last: Any) -> Any:
    """All phases of a control step behind the check, for a few lanes, then for the next.

    Lanes that a tile gives up are marked in `redo`; they count as failures, and are where tiles begin (`tiles_at`).
    """
    size, tiles, redo, failures = number(D, "block"), table(D, "phases")[TILES], table(D, "redo"), np.int64(0)
    begin, shows = number(D, "tiles_at"), number(D, "shows")
    for start in range(first, last, size):
        stop = min(start + size, last)
        failed = visit(D, DECIDE, start, stop, np.int64(0))
        failed = act(D, start, stop, 0, begin, failed)
        left = run(D, tiles, start, stop)
        if left == 0:
            failures += conclude(D, start, stop, begin, failed, shows)
            continue
        failures += failed + left
        for tile in range(start, stop, LANES):
            if redo[tile] == 0:
                failures += conclude(D, tile, min(tile + LANES, stop), begin, np.int64(0), shows)
    return failures


@phase
def checked_step(D: Any, first: Any, last: Any) -> Any:
    """The check, then `step` if no action is illegal: one call for one thread."""
    refused = visit(D, CHECK, first, last, np.int64(0))
    return refused if refused != 0 else run(D, table(D, "phases")[STEP], first, last)


@general
def conclude(D: Any, first: Any, last: Any, begin: Any, failed: Any, shown: Any) -> Any:
    """A step from where tiles begin, or from what they have done: how many lanes have failed so far."""
    failed = act(D, first, last, begin, len(RULED), failed)
    failed = visit(D, FINISH, first, last, judge(D, first, last, failed))
    failed = visit(D, DELIVER, first, last, failed)
    failed = visit(D, AT_CLOSE, first, last, failed)
    chosen, anew = table(D, "chosen"), False
    for b in range(first, last):
        anew |= chosen[b] != 0
    if anew:
        failed = begin_anew(D, first, last, failed)
    return publish(D, first, last, failed, shown)


@general
def act(D: Any, first: Any, last: Any, begin: Any, end: Any, failed: Any) -> Any:
    """What actions do, then all substeps of physics: those of RULED from number `begin` to `end` - 1."""
    for k in range(begin, end):
        if RULED[k] == CLOSE:  # tiles may run it with these; else `judge` does, when all have moved
            continue
        if RULED[k] != PHYSICS:
            failed = visit(D, RULED[k], first, last, failed)
            continue
        for substep in range(number(D, "substeps")):
            failed += advance(D, first, last, substep)
            if failed == 0:
                failed = natively(D, PYTHON + PHYSICS, first, last)
    return failed


@general
def advance(D: Any, first: Any, last: Any, substep: Any) -> Any:
    """Physics of a substep up to what follows it in Python: how many lanes failed."""
    physics, substeps = table(D, "phases")[PHYSICS], table(D, "substep")
    for b in range(first, last):
        substeps[b] = substep
    followed, failed = len(table(D, "natives")) != 0, np.int64(0)
    if followed:
        failed = visit(D, BEFORE_PHYSICS, first, last, failed)
    if physics != 0:
        failed += call(physics, (D, np.int64(first), np.int64(last), np.int64(substep)))
    return failed + natively(D, PHYSICS, first, last) if followed else failed


@general
def judge(D: Any, first: Any, last: Any, failed: Any) -> Any:
    """Rewards, and who ends by a rule or a limit (T5): before the next exogenous values, which neither may know."""
    return visit(D, END, first, last, visit(D, CLOSE, first, last, failed))


@general
def begin_anew(D: Any, first: Any, last: Any, failed: Any) -> Any:
    """An episode begins in the lanes that are `chosen`; what agents saw last is kept of those that have ended."""
    if table(D, "phases")[KEEP_FINAL] != 0:
        failed = visit(D, SIGHT, first, last, failed)
    failed = visit(D, KEEP_FINAL, first, last, failed)
    failed = visit(D, ADD_NOISE_TO_FINAL, first, last, failed)
    failed = visit(D, BEGIN_EPISODES, first, last, failed)
    # The rule `begin` is last: it reads what an exchange forgot, and what Python drew.
    failed += natively(D, BEGIN, first, last)
    if failed == 0:
        failed = natively(D, PYTHON + BEGIN, first, last)
    return failed + run(D, table(D, "phases")[BEGIN], first, last)


@general
def publish(D: Any, first: Any, last: Any, failed: Any, shown: Any) -> Any:
    """What agents see, with its noise, and the rewards and ends of those that decide; `shown`: tiles did most of it."""
    phases = table(D, "phases")
    failed = visit(D, SIGHT, first, last, failed)
    run(D, phases[PUBLISH_OTHERS if shown != 0 else PUBLISH], first, last)
    failed = visit(D, ADD_NOISE, first, last, failed)
    failed += natively(D, PUBLISH, first, last)  # what follows sees the noise, too
    return failed if failed != 0 else natively(D, PYTHON + PUBLISH, first, last)


@general
def visit(D: Any, place: Any, first: Any, last: Any, failed: Any) -> Any:
    """A place: how many lanes have failed so far."""
    failed += run(D, table(D, "phases")[place], first, last)
    if len(table(D, "natives")) == 0:
        return failed
    failed += natively(D, place, first, last)
    return failed if failed != 0 else natively(D, PYTHON + place, first, last)


@leaf
def run(D: Any, address: Any, first: Any, last: Any) -> Any:
    """The phase at this address, if there is one: how many lanes failed."""
    return np.int64(0) if address == 0 else call(address, (D, np.int64(first), np.int64(last)))


@general
def move(D: Any, first: Any, last: Any) -> Any:
    """Substep `substep` of the lanes that are `moving`, and with a last one the boundary, for the event clock.

    Each place of all of them before the next: Python is called once for all that stand there.
    """
    moving, substep, count = table(D, "moving"), table(D, "substep"), number(D, "substeps")
    failed = np.int64(0)
    for b in range(first, last):
        if moving[b] != 0:
            if substep[b] == 0:
                failed = visit(D, CLEAR, b, b + 1, failed)
            failed += advance(D, b, b + 1, substep[b])
    if failed == 0:
        failed = natively(D, PYTHON + PHYSICS, first, last)
    for b in range(first, last):
        if moving[b] != 0 and substep[b] + 1 == count:
            failed = judge(D, b, b + 1, failed)
            failed += run(D, table(D, "phases")[FINISH], b, b + 1) + natively(D, FINISH, b, b + 1)
    if failed == 0:
        failed = natively(D, PYTHON + FINISH, first, last)
    for b in range(first, last):
        if failed == 0 and moving[b] != 0 and substep[b] + 1 == count:
            failed = run(D, table(D, "phases")[AT_CLOSE], b, b + 1) + natively(D, AT_CLOSE, b, b + 1)
    return failed if failed != 0 else natively(D, PYTHON + AT_CLOSE, first, last)


# Parts of it, for who goes through a step at a pace of its own, and for a reset


@phase
def rest(D: Any, first: Any, last: Any, begin: Any) -> Any:
    """What `step` has left undone of lanes that a tile gave up, from number `begin` of RULED on."""
    return conclude(D, first, last, begin, np.int64(0), np.int64(0))


@phase
def begin_step(D: Any, first: Any, last: Any) -> Any:
    """The check; then, if no action is illegal, decisions and what they do."""
    refused = visit(D, CHECK, first, last, np.int64(0))
    if refused != 0:
        return refused
    return visit(D, AFFECT, first, last, visit(D, DECIDE, first, last, np.int64(0)))


@phase
def substep(D: Any, first: Any, last: Any, number: Any) -> Any:
    """Substep `number` of physics; what counts per step begins at 0."""
    failed = visit(D, CLEAR, first, last, np.int64(0)) if number == 0 else np.int64(0)
    return failed + go_on(D, first, last, number)


@phase
def go_on(D: Any, first: Any, last: Any, number: Any) -> Any:
    """The same with what counts per step left as it is."""
    failed = advance(D, first, last, number)
    return failed if failed != 0 else natively(D, PYTHON + PHYSICS, first, last)


@phase
def close_step(D: Any, first: Any, last: Any) -> Any:
    """A step's end up to the next exogenous values; neighbours hear nothing yet."""
    return visit(D, FINISH, first, last, judge(D, first, last, np.int64(0)))


@phase
def restart(D: Any, first: Any, last: Any) -> Any:
    """An episode begins in the lanes that are chosen."""
    return begin_anew(D, first, last, np.int64(0))


@phase
def show(D: Any, first: Any, last: Any) -> Any:
    """What is handed out of now."""
    return publish(D, first, last, np.int64(0), np.int64(0))


@phase
def apply(D: Any, lane: Any, position: Any) -> Any:
    """One agent's action, on what is in `actions`."""
    return visit(D, APPLY, lane, position, np.int64(0))


@phase
def sight(D: Any, first: Any, last: Any) -> Any:
    """Who sees whom now (V11)."""
    return visit(D, SIGHT, first, last, np.int64(0))


@phase
def sight_of(D: Any, lane: Any, rank: Any) -> Any:
    """Who sees one agent now, in one lane."""
    return visit(D, SIGHT_OF, lane, rank, np.int64(0))


@phase
def offer(D: Any, first: Any, last: Any) -> Any:
    """Masks, into `allowed`, of the agents in `acting`."""
    return visit(D, OFFER, first, last, np.int64(0))
