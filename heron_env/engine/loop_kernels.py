"""What phases do in every lane, whatever the rules: check actions, decide, end, restart, observe; step.py orders them.

`D` is the table of addresses (arrays.py), `b` the lane. Compiled once for an installation, from a copy of this file in
the cache folder, and linked into the loops of each set of classes (loops.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env.engine.arrays import LANES, NEXT_STEP, SAME_STEP
from heron_env.engine.decision_kernels import any_refused, decide_block, decide_lane, refused_action
from heron_env.engine.draw_kernel import noise_row
from heron_env.engine.kernels import fetch, inlined, number, phase, stored, table, within
from heron_env.engine.tables import NOOP_VALUE


@stored
def note(D: Any, b: Any, failed: Any) -> Any:
    """Keep the lane's first failure; 1 if there is one."""
    error = table(D, "error")
    if failed != 0 and error[b] == 0:
        error[b] = failed
    return failed != 0


@stored
def settle(D: Any, b: Any) -> Any:
    """After a world rule: every column within its bounds, whole numbers rounded. Is any of them nan?"""
    t, low, high, integer = table(D, "truth"), table(D, "low"), table(D, "high"), table(D, "integer")
    bad = False
    for c in range(len(low)):
        value = within(t[b, c], low[c], high[c])
        t[b, c] = value
        bad |= value != value
    for j in range(len(integer)):
        t[b, integer[j]] = np.rint(t[b, integer[j]]) + 0.0
    return bad


@stored
def start_close(D: Any, b: Any) -> None:
    """Nobody has ended yet at this boundary."""
    terminated, truncated = table(D, "terminated"), table(D, "truncated")
    table(D, "steps")[b] += 1
    table(D, "ended")[b] = table(D, "chosen")[b] = 0
    for i in range(terminated.shape[1]):
        terminated[b, i] = truncated[b, i] = 0


@inlined
def stand_still(D: Any, b: Any) -> None:
    """A step of a lane in which no episode runs."""
    rewards, terminated, truncated = table(D, "rewards"), table(D, "terminated"), table(D, "truncated")
    for i in range(rewards.shape[1]):
        rewards[b, i] = 0.0
        terminated[b, i] = truncated[b, i] = 0
    table(D, "ended")[b], table(D, "chosen")[b] = 0, number(D, "restarts") == NEXT_STEP


@inlined
def end_some(D: Any, b: Any, reached: Any) -> None:
    """The law, for a boundary where something ends."""
    alive, terminated, truncated = table(D, "alive"), table(D, "terminated"), table(D, "truncated")
    possible, n = table(D, "possible"), alive.shape[1]
    if number(D, "any_ends") != 0:
        some_terminated = some_truncated = False
        for k in range(len(possible)):
            some_terminated |= terminated[b, possible[k]] != 0
            some_truncated |= truncated[b, possible[k]] != 0
        for i in range(n):
            if some_terminated:
                terminated[b, i] = alive[b, i]
            elif some_truncated:
                truncated[b, i] = alive[b, i]
    anyone_cut = anyone_left = False
    for i in range(n):
        if reached:
            truncated[b, i] = alive[b, i]
        anyone_cut |= truncated[b, i] != 0
        if terminated[b, i] != 0 or truncated[b, i] != 0:
            alive[b, i] = 0
    for k in range(len(possible)):
        anyone_left |= alive[b, possible[k]] != 0
    if anyone_left:
        return
    for i in range(n):  # those who only watched end with the others
        if alive[b, i] != 0:
            terminated[b, i], truncated[b, i] = not anyone_cut, anyone_cut
            alive[b, i] = 0
    table(D, "over")[b] = table(D, "ended")[b] = 1
    table(D, "chosen")[b] = number(D, "restarts") == SAME_STEP
    returns, last = table(D, "returns"), table(D, "last_returns")
    for i in range(n):
        last[b, i] = returns[b, i]
    table(D, "last_length")[b] = table(D, "steps")[b]


@inlined
def observe(D: Any, b: Any, out: Any) -> None:
    """The observers' vectors side by side, without noise."""
    t, columns, runs = table(D, "truth"), table(D, "columns"), table(D, "runs")
    at = np.uintp(0)
    for k in range(len(runs)):
        first, length = np.uintp(runs[k, 0]), np.uintp(runs[k, 1])
        for j in range(length):
            out[b, at + j] = t[b, first + j]
        at += length
    if len(runs) == 0:
        for k in range(len(columns)):
            out[b, k] = t[b, columns[k]]


