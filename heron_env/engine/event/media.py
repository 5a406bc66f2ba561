"""What waits in the compiled event clock: heron_env.scheduling.sharing tells the law, and names its jobs alike.

A *parcel* is a slot of numbers, in use while its arrival is not known, while it stands in the line of its queue, and
for each event that will look at it. `E` is the address of the clock's table (forms), `b` a lane, `p` a parcel, `s` a
server.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.draw_kernel import GOLDEN, key_with
from heron_env.engine.event import forms as f
from heron_env.engine.event.heap import NONE, acquire, later, push, release, release_slot
from heron_env.engine.event.links import ask, delay, is_lost, of, schedule_of
from heron_env.engine.event.servers import medium_of, occupy, server_of, way_of, weigh, work_of
from heron_env.engine.kernels import leaf
from heron_env.scheduling.media import MOST_WAIT

TRANSMIT_PHASE = 10


@leaf
def parcel_of(E: Any, b: Any, p: Any) -> Any:
    """The row of a parcel."""
    return b * of(E, "sizes")[f.PARCEL_SLOTS] + p


@leaf
def release_parcel(E: Any, b: Any, p: Any) -> None:
    """One thing less needs this parcel."""
    release(E, b, of(E, "parcel"), of(E, "sizes")[f.PARCEL_SLOTS], f.FREE_PARCEL, p)


@leaf
def take(
    E: Any, b: Any, r: Any, queue: Any, now: Any, leaves: Any, cause: Any, leg: Any, number: Any, kind: Any, phase: Any,
    slot: Any, count: Any, stream: Any,
) -> None:  # fmt: skip
    """A message leaves over a link that is shared or reliable: now, or where it was held back at `leaves`.

    `count`: numbers in it; `stream`: of which at most KEEP wait.
    """
    parcels, at = of(E, "parcel"), schedule_of(E, b, r)
    p = acquire(E, b, parcels, of(E, "sizes")[f.PARCEL_SLOTS], f.FREE_PARCEL, 1)
    i = parcel_of(E, b, p)
    parcels[i, f.P_RANK], parcels[i, f.P_QUEUE], parcels[i, f.P_KIND], parcels[i, f.P_PHASE] = r, queue, kind, phase
    parcels[i, f.P_SLOT], parcels[i, f.P_NUMBER], parcels[i, f.P_LEG] = slot, number, leg
    parcels[i, f.P_CAUSE], parcels[i, f.P_SENT] = np.int64(cause), leaves
    parcels[i, f.P_ATTEMPT] = parcels[i, f.P_TIMEOUTS] = parcels[i, f.P_STATE] = parcels[i, f.P_WORK] = 0
    parcels[i, f.P_BACK] = parcels[i, f.P_LEFT] = parcels[i, f.P_ARRIVAL] = parcels[i, f.P_NEXT] = NONE
    parcels[i, f.P_LINE] = NONE
    parcels[i, f.P_STREAM] = stream
    parcels[i, f.P_SERVER] = s = way_of(E, at, queue)
    size = weigh(E, b, s, kind, count) if s >= 0 else 0.0
    parcels[i, f.P_WORK] = work_of(E, b, s, size) if s >= 0 else 0
    of(E, "parcel_size")[i, 0] = size
    if leaves > now:  # until then the medium is not held for it
        parcels[i, f.USES] += 1
        push(E, b, leaves, phase, r, f.OFFER, p, 1)
    else:
        offer(E, b, p, now)


@leaf
def come(E: Any, b: Any, p: Any, timed: Any, now: Any) -> None:
    """A parcel comes to its medium, unless it has been sent again, or given up, since this was planned."""
    parcels, i = of(E, "parcel"), parcel_of(E, b, p)
    if parcels[i, f.P_STATE] & f.GONE == 0:
        if parcels[i, f.P_ATTEMPT] == 0:
            offer(E, b, p, now)
        elif parcels[i, f.P_BACK] == now:
            notice(E, b, p)
            parcels[i, f.P_BACK] = NONE
            parcels[i, f.P_TIMEOUTS] += timed
            if is_too_old(E, b, p, now):
                discard(E, b, p, now)
            else:
                offer(E, b, p, now)
    release_parcel(E, b, p)


@leaf
def offer(E: Any, b: Any, p: Any, now: Any) -> None:
    """It is there to be sent now."""
    parcels, i, lane = of(E, "parcel"), parcel_of(E, b, p), of(E, "lane")
    timing, at = of(E, "timing"), schedule_of(E, b, parcels[i, f.P_RANK])
    if parcels[i, f.P_ATTEMPT] == 0:
        lane[b, f.OFFERS] += 1
        parcels[i, f.P_ORDER] = lane[b, f.OFFERS]
        if timing[at, f.RTO] >= 0 and timing[at, f.FLAGS] & f.REORDER == 0:
            stand_in_line(E, b, p)
        if timing[at, f.KEEP] > 0:
            displace(E, b, p, timing[at, f.KEEP], now)
            parcels[i, f.P_STATE] |= f.IN_STREAM
    s = parcels[i, f.P_SERVER]
    if s < 0:
        depart(E, b, p, now, now)
        return
    server, used, k, m = of(E, "server"), of(E, "server_bytes"), server_of(E, b, s), medium_of(E, b, s)
    medium, size = of(E, "medium"), of(E, "parcel_size")[i, 0]
    used[k, f.S_OFFERED] += size
    alone = server[k, f.S_HEAD] < 0
    if medium[m, f.AT_ONCE] != 0.0 or (parcels[i, f.P_WORK] == 0 and alone and server[k, f.S_FREE] <= now):
        transfer(E, b, p, s, max(now, server[k, f.S_FREE]), now)
        return
    limit = medium[m, f.LIMIT]
    if limit >= 0.0 and (server[k, f.S_FREE] > now or not alone) and used[k, f.S_BACKLOG] + size > limit:
        used[k, f.S_REFUSED] += size
        discard(E, b, p, now)
        return
    parcels[i, f.P_STATE] |= f.WAITS
    if alone:
        server[k, f.S_HEAD] = p
    else:
        parcels[parcel_of(E, b, server[k, f.S_TAIL]), f.P_NEXT] = p
    server[k, f.S_TAIL], parcels[i, f.P_NEXT] = p, NONE
    used[k, f.S_BACKLOG] += size
    plan(E, b, s, now)


@leaf
def plan(E: Any, b: Any, s: Any, now: Any) -> None:
    """Something is chosen once the medium is free, and no earlier than all else of this instant is done."""
    server, k = of(E, "server"), server_of(E, b, s)
    if server[k, f.S_PENDING] == 0:
        server[k, f.S_PENDING] = 1
        push(E, b, max(now, server[k, f.S_FREE]), TRANSMIT_PHASE, s, f.TRANSMIT, NONE, 0)


@leaf
def transmit(E: Any, b: Any, s: Any, now: Any) -> None:
    """The medium is free: the next one is sent, after those that are too old were discarded."""
    server, k, parcels = of(E, "server"), server_of(E, b, s), of(E, "parcel")
    server[k, f.S_PENDING] = 0
    medium, m = of(E, "medium"), medium_of(E, b, s)
    p = server[k, f.S_HEAD] if medium[m, f.LIFESPANS] != 0.0 else np.int64(NONE)
    while p >= 0:
        after = parcels[parcel_of(E, b, p), f.P_NEXT]
        if is_too_old(E, b, p, now):
            discard(E, b, p, now)
        p = after
    chosen = server[k, f.S_HEAD]
    if chosen < 0:
        return
    if medium[m, f.BY_PRIORITY] != 0.0:
        p = parcels[parcel_of(E, b, chosen), f.P_NEXT]
        while p >= 0:
            if priority(E, b, p) < priority(E, b, chosen):
                chosen = p
            p = parcels[parcel_of(E, b, p), f.P_NEXT]
    wait_no_more(E, b, chosen)
    transfer(E, b, chosen, s, now, now)
    if server[k, f.S_HEAD] >= 0:
        plan(E, b, s, now)


@leaf
def priority(E: Any, b: Any, p: Any) -> Any:
    """Of a parcel's link; the smaller goes first."""
    r = of(E, "parcel")[parcel_of(E, b, p), f.P_RANK]
    return of(E, "timing")[schedule_of(E, b, r), f.PRIORITY]


