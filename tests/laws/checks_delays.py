"""The law of training delays: a synchronous run that has them is the event-driven run with the same delays."""

from dataclasses import replace

import numpy as np
from laws.checks import RECORD, assert_same_course
from small_worlds import LawEnv
from strategies import Node, Recipe

from heron_env import ScheduleConfig, TrainingDelays


def comparable(recipe: Recipe, delays: TrainingDelays) -> Recipe:
    """The recipe as far as the two clocks agree on it.

    Not where a policy decides for an agent below a commander that ends: in the event-driven clock one more observation
    may be under way to it then; in the synchronous one an agent decides nothing once the commander, whose ticks it
    follows, has ended.
    """
    lasting = replace(recipe, root=_lasting(recipe.root)) if delays.bounds("observation")[1] else recipe
    return replace(lasting, training_delays=delays)


def _lasting(node: Node) -> Node:
    below = any(other.named for other in node.nodes()[1:])
    at = 0 if node.protocol and below else node.at
    return replace(node, at=at, children=tuple(map(_lasting, node.children)))


def delays_in_force(env: LawEnv) -> dict[str, ScheduleConfig]:
    """Each agent's ticks with the delays of the running episode. No answer is missed: on_missing is about networks."""
    assert env._late is not None
    lines, found = env._late.lines, {}
    for name, drawn in (("observation", lines.observation), ("action", lines.action)):
        least, most = lines.delays.bounds(name)
        assert ((least <= drawn) & (drawn <= most)).all(), f"{name} delays {drawn} are not those asked for"
    steps = dict(zip(env._late._place, zip(lines.observation[0], lines.action[0], strict=True), strict=True))
    for rank, agent in enumerate(env.hierarchy.ids):
        seeing, acting = (int(late) * env.dt for late in steps.get(rank, (0, 0)))
        config = env.timings[rank].config
        found[agent] = replace(config, obs_delay=seeing, act_delay=acting, on_missing="hold")
    return found


def check_training_delays(
    recipe: Recipe,
    delays: TrainingDelays,
    schedule: dict[str, ScheduleConfig] | None = None,
    wait: float | None = None,
    seed: int = 0,
) -> None:
    """States at the boundaries, rewards, ends, actions and what was decided on are equal, bit for bit.

    The synchronous run is the environment's second one, so that the first may leave something behind.
    """
    recipe = comparable(recipe, delays)
    late = recipe.build(schedule, watch=True)
    late.run_synchronous(recipe.policies(late), seed=seed + 1)
    sync = late.run_synchronous(recipe.policies(late), seed=seed, record=RECORD)
    other = recipe.build(delays_in_force(late), watch=True)
    event = other.run_event_driven(recipe.policies(other), seed=seed, wait=wait, record=RECORD)
    assert_same_course(sync, event)
    assert_same_boundaries(late, other)


def assert_same_boundaries(a: LawEnv, b: LawEnv) -> None:
    """The truth at every boundary, and who is alive at the end, are the same."""
    assert len(a.boundaries) == len(b.boundaries)
    for (time, _, mine), (_, _, theirs) in zip(a.boundaries, b.boundaries, strict=True):
        differ = np.flatnonzero(mine.view(np.int64) != theirs.view(np.int64))
        assert not len(differ), f"at {time} s these differ: {[a.state_names[column] for column in differ]}"
    assert a.simulation.alive == b.simulation.alive