@inlined
def add_noise(D: Any, b: Any, out: Any) -> None:
    """N1 and N2, the same bits as ColumnNoise.add_noise."""
    seed, episode, turn = table(D, "seeds")[b], table(D, "episodes")[b], np.uint64(table(D, "steps")[b])
    at, columns, keys = table(D, "noise_at"), table(D, "noise_columns"), table(D, "noise_keys")
    reach, low, high, law = (
        table(D, "noise_reach"),
        table(D, "noise_low"),
        table(D, "noise_high"),
        table(D, "noise_law"),
    )
    cache, moments = table(D, "noise_cache"), table(D, "noise_moments")
    t = table(D, "truth")
    noise_row(t, b, out, seed, episode, turn, at, columns, keys, reach, low, high, law, cache, moments)


@inlined
def relate(D: Any, b: Any, received: Any, out: Any) -> None:
    """All vectors once more, with their noise: as `received`, then with what is relative less what is one's own."""
    relative = table(D, "relative")
    observe(D, b, received)
    add_noise(D, b, received)
    for k in range(received.shape[1]):
        out[b, k] = received[b, k]
    for k in range(len(relative)):
        out[b, relative[k, 0]] = received[b, relative[k, 0]] - received[b, relative[k, 1]]
    hide(D, b, out)


@inlined
def hide(D: Any, b: Any, out: Any) -> None:
    """V11: what an observer does not see shows its default; behind the ages, whom it sees. Last, when all is exact."""
    t, hidden, instead, flags = table(D, "truth"), table(D, "hidden"), table(D, "instead"), table(D, "flags")
    for k in range(len(hidden)):
        if t[b, hidden[k, 1]] == 0.0:
            out[b, hidden[k, 0]] = instead[k]
    for k in range(len(flags)):
        out[b, flags[k, 0]] = t[b, flags[k, 1]]


# Phases, called from Python


@phase
def check(D: Any, first: Any, last: Any) -> Any:
    """How many lanes are given an illegal action."""
    refused, blocks_end = 0, first + (last - first) // LANES * LANES
    for start in range(first, blocks_end, LANES):
        if any_refused(D, start):
            for at in range(start, start + LANES):
                refused += note(D, np.uintp(at), refused_action(D, np.uintp(at)))
    for at in range(blocks_end, last):
        refused += note(D, np.uintp(at), refused_action(D, np.uintp(at)))
    return refused


@phase
def decide(D: Any, first: Any, last: Any) -> Any:
    """Everyone's decision; meanwhile the truth, which rules read next, comes to the processor."""
    over, t, steady = table(D, "over"), table(D, "truth"), number(D, "steady") != 0
    for start in range(first, last, LANES):
        stop = min(start + LANES, last)
        for at in range(start, stop):
            for c in range(np.uintp(0), np.uintp(t.shape[1]), np.uintp(8)):
                fetch(t, np.uintp(at), c)
        decided = steady and stop - start == LANES
        if decided:
            decided = decide_block(D, start)
        if not decided:
            for at in range(start, stop):
                b = np.uintp(at)
                if over[b] == 0:
                    decide_lane(D, b)
    return 0


@inlined
def clear_lane(D: Any, b: Any) -> Any:
    """What counts per step starts at 0."""
    t, per_step = table(D, "truth"), table(D, "per_step")
    for j in range(len(per_step)):
        t[b, per_step[j]] = 0.0
    return 0


@phase
def clear(D: Any, first: Any, last: Any) -> Any:
    """The same of all lanes in which an episode runs."""
    over = table(D, "over")
    for at in range(first, last):
        b = np.uintp(at)
        if over[b] == 0:
            clear_lane(D, b)
    return 0


@phase
def end(D: Any, first: Any, last: Any) -> Any:
    """Returns, and T5: who ends at this boundary; nothing can fail."""
    over, rewards, returns = table(D, "over"), table(D, "rewards"), table(D, "returns")
    ended, steps = table(D, "ended"), table(D, "steps")
    last_step = number(D, "last_step")
    for at in range(first, last):
        b = np.uintp(at)
        if over[b] != 0:
            stand_still(D, b)
            continue
        for i in range(rewards.shape[1]):
            returns[b, i] += rewards[b, i]
        reached = steps[b] >= last_step
        if ended[b] != 0 or reached:  # a rule says that its agent ends; or a limit
            ended[b] = 0
            end_some(D, b, reached)
    return 0


