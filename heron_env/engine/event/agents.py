"""The agents' half of the compiled event clock, and what they are shown: heron_env.envs.event.agents tells the law.

An effect is a promise: its time is known when its observation arrives, for delays are keyed draws; only its numbers are
missing. `D` is the address of the engine's table, `E` of the clock's (forms), `b` a lane, `r` a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.arrays import APPLY, OFFER, SIGHT_OF
from heron_env.engine.decision_kernels import share_of
from heron_env.engine.draw_kernel import noise_row, part_of
from heron_env.engine.event import forms as f
from heron_env.engine.event.broker import (
    COMMAND_PHASE,
    COMMANDED,
    EFFECT_PHASE,
    EFFECTED,
    LEG_ACTION,
    LEG_COMMAND,
    LEG_GATHERING,
    LEG_REPLY,
    LEG_REQUEST,
    REPLY_PHASE,
    REPORT_PHASE,
    REQUEST_PHASE,
    TICK_PHASE,
    TICKED,
    send,
    send_report,
    stream_of,
)
from heron_env.engine.event.heap import NEVER, NONE, acquire_view, later, push, release_view
from heron_env.engine.event.links import delay, of, schedule_of, table, tick_shift
from heron_env.engine.kernels import leaf, within
from heron_env.engine.step import visit
from heron_env.engine.tables import NOOP_VALUE
from heron_env.scheduling import ticks

turn_of: Any = leaf(ticks.turn_of)


@leaf
def nominal_time(E: Any, b: Any, r: Any, number: Any) -> Any:
    """Time of a tick, ns, had its clock no jitter. The tick before has one below NEVER, so a sum beyond is negative."""
    timing, at = of(E, "timing"), schedule_of(E, b, r)
    due = timing[at, f.PHASE] + number * timing[at, f.TICK]
    return due if due >= 0 else np.int64(NEVER)


@leaf
def tick_time(E: Any, b: Any, r: Any, number: Any, previous: Any) -> Any:
    """Time of a tick, ns, not before the previous one."""
    due = nominal_time(E, b, r, number)
    if due == NEVER:
        return due
    shifted = due + tick_shift(E, b, r, number)
    return max(previous, shifted) if shifted >= 0 else np.int64(NEVER)


@leaf
def tick(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any) -> None:
    """A new decision is due: the proxy is asked; deadlines of those commanded begin."""
    if table(D, "alive")[b, of(E, "place")[r]] == 0:
        return
    timing, at = of(E, "timing"), schedule_of(E, b, r)
    push(E, b, tick_time(E, b, r, number + 1, now), TICK_PHASE, r, f.AGENT_TICK, NONE, number + 1)
    first = of(E, "first_follower")
    for k in range(first[r], first[r + 1]):
        if timing[schedule_of(E, b, of(E, "follower")[k]), f.FLAGS] & f.FAILSAFE == 0:
            continue
        due = max(now, nominal_time(E, b, r, number + 1))
        push(E, b, due, TICK_PHASE, of(E, "follower")[k], f.DEADLINE, NONE, number)
    if timing[at, f.FLAGS] & f.FAILSAFE:
        replace_missing(D, E, b, r, number - 1, now)
    send(
        E, b, r, f.UP, now, now, TICKED, LEG_REQUEST, number, f.REQUEST, REQUEST_PHASE, NONE, 0,
        stream_of(f.REQUESTS_OF, r),
    )  # fmt: skip


@leaf
def deadline(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any) -> None:
    """A commanded agent has waited for its command until its commander's next nominal tick (T11)."""
    if awaits_command(D, E, b, r):
        replace_missing(D, E, b, r, number, now)


@leaf
def awaits_command(D: Any, E: Any, b: Any, r: Any) -> Any:
    """Will there be commands for this agent: do all live through whom they come, and who gives the ticks?"""
    alive, place, giver = table(D, "alive"), of(E, "place"), r
    while of(E, "decides")[giver] == 0:
        giver = of(E, "parent")[giver]
        if alive[b, place[giver]] == 0:
            return False
    return alive[b, place[of(E, "clock")[r]]] != 0


