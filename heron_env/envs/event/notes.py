"""Notes on a run: delays that have no effect, or an effect that is easily misread (T1, T12, T18)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import lcm
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from heron_env.core.hierarchy import name_stem
from heron_env.scheduling.links import deviation
from heron_env.scheduling.sources import Delay, Empirical, Markov, Recorded, delay_ns
from heron_env.scheduling.timing import Timing, to_seconds

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

Note = tuple[str, str]
"""What is noted, and of whom."""
Legs = tuple[int, int, int]
"""Delays of a message, of gathering and of acting, ns."""
MOST_TICKS: Final = 1000
"""Ticks in which the oldest observation is looked for, where ticks and reports meet in no shorter pattern."""
MOST_NAMES: Final = 3


def notes(
    simulation: Simulation, timings: Sequence[Timing], wait_ns: int, deciding: Iterable[int], *, reports: int = 1,
    end_ns: int | None = None, thinking: Mapping[int, int] | None = None,
) -> list[str]:  # fmt: skip
    """One for all agents that it is true of, by `timings` (by rank) of those that decide (`deciding`, ranks).

    reports: how often each row reports in a step.
    end_ns: when the episode ended, ns; None: it goes on, or a hook may shorten delays.
    thinking: by rank, the longest thought of its policy, ns.
    """
    deciders, thoughts = sorted(deciding), thinking or {}
    texts = [*below_substep(simulation, timings, deciders, wait_ns, thoughts)]
    if wait_ns == simulation.model.dt_ns:
        texts += _ages(simulation, timings, deciders, reports, thoughts)
        texts += _own_by_message(simulation, timings, deciders)
    if end_ns is not None:
        texts += _too_late(simulation, timings, deciders, end_ns)
    return together(texts)


def below_substep(
    simulation: Simulation, timings: Sequence[Timing], deciding: Iterable[int], wait_ns: int | None = None,
    thoughts: Mapping[int, int] | None = None,
) -> Iterator[Note]:  # fmt: skip
    """Delays that the physics of this world does not resolve: alone, or all together from a tick to its effect (T1)."""
    wait_ns = simulation.model.dt_ns if wait_ns is None else wait_ns
    yield from _alone(simulation, timings, wait_ns, thoughts or {})
    if wait_ns == simulation.model.dt_ns:
        for rank in deciding:
            yield from _in_all(simulation, timings[rank])


def together(texts: Iterable[Note]) -> list[str]:
    """A text for each note, with the first agents that it is true of."""
    agents_of: dict[str, list[str]] = {}
    for text, agent in texts:
        agents_of.setdefault(text, []).append(agent)
    return [
        f"{text} ({', '.join(agents[:3])}{', ...' if len(agents) > 3 else ''})" for text, agents in agents_of.items()
    ]


def _alone(
    simulation: Simulation, timings: Sequence[Timing], wait_ns: int, thoughts: Mapping[int, int]
) -> Iterator[Note]:
    """Delays that can't show as they are meant (T1): below a substep, or any if physics is complete before dt."""
    substep = simulation.model.dt_ns // simulation.model.substeps
    small = f"below one physics substep of {to_seconds(substep)} s: on its own it has no effect"
    for rank, (agent, timing) in enumerate(zip(simulation.model.hierarchy.ids, timings, strict=True)):
        for name, delay in (("act_delay", timing.act), ("msg_delay", timing.msg), ("obs_delay", timing.obs)):
            text = f"{name}={to_seconds(delay)} s"
            if delay > 0 and wait_ns < simulation.model.dt_ns:
                early = f"wait={to_seconds(wait_ns)} s is below dt={simulation.model.dt} s"
                yield f"{text}: {early}: this is meant for parity tests, not for studies of delay", agent
            elif 0 < delay < substep and name != "msg_delay":  # a report late by anything is seen a tick later
                yield f"{text} is {small}", agent
        if 0 < thoughts.get(rank, 0) < substep:
            yield f"thinking takes up to {to_seconds(thoughts[rank])} s, {small}", agent


def legs(timing: Timing) -> Legs:
    """Nominal delays."""
    return max(timing.msg, timing.min_delay), max(timing.obs, timing.min_delay), max(timing.act, timing.min_delay)


def _in_all(simulation: Simulation, timing: Timing) -> Iterator[Note]:
    """From a tick to its effect takes something, but less than a substep: effects count from its start."""
    message, gathering, acting = legs(timing)
    late, substep = 2 * message + gathering + acting, simulation.model.dt_ns // simulation.model.substeps
    if 0 < late < substep and late not in (timing.obs, timing.act):  # one alone is noted already
        yield (
            f"2 msg_delay + obs_delay + act_delay = {to_seconds(late)} s, from a tick to its effect, is below one "
            f"physics substep of {to_seconds(substep)} s: actions take effect as without delay",
            timing.agent,
        )