@leaf
def wait_no_more(E: Any, b: Any, p: Any) -> None:
    """Take a parcel out of those that wait for its medium."""
    parcels, i = of(E, "parcel"), parcel_of(E, b, p)
    server, k = of(E, "server"), server_of(E, b, parcels[i, f.P_SERVER])
    before, one = np.int64(NONE), server[k, f.S_HEAD]
    while one != p:
        before, one = one, parcels[parcel_of(E, b, one), f.P_NEXT]
    after = parcels[i, f.P_NEXT]
    if before < 0:
        server[k, f.S_HEAD] = after
    else:
        parcels[parcel_of(E, b, before), f.P_NEXT] = after
    if after < 0:
        server[k, f.S_TAIL] = before
    parcels[i, f.P_NEXT] = NONE
    parcels[i, f.P_STATE] &= ~f.WAITS
    of(E, "server_bytes")[k, f.S_BACKLOG] -= of(E, "parcel_size")[i, 0]


@leaf
def transfer(E: Any, b: Any, p: Any, s: Any, start: Any, now: Any) -> None:
    """It occupies its medium from `start` on."""
    i = parcel_of(E, b, p)
    leaves = occupy(E, server_of(E, b, s), start, of(E, "parcel")[i, f.P_WORK], of(E, "parcel_size")[i, 0])
    depart(E, b, p, leaves, now)


