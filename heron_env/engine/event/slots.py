"""The heap of a lane's events in compiled code, and the slots where their numbers are.

`E` is the address of the clock's table (forms), `b` a lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.event import forms as f
from heron_env.engine.kernels import leaf, table_of

held = table_of(f.FORMS)
"""`held(E, name)`: an array of this clock."""
(PHYSICS_PHASE, REWARD_PHASE, CLOSE_PHASE, TICK_PHASE, REQUEST_PHASE, REPLY_PHASE, COMMAND_PHASE, EFFECT_PHASE,
 REPORT_PHASE) = 0, 1, 2, 4, 5, 6, 7, 8, 9  # fmt: skip
"""As scheduling.scheduler.Phase numbers them."""
NONE = -1
NEVER = 2**63 - 1
"""ns: the last time there is; what is so late does not happen."""


@leaf
def key_of(phase: Any, r: Any, sequence: Any) -> Any:
    """The order of events within an instant."""
    return (np.int64(phase) << 56) | (np.int64(r) << 36) | sequence


@leaf
def later(ns: Any, delay: Any) -> Any:
    """`delay` ns after `ns`, NEVER if time ends before."""
    return np.int64(NEVER) if delay > NEVER - ns else ns + delay


@leaf
def push(E: Any, b: Any, ns: Any, phase: Any, r: Any, kind: Any, slot: Any, number: Any) -> None:
    """Schedule an event; `slot`: where its numbers are, NONE."""
    lane, heap = held(E, "lane"), held(E, "heap")
    lane[b, f.SEQUENCE] += 1
    key, base, i = key_of(phase, r, lane[b, f.SEQUENCE]), b * held(E, "law")[f.HEAP_SIZE], lane[b, f.TOP]
    lane[b, f.TOP] = i + 1
    while i > 0:
        above = (i - 1) >> 1
        one = base + above
        if heap[one, 0] < ns or (heap[one, 0] == ns and heap[one, 1] < key):
            break
        heap[base + i, 0], heap[base + i, 1], heap[base + i, 2] = heap[one, 0], heap[one, 1], heap[one, 2]
        i = above
    heap[base + i, 0], heap[base + i, 1] = ns, key
    heap[base + i, 2] = kind | (np.int64(slot) + 1) << 8 | np.int64(number) << 32


@leaf
def pop(E: Any, b: Any) -> None:
    """Remove the first event."""
    lane, heap = held(E, "lane"), held(E, "heap")
    base, size = b * held(E, "law")[f.HEAP_SIZE], lane[b, f.TOP] - 1
    lane[b, f.TOP] = size
    ns, key, what = heap[base + size, 0], heap[base + size, 1], heap[base + size, 2]
    i, below = 0, 1
    while below < size:
        one, two = base + below, base + below + 1
        if below + 1 < size and (
            heap[two, 0] < heap[one, 0] or (heap[two, 0] == heap[one, 0] and heap[two, 1] < heap[one, 1])
        ):
            below, one = below + 1, two
        if ns < heap[one, 0] or (ns == heap[one, 0] and key < heap[one, 1]):
            break
        heap[base + i, 0], heap[base + i, 1], heap[base + i, 2] = heap[one, 0], heap[one, 1], heap[one, 2]
        i, below = below, 2 * below + 1
    heap[base + i, 0], heap[base + i, 1], heap[base + i, 2] = ns, key, what


@leaf
def take_report(E: Any, b: Any) -> Any:
    """A free slot for a report, a share, or a record of two copies."""
    lane, slots = held(E, "lane"), held(E, "report_slot")
    s = lane[b, f.FREE_REPORT]
    at = b * held(E, "law")[f.REPORT_SLOTS] + s
    lane[b, f.FREE_REPORT], lane[b, f.REPORTS_LEFT] = slots[at, f.LINK], lane[b, f.REPORTS_LEFT] - 1
    slots[at, f.REFS], slots[at, f.SEEN], slots[at, f.REAL] = 0, 0, NONE
    return s


@leaf
def leave_report(E: Any, b: Any, s: Any) -> None:
    """One event less needs this slot."""
    lane, slots = held(E, "lane"), held(E, "report_slot")
    at = b * held(E, "law")[f.REPORT_SLOTS] + s
    slots[at, f.REFS] -= 1
    if slots[at, f.REFS] <= 0:
        slots[at, f.LINK], lane[b, f.FREE_REPORT] = lane[b, f.FREE_REPORT], s
        lane[b, f.REPORTS_LEFT] += 1


@leaf
def take_view(E: Any, b: Any, r: Any, number: Any) -> Any:
    """A free slot for an observation, or a decision."""
    lane, slots = held(E, "lane"), held(E, "view_slot")
    s = lane[b, f.FREE_VIEW]
    at = b * held(E, "law")[f.VIEW_SLOTS] + s
    lane[b, f.FREE_VIEW], lane[b, f.VIEWS_LEFT] = slots[at, f.CHAIN], lane[b, f.VIEWS_LEFT] - 1
    slots[at, f.WHOSE], slots[at, f.NUMBER], slots[at, f.HELD] = r, number, 0
    slots[at, f.ANSWERED], slots[at, f.USED], slots[at, f.CHAIN] = 0, 0, NONE
    return s


@leaf
def leave_view(E: Any, b: Any, s: Any) -> None:
    """One less needs this slot."""
    lane, slots = held(E, "lane"), held(E, "view_slot")
    at = b * held(E, "law")[f.VIEW_SLOTS] + s
    slots[at, f.HELD] -= 1
    if slots[at, f.HELD] <= 0:
        slots[at, f.CHAIN], lane[b, f.FREE_VIEW] = lane[b, f.FREE_VIEW], s
        lane[b, f.VIEWS_LEFT] += 1


@leaf
def forget(E: Any, b: Any, kind: Any, slot: Any) -> None:
    """An event that needed a slot is done with."""
    if slot >= 0:
        if kind == f.REPORT or kind == f.EFFECT_REPORT or kind == f.SHARE:
            leave_report(E, b, slot)
        else:
            leave_view(E, b, slot)
