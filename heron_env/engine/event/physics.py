"""The world's half of the compiled event clock: heron_env.envs.event.physics tells the law.

`D` is the address of the engine's table, `E` of the clock's (forms), `b` a lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.arrays import SIGHT
from heron_env.engine.event import forms as f
from heron_env.engine.event.agents import complete_observation, copy_state, gather, new_record, take_observed
from heron_env.engine.event.broker import CLOSE_PHASE, PHYSICS_PHASE, REWARD_PHASE, report_all, send_shares
from heron_env.engine.event.heap import NEVER, NONE, later, push
from heron_env.engine.event.links import of, schedule_of, table
from heron_env.engine.kernels import leaf
from heron_env.engine.step import move, visit


@leaf
def schedule_substep(E: Any, b: Any, step: Any, substep: Any) -> None:
    """Schedule a substep; one that would come after the end of time before all that does not happen either."""
    sizes, lane = of(E, "sizes"), of(E, "lane")
    lane[b, f.SEQUENCE] += 1
    due = later(step * sizes[f.DT], within_step(E, substep + 1))
    lane[b, f.NEXT], lane[b, f.NEXT_KEY] = due, lane[b, f.SEQUENCE] if due < NEVER else NONE
    lane[b, f.SUBSTEP] = substep


@leaf
def within_step(E: Any, substeps: Any) -> Any:
    """What so many substeps take, ns: dt * substeps // all of them, without a product beyond int64."""
    sizes = of(E, "sizes")
    return sizes[f.DT] // sizes[f.SUBSTEPS] * substeps + sizes[f.DT] % sizes[f.SUBSTEPS] * substeps // sizes[f.SUBSTEPS]


@leaf
def simulate(D: Any, E: Any, first: Any, last: Any) -> Any:
    """A substep of the lanes that are `moving`, and with a last one the boundary: how many failed."""
    sizes, lane, moving, alive = of(E, "sizes"), of(E, "lane"), table(D, "moving"), table(D, "alive")
    member, place = of(E, "member"), of(E, "place")
    for b in range(first, last):
        if moving[b] != 0:
            table(D, "substep")[b] = lane[b, f.SUBSTEP]
            if lane[b, f.SUBSTEP] + 1 == sizes[f.SUBSTEPS]:
                for r in range(sizes[f.RANKS]):
                    member[b, r] = alive[b, place[r]]
    failed = move(D, first, last)
    for b in range(first, last):
        if moving[b] != 0:
            moving[b] = 0
            if failed == 0:
                failed = end_substep(D, E, b, lane[b, f.NEXT])
            lane[b, f.STATUS] = f.FAILED if failed != 0 else f.RUN
    return failed


@leaf
def end_substep(D: Any, E: Any, b: Any, now: Any) -> Any:
    """What follows a substep: the next one, with telemetry, or the rest of the boundary; how many rules failed."""
    sizes, lane = of(E, "sizes"), of(E, "lane")
    done, substeps = lane[b, f.SUBSTEP] + 1, sizes[f.SUBSTEPS]
    step = table(D, "steps")[b] - (done == substeps)  # a boundary has counted its step already
    lane[b, f.DONE] = step * sizes[f.DT] + within_step(E, done)
    if done == substeps:
        return end_step(D, E, b, now)
    schedule_substep(E, b, step, done)
    failed = np.int64(0)
    if done % sizes[f.EVERY] == 0:
        lane[b, f.VERSION] += 1
        failed = visit(D, SIGHT, b, b + 1, failed)
        number = step * sizes[f.PER_BOUNDARY] + done * sizes[f.PER_BOUNDARY] // substeps
        report_all(E, b, number, lane[b, f.VERSION], now, table(D, "truth"), b, now)
    return failed


@leaf
def end_step(D: Any, E: Any, b: Any, now: Any) -> Any:
    """The rest of a boundary: scores, shares, the next step or the end, and the news of it; how many rules failed."""
    sizes, lane, truth = of(E, "sizes"), of(E, "lane"), table(D, "truth")
    step, ranks, sums = table(D, "steps")[b] - 1, sizes[f.RANKS], of(E, "sums")
    score(D, E, b, now, step)
    edges = of(E, "first_edge")
    if edges[ranks] > 0:
        for r in range(ranks):
            if of(E, "member")[b, r] != 0:
                send_shares(D, E, b, r, step, now)
    if table(D, "over")[b] != 0:
        push(E, b, now, CLOSE_PHASE, 0, f.CLOSED, NONE, 0)
        lane[b, f.NEXT] = NEVER
    else:
        schedule_substep(E, b, step + 1, 0)
    lane[b, f.VERSION] += 1
    failed = visit(D, SIGHT, b, b + 1, np.int64(0))  # a row and who sees it are one measurement
    # the next substep clears sums per step, while reports of this one may leave later (T18)
    for j in range(of(E, "ended_sums").shape[1]):
        of(E, "ended_sums")[b, j] = truth[b, sums[j]]
    leg = of(E, "timing")[schedule_of(E, b, 0), f.MSG]
    if sizes[f.PER_BOUNDARY] > 1:
        report_all(E, b, (step + 1) * sizes[f.PER_BOUNDARY], lane[b, f.VERSION], now, truth, b, now)
    elif leg == 0:
        report_all(E, b, step, lane[b, f.VERSION], now, truth, b, now)
    else:
        # reports leave when the token is back, after more physics: they tell of the truth at this boundary
        ring, k = of(E, "ring"), step % sizes[f.RING]
        for c in range(ring.shape[1]):
            ring[b * sizes[f.RING] + k, c] = truth[b, c]
        of(E, "ring_version")[b, k] = lane[b, f.VERSION]
        lane[b, f.TOKENS] += 1
        # two legs, as the second one's place in its instant is that of its departure
        push(E, b, later(now, leg), PHYSICS_PHASE, 0, f.TOKEN, 0, step)
    return failed


