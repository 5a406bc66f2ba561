"""Scores and ends worked out once more, from copies of the truth alone and in other words than the package's."""

from typing import Any

import numpy as np
from small_worlds import LawEnv
from strategies import Recipe

Course = tuple[dict[str, list[tuple[float, float]]], dict[str, bool], dict[str, bool]]


class Reader:
    """Reads copies of the truth by agent and name."""

    def __init__(self, env: LawEnv) -> None:
        layout = env.simulation.model.layout
        names = zip(layout.owner_of.tolist(), layout.names, strict=True)
        self.columns = {(owner, name): i for i, (owner, name) in enumerate(names)}
        self.world = len(layout.rows) - 1

    def __call__(self, truth: Any, rank: int, name: str) -> float:
        return float(truth[self.columns[rank, name]])


def expected_course(env: LawEnv, recipe: Recipe) -> Course:
    """Rewards, terminated and truncated of every agent, from `env.boundaries`."""
    read, nodes, ids = Reader(env), recipe.root.nodes(), env.hierarchy.ids
    alive = dict.fromkeys(range(len(ids)), True)
    rewards: dict[str, list[tuple[float, float]]] = {agent: [] for agent in ids}
    terminated, truncated = dict.fromkeys(ids, False), dict.fromkeys(ids, False)
    for step, (_, substeps, truth) in enumerate(env.boundaries, start=1):
        assert any(alive[r] for r in env.simulation.model.possible), "the world went on after its end"
        time = round(step * recipe.dt, 9)
        scores = _scores(env, recipe, read, alive, substeps, truth)
        ends = {r: _end(nodes[r], recipe, read, truth, r, step) for r in alive if alive[r]}
        done, cut = {r for r, (t, _) in ends.items() if t}, {r for r, (_, c) in ends.items() if c}
        _close(env, recipe, step, set(ends), done, cut)
        for rank in ends:
            rewards[ids[rank]].append((time, scores[rank]))
            terminated[ids[rank]], truncated[ids[rank]] = rank in done, rank in cut
            alive[rank] = rank not in done | cut
    return rewards, terminated, truncated


def _close(env: LawEnv, recipe: Recipe, step: int, living: set[int], done: set[int], cut: set[int]) -> None:
    """The episode's own end (T5): with `any` the first possible agent takes all with it; at a limit all are cut."""
    possible = set(env.simulation.model.possible)
    if recipe.mode == "any" and done & possible:
        done |= living
    elif recipe.mode == "any" and cut & possible:
        cut |= living
    if step >= recipe.max_steps:
        cut |= living
    if not (living & possible) - done - cut:  # nobody acts any more: those who only watch end with the last
        rest = living - done - cut
        (cut if cut else done).update(rest)


def _scores(
    env: LawEnv, recipe: Recipe, read: Reader, alive: dict[int, bool], substeps: Any, truth: Any
) -> dict[int, float]:
    scores = dict.fromkeys(alive, 0.0)
    for rank, node in reversed(list(enumerate(recipe.root.nodes()))):
        if not alive[rank]:
            continue
        below = [scores[child] for child in env.hierarchy.children[rank]]
        match node.kind:
            case "unit" | "chooser" | "talker":
                scores[rank] = -_cost(recipe, read, rank, substeps, True) - read(truth, rank, "Level.value") ** 2
                if node.kind == "talker":
                    scores[rank] += read(truth, rank, "Told.near[0]") * read(truth, rank, "Told.mean")
            case "hand":
                scores[rank] = -abs(read(truth, rank, "Level.value")) - _cost(recipe, read, rank, substeps, False)
            case "zone":
                scores[rank] = float(np.array(below).sum()) - 0.01 * abs(read(truth, rank, "Order.total"))
            case _:
                scores[rank] = sum(below)
    return scores


def _cost(recipe: Recipe, read: Reader, rank: int, substeps: Any, priced: bool) -> float:
    """The flow over the step, substep by substep: exactly `recipe.substeps` of them, each of the nominal length."""
    assert len(substeps) == recipe.substeps, "a step has its declared substeps"
    total, dt = 0.0, recipe.dt / recipe.substeps
    for truth in substeps:
        price = read(truth, read.world, "Price.value") if priced else 1.0
        total += abs(read(truth, rank, "Setpoint.power")) * price * dt
    return total


def _end(node: Any, recipe: Recipe, read: Reader, truth: Any, rank: int, step: int) -> tuple[bool, bool]:
    """(terminated, truncated) by the agent's own rules."""
    if node.kind in ("team", "system"):
        return False, False
    over = node.at != 0 and step >= node.at
    above = node.kind != "zone" and read(truth, rank, "Level.value") > node.above
    return over or above, node.kind in ("unit", "chooser", "talker") and node.cut != 0 and step >= node.cut
