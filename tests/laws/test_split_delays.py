"""A delay before a decision is a delay after it: k steps of obs_delay, of act_delay, and any split give one course.

(K. V. Katsikopoulos and S. E. Engelbrecht, "Markov decision processes with delays and asynchronous cost collection",
IEEE Transactions on Automatic Control 48, 2003; of several agents B. Chen and others, "Delay-aware multi-agent
reinforcement learning for cooperative and competitive environments", 2020.) Here it holds bit for bit, also for parts
of a step, losses and unequal ticks. The exceptions are tests below, with the rule of each.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_delays import assert_same_boundaries
from laws.examples import ENDING, FIELD, NESTED, TALK, ZONE
from laws.mutants import mutant_in, require_caught
from strategies import Node, Recipe, recipes, ticks

from heron_env.scheduling.links import Link
from heron_env.scheduling.messages import Leg

Delays = dict[str, tuple[int, int]]
"""By agent: tenths of a step until it sees, and from there to its effect. Commanded agents share their commander's."""


def comparable(recipe: Recipe) -> Recipe:
    """The recipe without what the law leaves out: ages in observations, and commanders that end."""
    return replace(recipe, observe_age=False, root=_lasting(recipe.root))


def _lasting(node: Node) -> Node:
    at = 0 if node.protocol else node.at
    return replace(node, at=at, children=tuple(map(_lasting, node.children)))


def check_split(recipe: Recipe, delays: Delays, schedule: Any = None, loss: float = 0.0, **more: Any) -> None:
    """Truth, rewards, ends and actions are those of the same delays, all of them before the effect."""
    env, other = recipe.build(schedule, watch=True), recipe.build(schedule, watch=True)
    part, all_late = [
        {
            agent: replace(
                env.timings[rank].config, loss=loss, obs_delay=seeing * env.dt / 10, act_delay=acting * env.dt / 10,
                **{"on_missing": "hold", **more},
            )
            for rank, agent in enumerate(env.hierarchy.ids)
            for seeing, acting in [each[env.hierarchy.ids[env.simulation.model.clocks[rank]]]]
        }
        for each in (delays, {agent: (0, seeing + acting) for agent, (seeing, acting) in delays.items()})
    ]  # fmt: skip
    same(env, env.run_event_driven(recipe.policies(env), seed=3, schedule=part),
         other, other.run_event_driven(recipe.policies(other), seed=3, schedule=all_late))  # fmt: skip


def same(env: Any, run: Any, other: Any, another: Any) -> None:
    """The truth at every boundary, rewards, ends, and actions with the times of their effects."""
    assert_same_boundaries(env, other)
    for name in ("rewards", "terminated", "truncated"):
        assert getattr(run, name) == getattr(another, name), f"{name} differ"
    assert [*run.actions] == [*another.actions]
    for agent in run.actions:
        mine, theirs = ([(t, x.tolist()) for t, x in each.actions[agent]] for each in (run, another))
        assert mine == theirs, f"{agent}'s actions differ"


def evenly(recipe: Recipe, seeing: int, acting: int) -> Delays:
    return dict.fromkeys(recipe.ids, (seeing, acting))


TENTHS = st.integers(0, 15)
SOME = max(30, settings().max_examples // 10)


@settings(max_examples=SOME)
@given(st.data())
def test_it_does_not_matter_where_a_delay_lies(data: st.DataObject) -> None:
    recipe = comparable(data.draw(recipes()))
    delays = {agent: data.draw(st.tuples(TENTHS, TENTHS)) for agent in recipe.ids}
    check_split(recipe, delays, data.draw(ticks(recipe)), data.draw(st.sampled_from([0.0, 0.2])))


# Where it does not hold

LONG = replace(FIELD, max_steps=10)
APART = evenly(LONG, 20, 0)


def differs(recipe: Recipe = LONG, delays: Delays = APART, **more: Any) -> None:
    check_split(recipe, delays)
    with pytest.raises(AssertionError):
        check_split(recipe, delays, **more)


def test_not_where_a_no_op_takes_the_place_of_a_late_decision() -> None:
    """T11 asks by the next tick whether a decision has come, and then lets the effect of one take its time."""
    differs(on_missing="noop")


def test_not_where_an_agent_reads_its_own_rows() -> None:
    """T19: obs_delay makes them no older."""
    differs(own_rows="local")


def test_not_where_an_observation_says_how_old_it_is() -> None:
    """T12: the age is taken when the policy receives it."""
    with pytest.raises(AssertionError):
        check_split(replace(LONG, observe_age=True), APART)


def test_not_under_jitter() -> None:
    """T8: gathering and acting are drawn apart, and a decision goes by its sum."""
    differs(jitter_type="uniform", jitter_ratio=0.5)


def test_not_where_a_commander_ends() -> None:
    """T5: it decides no more, but the shares that its children have already received take effect."""
    ending = replace(ENDING, max_steps=9)
    with pytest.raises(AssertionError):
        check_split(ending, evenly(ending, 20, 0))
    check_split(comparable(ending), evenly(ending, 20, 0))


@pytest.mark.parametrize("recipe", [FIELD, ZONE, NESTED, TALK], ids=["field", "zone", "nested", "talk"])
def test_each_kind_of_control(recipe: Recipe) -> None:
    recipe = comparable(replace(recipe, max_steps=10))
    check_split(recipe, evenly(recipe, 13, 4))


# Planted faults

MUTANTS: dict[str, Any] = {}
mutant = mutant_in(MUTANTS)


@mutant(Link, "delay")
def obs_delay_is_left_out(original: Any) -> Any:
    return lambda self, nominal, cause, leg, *rest: (
        0 if leg == Leg.GATHERING else original(self, nominal, cause, leg, *rest)
    )


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_faults_are_caught(name: str) -> None:
    require_caught(MUTANTS[name], partial(check_split, LONG, evenly(LONG, 13, 4)))
