"""A critic that sees the state beside an actor that doesn't: what HeronVecEnv offers it, and what the policy reads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from ends import COARSE, KINDS, Mixed, draw, endings
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import CombinedExtractor
from stable_baselines3.common.vec_env import VecMonitor

from heron_env import HeronEnv, SystemAgent, make
from heron_env.adapters import CentralCriticPolicy, HeronVecEnv
from heron_env.errors import ConfigError


def pair(make_env, num_envs: int, **options) -> tuple[HeronVecEnv, HeronVecEnv]:
    """The same environments for a central and for a local critic."""
    return tuple(HeronVecEnv(make_env, num_envs, critic=critic, **options) for critic in ("central", "local"))


def central_model(venv: HeronVecEnv, **options) -> PPO:
    settings = {"n_steps": 8, "batch_size": 8 * venv.num_envs, "n_epochs": 1, "seed": 1, "device": "cpu"}
    return PPO(CentralCriticPolicy, venv, **{**settings, **options})


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


def test_what_was_handed_out_never_changes():
    venv = HeronVecEnv("heron/BatteryGrid-v0", 1, critic="central")
    first = venv.reset()
    kept = {part: values.copy() for part, values in first.items()}
    venv.step(np.ones((2, 1), dtype=np.float32))
    assert all(np.array_equal(first[part], kept[part]) for part in kept)


def model_and_inputs(**options) -> tuple[PPO, dict[str, torch.Tensor]]:
    venv = HeronVecEnv("heron/EnergyManagement-v1", 1, critic="central", **COARSE)
    model = central_model(venv, **options)
    seen, _ = model.policy.obs_to_tensor(venv.reset())
    return model, {part: values.clone().requires_grad_() for part, values in seen.items()}


def gradients(output: torch.Tensor, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor | None]:
    found = torch.autograd.grad(output.sum(), list(inputs.values()), allow_unused=True, retain_graph=True)
    return dict(zip(inputs, found, strict=True))


@pytest.mark.parametrize("use_sde", [False, True])
def test_the_actor_s_graph_has_no_state_in_it_and_the_critic_s_has_both(use_sde: bool):
    model, inputs = model_and_inputs(use_sde=use_sde)
    policy = model.policy
    actions = torch.zeros((6, 1))
    means = policy.get_distribution(inputs).distribution.mean
    values, log_prob, entropy = policy.evaluate_actions(inputs, actions)
    _, forward_values, forward_log_prob = policy(inputs, deterministic=True)
    for output in (means, log_prob, forward_log_prob, entropy):
        assert gradients(output, inputs)["state"] is None
    for output in (means, log_prob):
        assert gradients(output, inputs)["obs"].abs().sum() > 0.0
    for output in (values, forward_values, policy.predict_values(inputs)):
        found = gradients(output, inputs)
        assert found["state"].abs().sum() > 0.0
        assert found["obs"].abs().sum() > 0.0


def test_what_the_actor_learns_reaches_no_weight_of_the_critic_and_the_other_way_round():
    model, inputs = model_and_inputs()
    actor = {name for name, _ in model.policy.named_parameters() if "policy_net" in name or "action_net" in name}
    for output, own in ((model.policy.get_distribution(inputs).distribution.mean, True), (None, False)):
        model.policy.zero_grad()
        (model.policy.predict_values(inputs) if output is None else output).sum().backward()
        moved = {name for name, p in model.policy.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
        assert moved and all((name in actor) == own for name in moved)


def test_any_state_gives_the_same_action_and_another_value():
    model, _ = model_and_inputs()
    model.learn(8 * 6 * 4)
    seen = model.get_env().reset()
    rng = np.random.default_rng(0)
    other = {"obs": seen["obs"], "state": rng.normal(size=seen["state"].shape).astype(np.float32)}
    assert model.predict(seen, deterministic=True)[0].tobytes() == model.predict(other, deterministic=True)[0].tobytes()
    tensors = [model.policy.obs_to_tensor(one)[0] for one in (seen, other)]
    with torch.no_grad():
        (values, log_prob, _), (others, other_log_prob, _) = (
            model.policy.evaluate_actions(one, torch.full((6, 1), 0.3)) for one in tensors
        )
    assert torch.equal(log_prob, other_log_prob)
    assert not torch.isclose(values, others).any()


def test_agents_that_see_the_same_may_be_worth_different_amounts():
    venv = HeronVecEnv("heron/BatteryGrid-v0", 1, critic="central")
    model = central_model(venv)
    seen = venv.reset()
    assert np.array_equal(seen["obs"][0], seen["obs"][1])
    first, second = model.policy.predict_values(model.policy.obs_to_tensor(seen)[0]).tolist()
    assert first != second


@pytest.mark.parametrize(("env_id", "options", "group"), KINDS[:1] + KINDS[-1:])
def test_plain_ppo_learns_saves_and_loads(env_id, options, group, tmp_path: Path):
    venv = VecMonitor(HeronVecEnv(env_id, 2, critic="central", **options))
    model = central_model(venv)
    model.learn(24 * venv.num_envs)
    model.save(tmp_path / "model")
    model.policy.save(str(tmp_path / "policy"))
    seen = venv.reset()
    expected, _ = model.predict(seen, deterministic=True)
    loaded = PPO.load(tmp_path / "model", env=venv, device="cpu")
    assert np.array_equal(loaded.predict(seen, deterministic=True)[0], expected)
    assert np.array_equal(CentralCriticPolicy.load(tmp_path / "policy").predict(seen, deterministic=True)[0], expected)
    loaded.learn(8 * venv.num_envs)


def test_a_group_that_chooses_learns_too_and_keeps_its_masks():
    venv = HeronVecEnv(lambda: HeronEnv(SystemAgent("s", *Mixed.choosers(2)), max_steps=3), 2, critic="central")
    model = central_model(venv)
    model.learn(32)
    assert np.array_equal(venv.env_method("action_masks"), np.ones((4, 3), dtype=np.int8))
    inputs = {part: values.requires_grad_() for part, values in model.policy.obs_to_tensor(venv.reset())[0].items()}
    logits = model.policy.get_distribution(inputs).distribution.logits
    assert torch.autograd.grad(logits.sum(), inputs["state"], allow_unused=True) == (None,)


def test_a_timeout_is_worth_what_the_critic_makes_of_the_state_it_ended_in():
    """Reward 1 a step, discount 1/2, value = the agent's age in the state: the last of four steps returns 1 + 5 / 2."""
    model = central_model(
        HeronVecEnv(lambda: endings((50,), max_steps=4), 1, critic="central"), n_steps=4, batch_size=4, gamma=0.5
    )
    model.policy.predict_values = lambda seen: seen["state"][:, :1]
    model.learn(4)
    assert model.rollout_buffer.rewards[-1, 0] == 3.5


def test_what_does_not_fit_is_refused_in_words():
    venv = HeronVecEnv("heron/BatteryGrid-v0", 1)
    with pytest.raises(ConfigError) as error:
        PPO(CentralCriticPolicy, venv)
    assert str(error.value) == (
        f"CentralCriticPolicy: observations must be a Dict of ['obs', 'state'], got {venv.observation_space}; "
        'make the environments with HeronVecEnv(..., critic="central")'
    )
    central = HeronVecEnv("heron/BatteryGrid-v0", 1, critic="central")
    with pytest.raises(ConfigError) as error:
        PPO(CentralCriticPolicy, central, policy_kwargs={"features_extractor_class": CombinedExtractor})
    assert str(error.value) == (
        "CentralCriticPolicy(features_extractor_class=CombinedExtractor): what actor and critic read is fixed; "
        "leave it out"
    )
    with pytest.raises(ConfigError) as error:
        HeronVecEnv("heron/BatteryGrid-v0", 1, critic="centrl")
    assert str(error.value) == (
        "HeronVecEnv(critic='centrl'): must be one of ('local', 'central'). Did you mean 'central'?"
    )
