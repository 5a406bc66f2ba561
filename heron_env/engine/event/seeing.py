"""What an agent is shown in the compiled event clock, and what is noted of it.

`D` is the address of the engine's table, `E` of the clock's (forms), `b` a lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.draw_kernel import noise_row, part_of
from heron_env.engine.event import forms as f
from heron_env.engine.event.fates import of, schedule_of
from heron_env.engine.kernels import call, leaf, table, within


@leaf
def gather(D: Any, E: Any, b: Any, r: Any, turn: Any) -> None:
    """What the agent sees in the cache, with the noise of this turn, into `scratch`."""
    cache, first, seen, out = of(E, "cache"), of(E, "first_seen"), of(E, "seen"), of(E, "scratch")
    for k in range(first[r], first[r + 1]):
        out[b, k - first[r]] = cache[b, seen[k]]
    start = of(E, "first_noise")
    size = np.uintp(start[r + 1] - start[r])
    if size > 0:
        at, columns = part_of(of(E, "noise_at"), np.uintp(start[r]), size), of(E, "noise_columns")
        keys, reach = of(E, "noise_keys"), of(E, "noise_reach")
        noise_row(
            cache, b, out, table(D, "seeds")[b], table(D, "episodes")[b], np.uint64(turn), at,
            part_of(columns, np.uintp(start[r]), size), part_of(keys, np.uintp(start[r]), size),
            part_of(reach, np.uintp(start[r]), size), part_of(of(E, "noise_low"), np.uintp(start[r]), size),
            part_of(of(E, "noise_high"), np.uintp(start[r]), size),
            part_of(of(E, "noise_law"), np.uintp(start[r]), size), of(E, "kept"), of(E, "kept"),
        )  # fmt: skip


@leaf
def complete(D: Any, E: Any, b: Any, r: Any, now: Any, obs: Any, at: Any, as_of: Any, since: Any) -> None:
    """Complete `obs[at]`: own columns of a local agent as they are now (T19), ages (T12), what pads.

    `as_of[since]`: of the sources, ns.
    """
    seen, sources, tails = of(E, "first_seen"), of(E, "first_source"), of(E, "first_tail")
    if of(E, "timing")[schedule_of(E, b, r), f.FLAGS] & f.LOCAL and of(E, "own")[r] > 0:
        truth, columns, sums = table(D, "truth"), of(E, "seen"), of(E, "own_sum")
        for j in range(of(E, "own")[r]):
            k = seen[r] + j
            obs[at, j] = truth[b, columns[k]] if sums[k] < 0 else of(E, "ended_sums")[b, sums[k]]
        as_of[since, 0] = max(of(E, "lane")[b, f.DONE], of(E, "acted")[b, r])
    j = seen[r + 1] - seen[r]
    if of(E, "ages")[0] != 0:
        for k in range(sources[r + 1] - sources[r]):
            obs[at, j] = max(now - as_of[since, k], 0) / 1e9
            j += 1
    for k in range(tails[r], tails[r + 1]):
        obs[at, j] = of(E, "tail")[k]
        j += 1


@leaf
def copy_state(D: Any, E: Any, b: Any, out: Any, at: Any) -> None:
    """The truth as BatchEnv.state gives it."""
    truth, reals = table(D, "truth"), of(E, "reals")
    for c in range(out.shape[1]):
        out[at, c] = np.float32(within(truth[b, c], reals[f.STATE_LOW], reals[f.STATE_HIGH]))


@leaf
def offer(D: Any, E: Any, b: Any, r: Any, s: Any) -> Any:
    """The mask of an agent on what it is shown; how many rules failed."""
    law, choices, mask = of(E, "law"), of(E, "choices"), of(E, "view_mask")
    p = of(E, "decides")[r] - 1
    for j in range(mask.shape[1]):
        mask[s, j] = of(E, "masks")[p * mask.shape[1] + j]
    if law[f.OFFER] == 0 or choices[r, 1] <= choices[r, 0]:
        return 0
    acting, first, seen = table(D, "acting"), of(E, "first_seen"), of(E, "seen")
    for j in range(of(E, "own")[r]):
        table(D, "seen")[b, seen[first[r] + j]] = of(E, "view")[s, j]
    for i in range(acting.shape[1]):
        acting[b, i] = 0
    acting[b, of(E, "place")[r]] = 1
    failures = call(law[f.OFFER], (D, b, b + 1))
    for c in range(choices[r, 0], choices[r, 1]):
        mask[s, c - choices[r, 0]] = table(D, "allowed")[b, c]
    return failures


@leaf
def log_of(E: Any, b: Any, kind: Any, size: Any) -> Any:
    """Where the numbers of a new record go."""
    lane, log = of(E, "lane"), of(E, "log")
    at = lane[b, f.LOG]
    log[b, at], log[b, at + 1] = kind, size
    lane[b, f.LOG] = at + 2 + size
    return at + 2


@leaf
def log_observation(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any, s: Any) -> None:
    """Note an observation that was shown, and how old what it holds is."""
    keeps, log = of(E, "law")[f.KEEPS], of(E, "log")
    if keeps & f.KEEP_AGES:
        first = of(E, "first_source")
        size = first[r + 1] - first[r]
        at = log_of(E, b, f.AGES_LOG, size + 1)
        log[b, at] = r
        for k in range(size):
            log[b, at + 1 + k] = max(now - of(E, "view_as_of")[s, k], 0) / 1e9
    if keeps & f.KEEP_OBSERVATIONS:
        timing, row, view = of(E, "timing"), schedule_of(E, b, r), of(E, "view")
        at = log_of(E, b, f.OBSERVATION_LOG, view.shape[1] + 2)
        log[b, at], log[b, at + 1] = r, (timing[row, f.PHASE] + number * timing[row, f.TICK]) / 1e9
        for j in range(view.shape[1]):
            log[b, at + 2 + j] = view[s, j]
