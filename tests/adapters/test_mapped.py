"""What a learner sees through MappedVecEnv, part by part."""

from typing import Any

import numpy as np
import pytest
from ends import endings
from gymnasium import spaces

from heron_env.adapters import HeronVecEnv, MappedVecEnv


def parts(seen: Any) -> list[list[float]]:
    """obs and, with a central critic, the state, of the only slot."""
    values = list(seen.values()) if isinstance(seen, dict) else [seen]
    return [np.asarray(value).reshape(-1).tolist() for value in values]


@pytest.mark.parametrize("critic", ["local", "central"])
def test_observations_terminal_ones_rewards_and_actions_are_mapped_and_actions_by_what_the_agent_saw(critic: str):
    acted: list[list[float]] = []

    def act(seen: np.ndarray, actions: np.ndarray) -> np.ndarray:
        acted.append(seen.reshape(-1).tolist())
        return actions / 10.0

    venv = HeronVecEnv(lambda: endings((9,), max_steps=2), 1, critic=critic)
    mapped = MappedVecEnv(
        venv,
        observe=lambda x: x + 100.0,
        act=act,
        reward_scale=3.0,
        action_space=spaces.Box(-10.0, 10.0, (1,)),
        state=(lambda x: -x) if critic == "central" else None,
    )
    central = critic == "central"
    assert parts(mapped.reset()) == [[101.0], [-1.0, -9.0]][: 1 + central]  # age; age and end
    seen, rewards, _, _ = mapped.step(np.array([[10.0]], dtype=np.float32))
    assert parts(seen) == [[102.0], [-2.0, -9.0]][: 1 + central]
    seen, rewards, dones, infos = mapped.step(np.array([[10.0]], dtype=np.float32))
    assert (rewards.tolist(), dones.tolist()) == ([3.0], [True])
    assert parts(infos[0]["terminal_observation"]) == [[103.0], [-3.0, -9.0]][: 1 + central]
    assert parts(seen) == [[101.0], [-1.0, -9.0]][: 1 + central]
    assert acted == [[1.0], [2.0]]
    assert (mapped.reward_sum, mapped.transitions) == (2.0, 2)


def test_the_mapped_spaces_have_the_shapes_of_the_raw_ones_and_no_bounds():
    for critic in ("local", "central"):
        venv = HeronVecEnv(lambda: endings((9, 9)), 1, critic=critic)
        mapped = MappedVecEnv(
            venv, observe=np.asarray, state=np.asarray, act=lambda _, a: a, reward_scale=1.0, action_space=None
        )
        assert mapped.action_space == venv.action_space
        raw, now = (
            s.spaces if critic == "central" else {"obs": s} for s in (venv.observation_space, mapped.observation_space)
        )
        assert {k: box.shape for k, box in now.items()} == {k: box.shape for k, box in raw.items()}
        assert all(not box.is_bounded() for box in now.values())
