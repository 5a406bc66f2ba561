"""Does the world that is trained in resolve the delays of a schedule (T1)? What it rounds down is not learned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from heron_env.envs.base import HeronEnv
from heron_env.envs.event.notes import Note, below_substep, legs, together
from heron_env.errors import ConfigError
from heron_env.scheduling.drawn import AnySchedule, Choice, DrawnSchedule
from heron_env.scheduling.timing import Schedule, Timing, to_seconds

WELL_BELOW: Final = 5
"""Substeps that a delay must take in the mean where it is random; one that is the same always is rounded as it is."""


def require_resolved(schedule: AnySchedule, world: HeronEnv, env: HeronEnv, options: Mapping[str, Any]) -> list[str]:
    """What a training under this schedule is to say of delays that its world rounds down, as it is in evaluation.

    Args:
        schedule: what is trained under.
        world: as in evaluation.
        env: as in training.
        options: of training alone; they make the difference.

    Raises ConfigError where the options hide a delay, or ticks, that evaluation resolves.
    """
    own, its = _substep(world), _substep(env)
    random = isinstance(schedule, DrawnSchedule)
    reported, reports = (to_seconds(each.dt_ns // each.reports) for each in (world, env))
    if "report_interval" in options and reports > reported:
        raise ConfigError(
            f"train(schedule=...): with training_options={dict(options)!r} agents report every {reports:g} s, in "
            f"evaluation every {reported:g} s; write report_interval={reported:g} there, or leave out what changes it"
        )
    told = list[Note]()
    for fixed in _examples(schedule):
        timings = env.timings_of(fixed)
        for timing in timings if its > own else ():
            for name, length in _lengths(timing):
                if length >= own and not _resolves(its, name, length, timing, random=random):
                    raise ConfigError(
                        f"train(schedule=...): {name}={to_seconds(length):g} s of {timing.agent!r} is lost in "
                        f"training: with training_options={dict(options)!r} a physics substep takes "
                        f"{to_seconds(its):g} s, in evaluation {to_seconds(own):g} s. Leave out what makes it coarser, "
                        f"or write physics_substeps={math.ceil(env.dt_ns / own)} there"
                    )
        deciding = [env.hierarchy.index[agent] for agent in env.possible_agents]
        told += below_substep(env.simulation, timings, deciding)
        told += [note for rank in deciding for note in _rounded(its, timings[rank], random=random)]
    return together(told)


def _examples(schedule: AnySchedule) -> Iterator[Schedule]:
    """The schedule; of one that is drawn the nominal one, and one for each value of each choice."""
    if not isinstance(schedule, DrawnSchedule):
        yield schedule
        return
    yield schedule.nominal()
    for who, values in schedule.entries.items():
        for name, value in values.items():
            for one in value.values if isinstance(value, Choice) else ():
                yield {**schedule.nominal(), **DrawnSchedule({who: {**values, name: one}}).nominal()}


def _substep(env: HeronEnv) -> int:
    """Of physics, ns."""
    return env.dt_ns // env.physics_substeps


def _lengths(timing: Timing) -> Iterator[tuple[str, int]]:
    """Nominal times of which each is to show in what happens when, ns."""
    message, gathering, acting = legs(timing)
    yield from (("2 msg_delay", 2 * message), ("obs_delay", gathering), ("act_delay", acting))
    yield from (("tick_interval", timing.tick), ("phase", timing.phase))


def _varies(timing: Timing) -> bool:
    return timing.sourced or timing.config.jitter_type != "none"


def _resolves(substep: int, name: str, length: int, timing: Timing, *, random: bool) -> bool:
    varies = name not in ("tick_interval", "phase") and (random or _varies(timing))
    return length >= substep * (WELL_BELOW if varies else 1)


def _rounded(substep: int, timing: Timing, *, random: bool) -> Iterator[Note]:
    """What is the same always, and is rounded down to whole substeps; ticks that come faster than physics."""
    message, gathering, acting = legs(timing)
    late = 2 * message + gathering + acting
    unit = f"physics substeps of {to_seconds(substep):g} s"
    if timing.tick < substep:
        often = f"tick_interval={to_seconds(timing.tick):g} s is below {unit}"
        yield f"{often}: of several actions in one only the last counts", timing.agent
    in_step = timing.tick % substep == timing.phase % substep == 0
    if late > substep and late % substep and in_step and not (random or _varies(timing)):
        counted = to_seconds(late // substep * substep)
        yield (
            f"2 msg_delay + obs_delay + act_delay = {to_seconds(late):g} s counts as {counted:g} s: it is rounded down "
            f"to whole {unit}",
            timing.agent,
        )
