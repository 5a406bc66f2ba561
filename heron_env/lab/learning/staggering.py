"""Lanes that stand at different hours of their episodes.

Lanes that begin together stay together: a rollout shorter than an episode then shows the learner one part of it alone,
and the next update unlearns for that part what the last one learned for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from heron_env.envs.batch.rows import Ended, Floats, Rows
from heron_env.lab.learning.roles import Role
from heron_env.lab.learning.sources import RowSource

MOST = 20_000
"""Calls in which lane 0 must come to an end."""


def staggered(source: RowSource, roles: Sequence[Role], rows: Rows, together: int = 1) -> Rows:
    """The first rows to learn from: lanes stand at moments spread evenly over an episode as long as lane 0's first.

    All have begun, and the first episode of lane 0 tells how long one lasts; in its second the others begin anew, one
    after the other. Rules act where they are corrected, else nobody does anything. Where it has no end, lanes stay
    together.

    Args:
        rows: with which all lanes have begun.
        together: so many lanes stay together.
    """
    longest = 0.0
    for _ in range(MOST):
        longest = max(longest, _moment(rows))
        rows = source.answer(_as_rules_do(rows, roles))
        if rows.first[rows.lane == 0].any():
            break
    else:
        return _as_first(rows)
    for lane in range(together, source.num_envs, together):
        while _moment(rows) < longest * lane / source.num_envs:
            rows = source.answer(_as_rules_do(rows, roles))
            if rows.first[rows.lane == 0].any():  # shorter than its first
                return _as_first(rows)
        rows = source.reset(mask=np.arange(source.num_envs) // together == lane // together)
    return _as_first(rows)


def _moment(rows: Rows) -> float:
    """Where lane 0 stands, s; 0 if it has no row."""
    return float(rows.time[rows.lane == 0].max(initial=0.0))


def _as_rules_do(rows: Rows, roles: Sequence[Role]) -> Floats:
    actions = np.zeros((len(rows), max(role.spec.size for role in roles)))
    for role in roles:
        part, size = role.part(rows), role.spec.size
        outputs = np.zeros((part.stop - part.start, size), dtype=np.float32)
        actions[part, :size] = role.act(rows, outputs) if role.corrects else role.spec.noop
    return actions


def _as_first(rows: Rows) -> Rows:
    """For the learner everything begins here."""
    nothing = np.zeros(len(rows))
    return replace(
        rows, first=np.ones(len(rows), dtype=bool), reward=nothing, steps=np.zeros(len(rows), dtype=np.int64),
        took=np.zeros(len(rows), dtype=bool), ended=_nobody(rows.ended),
        training_reward=None if rows.training_reward is None else nothing,
    )  # fmt: skip


def _nobody(ended: Ended) -> Ended:
    told = {field.name: getattr(ended, field.name) for field in fields(ended) if field.name != "parts"}
    none: dict[str, Any] = {name: None if value is None else value[:0] for name, value in told.items()}
    return Ended(parts=dict.fromkeys(ended.parts, slice(0, 0)), **none)