@leaf
def depart(E: Any, b: Any, p: Any, leaves: Any, now: Any) -> None:
    """Its last bit leaves at `leaves`, ns: what becomes of it from there is drawn."""
    parcels, i, lane = of(E, "parcel"), parcel_of(E, b, p), of(E, "lane")
    r, queue = parcels[i, f.P_RANK], parcels[i, f.P_QUEUE]
    timing, at, attempt = of(E, "timing"), schedule_of(E, b, r), parcels[i, f.P_ATTEMPT]
    leg, number, cause = parcels[i, f.P_LEG], parcels[i, f.P_NUMBER], np.uint64(parcels[i, f.P_CAUSE])
    if timing[at, f.FLAGS] & f.RULED:
        ask(E, b, r, queue, parcels[i, f.P_STREAM])
    if attempt > 0:
        cause = key_with(cause + np.uint64(attempt - 1) * GOLDEN, np.uint64(0))
    lost, reliable = is_lost(E, b, r, leaves, cause, leg, number), timing[at, f.RTO] >= 0
    if lost and reliable and (timing[at, f.TRIES] == 0 or attempt + 1 < timing[at, f.TRIES]):
        parcels[i, f.P_ATTEMPT], parcels[i, f.P_LEFT] = attempt + 1, leaves
        lane[b, f.REPEATED] += 1
        if timing[at, f.FLAGS] & f.GAPS and attempt == 0:
            lane[b, f.OFFERS] += 1
            parcels[i, f.P_STATE] |= f.MISSING
            parcels[i, f.P_LOST] = lane[b, f.OFFERS]
        repeat(E, b, p, later(leaves, timeout(E, at, parcels[i, f.P_TIMEOUTS])), 1)
        return
    parcels[i, f.P_STATE] &= ~f.IN_STREAM
    arrival = later(leaves, delay(E, b, r, f.MSG, leaves, cause, leg, number))
    if reliable and not lost and timing[at, f.FLAGS] & f.GAPS:
        reveal(E, b, r, queue, leaves, later(arrival, timing[at, f.MSG]))
    if timing[at, f.FLAGS] & f.REORDER == 0:
        if reliable:
            parcels[i, f.P_ARRIVAL] = arrival
            if lost:
                lose(E, b, p)
            arrive(E, b, r, queue, now)
            return
        arrival = behind(E, b, r, queue, arrival)
    if lost:
        lose(E, b, p)
    else:
        deliver_parcel(E, b, p, arrival)


@leaf
def behind(E: Any, b: Any, r: Any, queue: Any, arrival: Any) -> Any:
    """Return the arrival behind all earlier messages of the queue."""
    last, q = of(E, "queue"), np.int64(f.QUEUES) * r + queue
    last[b, q] = max(arrival, last[b, q])
    return last[b, q]


