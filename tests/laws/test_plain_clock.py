"""The event clock equals a plain one, written from the law, under delay, jitter, loss and everything else."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_clock import check_plain_clock
from strategies import Node, Recipe, delays, recipes, schedule_configs, talking

EXAMPLES = max(50, settings().max_examples)


@st.composite
def networks(draw: st.DrawFn, recipe: Recipe) -> Any:
    """Some agents' links are of one kind, some of another; one in four is as bad as can be."""
    bad = schedule_configs(dt=recipe.dt)
    one = st.one_of(delays(recipe.dt), delays(recipe.dt), delays(recipe.dt), bad)
    keys = st.sampled_from([*recipe.ids, "field", "coordinator", "system"])
    return {"*": draw(one)} | draw(st.dictionaries(keys, one, max_size=4))


def with_talkers(root: Node) -> Node:
    """The same tree with three talkers in a team of their own."""
    talkers = tuple(Node("talker", value=value, at=at) for value, at in ((0.5, 0), (1.0, 2), (-1.0, 0)))
    return replace(root, children=(*root.children, Node("team", children=talkers)))


@st.composite
def worlds(draw: st.DrawFn) -> Recipe:
    """Random hierarchies, every third with neighbours that talk."""
    recipe = draw(recipes())
    exchange = draw(st.sampled_from(["", "", "ring", "star", "full"]))
    return replace(recipe, root=talking(with_talkers(recipe.root), exchange)) if exchange else recipe


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_the_clock_is_the_plain_clock(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    schedule = data.draw(networks(recipe))
    wait = data.draw(st.sampled_from([None, None, None, recipe.dt / 100, recipe.dt / 2]))
    t_end = data.draw(st.sampled_from([None, None, None, 2.0 * recipe.dt, 2.5 * recipe.dt]))
    check_plain_clock(recipe, schedule, seed=data.draw(st.integers(0, 3)), wait=wait, t_end=t_end)
