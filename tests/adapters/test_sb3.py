import copy
import operator
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ends import COARSE, KINDS, Mixed, draw, endings
from refusing import refuses
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from heron_env import BatchEnv, HeronEnv, ScheduleConfig, SystemAgent, make
from heron_env.adapters import HeronVecEnv, HeronVectorEnv
from heron_env.errors import ConfigError, InvalidAction, UnknownAgent, UnknownField


@pytest.mark.parametrize(("env_id", "options", "group"), KINDS)
def test_every_slot_equals_its_agent_in_its_own_environment_bit_for_bit(env_id: str, options: dict, group: str):
    venv = HeronVecEnv(env_id, 2, seed=5, **options)
    envs = [make(env_id, **options) for _ in range(2)]
    agents = envs[0].group_map[group]
    seen = venv.reset()
    now = [env.reset(seed=5 + i)[0] for i, env in enumerate(envs)]
    rng, ended = np.random.default_rng(0), 0
    for _ in range(30):
        assert np.array_equal(seen, np.stack([now[i][agent] for i in range(2) for agent in agents]))
        actions = draw(venv, rng)
        seen, rewards, dones, infos = venv.step(actions)
        for i, env in enumerate(envs):
            share = {agent: actions[i * len(agents) + j] for j, agent in enumerate(agents)}
            now[i], _, terminated, truncated, _ = env.step(share)
            signal = env.training_signal()
            for j, agent in enumerate(agents):
                slot = i * len(agents) + j
                assert rewards[slot] == np.float32(signal[agent])
                assert dones[slot] == (terminated[agent] or truncated[agent])
                if dones[slot]:
                    assert np.array_equal(infos[slot]["terminal_observation"], now[i][agent])
                    assert infos[slot]["TimeLimit.truncated"] == (truncated[agent] and not terminated[agent])
                    ended += 1
            if not env.agents:
                now[i], _ = env.reset()
    assert ended > 0


@pytest.mark.parametrize(("env_id", "options", "group"), KINDS[:1] + KINDS[-1:])
def test_plain_ppo_learns_saves_and_loads(env_id: str, options: dict, group: str, tmp_path: Path):
    venv = HeronVecEnv(env_id, 2, **options)
    model = PPO("MlpPolicy", venv, n_steps=8, batch_size=8 * venv.num_envs, n_epochs=1, seed=1, device="cpu")
    model.learn(24 * venv.num_envs)
    model.save(tmp_path / "model")
    seen = venv.reset()
    before, _ = model.predict(seen, deterministic=True)
    after, _ = PPO.load(tmp_path / "model", device="cpu").predict(seen, deterministic=True)
    assert np.array_equal(before, after)
    assert len(model.ep_info_buffer) > 0


def test_a_timeout_is_worth_what_comes_after_it_and_an_end_is_worth_nothing():
    """With a reward of 1 a step and discount 1/2, the last step's return is 2 after a limit and 1 after a rule."""
    for env, expected in ((lambda: endings((50,), max_steps=4), 2.0), (lambda: endings((4,)), 1.0)):
        model = PPO("MlpPolicy", HeronVecEnv(env, 1), n_steps=4, batch_size=4, gamma=0.5, seed=0, device="cpu")
        model.policy.predict_values = lambda seen: torch.full((len(seen), 1), 2.0)
        model.learn(4)
        assert model.rollout_buffer.rewards[-1, 0] == expected


def test_the_monitor_s_return_is_the_team_s_true_one():
    venv, env = (
        HeronVecEnv("heron/EnergyManagement-v1", 1, seed=1, **COARSE),
        make("heron/EnergyManagement-v1", **COARSE),
    )
    venv.reset()
    for _ in range(24):
        *_, infos = venv.step(np.full((6, 1), 0.5, dtype=np.float32))
    expected = env.run_synchronous({"*": lambda vector: np.array([0.5])}, seed=1).returns["system_agent"]
    for info in infos:
        assert info["episode"]["r"] == expected
        assert info["episode"]["l"] == 24


def test_the_agents_own_rewards_are_used_where_the_training_signal_is_not_wanted():
    venv = HeronVecEnv("heron/EnergyManagement-v1", 1, use_training_signal=False, **COARSE)
    env = make("heron/EnergyManagement-v1", **COARSE)
    venv.reset()
    env.reset(seed=0)
    _, rewards, *_ = venv.step(np.ones((6, 1), dtype=np.float32))
    _, own, *_ = env.step({agent: np.ones(1) for agent in env.agents})
    assert rewards.tolist() == [np.float32(own[agent]) for agent in env.possible_agents]


