"""Notes on a run: delays that have no effect, or an effect that is easily misread (T1, T18)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from heron_env.engine.arrays import Ints
from heron_env.scheduling.timing import Timing, to_seconds

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

Note = tuple[str, str]
"""What is noted, and of whom."""


def notes(
    simulation: Simulation, timings: Sequence[Timing], wait_ns: int, deciding: Iterable[int], *, reports: int = 1
) -> list[str]:
    """One for all agents that it is true of, by `timings` (by rank) of those that decide (`deciding`, ranks).

    reports: how often each row reports in a step.
    """
    deciders = sorted(deciding)
    told = [*_unseen(simulation, timings, wait_ns)]
    if wait_ns == simulation.dt_ns:
        told = [*below_substep(simulation, timings, deciders)]
        messages = np.array([legs(timing)[0] for timing in (*timings, timings[0])])  # of each row
        told += _outrun(simulation, timings, deciders, reports, messages)
        told += _by_message(simulation, timings, deciders, reports, messages)
    return together(told)


def below_substep(simulation: Simulation, timings: Sequence[Timing], deciding: Iterable[int]) -> Iterator[Note]:
    """Delays that the physics of this world does not resolve: alone, or all together from a tick to its effect (T1)."""
    yield from _unseen(simulation, timings, simulation.dt_ns)
    for rank in deciding:
        yield from _in_all(simulation, timings[rank])


def together(told: Iterable[Note]) -> list[str]:
    """A text for each note, with the first agents that it is true of."""
    found: dict[str, list[str]] = {}
    for text, agent in told:
        found.setdefault(text, []).append(agent)
    return [f"{text} ({', '.join(agents[:3])}{', ...' if len(agents) > 3 else ''})" for text, agents in found.items()]


def _unseen(simulation: Simulation, timings: Sequence[Timing], wait_ns: int) -> Iterator[Note]:
    """Delays that can't show as they are meant (T1): below a substep, or any if physics is complete before dt."""
    substep = simulation.dt_ns // simulation.substeps
    for agent, timing in zip(simulation.hierarchy.ids, timings, strict=True):
        for name, delay in (("act_delay", timing.act), ("msg_delay", timing.msg), ("obs_delay", timing.obs)):
            told = f"{name}={to_seconds(delay)} s"
            if delay > 0 and wait_ns < simulation.dt_ns:
                early = f"wait={to_seconds(wait_ns)} s is below dt={simulation.dt} s"
                yield f"{told}: {early}: this is meant for parity tests, not for studies of delay", agent
            elif 0 < delay < substep and name != "msg_delay":  # a report late by anything is seen a tick later
                small = f"below one physics substep of {to_seconds(substep)} s: on its own it has no effect"
                yield f"{told} is {small}", agent


def legs(timing: Timing) -> tuple[int, int, int]:
    """Nominal delays of a message, of gathering and of acting, ns."""
    return max(timing.msg, timing.min_delay), max(timing.obs, timing.min_delay), max(timing.act, timing.min_delay)


def _in_all(simulation: Simulation, timing: Timing) -> Iterator[Note]:
    """From a tick to its effect takes something, but less than a substep: effects count from its start."""
    message, gathering, acting = legs(timing)
    late, substep = 2 * message + gathering + acting, simulation.dt_ns // simulation.substeps
    if 0 < late < substep and late not in (timing.obs, timing.act):  # one alone is noted already
        yield (
            f"2 msg_delay + obs_delay + act_delay = {to_seconds(late)} s, from a tick to its effect, is below one "
            f"physics substep of {to_seconds(substep)} s: actions take effect as without delay",
            timing.agent,
        )


def _by_message(
    simulation: Simulation, timings: Sequence[Timing], deciders: Sequence[int], reports: int, messages: Ints
) -> Iterator[Note]:
    """What messages that are late do to what agents know, however short the delay is (T17, T19)."""
    for rank in deciders:
        own, clock, sources = timings[rank], timings[simulation.clocks[rank]], simulation.plan.views[rank].sources
        by_message = ~(own.local & (sources == rank))
        first = clock.phase % gcd(clock.tick, simulation.dt_ns)  # the earliest tick in a step
        least = first + legs(own)[0] - 2 * timings[0].msg  # a report of the step must not take longer to count
        if reports == 1 and (by_message & (messages[sources] > least)).any():
            yield (
                "reports are sent once a step, at its end, and arrive after the tick at that time: observations are "
                f"one step (dt={simulation.dt} s) older than without delays; set report_interval below dt (a multiple "
                "of dt / physics_substeps)",
                own.agent,
            )
        if (by_message & (sources == rank) & (messages[sources] > 0)).any():
            yield (
                "agents get even their own features by message (own_rows='proxy'); set own_rows='local' if an agent "
                "measures them itself",
                own.agent,
            )


def _outrun(
    simulation: Simulation, timings: Sequence[Timing], deciders: Sequence[int], reports: int, messages: Ints
) -> Iterator[Note]:
    """Requests that come to the proxy before the newest report that had left by the tick; the oldest row of each.

    An interval may be no whole number of ns: ticks and reports are compared in ns / `parts`, in which it is.
    """
    parts, interval = reports, simulation.dt_ns
    leaves = 0 if reports > 1 else 2 * timings[0].msg  # after the instant that it tells of
    rows = simulation.layout.rows
    for rank in deciders:
        own, clock = timings[rank], timings[simulation.clocks[rank]]
        message, gathering, _ = legs(own)
        step = gcd(clock.tick * parts, interval)
        shortest = (clock.phase - leaves) * parts % step  # from the departure of a report to a tick
        sources = simulation.plan.views[rank].sources
        late = np.where(own.local & (sources == rank), 0, messages[sources] - message)
        if (late <= shortest // parts).all():
            continue
        worst = int(late.argmax())
        oldest = _oldest(int(late[worst]) * parts, shortest, step, interval) // parts
        age = 2 * message + gathering + leaves + oldest
        yield (
            f"requests reach the proxy before the report of {rows[sources[worst]].owner_id!r} that was sent before "
            f"the tick: the observed values of it are up to {to_seconds(age)} s old",
            own.agent,
        )


def _oldest(late: int, shortest: int, step: int, interval: int) -> int:
    """How long before a tick the newest report left that overtakes a request which is `late` quicker, at most.

    Ticks come `shortest`, `shortest + step`, ... (below `interval`) after the departure of a report.
    """
    whole, rest = divmod(late, interval)
    if shortest < rest:
        return shortest + (rest - shortest - 1) // step * step + (whole + 1) * interval
    return shortest + (interval - shortest - 1) // step * step + whole * interval