@leaf
def replace_missing(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any) -> None:
    """The no-op counts as decision `number` if nothing else does."""
    if number < 0 or of(E, "decided")[b, r] >= number or table(D, "alive")[b, of(E, "place")[r]] == 0:
        return
    slot, first, limits = acquire_view(E, b, r, number), of(E, "elements"), table(D, "limits")
    s = b * of(E, "sizes")[f.VIEW_SLOTS] + slot
    for e in range(first[r], first[r + 1]):
        of(E, "decision")[s, e - first[r]] = limits[NOOP_VALUE, e]
    of(E, "view_slot")[s, f.ANSWERED] = 1
    commit(E, b, r, number, now, 0, slot)


@leaf
def answer_request(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any) -> None:
    """At the proxy: what the cache holds now; the reply leaves after obs_delay."""
    timing, at = of(E, "timing"), schedule_of(E, b, r)
    gather(D, E, b, r, turn_of(number, timing[at, f.TICK], timing[at, f.PHASE], of(E, "sizes")[f.DT]))
    leaves = later(now, delay(E, b, r, f.OBS, now, TICKED, LEG_GATHERING, number))
    slot = acquire_view(E, b, r, number)
    count = of(E, "first_observed")[r + 1] - of(E, "first_observed")[r]
    if not send(
        E, b, r, f.DOWN, now, leaves, TICKED, LEG_REPLY, number, f.REPLY, REPLY_PHASE, slot, count,
        stream_of(f.REPLIES_OF, r),
    ):  # fmt: skip
        release_view(E, b, slot)
        return
    s = b * of(E, "sizes")[f.VIEW_SLOTS] + slot
    take_observed(E, b, r, of(E, "view"), of(E, "view_absolute"), s)
    sources, first = of(E, "source"), of(E, "first_source")
    for k in range(first[r], first[r + 1]):
        of(E, "view_as_of")[s, k - first[r]] = of(E, "as_of")[b, sources[k]]


@leaf
def gather(D: Any, E: Any, b: Any, r: Any, turn: Any) -> None:
    """What the agent sees in the cache, with the noise of this turn, into `scratch`."""
    cache, first, observed, out = of(E, "cache"), of(E, "first_observed"), of(E, "observed"), of(E, "scratch")
    for k in range(first[r], first[r + 1]):
        out[b, k - first[r]] = cache[b, observed[k]]
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
            part_of(of(E, "noise_law"), np.uintp(start[r]), size), of(E, "noise_cache"), of(E, "noise_cache"),
        )  # fmt: skip


@leaf
def take_observed(E: Any, b: Any, r: Any, obs: Any, absolute: Any, at: Any) -> None:
    """From `scratch` into `obs[at]`, what is relative as a difference; in `absolute[at]` as it is.

    What the agent does not see by the cache (V11) shows its default, and is nan in `absolute`.
    """
    scratch, first, cache, sight = of(E, "scratch"), of(E, "first_observed"), of(E, "cache"), of(E, "absolute_sight")
    start, relative = of(E, "first_relative"), of(E, "relative")
    for j in range(first[r + 1] - first[r]):
        obs[at, j] = scratch[b, j]
    for k in range(start[r], start[r + 1]):
        absolute[at, k - start[r]] = scratch[b, relative[k, 0]]
        obs[at, relative[k, 0]] = scratch[b, relative[k, 0]] - scratch[b, relative[k, 1]]
        if sight[k] >= 0 and cache[b, sight[k]] == 0.0:
            absolute[at, k - start[r]] = np.nan
    start, hidden, instead = of(E, "first_hidden"), of(E, "hidden"), of(E, "instead")
    for k in range(start[r], start[r + 1]):
        if cache[b, hidden[k, 1]] == 0.0:
            obs[at, hidden[k, 0]] = instead[k]
    start, flag = of(E, "first_flag"), of(E, "flag")
    j = first[r + 1] - first[r] + (of(E, "first_source")[r + 1] - of(E, "first_source")[r]) * (of(E, "ages")[0] != 0)
    for k in range(start[r], start[r + 1]):
        obs[at, j + k - start[r]] = cache[b, flag[k]]