def _own_by_message(simulation: Simulation, timings: Sequence[Timing], deciders: Sequence[int]) -> Iterator[Note]:
    """What an agent sees of itself is late, too (T19)."""
    for rank in deciders:
        own = timings[rank]
        if not own.local and legs(own)[0] > 0 and rank in simulation.model.plan.views[rank].sources:
            yield (
                "agents get even their own features by message (own_rows='proxy'); set own_rows='local' if an agent "
                "measures them itself",
                own.agent,
            )


# Ages


class Reporting(NamedTuple):
    """How what is measured of some rows comes to the proxy.

    Attributes:
        name: of the rows' owners.
        delay: of a report on its link, ns.
        effects: (first, every), ns: when the owner's actions take effect, each of which brings a report.
    """

    name: str
    delay: int
    effects: tuple[int, int] | None


class Decisions(NamedTuple):
    """When an agent decides and on what, ns: ticks are at `phase`, `phase + tick`, ..."""

    tick: int
    phase: int
    message: int
    gathering: int

    @property
    def duration(self) -> int:
        """From a tick to its decision."""
        return 2 * self.message + self.gathering


class Instants(NamedTuple):
    """When all rows are measured: `reports` times in `dt`, at n * dt / reports; reports leave `leaves` later, ns."""

    dt: int
    reports: int
    leaves: int

    def last(self, ns: int) -> int:
        """The last instant by a time."""
        return self.dt * (((ns + 1) * self.reports - 1) // self.dt) // self.reports


def _ages(
    simulation: Simulation, timings: Sequence[Timing], deciders: Sequence[int], reports: int, thoughts: Collection[int]
) -> Iterator[Note]:
    """How old (T12) observed values are at a decision, where the last measurement before its tick is not among them.

    It is what nominal delays make of it, in the long run: without jitter, loss, drift and the hook `link`.
    """
    chance = "jitter, loss and drift" if any(timing.config.clock_drift for timing in timings) else "jitter and loss"
    timings = [timing.without_drift(simulation.model.dt_ns) for timing in timings]
    instants = Instants(simulation.model.dt_ns, reports, 0 if reports > 1 else 2 * timings[0].msg)
    reporting = _reporting(simulation, timings, deciders, thoughts)
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(reporting))}
    kind_of, every_kind = np.array([kinds[kind] for kind in reporting]), [*kinds]
    oldest = cache(partial(_oldest, instants))
    for rank in deciders:
        own, clock, sources = (
            timings[rank],
            timings[simulation.model.clocks[rank]],
            simulation.model.plan.views[rank].sources,
        )
        decisions = Decisions(clock.tick, clock.phase, *legs(own)[:2])
        if own.config.on_missing == "noop" and decisions.duration >= clock.tick:
            continue  # no observation comes in time to be decided on
        observed = [every_kind[number] for number in np.unique(kind_of[sources[sources != rank]])]
        if rank in sources and not own.local:
            observed.append(Reporting("its own features", *reporting[rank][1:]))
        names: dict[int, set[str]] = {}
        for kind in observed:
            age = oldest(decisions, kind.delay, kind.effects)
            if age is not None:
                names.setdefault(age, set()).add(kind.name)
        if names:
            yield _in_words(names, decisions, instants, chance), own.agent


