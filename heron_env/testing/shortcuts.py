"""Check for values that cross the network without a message: what an agent observes of itself repeats another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.core.rule import rule_spec
from heron_env.envs.base import HeronEnv
from heron_env.errors import RuleError
from heron_env.testing.check import Remark, Subject, passed, silenced, warning
from heron_env.testing.declarations import may_write
from heron_env.testing.rollouts import Columns, Floats, choices, inboxes_of, other_values, undone, until_the_end, waves

Bools = NDArray[np.bool_]
MOMENTS, APART = 3, 3
"""Boundaries at which it is tried, so many steps apart: what else there is differs."""
STEPS = 2
"""In which the value may come through hidden features."""
NAMES = {"apply_action": "apply", "advance": "advance"}
"""Of what writes, by rule."""
SHARES = (0.2, 0.5, 0.85)
MOST_OWNERS = 2
"""Of a class, whose columns are tried as sources: the others are alike."""
MEND = (
    "between two devices let the receiver observe the sender's feature (visibility=..., without a copy), or send it: "
    "exchange=StateShare(...) or a letter; both take the network's time. If one device has both, this is right"
)


class Repetition(NamedTuple):
    """What a value of one column leads to: that column by substep `[times]`, and the targets in the end `[targets]`."""

    course: Floats
    after: Floats


def shortcuts(subject: Subject) -> Iterator[Remark]:
    """No agent's own observed value repeats at once, without a message, what another observed value says."""
    env = silenced(subject.build())
    targets, sources = _own_columns(env), _sources(env)
    repeated = _repeated(env, targets, sources, subject.seed)
    yield passed(
        f"{len(sources)} columns given other values at {MOMENTS} boundaries; sums, and what anything else moves too, "
        "are not looked for"
    )
    names, pairs = env.state_names, dict[tuple[str, str], list[tuple[int, int]]]()
    for target, source in repeated:
        key = _quantity(env.simulation.model.layout, target), _quantity(env.simulation.model.layout, source)
        pairs.setdefault(key, []).append((target, source))
    for alike in pairs.values():
        target, source = alike[0]
        others = f", and {len(alike) - 1} more pairs alike" if len(alike) > 1 else ""
        yield warning(
            f"observed feature computed from another agent's observed feature: {names[target]} tells {names[source]} "
            f"(written by {_writers(env, target)}{others}): no message, no delay",
            MEND,
        )


def _quantity(layout: Layout, column: int) -> str:
    return layout.names[column].partition("[")[0]


def _own_columns(env: HeronEnv) -> Columns:
    """What agents observe of themselves and did not get by message."""
    own = [view.columns[: view.own] for view in env.simulation.model.plan.views]
    return _told_by_none(env.simulation.model.layout, np.concatenate([np.zeros(0, np.int64), *own]))


def _sources(env: HeronEnv) -> list[int]:
    """What anybody observes, of some owners of each class; the world's, too."""
    layout, agents = env.simulation.model.layout, env.hierarchy.agents
    observed = np.unique(np.concatenate([np.zeros(0, np.int64), *(v.columns for v in env.simulation.model.plan.views)]))
    owners: dict[tuple[Any, str], set[int]] = {}
    chosen = []
    for column in _told_by_none(layout, observed).tolist():
        owner = int(layout.owner_of[column])
        kind = type(agents[owner]) if owner < len(agents) else None
        alike = owners.setdefault((kind, layout.names[column]), set())
        if len(alike) < MOST_OWNERS:
            alike.add(owner)
            chosen.append(column)
    return chosen


def _told_by_none(layout: Layout, columns: Columns) -> Columns:
    """Those of the columns that are no inboxes, and are not known ahead anyway."""
    ahead = [np.arange(start, start + q.size) for row in layout.rows for start, _, q in row.columns() if q.foreknown]
    return columns[~np.isin(columns, np.concatenate([inboxes_of(layout), *ahead]))]