@leaf
def receive_reply(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any, slot: Any) -> Any:
    """At the agent: its decision is due now, unless a newer one was made; how many rules failed."""
    if table(D, "alive")[b, of(E, "place")[r]] == 0 or number <= of(E, "decided")[b, r]:
        return 0
    sizes, view, s = of(E, "sizes"), of(E, "view"), b * of(E, "sizes")[f.VIEW_SLOTS] + slot
    complete_observation(D, E, b, r, now, view, of(E, "view_absolute"), s, of(E, "view_as_of"), s)
    log_observation(D, E, b, r, number, now, s)
    failures = offer(D, E, b, r, s)
    numbers, lane, p = of(E, "view_slot"), of(E, "lane"), of(E, "decides")[r] - 1
    at, decider, earned = b * sizes[f.DECIDERS] + p, of(E, "decider"), of(E, "earned")
    began = decider[at, f.LAST_NUMBER] < 0
    decision, width = of(E, "decision"), sizes[f.ACTION_WIDTH]
    decision[s, width] = 0.0 if began else earned[at, f.EARNED]
    decision[s, width + 1] = 0.0 if began else earned[at, f.EARNED_TRAINING]
    numbers[s, f.BROUGHT], numbers[s, f.COME], numbers[s, f.FIRST_ROW] = decider[at, f.STEPS], now, began
    if began:
        numbers[s, f.BROUGHT] = 0
    earned[at, f.EARNED] = earned[at, f.EARNED_TRAINING] = 0.0
    earned[at, f.DISCOUNT], decider[at, f.STEPS], decider[at, f.LAST_NUMBER] = 1.0, 0, number
    numbers[s, f.USED], numbers[s, f.USES] = 1, numbers[s, f.USES] + 1
    if sizes[f.WITH_STATE]:
        copy_state(D, E, b, of(E, "view_state"), s)
    if decider[at, f.FIRST_OPEN] < 0:
        decider[at, f.FIRST_OPEN] = slot
    else:
        numbers[b * sizes[f.VIEW_SLOTS] + decider[at, f.LAST_OPEN], f.CHAIN] = slot
    decider[at, f.LAST_OPEN] = slot
    lane[b, f.ASKS] += 1
    lane[b, f.ROWS] += 1
    commit(E, b, r, number, now, delay(E, b, r, f.ACT, now, TICKED, LEG_ACTION, number), slot)
    return failures


@leaf
def complete_observation(
    D: Any, E: Any, b: Any, r: Any, now: Any, obs: Any, absolute: Any, at: Any, as_of: Any, since: Any
) -> None:
    """Complete `obs[at]`: own columns of a local agent as they are now (T19), ages (T12), what pads.

    `absolute[at]`: what is relative. `as_of[since]`: of the sources, ns.
    """
    starts, sources, tails = of(E, "first_observed"), of(E, "first_source"), of(E, "first_tail")
    if of(E, "timing")[schedule_of(E, b, r), f.FLAGS] & f.LOCAL and of(E, "own")[r] > 0:
        truth, columns, sums = table(D, "truth"), of(E, "observed"), of(E, "own_sum")
        for j in range(of(E, "own")[r]):
            k = starts[r] + j
            obs[at, j] = truth[b, columns[k]] if sums[k] < 0 else of(E, "ended_sums")[b, sums[k]]
        start, relative = of(E, "first_relative"), of(E, "relative")
        for j in range(start[r], start[r + 1]):
            k = starts[r] + relative[j, 1]
            less = truth[b, columns[k]] if sums[k] < 0 else of(E, "ended_sums")[b, sums[k]]
            value = absolute[at, j - start[r]] - less
            obs[at, relative[j, 0]] = value if value == value else 0.0
        as_of[since, 0] = max(of(E, "lane")[b, f.DONE], of(E, "acted")[b, r])
    j = starts[r + 1] - starts[r]
    if of(E, "ages")[0] != 0:
        for k in range(sources[r + 1] - sources[r]):
            age = max(now - as_of[since, k], 0)
            if of(E, "ages")[0] == f.AGES_BY_CLOCKS:
                obs[at, j] = age_by_clocks(E, b, r, of(E, "source")[sources[r] + k], age, as_of[since, k], now)
            else:
                obs[at, j] = age / 1e9
            j += 1
    j += of(E, "first_flag")[r + 1] - of(E, "first_flag")[r]
    for k in range(tails[r], tails[r + 1]):
        obs[at, j] = of(E, "tail")[k]
        j += 1