def test_an_agent_that_ends_early_is_done_once_then_idles_until_the_episode_ends():
    venv = HeronVecEnv(lambda: endings((2, 4)), 1)
    venv.reset()
    course = []
    for _ in range(5):
        seen, rewards, dones, infos = venv.step(np.zeros((2, 1), dtype=np.float32))
        course.append((seen[:, 0].tolist(), rewards.tolist(), dones.tolist(), [sorted(info) for info in infos]))
    end, over = (
        ["TimeLimit.truncated", "terminal_observation"],
        ["TimeLimit.truncated", "episode", "terminal_observation"],
    )
    assert course == [
        ([2.0, 2.0], [1.0, 1.0], [False, False], [[], []]),
        ([0.0, 3.0], [1.0, 1.0], [True, False], [end, []]),
        ([0.0, 4.0], [0.0, 1.0], [False, False], [["idle"], []]),
        ([1.0, 1.0], [0.0, 1.0], [True, True], [sorted([*over, "idle"]), over]),
        ([2.0, 2.0], [1.0, 1.0], [False, False], [[], []]),
    ]


def test_seeds_are_stored_used_at_the_next_reset_and_then_forgotten():
    venv = HeronVecEnv("heron/EnergyManagement-v1", 2, seed=3, **COARSE)
    first, second = venv.reset(), venv.reset()
    assert venv.seed(3) == [3] * 6 + [4] * 6
    assert np.array_equal(venv.reset(), first)
    assert np.array_equal(venv.reset(), second)
    assert not np.array_equal(first, second)
    env = make("heron/EnergyManagement-v1", **COARSE)
    env.reset(seed=4)
    assert np.array_equal(second[6:], np.stack(list(env.reset()[0].values())))


def test_options_reach_the_next_reset():
    venv = HeronVecEnv("heron/EnergyManagement-v1", 1, **COARSE)
    venv.set_options({"day": 4})
    venv.reset()
    assert venv.get_attr("day", 0) == [4]


def test_each_environment_gets_its_own_options():
    venv = HeronVecEnv("heron/EnergyManagement-v1", 4, **COARSE)
    days = [4, 9, 4, 9]
    venv.set_options([{"day": day} for day in days for _ in range(venv.agents_per_env)])
    venv.reset()
    assert [venv.batch.lane(lane).day for lane in range(4)] == days


def test_to_wait_without_actions_is_refused():
    venv = HeronVecEnv("heron/BatteryGrid-v0", 2)
    venv.reset()
    with refuses(InvalidAction, "step_wait(): there are no actions; call step_async(actions) first"):
        venv.step_wait()


@pytest.mark.parametrize("compile", [False, True])
def test_what_was_handed_out_never_changes(compile: bool):
    venv = HeronVecEnv("heron/BatteryGrid-v0", 1, compile=compile)
    first = venv.reset()
    kept = first.copy()
    second, rewards, dones, _ = venv.step(np.ones((2, 1), dtype=np.float32))
    copies = [array.copy() for array in (second, rewards, dones)]
    for _ in range(2):
        venv.step(np.ones((2, 1), dtype=np.float32))
    assert np.array_equal(first, kept)
    assert all(np.array_equal(a, b) for a, b in zip((second, rewards, dones), copies, strict=True))


def mixed(max_steps: int = 3) -> HeronEnv:
    return HeronEnv(SystemAgent("system_agent", *Mixed.pair(), *Mixed.choosers(3)[1:]), max_steps=max_steps)


def test_other_groups_follow_their_policies_or_do_nothing():
    for others, expected in (({}, [0.0, 0.0]), ({"*": lambda v: 1, "chooser_3": lambda v: 2}, [1.0, 2.0])):
        venv = HeronVecEnv(mixed, 1, group="mover", others=others)
        venv.reset()
        venv.step(np.zeros((1, 1), dtype=np.float32))
        world = venv.batch.lane(0).simulation
        assert world.last_rewards[-2:] == expected


