"""The post office of the compiled event clock, and what arrives at the proxy; heron_env.scheduling.broker is the law.

`D` is the address of the engine's table, `E` of the clock's (forms), `b` a lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.event import draws
from heron_env.engine.event import forms as f
from heron_env.engine.event.from_data import late, loss_at
from heron_env.engine.event.slots import NONE, PHYSICS_PHASE, held, later, push, take_report
from heron_env.engine.kernels import leaf, table
from heron_env.seeding import h

CYCLE, TELEMETRY, TICKED, EFFECTED, COMMANDED, CYCLE_OF_GLOBAL, TELEMETRY_OF_GLOBAL = (
    np.uint64(h(cause)) for cause in
    ("cycle", "telemetry", "tick", "effect", "command", "cycle of the global row", "telemetry of the global row")
)  # fmt: skip
"""What messages and delays are caused by: keys of their draws."""
(LEG_REPORT, LEG_RECEIVED, LEG_REQUEST, LEG_REPLY, LEG_COMMAND, LEG_GATHERING, LEG_ACTION,
 LEG_SHARE) = 3, 8, 9, 10, 11, 12, 13, 14  # fmt: skip
"""As scheduling.messages.Leg numbers them."""


@leaf
def schedule_of(E: Any, b: Any, r: Any) -> Any:
    """The agent's row in `timing` and `odds`."""
    return b * held(E, "law")[f.SCHEDULES] + r


@leaf
def send(
    E: Any, b: Any, r: Any, queue: Any, leaves: Any, cause: Any, leg: Any, number: Any, kind: Any, phase: Any, real: Any
) -> Any:
    """Send a message over the link of `r`: how many copies will arrive. Loss keeps a message's place in its queue.

    `real`: the slot of its numbers; a report takes one (FRESH), unless it arrives at once.
    """
    law, lane, last = held(E, "law"), held(E, "lane"), held(E, "queue")
    timing, odds, at = held(E, "timing"), held(E, "odds"), schedule_of(E, b, r)
    own, q = held(E, "key")[b, r], np.int64(f.QUEUES) * r + queue
    ordered, copies = timing[at, f.FLAGS] & f.REORDER == 0, 1
    lane[b, f.SENT] += 1
    if draws.doubled(odds, at, own, cause, leg, number):
        copies = 2
        lane[b, f.DUPLICATED] += 1
    first = second = np.int64(0)
    arrivals = 0
    for twin in range(copies):
        delay = late(E, b, r, at, f.MSG_FIELD, timing[at, f.MSG], leaves, cause, leg, number, twin)
        arrival = later(leaves, delay)
        if ordered:
            arrival = max(arrival, last[b, q])
            last[b, q] = arrival
        if draws.lost(loss_at(E, b, r, at, leaves), own, cause, leg, number, twin):
            lane[b, f.LOST] += 1
        elif arrivals == 0:
            first, arrivals = arrival, 1
        else:
            second, arrivals = arrival, 2
    if arrivals == 0:
        return 0
    slot = np.int64(real)
    if kind == f.REPORT or kind == f.EFFECT_REPORT or kind == f.SHARE:
        if arrivals == 1 and first == leaves and kind == f.REPORT:  # nobody looks before it is there
            lane[b, f.FRESH] = NONE
            lane[b, f.DELIVERED] += 1
            return 1
        slot = take_report(E, b)
        lane[b, f.FRESH] = slot
        held(E, "report_slot")[b * law[f.REPORT_SLOTS] + slot, f.REFS] = arrivals
    elif slot >= 0:
        held(E, "view_slot")[b * law[f.VIEW_SLOTS] + slot, f.HELD] += arrivals
    if arrivals == 1:
        push(E, b, first, phase, r, kind, slot, number)
        return 1
    record = take_report(E, b)
    both = held(E, "report_slot")
    both[b * law[f.REPORT_SLOTS] + record, f.REFS] = 2
    both[b * law[f.REPORT_SLOTS] + record, f.REAL] = slot
    push(E, b, first, phase, r, kind | f.TWIN, record, number)
    push(E, b, second, phase, r, kind | f.TWIN, record, number)
    return 2


@leaf
def into_cache(E: Any, b: Any, row: Any, version: Any, as_of: Any) -> Any:
    """T12: is this report of a row newer than what is known? Then it is noted."""
    known = held(E, "version")
    if version <= known[b, row]:
        return False
    known[b, row], held(E, "as_of")[b, row] = version, as_of
    return True


@leaf
def measured(E: Any, b: Any, source: Any, at: Any, k: Any) -> Any:
    """The k-th reported column: of a quantity per step the sum of the last step that has ended (T18)."""
    total = held(E, "told_sum")[k]
    return source[at, held(E, "told")[k]] if total < 0 else held(E, "ended_sums")[b, total]


