"""The ways over media in the compiled event clock, and how long a message occupies one (T25).

`E` is the address of the clock's table (forms), `b` a lane, `s` a server, `k` its row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.event import forms as f
from heron_env.engine.event.heap import later
from heron_env.engine.event.links import of
from heron_env.engine.kernels import leaf
from heron_env.scheduling.media import LONGEST


@leaf
def depart_at_once(E: Any, b: Any, s: Any, kind: Any, count: Any, now: Any) -> Any:
    """Its medium takes it on behind all others: when it leaves, ns. No parcel waits."""
    size, k = weigh(E, b, s, kind, count), server_of(E, b, s)
    of(E, "server_bytes")[k, f.S_OFFERED] += size
    return occupy(E, k, max(now, of(E, "server")[k, f.S_FREE]), work_of(E, b, s, size), size)


@leaf
def occupy(E: Any, k: Any, start: Any, work: Any, size: Any) -> Any:
    """A message is sent from `start` on: when its last bit leaves, ns."""
    server = of(E, "server")
    server[k, f.S_FREE] = later(start, work)
    server[k, f.S_BUSY] = later(server[k, f.S_BUSY], work)
    of(E, "server_bytes")[k, f.S_CARRIED] += size
    return server[k, f.S_FREE]


@leaf
def way_of(E: Any, at: Any, queue: Any) -> Any:
    """The server of a queue, NONE without a medium."""
    up = queue == f.UP or queue == f.SHARES
    return of(E, "timing")[at, f.SERVER_UP] if up else of(E, "timing")[at, f.SERVER_DOWN]


@leaf
def weigh(E: Any, b: Any, s: Any, kind: Any, count: Any) -> Any:
    """Bytes of a message with so many numbers, headers included."""
    medium, m = of(E, "medium"), medium_of(E, b, s)
    size = medium[m, f.SIZE_OF + size_kind(kind)]
    return (4.0 * count if size < 0.0 else size) + medium[m, f.OVERHEAD]


@leaf
def work_of(E: Any, b: Any, s: Any, size: Any) -> Any:
    """How long so many bytes occupy a medium, ns."""
    if size == 0.0:
        return np.int64(0)
    return np.int64(np.rint(min(size * of(E, "medium")[medium_of(E, b, s), f.NS_A_BYTE], LONGEST)))


@leaf
def medium_of(E: Any, b: Any, s: Any) -> Any:
    """The row of a server's medium in this lane's schedule."""
    sizes = of(E, "sizes")
    return (b * sizes[f.SERVERS] if sizes[f.SCHEDULES] > 0 else 0) + s


@leaf
def size_kind(kind: Any) -> Any:
    """The place of a kind of message among those whose size a medium may say."""
    if kind == f.REQUEST:
        return 0
    if kind == f.REPLY:
        return 1
    if kind == f.COMMAND:
        return 2
    return 4 if kind == f.SHARE else 3


@leaf
def server_of(E: Any, b: Any, s: Any) -> Any:
    """The row of a server."""
    return b * of(E, "sizes")[f.SERVERS] + s
