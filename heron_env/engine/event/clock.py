"""The event clock in compiled code: each lane goes through its events until it must be told an action.

The law, and its readable text, is heron_env.envs.event; this is the same course of events, bit for bit, of hierarchies
in rules, and a job has the same name in both. What differs: physics is no event in the heap but compared with its top;
legs 4 to 7 of a cycle change nothing and are counted when the episode is over; a decision's effect and commands are
promised when its observation arrives (all delays are keyed draws, so only the numbers are missing), and a lane waits
when one falls due that has no numbers.

`D` is the address of the engine's table (engine.arrays), `E` of this clock's (forms), `b` a lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.arrays import SIGHT
from heron_env.engine.draw_kernel import GOLDEN, key_with
from heron_env.engine.event import forms as f
from heron_env.engine.event.agents import (
    answer_request,
    deadline,
    receive_command,
    receive_reply,
    take_effect,
    tick,
    tick_time,
)
from heron_env.engine.event.broker import (
    EFFECTED,
    LEG_RECEIVED,
    PHYSICS_PHASE,
    REPORT_PHASE,
    TICK_PHASE,
    receive_report,
    receive_share,
    send,
)
from heron_env.engine.event.heap import NEVER, NONE, later, pop, push, release_slot, release_view
from heron_env.engine.event.links import of, schedule_of, table
from heron_env.engine.event.media import begin_media, come, transmit
from heron_env.engine.event.physics import observe_end, pass_token, schedule_substep, simulate
from heron_env.engine.kernels import fetch, leaf, on_arrays, phase, within
from heron_env.engine.step import visit
from heron_env.engine.tables import HIGH, LOW


@leaf
def shortage(E: Any, b: Any) -> Any:
    """What a lane has not enough of for whatever event is next, as bits."""
    sizes, lane = of(E, "sizes"), of(E, "lane")
    short = 0
    need = sizes[f.NEED_HEAP]
    if sizes[f.PARCEL_SLOTS] > 0:  # each that waits may be offered again, or arrive, with one that comes
        need += 2 * (sizes[f.PARCEL_SLOTS] - lane[b, f.PARCELS_LEFT]) + sizes[f.SERVERS]
        if lane[b, f.PARCELS_LEFT] < sizes[f.NEED_HEAP]:
            short |= f.PARCELS_SHORT
    if sizes[f.HEAP_SIZE] - lane[b, f.TOP] < need:
        short |= f.HEAP_SHORT
    if lane[b, f.REPORTS_LEFT] < sizes[f.NEED_REPORTS]:
        short |= f.REPORTS_SHORT
    if lane[b, f.VIEWS_LEFT] < sizes[f.NEED_VIEWS]:
        short |= f.VIEWS_SHORT
    if sizes[f.LOG_SIZE] - lane[b, f.LOG] < sizes[f.NEED_LOG]:
        short |= f.LOG_SHORT
    if lane[b, f.TOKENS] >= sizes[f.RING]:
        short |= f.RING_SHORT
    return short


@leaf
def handle(D: Any, E: Any, b: Any, now: Any, r: Any, what: Any) -> Any:
    """The first event of the heap, which is off it already; how many rules failed."""
    failures = 0
    kind, slot, number = what & 255, ((what >> 8) & 0xFFFFFF) - 1, what >> 32
    if kind == f.AGENT_TICK:
        tick(D, E, b, r, number, now)
    elif kind == f.EFFECT:
        failures = take_effect(D, E, b, r, number, now, slot)
        release_view(E, b, slot)
    elif kind == f.TOKEN and slot == 0:  # its first leg
        leg = of(E, "timing")[schedule_of(E, b, 0), f.MSG]
        push(E, b, later(now, leg), PHYSICS_PHASE, 0, f.TOKEN, NONE, number)
    elif kind == f.TOKEN:
        pass_token(E, b, number, now)
    elif kind == f.ENDING:
        observe_end(D, E, b, r, now)
    elif kind == f.DEADLINE:
        deadline(D, E, b, r, number, now)
    elif kind == f.OFFER:
        come(E, b, slot, number, now)
    elif kind == f.TRANSMIT:
        transmit(E, b, r, now)
    else:
        failures = deliver(D, E, b, now, r, kind, slot, number)
        release_slot(E, b, kind, slot)
    return failures


@leaf
def deliver(D: Any, E: Any, b: Any, now: Any, r: Any, kind: Any, slot: Any, number: Any) -> Any:
    """A message has come; how many rules failed."""
    failures = 0
    of(E, "lane")[b, f.DELIVERED] += 1
    if kind == f.REPORT:
        receive_report(E, b, slot)
    elif kind == f.REQUEST:
        answer_request(D, E, b, r, number, now)
    elif kind == f.REPLY:
        failures = receive_reply(D, E, b, r, number, now, slot)
    elif kind == f.COMMAND:
        receive_command(D, E, b, r, number, now, slot)
    elif kind == f.EFFECT_REPORT:
        receive_report(E, b, slot)
        if of(E, "sizes")[f.KEEPS] & f.KEEP_MESSAGES or of(E, "sizes")[f.ENGINE] != 0:
            send(E, b, r, f.RECEIPTS, now, now, EFFECTED, LEG_RECEIVED, number, f.RECEIPT, REPORT_PHASE, NONE, 0, 0)
    elif kind == f.SHARE:
        receive_share(D, E, b, slot, number)
    return failures


@leaf
def count_unfinished(E: Any, b: Any) -> None:
    """The episode is over: which effects are still under way, of the last step's members and of others?"""
    lane, heap, base = of(E, "lane"), of(E, "heap"), b * of(E, "sizes")[f.HEAP_SIZE]
    for k in range(lane[b, f.TOP]):
        if heap[base + k, 2] & 255 == f.EFFECT:
            r = (heap[base + k, 1] >> 36) & 0xFFFFF
            if of(E, "member")[b, r] != 0:
                lane[b, f.UNFINISHED] += 1
            else:
                lane[b, f.CANCELLED] += 1
    lane[b, f.CLOSING] = 1