def test_a_group_must_be_chosen_where_there_are_several_and_policies_must_fit():
    cases = [
        ({}, ConfigError, "group=None: choose one of ['mover', 'chooser']."),
        ({"group": "moover"}, ConfigError, "group='moover': choose one of ['mover', 'chooser']. Did you mean 'mover'?"),
        ({"group": "mover", "others": {"choser": len}}, UnknownAgent,
         "others: 'choser' decides nothing here; there are ['mover', 'chooser', 'mover_1', 'chooser_1', "
         "'chooser_2', 'chooser_3']. Did you mean 'chooser'?"),
        ({"group": "mover", "others": {"mover_1": len}}, ConfigError,
         "others['mover_1']: 'mover_1' is in the group that is trained; leave it out"),
    ]  # fmt: skip
    for options, error, words in cases:
        with refuses(error, words):
            HeronVecEnv(mixed, 1, **options)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda venv: venv.seed("x"), ConfigError, "seed='x': must be a whole number >= 0"),
        (lambda venv: venv.seed(-1), ConfigError, "seed=-1: must be a whole number >= 0"),
        (lambda venv: venv.set_options(3), ConfigError, "set_options(): options=3: must be a list or tuple"),
        (lambda venv: venv.set_options([]), ConfigError, "set_options(): got 0 options for 4 slots"),
        (lambda venv: venv.set_options([1, 2, 3, 4]), ConfigError, "set_options(): options=1: must be a mapping"),
        (lambda venv: venv.get_attr("dt", [0.0]), ConfigError, "indices: slot=0.0: must be a whole number"),
        (lambda venv: venv.get_attr("dt", 4), ConfigError, "indices: slot=4: must be a whole number from -4 to 3"),
        (lambda venv: venv.env_is_wrapped(VecMonitor, "a"), ConfigError, "indices='a': must be a list or tuple"),
        (lambda venv: venv.get_attr("dtt"), UnknownField, "BatteryGridEnv has no attribute 'dtt'. Did you mean 'dt'?"),
        (lambda venv: venv.get_attr(3), UnknownField, "BatteryGridEnv has no attribute 3."),
        (lambda venv: venv.set_attr(3, 4), ConfigError, "set_attr(3): can't be set"),
        (lambda venv: venv.env_method("state", 3), ConfigError, "env_method('state'): can't be called"),
    ],
)
def test_what_is_no_seed_no_option_no_slot_or_no_name_is_refused(call: Any, error: type[Exception], words: str):
    venv = HeronVecEnv("heron/BatteryGrid-v0", 2)
    with pytest.raises(error, match=re.escape(words)):
        call(venv)


def test_a_signal_is_wanted_or_not():
    with pytest.raises(ConfigError, match=r"HeronVecEnv\(use_training_signal=array.*: must be True or False"):
        HeronVecEnv("heron/BatteryGrid-v0", 2, use_training_signal=np.zeros(2))


@pytest.mark.parametrize("build", [HeronVecEnv, HeronVectorEnv, BatchEnv])
def test_a_count_of_a_small_number_type_counts_on(build: Any):
    small, plain = (build("heron/BatteryGrid-v0", count, max_steps=3) for count in (np.int8(100), 100))
    assert small.num_envs == plain.num_envs and type(small.num_envs) is int
    for env in (small, plain):
        env.reset()


def test_masks_are_offered_by_groups_that_choose():
    venv = HeronVecEnv(mixed, 2, group="chooser")
    venv.reset()
    assert venv.has_attr("action_masks")
    assert np.array_equal(venv.env_method("action_masks"), np.ones((6, 3), dtype=np.int8))
    assert not HeronVecEnv(mixed, 1, group="mover").has_attr("action_masks")
    every_other = ScheduleConfig(tick_interval=2.0)
    slow = HeronVecEnv(lambda: HeronEnv(SystemAgent("s", *Mixed.choosers(1)), schedule=every_other), 1)
    slow.reset()
    slow.step(np.zeros(1, dtype=np.int64))
    assert np.array_equal(slow.env_method("action_masks"), [[1, 0, 0]])


def test_attributes_and_methods_reach_each_environment_once():
    venv = HeronVecEnv("heron/BatteryGrid-v0", 2)
    venv.reset()
    assert venv.has_attr("dt") and not venv.has_attr("nonsense")
    venv.set_attr("colour", "red", indices=[0, 1])
    assert venv.get_attr("colour", [0]) == ["red"]
    assert not hasattr(venv.batch.lane(1), "colour")
    assert [state.shape for state in venv.env_method("state", indices=2)] == [venv.batch.lane(1).state().shape]
    assert venv.env_is_wrapped(VecMonitor) == [False] * 4


