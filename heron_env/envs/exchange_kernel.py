"""What edges bring at a step boundary, in compiled code: all that is told is read, then every inbox is written.

`D` is the address of the engine's table, `N` of the exchange's (exchange.py). Compiled from a copy of this file in the
engine's cache folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.core.layout import RAISED
from heron_env.engine.kernels import leaf, on_arrays, table, table_of, within
from heron_env.envs.exchange import FORMS, UNHEARD

of = table_of(FORMS)


@on_arrays
def deliver(D: Any, N: Any, first: Any, last: Any) -> Any:
    """In lanes [first, last) that were in the step, of all who were; nothing can fail (model.Native)."""
    over, ended, steps, alive = table(D, "over"), table(D, "ended"), table(D, "steps"), table(D, "alive")
    terminated, truncated, truth = table(D, "terminated"), table(D, "truncated"), table(D, "truth")
    places, flags, newest = of(N, "places"), of(N, "flags"), of(N, "newest")
    for b in range(first, last):
        if over[b] == 0 or ended[b] != 0:
            for e in range(len(places)):
                tells = alive[b, places[e]] | terminated[b, places[e]] | truncated[b, places[e]] != 0
                if tells and (flags[e] < 0 or truth[b, flags[e]] >= RAISED):
                    newest[b, e] = steps[b] - 1
            write_inboxes(N, truth, b, steps[b] - 1)
            for e in range(len(places)):
                if flags[e] >= 0 and alive[b, places[e]] | terminated[b, places[e]] | truncated[b, places[e]] != 0:
                    truth[b, flags[e]] = 0.0
    return 0


@on_arrays
def forget(D: Any, N: Any, first: Any, last: Any) -> Any:
    """In lanes that begin an episode nobody has been heard."""
    chosen, heard, newest = table(D, "chosen"), of(N, "heard"), of(N, "newest")
    for b in range(first, last):
        if chosen[b] != 0:
            heard[b], newest[b] = 0.0, UNHEARD
    return 0


@leaf
def write_inboxes(N: Any, truth: Any, b: Any, step: Any) -> None:
    """Hear the edges whose newest word is of `step`; the columns of a slot become the mean of what they brought."""
    heard, newest, edge_of, sources = of(N, "heard"), of(N, "newest"), of(N, "edge_of"), of(N, "sources")
    for j in range(len(sources)):
        if newest[b, edge_of[j]] == step:
            heard[b, j] = truth[b, sources[j]]
    targets, meeting, first = of(N, "targets"), of(N, "meeting"), of(N, "first")
    low, high, integer = of(N, "low"), of(N, "high"), of(N, "integer")
    for c in range(len(targets)):
        total, count = 0.0, 0
        for k in range(first[c], first[c + 1]):
            total += heard[b, meeting[k]]
            count += newest[b, edge_of[meeting[k]]] > UNHEARD
        if count > 0:
            mean = within(total / count, low[c], high[c])
            truth[b, targets[c]] = np.rint(mean) if integer[c] else mean
