"""What neighbours tell each other, for checks: how to silence it, and whether it decides the score."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.envs.base import HeronEnv
from heron_env.envs.decisions import act
from heron_env.envs.exchange import Exchange
from heron_env.seeding import key, uniforms
from heron_env.testing.findings import Remark, warning
from heron_env.testing.probes import choices, waves
from heron_env.testing.subject import Subject, in_python

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
BOUNDARIES = 3


def silenced(env: HeronEnv) -> HeronEnv:
    """The same environment, in which nobody tells anybody anything: inboxes keep what they hold.

    What a protocol shares is visible to its receiver, and what agents do with it is physics: checks of what else
    reaches an agent, or its score, look without it.
    """
    simulation = env.simulation
    simulation.exchange = Exchange((), simulation.layout, len(env.hierarchy))
    return env


def inboxes(layout: Layout) -> Columns:
    """The columns that are memory of their owners: what others told them."""
    spans = [
        np.arange(start, start + q.size)
        for row in layout.rows
        for start, feature, q in row.columns()
        if not feature.reported
    ]
    return np.concatenate([np.zeros(0, np.int64), *spans])


def other_values(layout: Layout, columns: Columns, shares: Floats) -> Floats:
    """Values of these columns at shares (in [0, 1)) of their ranges."""
    low, high = np.maximum(layout.low[columns], -1e3), np.minimum(layout.high[columns], 1e3)
    values = low + (high - low) * shares
    return np.asarray(np.where(layout.whole[columns], np.round(values), values))


def scored_by_hearsay(subject: Subject) -> Iterator[Remark]:
    """A warning where a reward or an end comes out different if only inboxes hold something else."""
    env = in_python(subject.build())
    memory = inboxes(env.simulation.layout)
    if not len(memory):
        return
    policies, (seen, _) = waves(env), env.reset(seed=subject.seed)
    for boundary in range(min(BOUNDARIES, subject.steps)):
        if not env.agents:
            return
        actions = choices(env, policies, seen)
        plain, again, *others = (_outcome(env, actions, memory, share) for share in (None, None, 0, 1))
        different = [one != plain for one in others]
        if plain == again and any(different):
            agent, what = next(entry for entry in others[different.index(True)] if entry not in plain)[:2]
            yield warning(
                f"at boundary {boundary + 1} {agent}'s {what} depends on what its inbox holds: the network decides the "
                "score, and a lost message costs twice",
                "legal, if believing is what you pay for; else score the truth: let rewards and ends read the "
                "features that inboxes tell of, as an env hook or a coordinator with Children[...] can",
            )
            return
        seen, *_ = env.step(actions)


def _outcome(
    env: HeronEnv, actions: dict[str, object], memory: Columns, scramble: int | None
) -> list[tuple[str, str, float]]:
    """Rewards and ends of the coming step, those of the leaves first, with other inboxes; all is put back."""
    simulation = env.simulation
    standing, decided = simulation.state(), list(env.decided)
    try:
        act(env, actions)
        for number in range(simulation.substeps):
            simulation.substep(number)
        if scramble is not None:
            drawn = uniforms(key("hearsay"), len(memory))
            simulation.truth[memory] = other_values(simulation.layout, memory, drawn if scramble else 1.0 - drawn)
        found = simulation.close_step(deliver=False)
        ids = env.hierarchy.ids
        parts = (("reward", found.rewards), ("end", simulation.alive))
        return [(ids[rank], what, float(values[rank])) for rank in range(len(ids))[::-1] for what, values in parts]
    finally:
        simulation.restore(standing)
        env.decided = decided
