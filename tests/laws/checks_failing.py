"""The law of errors: the first that Python raises in a step is what the caller gets, and no more Python is called."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from laws.checks_batch import Script, batch_of
from strategies import HOOKS, Recipe

from heron_env import BatchEnv
from heron_env.engine.called import Called
from heron_env.errors import RuleError

A_CALL = "reset() or step()"
AFTER_PHYSICS = {"physics", "finish", "deliver", "at_close", "begin", "publish"}
"""Places that come with physics or later."""


class OopsError(Exception):
    """What a hook raises."""


@contextmanager
def journal() -> Iterator[list[Any]]:
    """The place of each call of Python by compiled code, and what it raised, of all that is made meanwhile."""
    calls, original = list[Any](), Called.native

    def native(self: Called, place: str, function: Any) -> Any:
        def run(first: int, last: int) -> None:
            calls.append(place)
            try:
                function(first, last)
            except BaseException as error:
                calls.append(error)
                raise

        return original(self, place, run)

    with patch.object(Called, "native", native):
        yield calls


def check_an_error_stops_python(recipe: Recipe, script: Script, hook: str, step: int, lane: int) -> None:
    """A hook raises in a lane at a step: the caller gets that error in that step, and after a reset all is as new."""
    lane %= script.lanes
    kind, original = HOOKS[recipe.hooks], getattr(HOOKS[recipe.hooks], hook)

    def failing(self: Any, world: Any, *more: Any) -> None:
        mine = np.atleast_1d(getattr(world, "lanes", 0)) == lane
        if (mine & (np.atleast_1d(world.step) == step)).any():
            raise OopsError(hook)
        original(self, world, *more)

    with journal() as calls, patch.object(kind, hook, failing):
        batch = prepared(recipe, script)
        error = run_until_it_fails(batch, script, calls)
    assert isinstance(error, OopsError), f"{hook}() raised in lane {lane} at step {step}, but the caller got {error!r}"
    errors = [place for place, one in enumerate(calls) if isinstance(one, BaseException)]
    assert calls[errors[0]] is error, f"the caller got {error!r}, not the first that was raised"
    assert not calls[errors[0] + 1 :], f"after {hook}() had failed Python was called: {calls[errors[0] + 1 :]}"
    same_as_new(batch, recipe, script)


def check_a_refusal_stops_python(recipe: Recipe, script: Script, lane: int) -> None:
    """A compiled rule ends in what is no number: the caller gets that error, and nothing in Python is called after."""
    assert recipe.compile
    with journal() as calls:
        batch = prepared(recipe, script)
        batch.reset(script.seed)
        names = enumerate(batch.env.state_names)
        column = next(k for k, name in names if name.startswith("unit") and name.endswith("Level.value"))
        batch._engine.truth[lane % script.lanes, column] = np.nan
        error = run_until_it_fails(batch, script, calls, started=True)
    assert isinstance(error, RuleError), f"a rule wrote nan, and the caller got {error!r}"
    calls = calls[calls.index(A_CALL) :]
    assert not AFTER_PHYSICS & {*calls}, f"after a rule was refused Python was called: {calls}"
    same_as_new(batch, recipe, script)


def prepared(recipe: Recipe, script: Script) -> BatchEnv:
    """The batch, whose end of steps somebody watches."""
    batch = batch_of(recipe, script)
    batch.at_close.append(lambda: None)
    return batch


def run_until_it_fails(
    batch: BatchEnv, script: Script, calls: list[Any], started: bool = False
) -> BaseException | None:  # fmt: skip
    """What a call raises, of a reset and some steps; each is noted in `calls`, too."""
    random = np.random.default_rng(script.salt)
    try:
        if not started:
            calls.append(A_CALL)
            batch.reset(script.seed)
        for _ in range(script.turns):
            calls.append(A_CALL)
            batch.step(script.actions(batch.env, random))
    except (OopsError, RuleError) as error:
        return error
    return None


def same_as_new(batch: BatchEnv, recipe: Recipe, script: Script) -> None:
    """Reset, it goes on as one that never failed."""
    script, courses = replace(script, turns=2), list[Any]()
    for one in (batch, batch_of(recipe, script)):
        assert run_until_it_fails(one, script, []) is None
        courses.append((one._engine.truth.tobytes(), one.steps.tolist()))
    assert courses[0] == courses[1], "after an error and a reset another course is taken"