@leaf
def run_lane(D: Any, E: Any, b: Any) -> Any:
    """Go on until the lane is not running any more; how many rules failed."""
    sizes, lane, heap, slots = of(E, "sizes"), of(E, "lane"), of(E, "heap"), of(E, "view_slot")
    base = b * sizes[f.HEAP_SIZE]
    while lane[b, f.STATUS] == f.RUN:
        if lane[b, f.CLOSING]:
            lane[b, f.STATUS] = f.WAIT if lane[b, f.ASKS] > 0 else f.OVER
            return 0
        short = shortage(E, b)
        if short:
            lane[b, f.STATUS], lane[b, f.SHORT] = f.FULL, short
            return 0
        now, key, top = lane[b, f.NEXT], lane[b, f.NEXT_KEY], lane[b, f.TOP]
        if top == 0 or now < heap[base, 0] or (now == heap[base, 0] and key < heap[base, 1]):
            if now == NEVER:
                lane[b, f.STATUS] = f.BEYOND
                return 0
            table(D, "moving")[b] = 1
            follows, last = sizes[f.PYTHON_FOLLOWS], lane[b, f.SUBSTEP] + 1 == sizes[f.SUBSTEPS]
            if follows == f.SUBSTEPS_TOO or (follows == f.BOUNDARIES and last):
                lane[b, f.STATUS] = f.DUE
                return 0
            if simulate(D, E, b, b + 1):
                return 1
            continue
        now, key, what = heap[base, 0], heap[base, 1], heap[base, 2]
        r = (key >> 36) & 0xFFFFF
        if what & 255 == f.EFFECT:
            slot = ((what >> 8) & 0xFFFFFF) - 1
            if slots[b * sizes[f.VIEW_SLOTS] + slot, f.ANSWERED] == 0 and table(D, "alive")[b, of(E, "place")[r]] != 0:
                lane[b, f.STATUS] = f.WAIT
                return 0
        pop(E, b)
        if what & 255 == f.CLOSED:
            count_unfinished(E, b)
        elif handle(D, E, b, now, r, what):
            lane[b, f.STATUS] = f.FAILED
            return 1
    return 0


