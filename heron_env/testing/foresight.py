"""Check that what agents are shown has happened: whether an observed column tells of the coming step, by trial."""

from __future__ import annotations

from collections.abc import Iterator

from heron_env.envs.base import HeronEnv
from heron_env.testing.boundaries import Boundaries, named
from heron_env.testing.findings import Remark, passed, warning
from heron_env.testing.foretelling import Suspect, suspects, written_ahead
from heron_env.testing.subject import Subject, in_python

EPISODES, LEAST_STEPS = 3, 8
MEND = (
    "show the past: write into it, in advance, what has been measured; or hide it: quantity(observed=False); or, if "
    "it is really known ahead (a tariff, a forecast, what is published when it takes effect), say so: "
    "quantity(foreknown=True), in YAML `foreknown: true`"
)


def foresight(subject: Subject) -> Iterator[Remark]:
    """What agents are shown has happened; nothing unmarked tells of the coming step."""
    env = in_python(subject.build())
    boundaries, steps = Boundaries(env), max(LEAST_STEPS, subject.steps // 2)
    for seed in range(subject.seed, subject.seed + EPISODES):
        boundaries.record(seed, steps)
    found = list(suspects(env, boundaries))
    sources = _used(env, boundaries, found, subject.seed, steps)
    yield passed(
        f"{EPISODES} times {steps} steps; neither sums nor scaled copies of what is to come would be found, nor what "
        "stood still there"
    )
    names = env.simulation.layout.names
    told: dict[str, list[Suspect]] = {}
    for suspect in found:
        if _quantity(names, suspect.source) in sources:
            told.setdefault(_quantity(names, suspect.column), []).append(suspect)
    for alike in told.values():
        yield warning(_in_words(env, alike), MEND)


def _used(env: HeronEnv, boundaries: Boundaries, found: list[Suspect], seed: int, steps: int) -> set[str]:
    """Names of the suspects' sources on which a step depends."""
    layout = env.simulation.layout
    wanted = {_quantity(layout.names, suspect.source) for suspect in found}
    ahead = named(layout.names, written_ahead(boundaries))
    return boundaries.on_which_depends({name: ahead[name] for name in sorted(wanted)}, seed, steps)


def _quantity(names: list[str], column: int) -> str:
    return names[column].partition("[")[0]


def _in_words(env: HeronEnv, alike: list[Suspect]) -> str:
    """What the suspects of one quantity tell; the clearest of them stands for all."""
    names = env.state_names
    first = max(alike, key=lambda one: (one.column == one.source, one.boundaries, one.mean))
    others = len({suspect.column for suspect in alike}) - 1
    shown = names[first.column] + (f" and {others} more" if others else "")
    if first.column == first.source:
        why = f"finish writes it ahead (at {first.boundaries} boundaries), and the coming step depends on it"
    else:
        source = names[first.source].partition("[")[0] if first.mean else names[first.source]
        what = f"the mean of {source} over the coming step" if first.mean else source
        why = f"at {first.boundaries} boundaries it equals {what}, on which the coming step depends, not the past one"
    return f"agents see {shown} ahead of time: {why}"
