"""A lane's messages in the compiled event clock: the post office, and what the proxy knows.

The law is told by heron_env.scheduling.broker.

`D` is the address of the engine's table, `E` of the clock's (forms), `b` a lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.core.layout import RAISED
from heron_env.engine.event import forms as f
from heron_env.engine.event.heap import NONE, acquire_report, is_report, later, push
from heron_env.engine.event.links import ask, delay, is_lost, of, schedule_of
from heron_env.engine.event.media import behind, take
from heron_env.engine.event.servers import depart_at_once, way_of
from heron_env.engine.kernels import leaf, table, within
from heron_env.seeding import h

(PHYSICS_PHASE, REWARD_PHASE, CLOSE_PHASE, TICK_PHASE, REQUEST_PHASE, REPLY_PHASE, COMMAND_PHASE, EFFECT_PHASE,
 REPORT_PHASE) = 0, 1, 2, 4, 5, 6, 7, 8, 9  # fmt: skip
"""As scheduling.scheduler.Phase numbers them."""
CYCLE, TELEMETRY, TICKED, EFFECTED, COMMANDED, CYCLE_OF_GLOBAL, TELEMETRY_OF_GLOBAL = (
    np.uint64(h(cause)) for cause in
    ("cycle", "telemetry", "tick", "effect", "command", "cycle of the global row", "telemetry of the global row")
)  # fmt: skip
"""What messages and delays are caused by: keys of their draws."""
(LEG_REPORT, LEG_RECEIVED, LEG_REQUEST, LEG_REPLY, LEG_COMMAND, LEG_GATHERING, LEG_ACTION,
 LEG_SHARE) = 3, 8, 9, 10, 11, 12, 13, 14  # fmt: skip
"""As scheduling.messages.Leg numbers them."""


@leaf
def send(
    E: Any, b: Any, r: Any, queue: Any, now: Any, leaves: Any, cause: Any, leg: Any, number: Any, kind: Any, phase: Any,
    real: Any, count: Any, stream: Any,
) -> Any:  # fmt: skip
    """Send a message over the link of `r`: may it arrive? A lost one keeps its place in its queue.

    `real`: the slot of its numbers; a report takes one (FRESH), unless it arrives at once. `count`: how many numbers.
    `stream`: of which a link may keep a few.
    """
    lane, flags = of(E, "lane"), of(E, "timing")[schedule_of(E, b, r), f.FLAGS]
    lane[b, f.SENT] += 1
    slot, shared = np.int64(real), flags & f.SHARED != 0 and leg != LEG_RECEIVED
    if shared and flags & f.AT_ONCE_LINK and leaves <= now:
        s = way_of(E, schedule_of(E, b, r), queue)
        shared, leaves = False, depart_at_once(E, b, s, kind, count, now)
    arrival = leaves
    if not shared:
        if flags & f.RULED:
            ask(E, b, r, queue, stream)
        arrival = later(leaves, delay(E, b, r, f.MSG, leaves, cause, leg, number))
        if flags & f.REORDER == 0:
            arrival = behind(E, b, r, queue, arrival)
        if is_lost(E, b, r, leaves, cause, leg, number):
            lane[b, f.LOST] += 1
            return False
        if arrival == now and kind == f.REPORT:  # nobody looks before it is there
            lane[b, f.FRESH] = NONE
            lane[b, f.DELIVERED] += 1
            return True
    if is_report(kind):
        lane[b, f.FRESH] = slot = acquire_report(E, b)
    elif slot >= 0:
        of(E, "view_slot")[b * of(E, "sizes")[f.VIEW_SLOTS] + slot, f.USES] += 1
    if shared:
        take(E, b, r, queue, now, leaves, cause, leg, number, kind, phase, slot, count, stream)
    else:
        push(E, b, arrival, phase, r, kind, slot, number)
    return True


@leaf
def stream_of(of_what: Any, number: Any) -> Any:
    """The stream of a message: what a newer one takes the place of an older one in."""
    return np.int64(of_what) << 32 | np.int64(number)


@leaf
def into_cache(E: Any, b: Any, row: Any, version: Any, as_of: Any) -> Any:
    """T12: is this report of a row newer than what is known? Then it is noted."""
    versions = of(E, "version")
    if version <= versions[b, row]:
        return False
    versions[b, row], of(E, "as_of")[b, row] = version, as_of
    return True


@leaf
def measured(E: Any, b: Any, source: Any, at: Any, k: Any) -> Any:
    """The k-th reported column: of a quantity per step the sum of the last step that has ended (T18)."""
    total = of(E, "reported_sum")[k]
    return source[at, of(E, "reported")[k]] if total < 0 else of(E, "ended_sums")[b, total]


@leaf
def send_report(
    E: Any, b: Any, row: Any, r: Any, now: Any, source: Any, at: Any, version: Any, as_of: Any, cause: Any, number: Any,
    kind: Any, phase: Any,
) -> None:  # fmt: skip
    """A report of a row leaves; `source[at]` is the truth that it tells of."""
    first, reported, sizes = of(E, "first_reported"), of(E, "reported"), of(E, "sizes")
    if not send(
        E, b, r, f.UP, now, now, cause, LEG_REPORT, number, kind, phase, NONE, of(E, "payload")[row],
        stream_of(f.REPORTS_OF, row),
    ):  # fmt: skip
        return
    slot = of(E, "lane")[b, f.FRESH]
    if slot < 0:
        if into_cache(E, b, row, version, as_of):
            cache = of(E, "cache")
            for k in range(first[row], first[row + 1]):
                cache[b, reported[k]] = measured(E, b, source, at, k)
        return
    values, numbers, s = of(E, "report"), of(E, "report_slot"), b * sizes[f.REPORT_SLOTS] + slot
    numbers[s, f.WHAT], numbers[s, f.VERSION_OF], numbers[s, f.AS_OF] = row, version, as_of
    for k in range(first[row], first[row + 1]):
        values[s, k - first[row]] = measured(E, b, source, at, k)


@leaf
def report_all(E: Any, b: Any, number: Any, version: Any, now: Any, source: Any, at: Any, as_of: Any) -> None:
    """Leg 3, or telemetry: every row with something to tell. The global row uses the system agent's link."""
    ranks, first = of(E, "sizes")[f.RANKS], of(E, "first_reported")
    by_telemetry = of(E, "sizes")[f.PER_BOUNDARY] > 1
    for row in range(ranks + 1):
        if first[row + 1] > first[row]:
            r = row if row < ranks else 0
            telemetry, cycle = (TELEMETRY, CYCLE) if row < ranks else (TELEMETRY_OF_GLOBAL, CYCLE_OF_GLOBAL)
            cause = telemetry if by_telemetry else cycle
            send_report(E, b, row, r, now, source, at, version, as_of, cause, number, f.REPORT, PHYSICS_PHASE)