@leaf
def report_row(
    E: Any, b: Any, row: Any, r: Any, now: Any, source: Any, at: Any, version: Any, as_of: Any, cause: Any, number: Any,
    kind: Any, phase: Any,
) -> None:  # fmt: skip
    """A report of a row leaves; `source[at]` is the truth that it tells of."""
    first, told, law = held(E, "first_told"), held(E, "told"), held(E, "law")
    if not send(E, b, r, f.UP, now, cause, LEG_REPORT, number, kind, phase, NONE):
        return
    slot = held(E, "lane")[b, f.FRESH]
    if slot < 0:
        if into_cache(E, b, row, version, as_of):
            cache = held(E, "cache")
            for k in range(first[row], first[row + 1]):
                cache[b, told[k]] = measured(E, b, source, at, k)
        return
    values, numbers, s = held(E, "report"), held(E, "report_slot"), b * law[f.REPORT_SLOTS] + slot
    numbers[s, f.WHAT], numbers[s, f.VERSION_OF], numbers[s, f.AS_OF] = row, version, as_of
    for k in range(first[row], first[row + 1]):
        values[s, k - first[row]] = measured(E, b, source, at, k)


@leaf
def report_all(E: Any, b: Any, number: Any, version: Any, now: Any, source: Any, at: Any, as_of: Any) -> None:
    """Leg 3, or telemetry: every row with something to tell. The global row uses the system agent's link."""
    ranks, first = held(E, "law")[f.RANKS], held(E, "first_told")
    by_telemetry = held(E, "law")[f.PER_BOUNDARY] > 1
    for row in range(ranks + 1):
        if first[row + 1] > first[row]:
            if row < ranks:
                cause = TELEMETRY if by_telemetry else CYCLE
                report_row(E, b, row, row, now, source, at, version, as_of, cause, number, f.REPORT, PHYSICS_PHASE)
            else:
                cause = TELEMETRY_OF_GLOBAL if by_telemetry else CYCLE_OF_GLOBAL
                report_row(E, b, row, 0, now, source, at, version, as_of, cause, number, f.REPORT, PHYSICS_PHASE)


@leaf
def receive_report(E: Any, b: Any, slot: Any) -> None:
    """At the proxy."""
    numbers, values, first = held(E, "report_slot"), held(E, "report"), held(E, "first_told")
    s = b * held(E, "law")[f.REPORT_SLOTS] + slot
    row = numbers[s, f.WHAT]
    if into_cache(E, b, row, numbers[s, f.VERSION_OF], numbers[s, f.AS_OF]):
        cache, told = held(E, "cache"), held(E, "told")
        for k in range(first[row], first[row + 1]):
            cache[b, told[k]] = values[s, k - first[row]]


@leaf
def share(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any) -> None:
    """V8: what an agent tells its neighbours leaves."""
    first, edges, truth, law = held(E, "first_edge"), held(E, "edge"), table(D, "truth"), held(E, "law")
    for k in range(first[r], first[r + 1]):
        e = held(E, "outgoing")[k]
        cause = held(E, "edge_cause")[e]
        if send(E, b, r, f.SHARES, now, cause, LEG_SHARE, number, f.SHARE, PHYSICS_PHASE, NONE):
            s = b * law[f.REPORT_SLOTS] + held(E, "lane")[b, f.FRESH]
            held(E, "report_slot")[s, f.WHAT] = e
            for j in range(edges[e, f.EDGE_SIZE]):
                held(E, "report")[s, j] = truth[b, edges[e, f.EDGE_SOURCE] + j]


@leaf
def hear(D: Any, E: Any, b: Any, slot: Any, number: Any) -> None:
    """A share has come: the mean of what each edge of its slot brought last, into truth and cache."""
    s = b * held(E, "law")[f.REPORT_SLOTS] + slot
    e = held(E, "report_slot")[s, f.WHAT]
    edges, newest, heard = held(E, "edge"), held(E, "newest"), held(E, "heard")
    if number <= newest[b, e]:
        return
    newest[b, e] = number
    for k in range(edges[e, f.EDGE_SIZE]):
        heard[b, edges[e, f.EDGE_KEPT] + k] = held(E, "report")[s, k]
    count = 0
    for other in range(edges[e, f.EDGE_FROM], edges[e, f.EDGE_TO]):
        count += newest[b, other] >= 0
    low, high, whole = table(D, "low"), table(D, "high"), table(D, "whole")
    for k in range(edges[e, f.EDGE_WIDTH]):
        total = 0.0
        for other in range(edges[e, f.EDGE_FROM], edges[e, f.EDGE_TO]):
            total += heard[b, edges[other, f.EDGE_KEPT] + k]
        c = edges[e, f.EDGE_TARGET] + k
        value = min(max(total / count, low[c]), high[c])
        for j in range(len(whole)):
            value = np.rint(value) if np.int64(whole[j]) == c else value
        table(D, "truth")[b, c] = held(E, "cache")[b, c] = value