@leaf
def timeout(E: Any, at: Any, timeouts: Any) -> Any:
    """Return the time from departure to repetition of a lost message, ns, after so many earlier timeouts."""
    timing = of(E, "timing")
    ns = np.float64(timing[at, f.RTO]) + 2.0 * np.float64(timing[at, f.MSG])
    for _ in range(timeouts):
        if ns >= MOST_WAIT:
            break
        ns *= of(E, "odds")[at, f.BACKOFF]
    return np.int64(np.rint(min(ns, np.float64(MOST_WAIT))))


@leaf
def repeat(E: Any, b: Any, p: Any, ns: Any, timed: Any) -> None:
    """It is offered again then."""
    parcels, i = of(E, "parcel"), parcel_of(E, b, p)
    parcels[i, f.P_BACK] = ns
    parcels[i, f.USES] += 1
    push(E, b, ns, parcels[i, f.P_PHASE], parcels[i, f.P_RANK], f.OFFER, p, timed)


@leaf
def reveal(E: Any, b: Any, r: Any, queue: Any, left: Any, due: Any) -> None:
    """Of what left earlier and was lost the sender knows at `due`, ns; lost repetitions only a timer tells."""
    parcels, first = of(E, "parcel"), b * of(E, "sizes")[f.PARCEL_SLOTS]
    last = np.int64(NONE)
    while True:  # in the order in which they were lost
        next_lost = np.int64(NONE)
        for p in range(of(E, "sizes")[f.PARCEL_SLOTS]):
            i = first + p
            missing = parcels[i, f.USES] > 0 and parcels[i, f.P_STATE] & f.MISSING != 0
            missing = missing and parcels[i, f.P_RANK] == r and parcels[i, f.P_QUEUE] == queue
            later_lost = missing and parcels[i, f.P_LOST] > last
            if later_lost and (next_lost < 0 or parcels[i, f.P_LOST] < parcels[first + next_lost, f.P_LOST]):
                next_lost = np.int64(p)
        if next_lost < 0:
            return
        i = first + next_lost
        last = parcels[i, f.P_LOST]
        if parcels[i, f.P_LEFT] < left and due < parcels[i, f.P_BACK]:
            repeat(E, b, next_lost, due, 0)


@leaf
def notice(E: Any, b: Any, p: Any) -> None:
    """It is no first loss any more of which later messages tell."""
    of(E, "parcel")[parcel_of(E, b, p), f.P_STATE] &= ~f.MISSING


@leaf
def stand_in_line(E: Any, b: Any, p: Any) -> None:
    """What leaves later over the same queue does not arrive before it."""
    parcels, i, line = of(E, "parcel"), parcel_of(E, b, p), of(E, "line")
    q = 2 * (np.int64(f.QUEUES) * parcels[i, f.P_RANK] + parcels[i, f.P_QUEUE])
    parcels[i, f.USES] += 1
    if line[b, q] < 0:
        line[b, q] = p
    else:
        parcels[parcel_of(E, b, line[b, q + 1]), f.P_LINE] = p
    line[b, q + 1] = p


@leaf
def arrive(E: Any, b: Any, r: Any, queue: Any, now: Any) -> None:
    """What nothing before it holds up arrives: at its time, and not before what was sent before it."""
    parcels, line, q = of(E, "parcel"), of(E, "line"), 2 * (np.int64(f.QUEUES) * r + queue)
    p = line[b, q]
    while p >= 0:
        i = parcel_of(E, b, p)
        gone, after = parcels[i, f.P_STATE] & f.GONE, parcels[i, f.P_LINE]
        if gone == 0 and parcels[i, f.P_ARRIVAL] < 0:
            return
        line[b, q] = after
        if gone == 0:
            deliver_parcel(E, b, p, behind(E, b, r, queue, max(parcels[i, f.P_ARRIVAL], now)))
        release_parcel(E, b, p)
        p = after


@leaf
def deliver_parcel(E: Any, b: Any, p: Any, arrival: Any) -> None:
    """Its arrival is known: the event has its numbers now."""
    parcels, i = of(E, "parcel"), parcel_of(E, b, p)
    kind, slot, number = parcels[i, f.P_KIND], parcels[i, f.P_SLOT], parcels[i, f.P_NUMBER]
    parcels[i, f.P_SLOT] = NONE
    push(E, b, arrival, parcels[i, f.P_PHASE], parcels[i, f.P_RANK], kind, slot, number)
    release_parcel(E, b, p)


