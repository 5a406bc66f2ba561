"""PettingZoo's tests of modules; the conformance kit runs those of environments (testing/test_check.py)."""

import contextlib
import io
from types import ModuleType
from typing import Any

import pytest
from pettingzoo import test as theirs

from heron_env.worlds import battery_grid, spread


def quietly(test: Any, *args: Any, **kwargs: Any) -> None:
    """PettingZoo's tests print that they passed."""
    with contextlib.redirect_stdout(io.StringIO()):
        test(*args, **kwargs)


@pytest.mark.parametrize("module", [battery_grid, spread], ids=["grid", "spread"])
def test_max_cycles_end_the_episode(module: ModuleType):
    quietly(theirs.max_cycles_test, module)
    assert module.raw_env is module.env


def test_both_render_modes_pass():
    def build(render_mode: str) -> Any:  # the test asks for a window first; there is none
        return battery_grid.env(render_mode=None if render_mode == "human" else render_mode)

    quietly(theirs.render_test, build)
    assert battery_grid.env().metadata["render_modes"] == ["ansi", "rgb_array"]
