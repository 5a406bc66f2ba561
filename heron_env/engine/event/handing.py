"""What lanes of the compiled event clock ask, and what they are answered.

`D` is the address of the engine's table, `E` of the clock's (forms), `b` a lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.decision_tables import HIGH, LOW
from heron_env.engine.event import forms as f
from heron_env.engine.event.slots import NONE, held, leave_view
from heron_env.engine.kernels import leaf, on_arrays, phase, table


@leaf
def may_tell(decider: Any, at: Any) -> Any:
    """Is there an end to be told: of the episode before, or of an agent whose decisions have all been answered?"""
    return decider[at, f.OLD_TELL] != 0 or (decider[at, f.TELL] != 0 and decider[at, f.ASKED] < 0)


@phase
def count(D: Any, first: Any, last: Any, E: Any) -> Any:
    """Into `counts` `[lanes, 2 * groups]`: how many rows, then ends, of each group."""
    law, lane, decider = held(E, "law"), held(E, "lane"), held(E, "decider")
    group, counts = held(E, "group"), held(E, "counts")
    groups = counts.shape[1] // 2
    for b in range(first, last):
        for g in range(2 * groups):
            counts[b, g] = 0
        for p in range(law[f.DECIDERS]):
            at = b * law[f.DECIDERS] + p
            counts[b, groups + group[p]] += may_tell(decider, at)
            counts[b, group[p]] += decider[at, f.ASKED] >= 0 and lane[b, f.STATUS] == f.WAIT
    return 0


@phase
def collect(D: Any, first: Any, last: Any, E: Any) -> Any:
    """Copy rows and ends to the places that `counts` say: the first of each lane and group; ends are told then."""
    law, lane, decider = held(E, "law"), held(E, "lane"), held(E, "decider")
    group, counts = held(E, "group"), held(E, "counts")
    groups, row, obs, earned = counts.shape[1] // 2, held(E, "row"), held(E, "row_obs"), held(E, "row_earned")
    slots, decision, width = held(E, "view_slot"), held(E, "decision"), law[f.ACTION_WIDTH]
    for b in range(first, last):
        for p in range(law[f.DECIDERS]):
            at, r = b * law[f.DECIDERS] + p, held(E, "deciders")[p]
            if may_tell(decider, at):
                n = counts[b, groups + group[p]]
                counts[b, groups + group[p]] = n + 1
                row[n, f.ROW_LANE], row[n, f.ROW_RANK], row[n, f.ROW_SLOT] = b, r, NONE
                old = decider[at, f.OLD_TELL] != 0
                tell, steps = (f.OLD_TELL, f.OLD_STEPS) if old else (f.TELL, f.END_STEPS)
                value, training = (f.OLD_EARNED, f.OLD_TRAINING) if old else (f.END_EARNED, f.END_TRAINING)
                row[n, f.ROW_STEPS], row[n, f.ROW_BITS] = decider[at, steps], decider[at, tell]
                earned[n, 0], earned[n, 1] = held(E, "earned")[at, value], held(E, "earned")[at, training]
                for j in range(obs.shape[1]):
                    obs[n, j] = held(E, "end_obs")[2 * at + old, j]
                for c in range(held(E, "row_state").shape[1]):
                    held(E, "row_state")[n, c] = held(E, "end_state")[2 * at + old, c]
                decider[at, tell] = 0
            if decider[at, f.ASKED] >= 0 and lane[b, f.STATUS] == f.WAIT:
                n, slot = counts[b, group[p]], decider[at, f.ASKED]
                counts[b, group[p]] = n + 1
                s = b * law[f.VIEW_SLOTS] + slot
                row[n, f.ROW_LANE], row[n, f.ROW_RANK], row[n, f.ROW_SLOT] = b, r, slot
                row[n, f.ROW_NUMBER], row[n, f.ROW_STEPS] = slots[s, f.NUMBER], slots[s, f.BROUGHT]
                row[n, f.ROW_BITS] = slots[s, f.FIRST_ROW]
                earned[n, 0], earned[n, 1] = decision[s, width], decision[s, width + 1]
                earned[n, 2] = slots[s, f.COME] / 1e9
                wide = held(E, "first_tail")[r + 1] - held(E, "first_tail")[r] + held(E, "first_seen")[r + 1]
                wide -= held(E, "first_seen")[r]
                if held(E, "ages")[0] != 0:
                    wide += held(E, "first_source")[r + 1] - held(E, "first_source")[r]
                for j in range(obs.shape[1]):
                    obs[n, j] = held(E, "view")[s, j] if j < wide else np.float32(0.0)
                for j in range(held(E, "row_mask").shape[1]):
                    held(E, "row_mask")[n, j] = held(E, "view_mask")[s, j]
                for c in range(held(E, "row_state").shape[1]):
                    held(E, "row_state")[n, c] = held(E, "view_state")[s, c]
    return 0


@phase
def answer(D: Any, first: Any, last: Any, E: Any) -> Any:
    """Take the actions in `answer`, of the rows in `row`, within their bounds; their lanes go on."""
    law, lane, row = held(E, "law"), held(E, "lane"), held(E, "row")
    given, slots = held(E, "answer"), held(E, "view_slot")
    limits, elements, decider = table(D, "limits"), held(E, "elements"), held(E, "decider")
    for n in range(first, last):
        b, r, slot = row[n, f.ROW_LANE], row[n, f.ROW_RANK], row[n, f.ROW_SLOT]
        s, at = b * law[f.VIEW_SLOTS] + slot, b * law[f.DECIDERS] + held(E, "decides")[r] - 1
        for e in range(elements[r], elements[r + 1]):
            k = e - elements[r]
            held(E, "decision")[s, k] = min(max(given[n, k], limits[LOW, e]), limits[HIGH, e])
        slots[s, f.ANSWERED] = 1
        decider[at, f.ASKED] = slots[s, f.CHAIN]
        lane[b, f.ASKS] -= 1
        lane[b, f.STATUS] = f.RUN
        leave_view(E, b, slot)
    return 0


@on_arrays
def records(log: Any, found: Any) -> Any:
    """How many records `log` `[n]` holds; of each its kind, and where its numbers begin, into `found` `[most, 2]`."""
    at, count = 0, 0
    while at < len(log):
        found[count, 0], found[count, 1] = log[at], at + 2
        at += 2 + int(log[at + 1])
        count += 1
    return count
