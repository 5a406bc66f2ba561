"""Lanes at different hours: spread evenly over an episode, on either clock; the way there is not learned from.

Planted once and caught: no reset (all lanes together), the first rows told as later ones, ends of the way handed on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ends import endings

from heron_env import ScheduleConfig, make
from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.batch.step_rows import StepRows
from heron_env.lab import benchmark
from heron_env.lab.learning import staggering
from heron_env.lab.learning.plan import Hyperparameters
from heron_env.lab.learning.ppo import train
from heron_env.lab.learning.roles import Role
from heron_env.lab.learning.staggering import staggered

GRID = "heron/BatteryGrid-v0"
STEPS, LANES = 12, 4


def on_steps(**options: Any) -> Any:
    return StepRows(GRID, LANES, max_steps=STEPS, compile=True, **options)


def on_events(**options: Any) -> Any:
    slow = ScheduleConfig(msg_delay=0.2, act_delay=0.1)
    batch: Any = BatchEnv
    return batch(make(GRID, max_steps=STEPS, compile=True), LANES, clock="event", schedule=slow, **options)


def roles_of(env: Any) -> list[Role]:
    return [Role(env, [group], {}) for group in env.group_map]


@pytest.mark.parametrize("build", [on_steps, on_events])
def test_lanes_stand_at_moments_spread_over_an_episode(build: Callable[..., Any]):
    source = build()
    rows = staggered(source, roles_of(source.env), source.begin())
    moments = [rows.time[rows.lane == lane].max() / source.env.dt for lane in range(LANES)]
    assert moments == pytest.approx([9.0, 6.0, 3.0, 0.0], abs=1.01)  # lane 0 is farthest on, 12 / 4 steps apart
    assert rows.first.all() and not rows.reward.any() and not rows.steps.any() and not rows.took.any()
    assert not len(rows.ended.lane) and rows.ended.parts == dict.fromkeys(rows.parts, slice(0, 0))
    later = source.answer(np.zeros((len(rows), 1)))
    assert not later.first[later.lane == 0].any(), "it goes on from there"


def test_without_delay_both_clocks_are_staggered_alike():
    batch: Any = BatchEnv
    quick = batch(make(GRID, max_steps=STEPS, compile=True), LANES, clock="event", schedule=ScheduleConfig(), seed=3)
    sources = on_steps(seed=3), quick
    rows = [staggered(source, roles_of(source.env), source.begin()) for source in sources]
    for _ in range(STEPS + 2):
        assert np.array_equal(rows[0].obs, rows[1].obs) and np.array_equal(rows[0].lane, rows[1].lane)
        assert np.array_equal(rows[0].reward, rows[1].reward) and np.array_equal(rows[0].first, rows[1].first)
        actions = 0.1 * np.ones((len(rows[0]), 1))
        rows = [source.answer(actions) for source in sources]


def test_lanes_without_an_end_stay_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(staggering, "MOST", 30)
    source = StepRows(endings((1e3,)), 3)
    rows = staggered(source, roles_of(source.env), source.begin())
    assert rows.first.all() and len(set(rows.time)) == 1


def test_what_is_learned_from_begins_there(tmp_path: Path):
    """Whole rollouts from staggered lanes: as many transitions as planned, and other weights than without."""
    tiny: dict[str, Any] = {"num_envs": LANES, "n_steps": 4, "batch_size": 16, "n_epochs": 1, "hidden": (4, 4)}
    runs = [
        train(
            GRID, tmp_path / str(on), total_steps=64, env_options={"max_steps": STEPS, "compile": True},
            hyperparameters=Hyperparameters(**tiny, staggered=on), validations=0, validation_episodes=0, progress=False,
        )
        for on in (False, True)
    ]  # fmt: skip
    models = [[(run.path / kept.model).read_bytes() for kept in run.config.groups.values()] for run in runs]
    assert models[0] != models[1] and runs[0].config.transitions == runs[1].config.transitions
    assert runs[1].config.hyperparameters["staggered"] is True
    assert benchmark.NOTHING not in runs[1].config.validation
