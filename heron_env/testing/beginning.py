"""Check that the first observation shows what later ones do: what `advance` computes anew is there after reset, too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heron_env.envs.base import HeronEnv
from heron_env.errors import RuleError
from heron_env.testing.check import Remark, Subject, passed, warning
from heron_env.testing.rollouts import Columns, Floats, inboxes_of, undone

EPISODES = 3
SHORT, SHORTER = 1e-3, 1e-6
"""Of a substep. What moves with time moves by so much less; what is computed anew is there at once."""
SLOW = 0.1
"""Of the change in the longer time, a change in the shorter one that time does not explain."""


def first_observation(subject: Subject) -> Iterator[Remark]:
    """What physics computes anew, without time passing, is not left at its default in the first observation."""
    env = subject.build()
    columns = np.unique(np.concatenate([np.zeros(0, np.int64), *(v.columns for v in env.simulation.model.plan.views)]))
    columns = np.setdiff1d(columns, [*inboxes_of(env.simulation.model.layout), *env.simulation.model.layout.per_step])
    names = env.simulation.model.layout.names
    late: dict[str, tuple[int, float, float]] = {}
    for seed in range(subject.seed, subject.seed + EPISODES):
        env.reset(seed=seed)
        first = env.simulation.truth[columns].copy()
        after, sooner = _advanced(env, columns, SHORT), _advanced(env, columns, SHORTER)
        if after is None or sooner is None:
            continue
        untouched = first == env.simulation.initial[columns]  # what begin has measured may be of an earlier time
        at_once = (sooner != first) & (abs(sooner - first) >= SLOW * abs(after - first))
        for place in np.flatnonzero(untouched & at_once).tolist():
            column = int(columns[place])
            late.setdefault(names[column].partition("[")[0], (column, float(first[place]), float(sooner[place])))
    yield passed(f"{len(columns)} observed columns after {EPISODES} resets")
    for column, value, computed in late.values():
        yield warning(
            f"{env.state_names[column]} is {value!r}, its default, in the first observation, and {computed!r} as soon "
            "as advance has run, in no time: agents decide for the first time on what is not so",
            "let begin and advance call one function that computes it (docs/concepts/who_sees_what.md)",
        )


def _advanced(env: HeronEnv, columns: Columns, share: float) -> Floats | None:
    """What physics makes of these columns in this share of a substep without a decision; None where a rule fails."""
    simulation = env.simulation
    try:
        with undone(env):
            simulation.piece = 0.0, share * env.dt / simulation.model.substeps
            simulation.substep(0)
            simulation.model.layout.clip_columns(simulation.truth)
            return simulation.truth[columns].copy()
    except RuleError:
        return None
    finally:
        simulation.piece = None