@leaf
def age_by_clocks(E: Any, b: Any, r: Any, row: Any, age: Any, as_of: Any, now: Any) -> Any:
    """An age of `age` ns as an agent observes it, s: by its own clock, of what the row's owner stamped (T28)."""
    stamper = row if row < of(E, "sizes")[f.RANKS] else 0
    return (np.float64(age) + np.float64(clock_error(E, b, r, now) - clock_error(E, b, stamper, as_of))) / 1e9


@leaf
def clock_error(E: Any, b: Any, r: Any, ns: Any) -> Any:
    """How much an agent's clock is ahead at a time, ns."""
    at = schedule_of(E, b, r)
    return of(E, "timing")[at, f.OFFSET] + np.int64(np.rint(of(E, "odds")[at, f.DRIFT] * ns))


@leaf
def log_observation(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any, s: Any) -> None:
    """Note an observation that was shown, and how old what it holds is."""
    keeps, log = of(E, "sizes")[f.KEEPS], of(E, "log")
    if keeps & f.KEEP_AGES:
        first = of(E, "first_source")
        size = first[r + 1] - first[r]
        at = new_record(E, b, f.AGES_LOG, size + 1)
        log[b, at] = r
        for k in range(size):
            log[b, at + 1 + k] = max(now - of(E, "view_as_of")[s, k], 0) / 1e9
    if keeps & f.KEEP_OBSERVATIONS:
        timing, row, view = of(E, "timing"), schedule_of(E, b, r), of(E, "view")
        at = new_record(E, b, f.OBSERVATION_LOG, view.shape[1] + 2)
        log[b, at], log[b, at + 1] = r, (timing[row, f.PHASE] + number * timing[row, f.TICK]) / 1e9
        for j in range(view.shape[1]):
            log[b, at + 2 + j] = view[s, j]


@leaf
def copy_state(D: Any, E: Any, b: Any, out: Any, at: Any) -> None:
    """The truth as BatchEnv.state gives it."""
    truth, reals = table(D, "truth"), of(E, "reals")
    for c in range(out.shape[1]):
        out[at, c] = np.float32(within(truth[b, c], reals[f.STATE_LOW], reals[f.STATE_HIGH]))


@leaf
def offer(D: Any, E: Any, b: Any, r: Any, s: Any) -> Any:
    """The mask of an agent on what it is shown; how many rules failed."""
    choices, mask = of(E, "choices"), of(E, "view_mask")
    p = of(E, "decides")[r] - 1
    for j in range(mask.shape[1]):
        mask[s, j] = of(E, "masks")[p * mask.shape[1] + j]
    if choices[r, 1] <= choices[r, 0]:
        return 0
    acting, first, columns = table(D, "acting"), of(E, "first_observed"), of(E, "observed")
    for j in range(of(E, "own")[r]):
        table(D, "visible")[b, columns[first[r] + j]] = of(E, "view")[s, j]
    for i in range(acting.shape[1]):
        acting[b, i] = 0
    acting[b, of(E, "place")[r]] = 1
    failures = visit(D, OFFER, b, b + 1, np.int64(0))
    for c in range(choices[r, 0], choices[r, 1]):
        mask[s, c - choices[r, 0]] = table(D, "allowed")[b, c]
    return failures


@leaf
def receive_command(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any, slot: Any) -> None:
    """At a commanded agent: the command is its decision, unless it came too late."""
    if table(D, "alive")[b, of(E, "place")[r]] != 0 and number > of(E, "decided")[b, r]:
        commit(E, b, r, number, now, delay(E, b, r, f.ACT, now, COMMANDED, LEG_ACTION, number), slot)


