"""The leak law of sight (V11, 12): what an observer does not see moves nothing that it is shown."""

from typing import Any

import numpy as np
from laws.checks_leak import _diary
from laws.plain_sight import PlainSight
from strategies import Recipe


def check_toggles(recipe: Recipe, toggles: int, seed: int = 0) -> None:
    """At random truths two that differ in unseen targets alone show an observer one vector, mask and ages.

    By the plan, from the truth and from what was received, and by the kernels that all batches share.
    """
    env, random = recipe.build(), np.random.default_rng(seed)
    env.reset(seed=seed)
    sight, layout, ranks = PlainSight(env), env.simulation.model.layout, env.simulation.model.possible
    rows = {t: np.arange(layout.size)[layout.rows[t].slice] for t in sight.targets}
    low, high = np.maximum(layout.low, -9.0), np.minimum(layout.high, 9.0)
    differ = 0
    for turn in range(toggles):
        truth = _whole(layout, low + (high - low) * random.random(layout.size))
        env.shown = random.random((len(sight.observers), len(sight.targets))) < 0.5
        observer, ages = ranks[turn % len(ranks)], random.random(len(layout.rows))
        unseen = [column for t in _unseen(sight, observer, env.shown) for column in rows[t].tolist()]
        other = truth.copy()
        other[unseen] = _whole(layout, low + (high - low) * random.random(layout.size))[unseen]
        mine, theirs = _shown(env, observer, truth, ages), _shown(env, observer, other, ages)
        assert mine == theirs, f"{env.hierarchy.ids[observer]} learns of whom it does not see"
        differ += bool(unseen)
    assert differ > toggles // 2, "hardly anything was hidden: no test"


def _unseen(sight: PlainSight, observer: int, shown: Any) -> set[int]:
    """Whom it is asked about and does not see."""
    place = sight.observers.index(observer)
    return {t for o, t in sight.asked if o == observer and not shown[place, sight.targets.index(t)]}


def _whole(layout: Any, values: Any) -> Any:
    return np.where(layout.integer, np.rint(values), values)


def _shown(env: Any, observer: int, truth: Any, ages: Any) -> list[bytes]:
    """The vector by the plan with these ages, the mask for it, and the vector by the kernels: bytes."""
    simulation = env.simulation
    plan, view = simulation.model.plan, simulation.model.plan.views[observer]
    simulation.truth[:] = truth
    simulation.look()
    received = view.receive(simulation.facts, simulation.moment).astype(view.carried)
    vector = plan.complete(observer, received, ages[view.sources])
    first = sum(plan.size(rank) for rank in simulation.model.possible if rank < observer)
    by_kernels = simulation.lane.observed()[first : first + plan.size(observer)]
    mask = simulation.masks.offered(observer, vector) if observer in simulation.masks.ranks else vector[:0]
    return [vector.tobytes(), np.asarray(mask).tobytes(), by_kernels.tobytes()]


def check_a_run_hides(recipe: Recipe, schedule: Any, seed: int) -> None:
    """In a whole run of either clock modes of units that are not seen reach an observer by no message."""
    plain, other = recipe.build(), recipe.build()
    sight, random = PlainSight(plain), np.random.default_rng(seed)
    plain.shown = other.shown = random.random((len(sight.observers), len(sight.targets))) < 0.5
    observer = sight.observers[seed % len(sight.observers)]
    owners, names = plain.simulation.model.layout.owner_of.tolist(), plain.simulation.model.layout.names
    hidden = _unseen(sight, observer, plain.shown)
    modes = [c for c, name in enumerate(names) if name == "Setpoint.mode" and owners[c] in hidden]
    other.shift = dict.fromkeys(modes, 2.0)
    mine, theirs = (_diary(env, recipe, observer, schedule, seed) for env in (plain, other))
    assert mine == theirs, f"{plain.hierarchy.ids[observer]} learns of whom it does not see"
    assert plain.simulation.truth.tobytes() != other.simulation.truth.tobytes(), "nothing was hidden: no test"
