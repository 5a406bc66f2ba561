"""When agents tick (T9, T10), told once: of whole numbers, of arrays, and in compiled code."""

from typing import Any


def ticks_at(ns: Any, tick: Any, phase: Any) -> Any:
    """Does a clock with this interval and phase tick at a time, all ns?"""
    since = ns - phase
    return (since >= 0) & (since % tick == 0)


def turn_of(number: Any, tick: Any, phase: Any, dt_ns: Any) -> Any:
    """T9: the control step of a nominal tick; the n-th further request within one step adds n * 2**32."""
    turn = (phase + number * tick) // dt_ns
    if tick >= dt_ns:
        return turn  # one tick a step at most
    first = max(0, -((phase - turn * dt_ns) // tick))
    return turn + ((number - first) << 32)


def step_of(turn: int) -> int:
    """The control step of a turn, whichever request of that step it was."""
    return turn & (2**32 - 1)
