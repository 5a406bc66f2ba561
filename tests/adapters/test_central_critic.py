"""A critic that sees the state beside an actor that doesn't: what HeronVecEnv offers it."""

import numpy as np
import pytest
from ends import COARSE, KINDS, draw, endings
from gymnasium import spaces

from heron_env import make
from heron_env.adapters import HeronVecEnv
from heron_env.errors import ConfigError


def pair(make_env, num_envs: int, **options) -> tuple[HeronVecEnv, HeronVecEnv]:
    """The same environments for a central and for a local critic."""
    return tuple(HeronVecEnv(make_env, num_envs, critic=critic, **options) for critic in ("central", "local"))


@pytest.mark.parametrize(("env_id", "options", "group"), KINDS)
def test_obs_is_the_local_one_bit_for_bit_and_state_is_the_environment_s_and_the_agent(env_id, options, group):
    central, local = pair(env_id, 2, seed=5, **options)
    envs = [make(env_id, **options) for _ in range(2)]
    agents = envs[0].group_map[group]
    rng, ended = np.random.default_rng(0), 0
    seen, expected = central.reset(), local.reset()
    for number, env in enumerate(envs):
        env.reset(seed=5 + number)

    def states() -> np.ndarray:
        return np.stack([[*env.state(), *row] for env in envs for row in np.eye(len(agents))]).astype(np.float32)

    for _ in range(30):
        assert seen["obs"].tobytes() == expected.tobytes()
        assert seen["state"].tobytes() == states().tobytes()
        actions = draw(central, rng)
        seen, rewards, dones, infos = central.step(actions)
        expected, *others = local.step(actions)
        assert (rewards.tobytes(), dones.tobytes()) == (others[0].tobytes(), others[1].tobytes())
        for number, env in enumerate(envs):
            env.step({agent: actions[number * len(agents) + row] for row, agent in enumerate(agents)})
        ends = states()
        for slot in np.flatnonzero(dones):
            told, plain = infos[slot].pop("terminal_observation"), others[2][slot].pop("terminal_observation")
            assert told["obs"].tobytes() == plain.tobytes()
            assert told["state"].tobytes() == ends[slot].tobytes()
            ended += 1
        for told, plain in zip(infos, others[2], strict=True):
            assert [(k, v) for k, v in told.items() if k != "episode"] == [
                (k, v) for k, v in plain.items() if k != "episode"
            ]
        for env in envs:
            if not env.agents:
                env.reset()
    assert ended > 0


def test_the_spaces_say_what_comes():
    venv = HeronVecEnv("heron/EnergyManagement-v1", 1, critic="central", **COARSE)
    env = venv.batch.lane(0)
    assert list(venv.observation_space) == ["obs", "state"]
    assert venv.observation_space["obs"] == env.observation_space("battery_1")
    assert venv.observation_space["state"].shape == (len(env.state_names) + 6,)
    seen = venv.reset()
    assert all(venv.observation_space.contains({k: v[slot] for k, v in seen.items()}) for slot in range(6))
    assert isinstance(HeronVecEnv("heron/EnergyManagement-v1", 1, **COARSE).observation_space, spaces.Box)


def test_bookkeeping_that_no_agent_sees_is_in_the_state():
    venv = HeronVecEnv("heron/EnergyManagement-v1", 1, critic="central", **COARSE)
    venv.reset()
    seen, *_ = venv.step(np.ones((6, 1), dtype=np.float32))
    names = venv.batch.lane(0).state_names
    assert seen["state"][0, names.index("battery_1.HomeTally.throughput")] > 0.0
    assert not any("HomeTally" in name for name in venv.batch.lane(0).observation_names("battery_1"))


def test_a_group_of_one_needs_no_name():
    venv = HeronVecEnv(lambda: endings((9,)), 2, critic="central")
    assert venv.observation_space["state"].shape == venv.batch.lane(0).state_space.shape


def test_an_ended_agent_s_slot_idles_with_zeros_in_both_parts():
    venv = HeronVecEnv(lambda: endings((2, 4)), 1, critic="central")
    venv.reset()
    course = []
    for _ in range(5):
        seen, _, dones, infos = venv.step(np.zeros((2, 1), dtype=np.float32))
        told = [info.get("terminal_observation") for info in infos]
        course.append(
            (
                seen["state"].tolist(),
                dones.tolist(),
                [None if one is None else (one["obs"].tolist(), one["state"].tolist()) for one in told],
            )
        )
    idle = [0.0] * 6  # the state: age and end of both mortals (an ended one ages on), then which of the two is meant
    assert course == [
        ([[2, 2, 2, 4, 1, 0], [2, 2, 2, 4, 0, 1]], [False, False], [None, None]),
        ([idle, [3, 2, 3, 4, 0, 1]], [True, False], [([3.0], [3, 2, 3, 4, 1, 0]), None]),
        ([idle, [4, 2, 4, 4, 0, 1]], [False, False], [None, None]),
        ([[1, 2, 1, 4, 1, 0], [1, 2, 1, 4, 0, 1]], [True, True], [([0.0], idle), ([5.0], [5, 2, 5, 4, 0, 1])]),
        ([[2, 2, 2, 4, 1, 0], [2, 2, 2, 4, 0, 1]], [False, False], [None, None]),
    ]


def test_a_critic_that_does_not_exist_is_named():
    with pytest.raises(ConfigError) as error:
        HeronVecEnv("heron/BatteryGrid-v0", 1, critic="centrl")
    assert str(error.value) == (
        "HeronVecEnv(critic='centrl'): must be one of ('local', 'central'). Did you mean 'central'?"
    )