def _in_words(names: Mapping[int, set[str]], decisions: Decisions, instants: Instants, chance: str) -> str:
    """The ages, ns, the greatest first, with the names of what is so old; `chance`: what they are without."""
    why, mend = "requests reach the proxy before reports that left by the tick", ""
    if instants.reports == 1:
        after = f"{to_seconds(instants.leaves)} s after" if instants.leaves else "at"
        why = f"reports are sent once a step, {after} its end"
        mend = "; set report_interval below dt (a multiple of dt / physics_substeps)"
    ages = [f"{to_seconds(age)} s ({_listed(sorted(names[age]))})" for age in sorted(names, reverse=True)]
    return (
        f"{why}: at a decision what is observed is, without {chance}, up to {', '.join(ages)} old, "
        f"{to_seconds(decisions.duration)} s of this since the tick{mend}"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def _reporting(
    simulation: Simulation, timings: Sequence[Timing], deciders: Sequence[int], thoughts: Collection[int]
) -> list[Reporting]:
    """By row. When a policy's decisions count whose thinking takes time can't be said."""
    rows, reporting = simulation.model.layout.rows, list[Reporting]()
    delays = _decision_delays(simulation, timings, [*map(legs, timings)], frozenset(deciders) - frozenset(thoughts))
    for rank, (timing, delay) in enumerate(zip(timings, delays, strict=True)):
        message, _, acting = legs(timing)
        clock, effects = timings[simulation.model.clocks[rank]], None
        if delay is not None and simulation.acts_itself(rank) and len(rows[rank].reported.columns):
            missed = timing.config.on_missing == "noop" and delay >= clock.tick  # its no-op takes no time
            effects = clock.phase + (delay if missed else delay + acting), clock.tick
        reporting.append(Reporting(name_stem(rows[rank].owner_id), message, effects))
    return [*reporting, Reporting(rows[-1].owner_id, legs(timings[0])[0], None)]


def _decision_delays(
    simulation: Simulation, timings: Sequence[Timing], each: Sequence[Legs], deciding: Collection[int],
    *, in_time: bool = True,
) -> list[int | None]:  # fmt: skip
    """By rank, how long after the tick its decision is made or its command comes, ns; None: neither happens.

    in_time: with on_missing="noop" the no-op is the decision where there is none before the next tick (T11).
    """
    delays: list[int | None] = []
    for rank, (message, gathering, _) in enumerate(each):  # parents come first
        above = delays[simulation.model.hierarchy.parent[rank]] if simulation.model.commanded[rank] else None
        delay = 2 * message + gathering if rank in deciding else None if above is None else above + message
        if in_time and delay is not None and timings[rank].config.on_missing == "noop":
            delay = min(delay, timings[simulation.model.clocks[rank]].tick)
        delays.append(delay)
    return delays


def _oldest(instants: Instants, decisions: Decisions, delay: int, effects: tuple[int, int] | None) -> int | None:
    """How old a row's values are at a decision at most, ns; None: the last instant before the tick is always in them.

    A report of an effect that comes with the request comes too late for it (T2).
    """
    first, every = effects or (0, 1)
    worst, missed = 0, False
    for number in range(min(lcm(decisions.tick, instants.dt, every) // decisions.tick, MOST_TICKS)):
        tick = decisions.phase + number * decisions.tick
        arrived = tick + decisions.message - delay  # what left by then is at the proxy when the request comes
        measured = instants.last(arrived - instants.leaves)
        if effects is not None:
            measured = max(measured, first + (arrived - first - 1) // every * every)
        missed |= measured < instants.last(tick)
        worst = max(worst, tick + decisions.duration - measured)
    return worst if missed else None


# What comes to nothing


def _too_late(
    simulation: Simulation, timings: Sequence[Timing], deciders: Sequence[int], end_ns: int
) -> Iterator[Note]:
    """Delays that are longer than the episode: of a message, up to a decision, or up to its effect."""
    least = [least_delays(timing) for timing in timings]
    delays = _decision_delays(simulation, timings, least, frozenset(deciders), in_time=False)
    for rank, (timing, delay) in enumerate(zip(timings, delays, strict=True)):
        trips = [("message arrived", least[rank][0])]
        if rank in deciders and delay is not None:
            trips.append(("observation arrived", delay))
        if delay is not None and simulation.model.specs[rank].size:
            trips.append(("decision took effect", delay + least[rank][2]))
        yield from outlasting(timing.agent, trips, end_ns)


def outlasting(agent: str, trips: Iterable[tuple[str, int]], end_ns: int) -> Iterator[Note]:
    """The first of an agent's trips, (what comes of it, its least duration in ns), that no episode of this length ends.

    >>> [*outlasting("a", [("message arrived", 10**9), ("observation arrived", 3 * 10**9)], 2 * 10**9)][0][0]
    'no observation arrived before the end: it takes 3.0 s or more, the episode 2.0 s; are the delays in seconds?'
    """
    for what, least in trips:
        if least >= end_ns > 0:
            yield (
                f"no {what} before the end: it takes {to_seconds(least)} s or more, the episode {to_seconds(end_ns)} "
                "s; are the delays in seconds?",
                agent,
            )
            return


def least_delays(timing: Timing) -> tuple[int, int, int]:
    """The least that a message, gathering and acting may take, ns: of data the least value, less all jitter."""
    c = timing.config
    factor = max(0.0, 1.0 + deviation(c.jitter_type, c.jitter_ratio, 0.0)) if c.jitter_ratio > 0.0 else 1.0
    message, gathering, acting = (
        max(round(_least_ns(delay) * factor), timing.min_delay) for delay in (c.msg_delay, c.obs_delay, c.act_delay)
    )
    return message, gathering, acting


def _least_ns(delay: Delay) -> int:
    match delay:
        case Markov():
            return min(min(ns) for ns in delay.values)
        case Empirical() | Recorded():
            return min(delay.ns)
    return delay_ns(delay, "delay")
