"""The worlds of PettingZoo's users, in all their shapes, under PettingZoo's own tests."""

import contextlib
import io
from types import ModuleType
from typing import Any

import pettingzoo
import pytest
from pettingzoo import test as theirs

from heron_env import make
from heron_env.worlds import battery_grid, spread

GRID, SPREAD = "heron/BatteryGrid-v0", "heron/Spread-v0"
PARTICLES = ("Tag", "Adversary", "Push", "Reference", "SpeakerListener", "Crypto", "WorldComm")
SHAPES: list[tuple[str, dict[str, Any]]] = [
    (SPREAD, {}),
    (SPREAD, {"continuous": False, "num_agents": 4}),
    *(
        (GRID, {"control": control, "scope": scope, "num_batteries": n, "zone_size": 2})
        for control in ("field", "zone")
        for scope in ("public", "owner", "parent")
        for n in (2, 5)
    ),
    *((f"heron/{name}-v0", {"continuous": name < "R"}) for name in PARTICLES),
]


def quietly(test: Any, *args: Any, **kwargs: Any) -> None:
    """PettingZoo's tests print that they passed."""
    with contextlib.redirect_stdout(io.StringIO()):
        test(*args, **kwargs)


@pytest.mark.parametrize(("name", "options"), SHAPES)
def test_the_parallel_form_passes(name: str, options: dict[str, Any]):
    quietly(theirs.parallel_api_test, make(name, **options), num_cycles=120)
    quietly(theirs.parallel_seed_test, lambda: make(name, **options), num_cycles=20)
    quietly(theirs.state_test, pettingzoo.make("aec", name, **options), make(name, **options))


SEEING = [shape for shape in SHAPES if (shape[1].get("control"), shape[1].get("scope")) != ("zone", "owner")]
"""PettingZoo's agent-by-agent test refuses empty observations, and there a zone sees nothing at all."""


@pytest.mark.filterwarnings("ignore:(Agents have|Observations are) different")
@pytest.mark.parametrize(("name", "options"), [*SEEING[:2], *SEEING[2::2]])
def test_the_agent_by_agent_form_passes(name: str, options: dict[str, Any]):
    quietly(theirs.api_test, pettingzoo.make("aec", name, **options), num_cycles=100)
    quietly(theirs.seed_test, lambda: pettingzoo.make("aec", name, **options), num_cycles=20)


@pytest.mark.parametrize("module", [battery_grid, spread], ids=["grid", "spread"])
def test_max_cycles_end_the_episode(module: ModuleType):
    quietly(theirs.max_cycles_test, module)
    assert module.raw_env is module.env


def test_both_render_modes_pass():
    def build(render_mode: str) -> Any:  # the test asks for a window first; there is none
        return battery_grid.env(render_mode=None if render_mode == "human" else render_mode)

    quietly(theirs.render_test, build)
    assert battery_grid.env().metadata["render_modes"] == ["ansi", "rgb_array"]
