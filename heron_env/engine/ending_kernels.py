"""Ending in compiled code: who ends at a boundary, and when an episode is over (T5).

`D` is the address of the table of arrays (arrays.py), `b` the lane; loop_kernels.py runs these over lanes.
"""

from __future__ import annotations

from typing import Any

from heron_env.engine.kernels import lane, number, table


@lane
def stand_still(D: Any, b: Any) -> None:
    """A step of a lane in which no episode runs."""
    rewards, terminated, truncated = table(D, "rewards"), table(D, "terminated"), table(D, "truncated")
    for i in range(rewards.shape[1]):
        rewards[b, i] = 0.0
        terminated[b, i] = truncated[b, i] = 0
    table(D, "ended")[b] = table(D, "chosen")[b] = 0


@lane
def end_some(D: Any, b: Any, reached: Any) -> Any:
    """The law, for a boundary where something ends; 1 if the episode is over."""
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
        return 0
    for i in range(n):  # those who only watched end with the others
        if alive[b, i] != 0:
            terminated[b, i], truncated[b, i] = not anyone_cut, anyone_cut
            alive[b, i] = 0
    table(D, "over")[b] = table(D, "ended")[b] = table(D, "chosen")[b] = 1
    returns, last = table(D, "returns"), table(D, "last_returns")
    for i in range(n):
        last[b, i] = returns[b, i]
    table(D, "last_length")[b] = table(D, "steps")[b]
    return 1
