"""Delays and losses from data in the compiled event clock (T20): heron_env.scheduling.links and draws tell the law.

`E` is the address of the clock's table (forms), `b` a lane, `r` a rank; `field` is a column of `source_of`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.event import draws
from heron_env.engine.event import forms as f
from heron_env.engine.event.slots import held
from heron_env.engine.kernels import leaf
from heron_env.seeding import GOLDEN, h

SAMPLES = (np.uint64(h("sample")), np.uint64(h("twin sample")))
FIELDS = tuple(np.uint64(h(name)) for name in ("msg_delay", "obs_delay", "act_delay", "loss"))
"""In the order of `source_of`."""
CHAINED, STEP = np.uint64(h("chain")), np.uint64(GOLDEN)


@leaf
def number_below(values: Any, first: Any, last: Any, u: Any) -> Any:
    """How many of `values[first:last]`, ascending, are <= u."""
    k = first
    while k < last and values[k] <= u:
        k += 1
    return k - first


@leaf
def state_at(E: Any, b: Any, r: Any, field: Any, source: Any, ns: Any) -> Any:
    """The state of a chain at a time: back to where all states meet, to the start, or to where it was asked last."""
    sources, levels = held(E, "sources"), held(E, "thresholds")
    last, known, at = held(E, "chain_last"), held(E, "chain_state"), r * np.int64(f.SOURCED_FIELDS) + field
    wanted, n, first = ns // sources[source, f.PERIOD], sources[source, f.STATES], sources[source, f.LEVELS]
    x = draws.mixed((held(E, "key")[b, r] ^ CHAINED) + STEP)
    x = draws.mixed((x ^ FIELDS[field]) + STEP)
    x = draws.mixed(x + STEP)  # leg 0
    k, state = wanted, -1
    while k != last[b, at]:
        u = draws.element(x, k)
        if k == 0:
            state = number_below(levels, first, first + n - 1, u)
            break
        state = number_below(levels, first + n - 1, first + 2 * (n - 1), u)
        for i in range(1, n):
            if number_below(levels, first + (1 + i) * (n - 1), first + (2 + i) * (n - 1), u) != state:
                state = -1
                break
        if state >= 0:
            break
        k -= 1
    if state < 0:
        state = known[b, at]
    for j in range(k + 1, wanted + 1):
        row = first + (1 + state) * (n - 1)
        state = number_below(levels, row, row + n - 1, draws.element(x, j))
    last[b, at], known[b, at] = wanted, state
    return state


@leaf
def base_delay(E: Any, b: Any, r: Any, at: Any, field: Any, nominal: Any, sent: Any, cause: Any, leg: Any,
               number: Any, twin: Any) -> Any:  # fmt: skip
    """A delay before jitter, ns, of a leg that departs at `sent`; `at`: the agent's row in `timing`."""
    source = held(E, "source_of")[at, field]
    if source < 0:
        return np.int64(nominal)
    sources, starts, delays = held(E, "sources"), held(E, "first_delay"), held(E, "delays")
    values = sources[source, f.VALUES]
    if sources[source, f.KIND] == f.RECORDED:
        within, k = sent % sources[source, f.PERIOD], starts[values]
        while k + 1 < starts[values + 1] and held(E, "departures")[k + 1] <= within:
            k += 1
        return delays[k]
    if sources[source, f.KIND] == f.MARKOV:
        values += state_at(E, b, r, field, source, sent)
    count = starts[values + 1] - starts[values]
    if count == 1:
        return delays[starts[values]]
    u = draws.uniform(held(E, "key")[b, r], SAMPLES[twin], cause, leg, number)
    return delays[starts[values] + np.int64(u * count)]


@leaf
def loss_at(E: Any, b: Any, r: Any, at: Any, sent: Any) -> Any:
    """The probability that a message is lost that departs at `sent`, ns."""
    source = held(E, "source_of")[at, f.LOSS_FIELD]
    if source < 0:
        return held(E, "odds")[at, f.LOSS]
    where = held(E, "sources")[source, f.LEVELS] + 3  # behind one of the start and two of the moves
    return held(E, "thresholds")[where + state_at(E, b, r, f.LOSS_FIELD, source, sent)]


@leaf
def late(E: Any, b: Any, r: Any, at: Any, field: Any, nominal: Any, sent: Any, cause: Any, leg: Any, number: Any,
         twin: Any) -> Any:  # fmt: skip
    """The delay of a leg that departs at `sent`, ns, with its jitter."""
    own = held(E, "key")[b, r]
    base = base_delay(E, b, r, at, field, nominal, sent, cause, leg, number, twin)
    return draws.delay(held(E, "timing"), held(E, "odds"), at, own, base, cause, leg, number, twin)
