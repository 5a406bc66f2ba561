"""Fates in the compiled event clock: how late or lost messages and decisions are, how far ticks move (T7, T8).

The law is told by heron_env.scheduling.links.

`E` is the address of the clock's table (forms), `b` a lane, `r` a rank, whose link it is; `field` is a column of
`timing` from OBS on: of what a delay is. `sent` is the departure, ns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heron_env.engine.arrays import ASKED, CHANCE, FACTOR, FORMS, LINK
from heron_env.engine.draw_kernel import key_with, standard_normal, uniform
from heron_env.engine.event import forms as f
from heron_env.engine.kernels import general, leaf, table_of, within
from heron_env.engine.step import visit
from heron_env.seeding import h

of = table_of(f.FORMS, sized=False)
"""`of(E, name)`: an array of this clock."""
table = table_of(FORMS, sized=False)
"""`table(D, name)`: one of the engine's."""
DELAYED, LOST, SAMPLED, TICKS, CHAINED = (
    np.uint64(h(purpose)) for purpose in ("delay", "loss", "sample", "tick", "chain")
)
FIELDS = tuple(np.uint64(h(name)) for name in ("obs_delay", "act_delay", "msg_delay", "loss"))
"""In the order of `source_of`."""
UNIFORM, GAUSSIAN = 1, 2
"""Kinds of jitter; 3 is lognormal."""
FAR = 2.0**62
"""No delay is longer, ns."""


@general
def schedule_of(E: Any, b: Any, r: Any) -> Any:
    """The agent's row in `timing`, `odds` and `source_of`."""
    return b * of(E, "sizes")[f.SCHEDULES] + r


@general
def draw(E: Any, b: Any, r: Any, purpose: Any, cause: Any, leg: Any, number: Any) -> Any:
    """The link's draw u in [0, 1)."""
    return uniform(key_with(key_with(key_with(of(E, "key")[b, r], purpose), cause), leg), number)


@general
def deviation(u: Any, kind: Any, ratio: Any, spread: Any) -> Any:
    """ratio * z."""
    if kind == UNIFORM:
        return ratio * (2.0 * u - 1.0)
    n = standard_normal(u)
    return ratio * n if kind == GAUSSIAN else math.expm1(spread * n - 0.5 * spread * spread)


@general
def tick_shift(E: Any, b: Any, r: Any, number: Any) -> Any:
    """How far tick `number` moves, ns."""
    timing, odds, at = of(E, "timing"), of(E, "odds"), schedule_of(E, b, r)
    if odds[at, f.TICK_RATIO] == 0.0 or number == 0:
        return np.int64(0)
    u = draw(E, b, r, TICKS, TICKS, 0, number)
    part = deviation(u, timing[at, f.JITTER], odds[at, f.TICK_RATIO], odds[at, f.TICK_SPREAD])
    return np.int64(np.rint(within(part, -0.5, 0.5) * timing[at, f.TICK]))


@leaf
def ask(E: Any, b: Any, r: Any, queue: Any, stream: Any) -> None:
    """Let the rule `link` say what becomes of a message that departs now (T20). Raises ValueError if it can't."""
    up, edge = queue == f.UP or queue == f.SHARES, np.int64(stream) & 0xFFFFFFFF
    other = np.int64(-1)
    if queue == f.SHARES:
        other = of(E, "edge")[edge, f.EDGE_END]
    elif queue == f.TO_CHILD:
        other = of(E, "parent")[r]
    sender, receiver = (np.int64(r), other) if up else (other, np.int64(r))
    D, ends = of(E, "sizes")[f.ENGINE], (sender + 1) << 32 | (receiver + 1)
    table(D, "ways")[b, ASKED] = ends
    if visit(D, LINK, b, ends, np.int64(0)) != 0:
        raise ValueError("the rule link says no two numbers")
    table(D, "ways")[b, ASKED] = 0.0


@general
def is_lost(E: Any, b: Any, r: Any, sent: Any, cause: Any, leg: Any, number: Any) -> Any:
    """Does a message get lost?"""
    share = loss_at(E, b, r, sent)
    if of(E, "timing")[schedule_of(E, b, r), f.FLAGS] & f.RULED:
        share += table(of(E, "sizes")[f.ENGINE], "ways")[b, CHANCE] * (1.0 - share)
    return share > 0.0 and draw(E, b, r, LOST, cause, leg, number) < share


