"""A lane's events in the compiled event clock, a heap, and the slots of numbers that events need.

The law of the order is told by heron_env.scheduling.scheduler. `E` is the address of the clock's table (forms), `b` a
lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.event import forms as f
from heron_env.engine.event.links import of
from heron_env.engine.kernels import leaf

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
    lane, heap = of(E, "lane"), of(E, "heap")
    lane[b, f.SEQUENCE] += 1
    key, base, i = key_of(phase, r, lane[b, f.SEQUENCE]), b * of(E, "sizes")[f.HEAP_SIZE], lane[b, f.TOP]
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
    lane, heap = of(E, "lane"), of(E, "heap")
    base, size = b * of(E, "sizes")[f.HEAP_SIZE], lane[b, f.TOP] - 1
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
def acquire(E: Any, b: Any, slots: Any, size: Any, free: Any, uses: Any) -> Any:
    """A free slot of a lane, which has `size` of them; `free`: column of `lane` with the first one."""
    lane = of(E, "lane")
    slot = lane[b, free]
    at = b * size + slot
    lane[b, free], lane[b, free + 1] = slots[at, f.CHAIN], lane[b, free + 1] - 1
    slots[at, f.USES], slots[at, f.CHAIN] = uses, NONE
    return slot


@leaf
def release(E: Any, b: Any, slots: Any, size: Any, free: Any, slot: Any) -> None:
    """One event less needs this slot; with the last one it is free."""
    lane, at = of(E, "lane"), b * size + slot
    slots[at, f.USES] -= 1
    if slots[at, f.USES] <= 0:
        slots[at, f.CHAIN], lane[b, free] = lane[b, free], slot
        lane[b, free + 1] += 1


@leaf
def acquire_report(E: Any, b: Any) -> Any:
    """A slot for a report or a share."""
    return acquire(E, b, of(E, "report_slot"), of(E, "sizes")[f.REPORT_SLOTS], f.FREE_REPORT, 1)


@leaf
def release_report(E: Any, b: Any, slot: Any) -> None:
    """One event less needs this slot."""
    release(E, b, of(E, "report_slot"), of(E, "sizes")[f.REPORT_SLOTS], f.FREE_REPORT, slot)


@leaf
def acquire_view(E: Any, b: Any, r: Any, number: Any) -> Any:
    """A slot for an observation, or a decision."""
    slots, size = of(E, "view_slot"), of(E, "sizes")[f.VIEW_SLOTS]
    slot = acquire(E, b, slots, size, f.FREE_VIEW, 0)
    at = b * size + slot
    slots[at, f.RANK], slots[at, f.NUMBER], slots[at, f.ANSWERED], slots[at, f.USED] = r, number, 0, 0
    return slot


@leaf
def release_view(E: Any, b: Any, slot: Any) -> None:
    """One event less needs this slot."""
    release(E, b, of(E, "view_slot"), of(E, "sizes")[f.VIEW_SLOTS], f.FREE_VIEW, slot)


@leaf
def is_report(kind: Any) -> Any:
    """Are the numbers of such an event in a slot for reports?"""
    return kind == f.REPORT or kind == f.EFFECT_REPORT or kind == f.SHARE


@leaf
def release_slot(E: Any, b: Any, kind: Any, slot: Any) -> None:
    """An event that needed a slot is done with."""
    if slot >= 0:
        if is_report(kind):
            release_report(E, b, slot)
        else:
            release_view(E, b, slot)