@leaf
def score(D: Any, E: Any, b: Any, now: Any, step: Any) -> None:
    """T4: what everyone in the step earned, and who ended."""
    sizes, place, member = of(E, "sizes"), of(E, "place"), of(E, "member")
    rewards, terminated, truncated = table(D, "rewards"), table(D, "terminated"), table(D, "truncated")
    lived, how, ranks = of(E, "lived"), of(E, "how"), sizes[f.RANKS]
    if sizes[f.KEEPS] & f.KEEP_REWARDS:
        log, at = of(E, "log"), new_record(E, b, f.REWARD_LOG, ranks + 1)
        log[b, at] = now / 1e9
        for r in range(ranks):
            log[b, at + 1 + r] = rewards[b, place[r]] if member[b, r] != 0 else np.nan
    for r in range(ranks):
        if member[b, r] != 0:
            i = place[r]
            lived[b, r] = step + 1
            how[b, r] = (terminated[b, i] != 0) + 2 * (truncated[b, i] != 0)
    decider, earned, deciders, gamma = of(E, "decider"), of(E, "earned"), of(E, "deciders"), of(E, "reals")
    for p in range(sizes[f.DECIDERS]):
        at, r = b * sizes[f.DECIDERS] + p, deciders[p]
        if member[b, r] != 0:
            earned[at, f.EARNED] += earned[at, f.DISCOUNT] * rewards[b, place[r]]
            if sizes[f.TRAINS] != 0:
                training = table(D, "training")[b, of(E, "trained")[p]]
                earned[at, f.EARNED_TRAINING] += earned[at, f.DISCOUNT] * training
            earned[at, f.DISCOUNT] *= gamma[f.GAMMA]
            decider[at, f.STEPS] += 1
            if how[b, r] != 0 and decider[at, f.LAST_NUMBER] >= 0:
                note_end(E, b, p, r, now)


@leaf
def note_end(E: Any, b: Any, p: Any, r: Any, now: Any) -> None:
    """An agent has ended: what became of its last decision."""
    at, decider, earned = b * of(E, "sizes")[f.DECIDERS] + p, of(E, "decider"), of(E, "earned")
    took = decider[at, f.LAST_EFFECT] >= decider[at, f.LAST_NUMBER]  # a no-op may have come after it
    decider[at, f.END], decider[at, f.END_STEPS] = 1 + 2 * of(E, "how")[b, r] + 8 * took, decider[at, f.STEPS]
    earned[at, f.END_EARNED], earned[at, f.END_TRAINING] = earned[at, f.EARNED], earned[at, f.EARNED_TRAINING]
    push(E, b, now, REWARD_PHASE, r, f.ENDING, NONE, 0)


@leaf
def observe_end(D: Any, E: Any, b: Any, r: Any, now: Any) -> None:
    """What the agent would be shown, had it asked at the instant of its end."""
    sizes, obs = of(E, "sizes"), of(E, "end_obs")
    at = 2 * (b * sizes[f.DECIDERS] + of(E, "decides")[r] - 1)
    gather(D, E, b, r, np.int64(table(D, "steps")[b]))
    for j in range(obs.shape[1]):
        obs[at, j] = np.float32(0.0)
    take_observed(E, b, r, obs, of(E, "end_absolute"), at)
    sources, first = of(E, "source"), of(E, "first_source")
    for j in range(first[r], first[r + 1]):
        of(E, "since")[b, j - first[r]] = of(E, "as_of")[b, sources[j]]
    complete_observation(D, E, b, r, now, obs, of(E, "end_absolute"), at, of(E, "since"), b)
    if sizes[f.WITH_STATE]:
        copy_state(D, E, b, of(E, "end_state"), at)


@leaf
def pass_token(E: Any, b: Any, number: Any, now: Any) -> None:
    """The cycle's token is back at the world: reports leave, of the truth as it was at the boundary."""
    sizes, k = of(E, "sizes"), number % of(E, "sizes")[f.RING]
    of(E, "lane")[b, f.TOKENS] -= 1
    version, row = of(E, "ring_version")[b, k], b * sizes[f.RING] + k
    report_all(E, b, number, version, now, of(E, "ring"), row, (number + 1) * sizes[f.DT])