@leaf
def commit(E: Any, b: Any, r: Any, number: Any, now: Any, after: Any, slot: Any) -> None:
    """Commands leave at once; the agent's own effect follows `after` ns, never before an earlier one: promises both.

    `slot`: of the decision that the numbers come from, this agent's or that of one above it.
    """
    of(E, "decided")[b, r] = number
    # before the commands leave: one that is given up at once must not be the last that needs the slot
    of(E, "view_slot")[b * of(E, "sizes")[f.VIEW_SLOTS] + slot, f.USES] += 1
    first = of(E, "first_child")
    for k in range(first[r], first[r + 1]):
        child = of(E, "child")[k]
        count, stream = of(E, "elements")[child + 1] - of(E, "elements")[child], stream_of(f.COMMANDS_OF, child)
        send(
            E, b, child, f.TO_CHILD, now, now, COMMANDED, LEG_COMMAND, number, f.COMMAND, COMMAND_PHASE, slot, count,
            stream,
        )  # fmt: skip
    last = of(E, "last_effect")
    last[b, r] = max(later(now, after), last[b, r])
    push(E, b, last[b, r], EFFECT_PHASE, r, f.EFFECT, slot, number)


@leaf
def element_of(D: Any, E: Any, e: Any, s: Any) -> Any:
    """Element `e` of what a decision (row `s` of `decision`) means for an agent at or below whom it is of."""
    who, first, limits, command = (
        of(E, "view_slot")[s, f.RANK],
        of(E, "elements"),
        table(D, "limits"),
        table(D, "command"),
    )
    depth, up = 0, np.int64(e)
    while up < first[who] or up >= first[who + 1]:
        up, depth = np.int64(command[up]), depth + 1
    value = of(E, "decision")[s, up - first[who]]
    for level in range(depth - 1, -1, -1):
        at = np.int64(e)
        for _ in range(level):
            at = np.int64(command[at])
        value = share_of(value, limits, at)
    return value


@leaf
def take_effect(D: Any, E: Any, b: Any, r: Any, number: Any, now: Any, slot: Any) -> Any:
    """A decision takes effect; its report goes to the proxy. How many rules failed."""
    sizes, lane, i = of(E, "sizes"), of(E, "lane"), of(E, "place")[r]
    if table(D, "alive")[b, i] == 0:
        lane[b, f.CANCELLED] += 1
        return 0
    first, actions, s = of(E, "elements"), table(D, "actions"), b * sizes[f.VIEW_SLOTS] + slot
    for e in range(first[r], first[r + 1]):
        actions[b, e] = element_of(D, E, e, s)
    failures = visit(D, APPLY, b, i, np.int64(0))
    masks = of(E, "choices")[r, 1] > of(E, "choices")[r, 0]
    if masks and table(D, "masked")[b, i] != 0:
        of(E, "masked")[b, r] += 1
    of(E, "acted")[b, r] = now
    p = of(E, "decides")[r] - 1
    if p >= 0:
        of(E, "decider")[b * sizes[f.DECIDERS] + p, f.LAST_EFFECT] = number
    if sizes[f.KEEPS] & f.KEEP_ACTIONS:
        size, log = first[r + 1] - first[r], of(E, "log")
        at, row, timing = (
            new_record(E, b, f.ACTION_LOG, size + 3),
            schedule_of(E, b, of(E, "clock")[r]),
            of(E, "timing"),
        )
        log[b, at], log[b, at + 1] = r, now / 1e9
        log[b, at + 2] = (now - (timing[row, f.PHASE] + number * timing[row, f.TICK])) / 1e9
        for k in range(size):
            log[b, at + 3 + k] = table(D, "applied")[b, first[r] + k] if masks else actions[b, first[r] + k]
    if of(E, "reports")[r] != 0:
        lane[b, f.VERSION] += 1
        truth, failures = table(D, "truth"), visit(D, SIGHT_OF, b, r, failures)
        send_report(E, b, r, r, now, truth, b, lane[b, f.VERSION], now, EFFECTED, number, f.EFFECT_REPORT, REPORT_PHASE)
    return failures


@leaf
def new_record(E: Any, b: Any, kind: Any, size: Any) -> Any:
    """Where the numbers of a new record go."""
    lane, log = of(E, "lane"), of(E, "log")
    at = lane[b, f.LOG]
    log[b, at], log[b, at + 1] = kind, size
    lane[b, f.LOG] = at + 2 + size
    return at + 2
