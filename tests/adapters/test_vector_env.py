"""HeronVectorEnv beside Gymnasium's own vector of joint views."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from ends import endings
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from heron_env import HeronVectorEnv
from heron_env.adapters.gymnasium import JointEnv
from heron_env.errors import InvalidAction, ResetNeeded

GRID = {"num_batteries": 3, "max_steps": 5}
MODES = list(AutoresetMode)


def pair(mode: AutoresetMode, compile: bool, **more: Any) -> tuple[HeronVectorEnv, SyncVectorEnv]:
    """Ours, by make_vec, and Gymnasium's over single joint views."""
    env_id = "heron_env:heron/BatteryGrid-v0"
    ours = gymnasium.make_vec(env_id, num_envs=3, autoreset_mode=mode, compile=compile, **GRID, **more)
    others = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": mode}}
    return ours, gymnasium.make_vec(env_id, num_envs=3, compile=False, **others, **GRID, **more)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_it_does_what_gymnasium_s_own_vector_of_joint_views_does(mode: AutoresetMode, compile: bool):
    ours, theirs = pair(mode, compile)
    assert isinstance(ours, HeronVectorEnv)
    assert ours.batch.compiled == compile
    assert ours.metadata["autoreset_mode"] is mode
    for name in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert np.array_equal(ours.reset(seed=4)[0], theirs.reset(seed=4)[0])
    theirs.action_space.seed(0)
    for _ in range(17):
        actions = theirs.action_space.sample()
        (*mine, told), (*expected, infos) = ours.step(actions), theirs.step(actions)
        for one, other in zip(mine, expected, strict=True):
            assert np.array_equal(one, other) and one.dtype == other.dtype
        assert ("final_obs" in told) == ("final_obs" in infos)
        if "final_obs" in infos:
            assert np.array_equal(told["_final_obs"], infos["_final_obs"])
            assert np.array_equal(np.stack(told["final_obs"]), np.stack(infos["final_obs"]))
            assert told["final_info"]["battery"]["decision"].tolist() == [[1, 1, 1]] * 3
        if mode is AutoresetMode.DISABLED and mine[3].any():
            mask = {"reset_mask": mine[3].copy()}
            assert np.array_equal(ours.reset(options=dict(mask))[0], theirs.reset(options=dict(mask))[0])


@pytest.mark.parametrize("ends", [(2, 3), (2, 9)])
def test_an_agent_that_ended_leaves_zeros_and_ends_are_those_of_the_joint_view(ends: tuple[float, ...]):
    ours = HeronVectorEnv(lambda: endings(ends, max_steps=4), 1, autoreset_mode="Disabled")
    joint = JointEnv(endings(ends, max_steps=4))
    ours.reset(seed=0)
    joint.reset(seed=0)
    over = False
    while not over:
        seen, reward, *by, _ = joint.step(np.zeros(2, dtype=np.float32))
        rows, rewards, terminated, truncated, _ = ours.step(np.zeros((1, 2), dtype=np.float32))
        assert rows[0].tolist() == seen.tolist()
        assert (rewards.tolist(), terminated.tolist(), truncated.tolist()) == ([reward], [by[0]], [by[1]])
        over = any(by)
    with pytest.raises(ResetNeeded):
        ours.step(np.zeros((1, 2), dtype=np.float32))


def test_gymnasium_s_wrappers_understand_its_infos():
    ours, _ = pair(AutoresetMode.NEXT_STEP, False)
    env: Any = DictInfoToList(RecordEpisodeStatistics(ours))
    _, infos = env.reset(seed=0)
    assert infos[2]["battery"]["is_active"].tolist() == [1, 1, 1]
    for _ in range(5):
        *_, infos = env.step(np.zeros((3, 3), dtype=np.float32))
    assert [info["episode"]["l"] for info in infos] == [5, 5, 5]


def test_joint_actions_of_another_shape_are_refused():
    ours, _ = pair(AutoresetMode.NEXT_STEP, False)
    ours.reset()
    with pytest.raises(InvalidAction, match=r"joint actions have shape \(3,\), expected \(3, 3\)"):
        ours.step(np.zeros(3))


@pytest.mark.parametrize("mode", MODES)
def test_how_it_begins_anew_can_be_asked(mode: AutoresetMode):
    assert HeronVectorEnv("heron/BatteryGrid-v0", 2, autoreset_mode=mode).autoreset_mode is mode


def test_infos_are_made_at_the_first_look_which_must_be_before_the_next_step():
    env = HeronVectorEnv("heron/BatteryGrid-v0", 2, compile=True, **GRID)
    actions = np.full((2, 3), 0.25)
    env.reset(seed=0)
    first = env.step(actions)[4]
    told = first["battery"]
    assert isinstance(told, dict) and set(told) == {*told.keys()} >= {"is_active", "_is_active", "aoi", "_aoi"}
    kept, plain = {name: values.copy() for name, values in told.items()}, copy.deepcopy(told)
    second = env.step(-actions)[4]
    third = env.step(actions)[4]
    assert type(plain) is dict and plain.keys() == told.keys()
    assert all(np.array_equal(told[name], values) for name, values in kept.items())
    assert third["_battery"].tolist() == third["battery"]["_decision"].tolist() == [True, True]
    with pytest.raises(ResetNeeded, match="the batch has gone on; read infos before the next step"):
        len(second["battery"])