@leaf
def receive_report(E: Any, b: Any, slot: Any) -> None:
    """At the proxy."""
    numbers, values, first = of(E, "report_slot"), of(E, "report"), of(E, "first_reported")
    s = b * of(E, "sizes")[f.REPORT_SLOTS] + slot
    row = numbers[s, f.WHAT]
    if into_cache(E, b, row, numbers[s, f.VERSION_OF], numbers[s, f.AS_OF]):
        cache, reported = of(E, "cache"), of(E, "reported")
        for k in range(first[row], first[row + 1]):
            cache[b, reported[k]] = values[s, k - first[row]]


@leaf
def send_shares(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any) -> None:
    """V8, V10: what an agent tells its neighbours leaves; what it raised is lowered."""
    first, edges, truth, sizes = of(E, "first_edge"), of(E, "edge"), table(D, "truth"), of(E, "sizes")
    for k in range(first[r], first[r + 1]):
        e = of(E, "outgoing")[k]
        flag, cause = edges[e, f.EDGE_FLAG], of(E, "edge_cause")[e]
        if flag >= 0 and truth[b, flag] < RAISED:
            continue
        size, stream = edges[e, f.EDGE_SIZE], stream_of(f.SHARES_OF, e)
        if send(E, b, r, f.SHARES, now, now, cause, LEG_SHARE, number, f.SHARE, PHYSICS_PHASE, NONE, size, stream):
            s = b * sizes[f.REPORT_SLOTS] + of(E, "lane")[b, f.FRESH]
            of(E, "report_slot")[s, f.WHAT] = e
            for j in range(edges[e, f.EDGE_SIZE]):
                of(E, "report")[s, j] = truth[b, edges[e, f.EDGE_SOURCE] + j]
    for k in range(first[r], first[r + 1]):
        flag = edges[of(E, "outgoing")[k], f.EDGE_FLAG]
        if flag >= 0:
            truth[b, flag] = 0.0


@leaf
def receive_share(D: Any, E: Any, b: Any, slot: Any, number: Any) -> None:
    """A share has come: the mean of what each edge of its slot brought last, into truth and cache."""
    s = b * of(E, "sizes")[f.REPORT_SLOTS] + slot
    e = of(E, "report_slot")[s, f.WHAT]
    edges, newest, received = of(E, "edge"), of(E, "newest"), of(E, "received")
    if number <= newest[b, e]:
        return
    newest[b, e] = number
    for k in range(edges[e, f.EDGE_SIZE]):
        received[b, edges[e, f.EDGE_RECEIVED] + k] = of(E, "report")[s, k]
    count = 0
    for other in range(edges[e, f.EDGE_FROM], edges[e, f.EDGE_TO]):
        count += newest[b, other] >= 0
    low, high, integer = table(D, "low"), table(D, "high"), table(D, "integer")
    for k in range(edges[e, f.EDGE_WIDTH]):
        total = 0.0
        for other in range(edges[e, f.EDGE_FROM], edges[e, f.EDGE_TO]):
            total += received[b, edges[other, f.EDGE_RECEIVED] + k]
        c = edges[e, f.EDGE_TARGET] + k
        value = within(total / count, low[c], high[c])
        for j in range(len(integer)):
            value = np.rint(value) if np.int64(integer[j]) == c else value
        table(D, "truth")[b, c] = of(E, "cache")[b, c] = value