@general
def delay(E: Any, b: Any, r: Any, field: Any, sent: Any, cause: Any, leg: Any, number: Any) -> Any:
    """The delay of one leg, ns, with its jitter."""
    timing, odds, at = of(E, "timing"), of(E, "odds"), schedule_of(E, b, r)
    ns = base_delay(E, b, r, field, sent, cause, leg, number)
    if field == f.MSG and timing[at, f.FLAGS] & f.RULED and ns != 0:
        ns = np.int64(np.rint(min(ns * table(of(E, "sizes")[f.ENGINE], "ways")[b, FACTOR], FAR)))
    if odds[at, f.RATIO] > 0.0 and ns != 0:
        u = draw(E, b, r, DELAYED, cause, leg, number)
        spread = ns * (1.0 + deviation(u, timing[at, f.JITTER], odds[at, f.RATIO], odds[at, f.SPREAD]))
        ns = np.int64(within(np.rint(spread), 0.0, FAR))
    return max(ns, timing[at, f.LEAST])


@general
def base_delay(E: Any, b: Any, r: Any, field: Any, sent: Any, cause: Any, leg: Any, number: Any) -> Any:
    """The same before jitter."""
    at = schedule_of(E, b, r)
    source = of(E, "source_of")[at, field - f.OBS]
    if source < 0:
        return of(E, "timing")[at, field]
    sources, starts, delays = of(E, "sources"), of(E, "first_delay"), of(E, "delays")
    values = sources[source, f.VALUES]
    if sources[source, f.KIND] == f.RECORDED:
        within, k = sent % sources[source, f.PERIOD], starts[values]
        while k + 1 < starts[values + 1] and of(E, "departures")[k + 1] <= within:
            k += 1
        return delays[k]
    if sources[source, f.KIND] == f.MARKOV:
        values += state_at(E, b, r, field - f.OBS, source, sent)
    count = starts[values + 1] - starts[values]
    if count == 1:
        return delays[starts[values]]
    return delays[starts[values] + np.int64(draw(E, b, r, SAMPLED, cause, leg, number) * count)]


@general
def loss_at(E: Any, b: Any, r: Any, sent: Any) -> Any:
    """The probability that a message is lost."""
    at = schedule_of(E, b, r)
    source = of(E, "source_of")[at, f.LOSS_FROM]
    if source < 0:
        return of(E, "odds")[at, f.LOSS]
    where = of(E, "sources")[source, f.LEVELS] + 3  # behind one of the start and two of the moves
    return of(E, "thresholds")[where + state_at(E, b, r, f.LOSS_FROM, source, sent)]


@general
def state_at(E: Any, b: Any, r: Any, place: Any, source: Any, ns: Any) -> Any:
    """The state of a chain at a time: back to where all states meet, to the start, or to where it was asked last.

    `place`: the column of `source_of` that it comes from.
    """
    sources, levels = of(E, "sources"), of(E, "thresholds")
    last, last_state, at = of(E, "chain_last"), of(E, "chain_state"), r * np.int64(f.SOURCED_FIELDS) + place
    period, n, first = ns // sources[source, f.PERIOD], sources[source, f.STATES], sources[source, f.LEVELS]
    x = key_with(key_with(key_with(of(E, "key")[b, r], CHAINED), FIELDS[place]), 0)  # leg 0
    k, state = period, -1
    while k != last[b, at]:
        u = uniform(x, k)
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
        state = last_state[b, at]
    for j in range(k + 1, period + 1):
        row = first + (1 + state) * (n - 1)
        state = number_below(levels, row, row + n - 1, uniform(x, j))
    last[b, at], last_state[b, at] = period, state
    return state


@general
def number_below(values: Any, first: Any, last: Any, u: Any) -> Any:
    """How many of `values[first:last]`, ascending, are <= u."""
    k = first
    while k < last and values[k] <= u:
        k += 1
    return k - first