def _repeated(env: HeronEnv, targets: Columns, sources: list[int], seed: int) -> list[tuple[int, int]]:
    """(target, source): in every trial the target is in the end what the source was at some time, or a function of it.

    Targets on which anything else has an influence are physics, and none of these.
    """
    layout, left = env.simulation.model.layout, dict[int, tuple[list[Repetition], Bools, Bools]]()
    policies, (observations, _) = waves(env), env.reset(seed=seed)
    for moment in range(MOMENTS):
        for _ in range(APART):
            if not env.agents:
                observations, _ = env.reset()
            observations, *_ = env.step(choices(env, policies, observations))
        if not env.agents:
            observations, _ = env.reset()
        actions = choices(env, policies, observations)
        for source in sources if moment == 0 else list(left):
            trials = _trials(env, source, targets, actions)
            if trials is None:
                continue
            after, course = np.array([t.after for t in trials]), np.array([t.course for t in trials])
            tells = np.all([after[i] != after[j] for i, j in combinations(range(len(trials)), 2)], axis=0)
            tells &= layout.owner_of[targets] != layout.owner_of[source]
            equal = np.all(after[:, :, None] == course[:, None, :], axis=0) & tells[:, None]
            first, alike, copies = left.get(source, (trials, tells, equal))
            alike = alike & tells & np.all(after == np.array([t.after for t in first]), axis=0)
            copies = copies & equal
            if alike.any() or copies.any():
                left[source] = first, alike, copies
            else:
                left.pop(source, None)
    return [
        (int(targets[place]), source)
        for source, (_, alike, copies) in left.items()
        for place in np.flatnonzero(alike | copies.any(axis=1))
    ]


def _trials(env: HeronEnv, source: int, targets: Columns, actions: Mapping[str, Any]) -> list[Repetition] | None:
    """What values of the source lead to, whatever its owner does; None where it has no two, or a rule fails."""
    shares = [np.array([share]) for share in SHARES]
    values = np.unique([other_values(env.simulation.model.layout, np.array([source]), share)[0] for share in shares])
    try:
        return [_trial(env, source, value, targets, actions) for value in values] if len(values) > 1 else None
    except RuleError:
        return None


def _trial(env: HeronEnv, source: int, value: float, targets: Columns, actions: Mapping[str, Any]) -> Repetition:
    simulation, owner, course = env.simulation, int(env.simulation.model.layout.owner_of[source]), list[float]()

    def before(number: int) -> None:
        if number == 0:  # the action of the source's owner may have written it before others read it
            simulation.truth[source] = value
            for rank, action in list(simulation.lane.decided.items()):
                if rank != owner and simulation.alive[rank] and simulation.acts_itself(rank):
                    simulation.apply(rank, np.array(action))
            simulation.truth[source] = value
        course.append(float(simulation.truth[source]))

    with undone(env):
        simulation.truth[source] = value
        for _ in range(STEPS):
            if not simulation.over:
                until_the_end(env, actions, before)
                simulation.close_step()
        course += [float(simulation.truth[source])] * (1 + STEPS * simulation.model.substeps - len(course))
        return Repetition(np.array(course), simulation.truth[targets].copy())


def _writers(env: HeronEnv, column: int) -> str:
    """The rules and hooks that may write a column, in words."""
    rank = int(env.simulation.model.layout.owner_of[column])
    kind, hooks = type(env.hierarchy.agents[rank]), type(env)
    rules = [
        f"{kind.__name__}.{name}"
        for name in ("apply_action", "advance")
        if getattr(env.simulation.rules.bound[rank], NAMES[name]) is not None and may_write(env, rank, name)[column]
    ]
    quantities = {
        q for start, _, q in env.simulation.model.layout.rows[rank].columns() if start <= column < start + q.size
    }
    for name in ("advance", "finish", "simulate", "run_simulation", "env_state_to_global_state"):
        spec, written = rule_spec(getattr(hooks, name)), getattr(hooks, name) is not getattr(HeronEnv, name)
        if written and (spec is None or not spec.writes or quantities & {*spec.writes}):
            rules.append(f"{hooks.__name__}.{name}")
    return " or ".join(rules) or "the environment"