@leaf
def lose(E: Any, b: Any, p: Any) -> None:
    """It will not arrive: its link has lost it, once or as often as it may be sent."""
    of(E, "lane")[b, f.LOST] += 1
    give_up(E, b, p)


@leaf
def give_up(E: Any, b: Any, p: Any) -> None:
    """Nobody will look at its numbers."""
    parcels, i = of(E, "parcel"), parcel_of(E, b, p)
    parcels[i, f.P_STATE] |= f.GONE
    release_slot(E, b, parcels[i, f.P_KIND], parcels[i, f.P_SLOT])
    release_parcel(E, b, p)


@leaf
def is_too_old(E: Any, b: Any, p: Any, now: Any) -> Any:
    """Has it waited for longer than it may?"""
    parcels, i = of(E, "parcel"), parcel_of(E, b, p)
    lifespan = of(E, "timing")[schedule_of(E, b, parcels[i, f.P_RANK]), f.LIFESPAN]
    return lifespan >= 0 and now - parcels[i, f.P_SENT] > lifespan


@leaf
def displace(E: Any, b: Any, p: Any, keep: Any, now: Any) -> None:
    """Where as many of its stream wait as may, the oldest is discarded."""
    parcels, first = of(E, "parcel"), b * of(E, "sizes")[f.PARCEL_SLOTS]
    stream = parcels[parcel_of(E, b, p), f.P_STREAM]
    oldest, alike = np.int64(NONE), np.int64(0)
    for one in range(of(E, "sizes")[f.PARCEL_SLOTS]):
        i = first + one
        if parcels[i, f.USES] > 0 and parcels[i, f.P_STATE] & f.IN_STREAM and parcels[i, f.P_STREAM] == stream:
            alike += 1
            if oldest < 0 or parcels[i, f.P_ORDER] < parcels[first + oldest, f.P_ORDER]:
                oldest = np.int64(one)
    if alike >= keep:
        discard(E, b, oldest, now)


@leaf
def discard(E: Any, b: Any, p: Any, now: Any) -> None:
    """The sender gives it up: there is no room, it is too old, or newer ones have come."""
    parcels, i = of(E, "parcel"), parcel_of(E, b, p)
    r, queue = parcels[i, f.P_RANK], parcels[i, f.P_QUEUE]
    of(E, "lane")[b, f.DISCARDED] += 1
    if parcels[i, f.P_STATE] & f.WAITS:
        wait_no_more(E, b, p)
        k = server_of(E, b, parcels[i, f.P_SERVER])
        of(E, "server_bytes")[k, f.S_REFUSED] += of(E, "parcel_size")[i, 0]
    parcels[i, f.P_STATE] &= ~(f.MISSING | f.IN_STREAM)
    lined = of(E, "timing")[schedule_of(E, b, r), f.RTO] >= 0
    give_up(E, b, p)
    if lined and of(E, "timing")[schedule_of(E, b, r), f.FLAGS] & f.REORDER == 0:
        arrive(E, b, r, queue, now)


@leaf
def begin_media(E: Any, b: Any) -> None:
    """Nothing waits, and no medium is used."""
    sizes = of(E, "sizes")
    server, used, parcels = of(E, "server"), of(E, "server_bytes"), of(E, "parcel")
    for s in range(sizes[f.SERVERS]):
        k = server_of(E, b, s)
        server[k, f.S_FREE] = server[k, f.S_PENDING] = server[k, f.S_BUSY] = 0
        server[k, f.S_HEAD] = server[k, f.S_TAIL] = NONE
        for j in range(f.SERVER_BYTES):
            used[k, j] = 0.0
    for p in range(sizes[f.PARCEL_SLOTS]):
        i = parcel_of(E, b, p)
        parcels[i, f.CHAIN], parcels[i, f.USES], parcels[i, f.P_STATE] = p + 1, 0, 0
    for q in range(of(E, "line").shape[1]):
        of(E, "line")[b, q] = NONE
    of(E, "lane")[b, f.PARCELS_LEFT] = sizes[f.PARCEL_SLOTS]
