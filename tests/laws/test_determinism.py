"""Determinism: the same seed gives the same bytes, in any process; switching one stream on shifts no other."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_loss_moves_nothing, check_same_seed
from strategies import delays, recipes, schedules

from heron_env import ScheduleConfig

pytestmark = pytest.mark.e2e

TESTS = Path(__file__).parents[1]


@given(st.data())
def test_the_same_seed_gives_the_same_trace(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    check_same_seed(recipe, data.draw(st.one_of(delays(recipe.dt), schedules(recipe.ids, dt=recipe.dt))))


@given(st.data())
def test_loss_shifts_no_other_draw(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    drawn = data.draw(delays(recipe.dt))
    kept = {name: getattr(drawn, name) for name in drawn.__slots__}
    config = ScheduleConfig(**kept | {"loss": 0.0, "reorder": True})
    check_loss_moves_nothing(recipe, config, data.draw(st.sampled_from([0.1, 0.4, 0.8])))


def rollouts(*arguments: str, caches: Sequence[str | None] = (None, None, None)) -> list[str]:
    """What rollouts.py prints in three processes with three hash seeds, and with these cache folders if given."""
    command = [sys.executable, "-W", "error", str(TESTS / "laws" / "rollouts.py"), *arguments]
    path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    printed = []
    for seed, cache in zip(("0", "1", "2"), caches, strict=False):  # in turn: what one compiles, the next ones load
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        env |= {} if cache is None else {"HERON_CACHE_DIR": cache}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        printed.append(done.stdout)
    return printed


@pytest.mark.parametrize("names", ["field zone nested seen", pytest.param("energy", marks=pytest.mark.e2e)])
def test_processes_with_other_hash_seeds_agree(names: str) -> None:
    first, *others = rollouts(*names.split())
    assert len(first.splitlines()) == 2 * len(names.split())
    assert others == [first, first]


def test_compiled_processes_with_other_hash_seeds_agree() -> None:
    first, other = rollouts("compiled", caches=(None, None))
    assert [line.split()[1] for line in first.splitlines()] == ["synchronous", "event-driven", "batch"]
    assert other == first


@pytest.mark.e2e  # compiles twice
def test_what_was_compiled_before_and_what_is_compiled_anew_agree(tmp_path: Path) -> None:
    folders = str(tmp_path / "one"), str(tmp_path / "two")
    first, other, usual = rollouts("compiled", caches=(*folders, None))
    again = rollouts("compiled", caches=folders[:1])
    assert len(first.splitlines()) == 3
    assert [other, usual, *again] == [first] * 3