@phase
def keep_final(D: Any, first: Any, last: Any) -> Any:
    """The last observation of the lanes that restart after their episode ended."""
    chosen, ended, out = table(D, "chosen"), table(D, "ended"), table(D, "out_final")
    for at in range(first, last):
        b = np.uintp(at)
        if chosen[b] != 0 and ended[b] != 0:
            observe(D, b, out)
    return 0


@phase
def begin_episodes(D: Any, first: Any, last: Any) -> Any:
    """Initial values, no-ops, everyone alive, episodes + 1, in the lanes that are chosen."""
    t, initial, limits, chosen = table(D, "truth"), table(D, "initial"), table(D, "limits"), table(D, "chosen")
    actions, applied, source = table(D, "actions"), table(D, "applied"), table(D, "source")
    alive, returns, steps, over = table(D, "alive"), table(D, "returns"), table(D, "steps"), table(D, "over")
    episodes, masked = table(D, "episodes"), table(D, "masked")
    for at in range(first, last):
        b = np.uintp(at)
        if chosen[b] != 0:
            for c in range(len(initial)):
                t[b, c] = initial[c]
            for e in range(limits.shape[1]):
                actions[b, e] = applied[b, e] = limits[NOOP_VALUE, e]
            for i in range(alive.shape[1]):
                alive[b, i] = 1
                source[b, i] = masked[b, i] = 0
                returns[b, i] = 0.0
            steps[b] = over[b] = 0
            episodes[b] += np.uint64(1)
    return 0


@inlined
def publish_lane(D: Any, b: Any) -> None:
    """Hand out the observers' rewards and ends."""
    watched, rewards, out_rewards = table(D, "watched"), table(D, "rewards"), table(D, "out_rewards")
    terminated, truncated = table(D, "terminated"), table(D, "truncated")
    out_terminated, out_truncated = table(D, "out_terminated"), table(D, "out_truncated")
    for k in range(len(watched)):
        i = watched[k]
        out_rewards[b, k] = rewards[b, i]
        out_terminated[b, k] = terminated[b, i] != 0
        out_truncated[b, k] = truncated[b, i] != 0


@phase
def publish(D: Any, first: Any, last: Any) -> Any:
    """Hand out observations, and the observers' rewards and ends."""
    out = table(D, "out_observations")
    for at in range(first, last):
        b = np.uintp(at)
        publish_lane(D, b)
        observe(D, b, out)
    return 0


@phase
def publish_others(D: Any, first: Any, last: Any) -> Any:
    """The same where tiles have handed out the observations of lanes that neither stand still nor have restarted."""
    out, chosen, over = table(D, "out_observations"), table(D, "chosen"), table(D, "over")
    for at in range(first, last):
        b = np.uintp(at)
        publish_lane(D, b)
        if chosen[b] != 0 or over[b] != 0:
            observe(D, b, out)
    return 0


@phase
def add_noise_to_published(D: Any, first: Any, last: Any) -> Any:
    """Noise on what `publish` handed out, then what is hidden: compiled only where there is any."""
    out = table(D, "out_observations")
    for at in range(first, last):
        add_noise(D, np.uintp(at), out)
        hide(D, np.uintp(at), out)
    return 0


@phase
def add_noise_to_final(D: Any, first: Any, last: Any) -> Any:
    """Noise on what `keep_final` kept."""
    chosen, ended, out = table(D, "chosen"), table(D, "ended"), table(D, "out_final")
    for at in range(first, last):
        b = np.uintp(at)
        if chosen[b] != 0 and ended[b] != 0:
            add_noise(D, b, out)
            hide(D, b, out)
    return 0


@phase
def relate_published(D: Any, first: Any, last: Any) -> Any:
    """Noise and differences in what `publish` handed out."""
    received, out = table(D, "received"), table(D, "out_observations")
    for at in range(first, last):
        relate(D, np.uintp(at), received, out)
    return 0


@phase
def relate_final(D: Any, first: Any, last: Any) -> Any:
    """The same in what `keep_final` kept."""
    chosen, ended, out = table(D, "chosen"), table(D, "ended"), table(D, "out_final")
    received = table(D, "received_final")
    for at in range(first, last):
        b = np.uintp(at)
        if chosen[b] != 0 and ended[b] != 0:
            relate(D, b, received, out)
    return 0