def test_a_picture_shows_all_environments():
    picture = HeronVecEnv("heron/BatteryGrid-v0", 2, render_mode="rgb_array")
    picture.reset()
    tiled = picture.render()
    assert tiled is not None and tiled.ndim == 3 and tiled.dtype == np.uint8


@pytest.mark.parametrize("value", [1.5, np.nan])
def test_an_action_outside_the_space_names_environment_and_agent(value: float):
    venv = HeronVecEnv("heron/BatteryGrid-v0", 2)
    venv.reset()
    actions = np.array([[0.0], [0.0], [0.0], [value]], dtype=np.float32)
    with pytest.raises(InvalidAction) as error:
        venv.step(actions)
    assert str(error.value).startswith(f"lane 1: action of 'battery_2': [{value}] lies outside [-1.0, 1.0]")


def test_actions_of_another_shape_are_refused():
    venv = HeronVecEnv("heron/BatteryGrid-v0", 1)
    venv.reset()
    with pytest.raises(InvalidAction, match=r"actions have shape \(1, 2\), expected \(2, 1\)"):
        venv.step(np.zeros((1, 2)))


def test_options_go_to_the_function_or_with_the_id():
    venv = HeronVecEnv(mixed, 1, group="mover", max_steps=2)
    venv.reset()
    venv.step(np.zeros((1, 1), dtype=np.float32))
    *_, dones, _ = venv.step(np.zeros((1, 1), dtype=np.float32))
    assert dones.all()
    with pytest.raises(ConfigError, match=r"BatchEnv\(num_envs=0\): must be a whole number >= 1"):
        HeronVecEnv(mixed, 0, group="mover")


def test_infos_are_made_at_the_first_look_and_tell_of_their_own_step():
    def step() -> tuple[np.ndarray, list[dict[str, Any]]]:
        *_, dones, infos = venv.step(np.ones((9, 1), dtype=np.float32))
        return dones, infos

    venv = HeronVecEnv(lambda: endings((2, 4, 9), max_steps=6), 3)
    expected = HeronVecEnv(lambda: endings((2, 4, 9), max_steps=6), 3)
    venv.reset()
    expected.reset()
    later = [step() for _ in range(14)]  # nobody looks until all is over
    for dones, infos in later:
        now = [dict(info) for info in expected.step(np.ones((9, 1), dtype=np.float32))[3]]
        for info in (*infos, *now):
            info.get("episode", {}).pop("t", None)
        assert infos == now and [bool(info) for info in infos] >= dones.tolist()
    assert any(dones.any() for dones, _ in later) and any("idle" in info for _, infos in later for info in infos)


def test_infos_are_a_list_of_dicts_each_of_its_own_whoever_looks_first():
    venv = HeronVecEnv("heron/Spread-v0", 2, num_agents=3, max_steps=3)
    venv.reset()
    looks: list[Any] = [
        len, repr, list, tuple, copy.copy, copy.deepcopy, lambda infos: infos.copy(), lambda infos: infos[:],
        lambda infos: operator.add([], infos), lambda infos: operator.iadd([], infos), lambda infos: infos * 1,
        lambda infos: pickle.loads(pickle.dumps(infos)), lambda infos: list(reversed(infos))[::-1], np.array,
        lambda infos: infos == [{}] * 6, lambda infos: infos.pop(),
    ]  # fmt: skip
    for look in looks:
        dones, infos = venv.step(np.zeros((6, 5), dtype=np.float32))[2:]
        seen = look(infos)
        assert isinstance(infos, list)
        if isinstance(seen, list | tuple | np.ndarray):
            assert [sorted(info) for info in seen] == [sorted(info) for info in infos], look
            assert ["episode" in info for info in seen] == dones.tolist(), look
    *_, dones, infos = venv.step(np.zeros((6, 5), dtype=np.float32))
    for write in (infos[2], venv.step(np.zeros((6, 5), dtype=np.float32))[3][2]):
        write["mine"] = 1
    assert dones[2] == ("episode" in infos[2]) and "mine" not in infos[3]
