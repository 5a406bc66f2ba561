"""Ceilings and floors compute what the environments compute: else they bound something else."""

from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import c_loop, spread
from benchmarks.__main__ import app
from benchmarks.case import EPISODE, Setting
from benchmarks.ceilings import FusedGrid
from benchmarks.floors import NumpySpread
from heron_env import make


def arrays(outcome: tuple[dict[str, Any], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Observations and rewards of a step, one row an agent."""
    return np.array(list(outcome[0].values())), np.array(list(outcome[1].values()))


@pytest.mark.parametrize("n", [1, 3, 6])
def test_spread_in_numpy_is_spread(n: int):
    env = make("heron/Spread-v0", num_agents=n, continuous=False, max_steps=None)
    draw = np.random.default_rng(n)
    agents, landmarks = draw.uniform(-0.4, 0.4, (2, n, 2))  # close together: they bump
    env.reset(seed=0, options={"agents": agents, "landmarks": landmarks})
    plain, touched = NumpySpread(2, n), False
    plain.points[:], plain.landmarks[:] = agents.T[:, None], landmarks.T[:, None]
    for _ in range(EPISODE - 1):
        actions = draw.integers(0, 5, n)
        seen, rewards = arrays(env.step(dict(zip(env.agents, actions.tolist(), strict=True))))
        plain.step(np.tile(actions, (2, 1)))
        assert plain.rewards[1] == pytest.approx(rewards, abs=1e-9)
        assert plain.observations[1] == pytest.approx(seen, abs=1e-6)
        touched |= bool(env.world[env.kind].Contact.others.any())
    assert touched == (n > 1)


@pytest.mark.skipif(c_loop.compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("n", [1, 3, 6])
def test_spread_in_c_is_spread_within_float32(n: int):
    lanes, actions, draw = 4, np.zeros((1, 4, n), np.int8), np.random.default_rng(n)
    c, envs, touched = c_loop.CSpread(lanes, n, actions), [], False
    for start in c.envs:
        envs.append(make("heron/Spread-v0", num_agents=n, continuous=False))
        columns = {"agents": (start["x"], start["y"]), "landmarks": (start["landmark_x"], start["landmark_y"])}
        envs[-1].reset(seed=0, options={name: np.stack(xy, axis=1) for name, xy in columns.items()})
    for number in range(EPISODE):
        actions[:] = draw.integers(0, 5, actions.shape)
        c.run(1)
        for env, there, chosen in zip(envs, c.envs, actions[0].tolist(), strict=True):
            seen, rewards = arrays(env.step(dict(zip(env.agents, chosen, strict=True))))
            assert there["rewards"] == pytest.approx(rewards, abs=1e-4)
            touched |= bool(env.world[env.kind].Contact.others.any())
            assert there["over"] == (number + 1 == EPISODE)
            if not there["over"]:
                assert there["observations"] == pytest.approx(seen, abs=1e-3)
    assert touched == (n > 1)


def test_without_a_compiler_the_c_loop_is_left_out_and_the_reason_is_printed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert [case.name for case in spread.spread_cases(3, 1, Setting()) if case.name == spread.C] == []
    result = CliRunner().invoke(app, ["--quick", "--rounds", "1", "--only", "grid-2-parent"])
    assert "no C compiler (cc, or $CC): the C loop was left out" in result.output


@pytest.mark.parametrize("scope", ["public", "parent"])
def test_the_grid_by_hand_is_the_grid(scope: str):
    env = make("heron/BatteryGrid-v0", num_batteries=4, scope=scope, max_steps=8)
    env.reset(seed=0)
    fused = FusedGrid(2, 4, public=scope == "public", max_steps=8)
    draw = np.random.default_rng(0)
    for number in range(8):
        actions = draw.uniform(-1.0, 1.0, (4, 1)).astype(np.float32)
        fused.step(np.tile(actions[:, 0], (2, 1)))
        seen, rewards = arrays(env.step(dict(zip(env.agents, actions, strict=True))))
        assert fused.rewards[1] == pytest.approx(rewards, abs=1e-9)
        assert fused.over.tolist() == [number == 7] * 2
        if number < 7:
            assert np.array_equal(fused.observations[1], seen)
    assert (fused.soc == 0.5).all(), "the next episode has begun"
