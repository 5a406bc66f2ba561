"""The batch: lane i is the single environment with its seed, in any batch, with any threads, after any resets."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_batch import Script, batch_of, check_batch, check_compiled_is_plain, check_in_tiles_or_not
from laws.examples import SILENT, TALK
from strategies import Recipe, batched, recipes, seeing, ticks

FEW = max(3, settings().max_examples // 20)
"""Examples of many lanes each."""
SEEDS = st.sampled_from([0, 7, 2**40, 2**64 - 20])
RESETS = {2: ((True, False, False, True), None), 4: ((False, True), (5, 3)), 7: ((True,), 11)}
AUTORESETS = ("same_step", "next_step", "disabled")


@st.composite
def scripts(draw: st.DrawFn, recipe: Recipe) -> Script:
    """What may happen to a batch: some lanes begin anew at any time, with the next episode or with other seeds."""
    which = st.lists(st.booleans(), min_size=1, max_size=9).map(tuple)
    seeds = st.one_of(st.none(), SEEDS, st.lists(SEEDS, min_size=1, max_size=4).map(tuple))
    return Script(
        lanes=draw(st.sampled_from([1, 2, 3, 5, 8, 9, 13])),  # from 8 on, 8 at once
        threads=draw(st.integers(1, 3)),
        autoreset=draw(st.sampled_from(AUTORESETS)),
        seed=draw(SEEDS),
        turns=draw(st.integers(4, 10)),
        salt=draw(st.integers(0, 99)),
        final=draw(st.booleans()),
        schedule=draw(ticks(recipe)),
        resets=draw(st.dictionaries(st.integers(0, 9), st.tuples(which, seeds), max_size=3)),
    )


@settings(max_examples=FEW)
@given(st.data())
def test_compiled_a_batch_is_its_single_environments(data: st.DataObject) -> None:
    recipe = data.draw(batched("alone", "together", "none", "none"))
    check_batch(recipe, data.draw(scripts(recipe)))


@pytest.mark.e2e
@given(st.data())
def test_in_tiles_a_batch_is_what_it_is_without(data: st.DataObject) -> None:
    recipe = data.draw(batched("none", "rules"))
    script = data.draw(scripts(recipe))
    check_in_tiles_or_not(recipe, replace(script, lanes=script.lanes + 7))


@settings(max_examples=FEW)
@given(st.data())
def test_one_by_one_a_batch_is_its_single_environments(data: st.DataObject) -> None:
    recipe = data.draw(recipes().flatmap(seeing))
    check_batch(replace(recipe, compile=False), data.draw(scripts(recipe)))


@settings(max_examples=FEW)
@given(st.data())
def test_compiled_lanes_are_plain_python_to_1e_9(data: st.DataObject) -> None:
    recipe = data.draw(batched("alone", "together", "none"))
    recipe = replace(recipe, dt=min(recipe.dt, 1.0))  # longer steps blow up whatever differs
    check_compiled_is_plain(recipe, data.draw(scripts(recipe)))


@settings(max_examples=2 * FEW)
@given(st.data())
def test_with_world_rules_too(data: st.DataObject) -> None:
    recipe = data.draw(seeing(data.draw(batched("rules"))))
    script = data.draw(scripts(recipe))
    check_batch(recipe, script)
    check_compiled_is_plain(replace(recipe, dt=min(recipe.dt, 1.0)), script)


@pytest.mark.parametrize(
    ("hooks", "threads", "autoreset"),
    [("alone", 1, "same_step"), ("together", 2, "next_step"), ("none", 3, "disabled"), ("together", 3, "same_step")],
)
def test_in_the_example_too(hooks: str, threads: int, autoreset: str) -> None:
    check_batch(replace(TALK, hooks=hooks), Script(5, threads, autoreset, seed=2, resets=RESETS))


@pytest.mark.parametrize("threads", [1, 3])
def test_in_one_call_too(threads: int) -> None:
    script = Script(5, threads, resets=RESETS)
    assert not batch_of(SILENT, script)._engine.lanes.in_python  # type: ignore[attr-defined]
    check_batch(SILENT, script)
    check_compiled_is_plain(SILENT, script)