@leaf
def prefetch_rows(array: Any, first: Any, last: Any) -> None:
    """Ask for rows of an array, which are written soon."""
    for i in range(np.uintp(first), np.uintp(last)):
        for c in range(np.uintp(0), np.uintp(array.shape[1]), np.uintp(64 // array.itemsize)):
            fetch(array, i, c)


@leaf
def prefetch_lane(D: Any, E: Any, b: Any) -> None:
    """Ask for the memory of a lane that is to run soon: it is far away, and comes while another one runs."""
    sizes, top = of(E, "sizes"), of(E, "lane")[b, f.TOP]
    prefetch_rows(table(D, "truth"), b, b + 1)
    prefetch_rows(of(E, "cache"), b, b + 1)
    prefetch_rows(of(E, "queue"), b, b + 1)
    heap, reports, views = b * sizes[f.HEAP_SIZE], b * sizes[f.REPORT_SLOTS], b * sizes[f.VIEW_SLOTS]
    near = min(sizes[f.REPORT_SLOTS], 2 * sizes[f.RANKS])
    prefetch_rows(of(E, "heap"), heap, heap + top)
    prefetch_rows(of(E, "report_slot"), reports, reports + near)
    prefetch_rows(of(E, "report"), reports, reports + near)
    near = 2 * sizes[f.DECIDERS]
    prefetch_rows(of(E, "view_slot"), views, views + near)
    prefetch_rows(of(E, "view"), views, views + near)
    prefetch_rows(of(E, "decision"), views, views + near)
    prefetch_rows(of(E, "decider"), b * sizes[f.DECIDERS], (b + 1) * sizes[f.DECIDERS])
    prefetch_rows(of(E, "version"), b, b + 1)
    prefetch_rows(of(E, "as_of"), b, b + 1)
    prefetch_rows(of(E, "decided"), b, b + 1)
    prefetch_rows(of(E, "last_effect"), b, b + 1)
    prefetch_rows(of(E, "acted"), b, b + 1)
    prefetch_rows(of(E, "key"), b, b + 1)


@phase
def run(D: Any, first: Any, last: Any, E: Any) -> Any:
    """Let all running lanes of a range go on; how many failed."""
    lane, failures, due = of(E, "lane"), np.int64(0), True
    while due and failures == 0:
        due = False
        for b in range(first, last):
            if b + 1 < last and lane[b + 1, f.STATUS] == f.RUN:
                prefetch_lane(D, E, b + 1)
            if lane[b, f.STATUS] == f.RUN:
                failures += run_lane(D, E, b)
            due |= lane[b, f.STATUS] == f.DUE
        if due and failures == 0:
            failures = simulate(D, E, first, last)
    return failures


@phase
def begin(D: Any, first: Any, last: Any, E: Any) -> Any:
    """The start of an episode's clock in the lanes that are IDLE, whose worlds have begun."""
    lane, failed = of(E, "lane"), np.int64(0)
    for b in range(first, last):
        if lane[b, f.STATUS] == f.IDLE:
            failed = visit(D, SIGHT, b, b + 1, failed)
            begin_lane(D, E, b)
    return failed


@leaf
def store_old_end(E: Any, at: Any) -> None:
    """Put an end that has not been told yet aside: this episode may have one, too, before anybody is asked."""
    decider, earned, ends = of(E, "decider"), of(E, "earned"), 2 * at
    if decider[at, f.END] == 0:
        return
    decider[at, f.OLD_END], decider[at, f.OLD_STEPS] = decider[at, f.END], decider[at, f.END_STEPS]
    earned[at, f.OLD_EARNED], earned[at, f.OLD_TRAINING] = earned[at, f.END_EARNED], earned[at, f.END_TRAINING]
    for j in range(of(E, "end_obs").shape[1]):
        of(E, "end_obs")[ends + 1, j] = of(E, "end_obs")[ends, j]
    for c in range(of(E, "end_state").shape[1]):
        of(E, "end_state")[ends + 1, c] = of(E, "end_state")[ends, c]


@leaf
def begin_lane(D: Any, E: Any, b: Any) -> None:
    """Nothing has been sent, decided or told; everything known is as it is."""
    sizes, lane = of(E, "sizes"), of(E, "lane")
    for k in range(f.LANE_NUMBERS):
        lane[b, k] = 0
    begin_links(D, E, b)
    begin_media(E, b)
    begin_knowledge(D, E, b)
    for s in range(sizes[f.REPORT_SLOTS]):
        of(E, "report_slot")[b * sizes[f.REPORT_SLOTS] + s, f.CHAIN] = s + 1
    for s in range(sizes[f.VIEW_SLOTS]):
        of(E, "view_slot")[b * sizes[f.VIEW_SLOTS] + s, f.CHAIN] = s + 1
    lane[b, f.REPORTS_LEFT], lane[b, f.VIEWS_LEFT] = sizes[f.REPORT_SLOTS], sizes[f.VIEW_SLOTS]
    schedule_substep(E, b, 0, 0)
    for p in range(sizes[f.DECIDERS]):
        begin_decider(E, b * sizes[f.DECIDERS] + p)
        r = of(E, "deciders")[p]
        push(E, b, tick_time(E, b, r, 0, 0), TICK_PHASE, r, f.AGENT_TICK, NONE, 0)
    lane[b, f.STATUS] = f.RUN


@leaf
def begin_links(D: Any, E: Any, b: Any) -> None:
    """The keys of this episode's draws; no queue, no effect and no state of a chain from the one before."""
    x = key_with(key_with(GOLDEN, table(D, "seeds")[b]), table(D, "episodes")[b])
    for r in range(of(E, "sizes")[f.RANKS]):
        of(E, "key")[b, r] = key_with(x, of(E, "hashes")[r])
        of(E, "decided")[b, r] = NONE
        of(E, "last_effect")[b, r] = of(E, "acted")[b, r] = of(E, "lived")[b, r] = of(E, "masked")[b, r] = 0
        of(E, "how")[b, r] = 0
        for q in range(f.QUEUES):
            of(E, "queue")[b, f.QUEUES * r + q] = 0
    for k in range(of(E, "chain_last").shape[1]):
        of(E, "chain_last")[b, k] = NONE


@leaf
def begin_knowledge(D: Any, E: Any, b: Any) -> None:
    """The proxy knows the truth; neighbours have told each other nothing."""
    cache, truth, sums = of(E, "cache"), table(D, "truth"), of(E, "sums")
    for row in range(of(E, "sizes")[f.RANKS] + 1):
        of(E, "version")[b, row] = of(E, "as_of")[b, row] = 0
    for c in range(cache.shape[1]):
        cache[b, c] = truth[b, c]
    for j in range(of(E, "ended_sums").shape[1]):
        of(E, "ended_sums")[b, j] = truth[b, sums[j]]
    for k in range(of(E, "received").shape[1]):
        of(E, "received")[b, k] = 0.0
    for e in range(of(E, "newest").shape[1]):
        of(E, "newest")[b, e] = NONE


@leaf
def begin_decider(E: Any, at: Any) -> None:
    """An agent that decides (row `at`) has not done so yet."""
    decider, earned = of(E, "decider"), of(E, "earned")
    if decider[at, f.FIRST_OPEN] < 0:  # else begun anew half-way: nobody was asked for its last decision
        store_old_end(E, at)
    decider[at, f.END] = 0
    decider[at, f.FIRST_OPEN] = decider[at, f.LAST_NUMBER] = decider[at, f.LAST_EFFECT] = NONE
    decider[at, f.STEPS] = 0
    earned[at, f.EARNED] = earned[at, f.EARNED_TRAINING] = 0.0
    earned[at, f.DISCOUNT] = 1.0


@leaf
def has_end(decider: Any, at: Any) -> Any:
    """Is there an end to be told: of the episode before, or of an agent whose decisions have all been answered?"""
    return decider[at, f.OLD_END] != 0 or (decider[at, f.END] != 0 and decider[at, f.FIRST_OPEN] < 0)


@phase
def count(D: Any, first: Any, last: Any, E: Any) -> Any:
    """Into `counts` `[lanes, 2 * groups]`: how many rows, then ends, of each group."""
    sizes, lane, decider = of(E, "sizes"), of(E, "lane"), of(E, "decider")
    group, counts = of(E, "group"), of(E, "counts")
    groups = counts.shape[1] // 2
    for b in range(first, last):
        for g in range(2 * groups):
            counts[b, g] = 0
        for p in range(sizes[f.DECIDERS]):
            at = b * sizes[f.DECIDERS] + p
            counts[b, groups + group[p]] += has_end(decider, at)
            counts[b, group[p]] += decider[at, f.FIRST_OPEN] >= 0 and lane[b, f.STATUS] == f.WAIT
    return 0


@phase
def collect(D: Any, first: Any, last: Any, E: Any) -> Any:
    """Copy rows and ends to the places that `counts` say: the first of each lane and group; ends are told then."""
    sizes, lane, decider = of(E, "sizes"), of(E, "lane"), of(E, "decider")
    group, counts = of(E, "group"), of(E, "counts")
    groups = counts.shape[1] // 2
    for b in range(first, last):
        for p in range(sizes[f.DECIDERS]):
            at, r = b * sizes[f.DECIDERS] + p, of(E, "deciders")[p]
            if has_end(decider, at):
                n = counts[b, groups + group[p]]
                counts[b, groups + group[p]] = n + 1
                collect_end(E, b, r, at, n)
            if decider[at, f.FIRST_OPEN] >= 0 and lane[b, f.STATUS] == f.WAIT:
                n = counts[b, group[p]]
                counts[b, group[p]] = n + 1
                collect_row(E, b, r, decider[at, f.FIRST_OPEN], n)
    return 0


@leaf
def collect_end(E: Any, b: Any, r: Any, at: Any, n: Any) -> None:
    """The end of an agent that decides (row `at`), the older of two, to place `n`."""
    row, obs, earned, decider = of(E, "row"), of(E, "row_obs"), of(E, "row_earned"), of(E, "decider")
    row[n, f.ROW_LANE], row[n, f.ROW_RANK], row[n, f.ROW_SLOT] = b, r, NONE
    old = decider[at, f.OLD_END] != 0
    tell, steps = (f.OLD_END, f.OLD_STEPS) if old else (f.END, f.END_STEPS)
    value, training = (f.OLD_EARNED, f.OLD_TRAINING) if old else (f.END_EARNED, f.END_TRAINING)
    row[n, f.ROW_STEPS], row[n, f.ROW_BITS] = decider[at, steps], decider[at, tell]
    earned[n, 0], earned[n, 1] = of(E, "earned")[at, value], of(E, "earned")[at, training]
    for j in range(obs.shape[1]):
        obs[n, j] = of(E, "end_obs")[2 * at + old, j]
    for c in range(of(E, "row_state").shape[1]):
        of(E, "row_state")[n, c] = of(E, "end_state")[2 * at + old, c]
    decider[at, tell] = 0


@leaf
def collect_row(E: Any, b: Any, r: Any, slot: Any, n: Any) -> None:
    """An unanswered observation to place `n`."""
    s, width = b * of(E, "sizes")[f.VIEW_SLOTS] + slot, of(E, "sizes")[f.ACTION_WIDTH]
    row, obs, earned = of(E, "row"), of(E, "row_obs"), of(E, "row_earned")
    slots, decision = of(E, "view_slot"), of(E, "decision")
    row[n, f.ROW_LANE], row[n, f.ROW_RANK], row[n, f.ROW_SLOT] = b, r, slot
    row[n, f.ROW_NUMBER], row[n, f.ROW_STEPS] = slots[s, f.NUMBER], slots[s, f.BROUGHT]
    row[n, f.ROW_BITS] = slots[s, f.FIRST_ROW]
    earned[n, 0], earned[n, 1] = decision[s, width], decision[s, width + 1]
    earned[n, 2] = slots[s, f.COME] / 1e9
    wide = (
        of(E, "first_tail")[r + 1]
        - of(E, "first_tail")[r]
        + of(E, "first_observed")[r + 1]
        - of(E, "first_observed")[r]
    )
    wide += of(E, "first_flag")[r + 1] - of(E, "first_flag")[r]
    if of(E, "ages")[0] != 0:
        wide += of(E, "first_source")[r + 1] - of(E, "first_source")[r]
    for j in range(obs.shape[1]):
        obs[n, j] = of(E, "view")[s, j] if j < wide else np.float32(0.0)
    for j in range(of(E, "row_mask").shape[1]):
        of(E, "row_mask")[n, j] = of(E, "view_mask")[s, j]
    for c in range(of(E, "row_state").shape[1]):
        of(E, "row_state")[n, c] = of(E, "view_state")[s, c]


@phase
def answer(D: Any, first: Any, last: Any, E: Any) -> Any:
    """Take the actions in `answer`, of the rows in `row`, within their bounds; their lanes go on."""
    sizes, lane, row = of(E, "sizes"), of(E, "lane"), of(E, "row")
    actions, slots = of(E, "answer"), of(E, "view_slot")
    limits, elements, decider = table(D, "limits"), of(E, "elements"), of(E, "decider")
    for n in range(first, last):
        b, r, slot = row[n, f.ROW_LANE], row[n, f.ROW_RANK], row[n, f.ROW_SLOT]
        s, at = b * sizes[f.VIEW_SLOTS] + slot, b * sizes[f.DECIDERS] + of(E, "decides")[r] - 1
        for e in range(elements[r], elements[r + 1]):
            k = e - elements[r]
            of(E, "decision")[s, k] = within(actions[n, k], limits[LOW, e], limits[HIGH, e])
        slots[s, f.ANSWERED] = 1
        decider[at, f.FIRST_OPEN] = slots[s, f.CHAIN]
        lane[b, f.ASKS] -= 1
        lane[b, f.STATUS] = f.RUN
        release_view(E, b, slot)
    return 0


@on_arrays
def records(log: Any, starts: Any) -> Any:
    """How many records `log` `[n]` holds; of each its kind, and where its numbers begin, into `starts` `[most, 2]`."""
    at, count = 0, 0
    while at < len(log):
        starts[count, 0], starts[count, 1] = log[at], at + 2
        at += 2 + int(log[at + 1])
        count += 1
    return count
