import warnings

import gymnasium
import numpy as np
import pytest
from ends import Mixed, endings
from gymnasium.utils.env_checker import check_env
from refusing import refuses

from heron_env import HeronEnv, SystemAgent, make, registered
from heron_env.adapters.gymnasium import JointEnv, joint_view
from heron_env.core.rule import one_by_one
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded

OPTIONS = {"heron/EnergyManagement-v1": {"dt": 900.0, "physics_substeps": 1}}
CONTROLS: dict[str, list[dict[str, object]]] = {
    "heron/Economy-v0": [{}],
    "heron/Spread-v0": [{"continuous": True}, {"continuous": False}],
    "heron/Tag-v0": [{"continuous": True}, {"continuous": False}],
    "heron/Adversary-v0": [{"continuous": True}, {"continuous": False}],
    "heron/Push-v0": [{"continuous": True}, {"continuous": False}],
    "heron/Reference-v0": [{"continuous": True}, {"continuous": False}],
    "heron/SpeakerListener-v0": [{"continuous": True}, {"continuous": False}],
    "heron/Crypto-v0": [{"continuous": True}, {"continuous": False}],
    "heron/WorldComm-v0": [{"continuous": True}, {"continuous": False}],
    "heron/TrafficCorridor-v0": [{}],
    "heron/GuidedWalker-v0": [{}],
    "heron/GraphColoring-v0": [{}],
}
SHIPPED = [  # EnergyManagement takes longer than all others together
    pytest.param(env_id, control, marks=pytest.mark.e2e if env_id in OPTIONS else ())
    for env_id in registered()
    if env_id.startswith("heron/")
    for control in CONTROLS.get(env_id, [{"control": "field"}, {"control": "zone"}])
]


@pytest.mark.parametrize(("env_id", "control"), SHIPPED)
def test_gymnasium_s_own_checks_pass_on_every_registered_environment(env_id: str, control: dict[str, object]):
    env = gymnasium.make(f"heron_env:{env_id}", **control, **OPTIONS.get(env_id, {}))
    assert env.spec is not None
    assert env_id in env.spec.to_json()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*we recommend using a symmetric and normalized space.*")
        check_env(env.unwrapped)


def test_the_joint_view_is_all_agents_in_order_and_never_the_state():
    joint, env = joint_view("heron/BatteryGrid-v0", num_batteries=3), make("heron/BatteryGrid-v0", num_batteries=3)
    seen, _ = joint.reset(seed=3)
    observations, _ = env.reset(seed=3)
    actions = [0.1, -0.2, 0.3]
    for _ in range(100):
        assert np.array_equal(seen, np.concatenate([observations[agent] for agent in env.possible_agents]))
        seen, reward, terminated, truncated, infos = joint.step(np.array(actions, dtype=np.float32))
        observations, rewards, *_ = env.step(
            {agent: np.float32(a) for agent, a in zip(env.possible_agents, actions, strict=True)}
        )
        assert reward == one_by_one(rewards.values())
        assert joint.observation_space.contains(seen)
    assert (terminated, truncated) == (False, True)
    assert set(infos) == {f"battery_{i}.{name}" for i in (1, 2, 3) for name in ("is_active", "decision", "aoi")}


@pytest.mark.parametrize(
    ("ends", "limit", "expected"), [((2, 3), 9, (True, False)), ((2, 9), 4, (False, True)), ((4, 4), 4, (True, False))]
)
def test_an_episode_is_terminated_by_a_rule_and_truncated_by_a_limit(ends, limit, expected):
    joint = JointEnv(endings(ends, max_steps=limit))
    joint.reset(seed=0)
    for step in range(1, 10):
        seen, reward, terminated, truncated, infos = joint.step(np.zeros(2, dtype=np.float32))
        if terminated or truncated:
            break
        # An agent shows its last values in the step in which it ends, and zeros from then on.
        assert [seen[i] != 0.0 for i in range(2)] == [step <= end for end in ends]
        assert reward == sum(step <= end for end in ends)
        assert set(infos) == {f"mortal_{i}.{name}" for i in (1, 2) for name in ("is_active", "decision", "aoi")}
    assert (terminated, truncated) == expected
    with pytest.raises(ResetNeeded):
        joint.step(np.zeros(2, dtype=np.float32))


def test_mixed_actions_have_no_joint_view():
    with pytest.raises(ConfigError) as error:
        JointEnv(HeronEnv(SystemAgent("system_agent", *Mixed.pair()), max_steps=3))
    assert str(error.value) == (
        "joint view of heron_env: one vector can't hold continuous and discrete actions together "
        "(mover_1: [-1.0, 1.0], chooser_1: Discrete(3)); use the environment itself, a PettingZoo ParallelEnv, "
        "or a control with actions of one kind"
    )


def test_discrete_actions_become_one_multidiscrete():
    joint = JointEnv(HeronEnv(SystemAgent("system_agent", *Mixed.choosers(2)), max_steps=3))
    assert joint.action_space == gymnasium.spaces.MultiDiscrete([3, 3])
    joint.reset(seed=0)
    seen, *_ = joint.step(np.array([2, 1]))
    assert seen.tolist() == [2.0, 1.0]


def test_an_action_of_another_shape_is_refused():
    joint = joint_view("heron/BatteryGrid-v0")
    joint.reset(seed=0)
    with refuses(InvalidAction, "the joint action has shape (3,), expected (2,): Box(-1.0, 1.0, (2,), float32)"):
        joint.step(np.zeros(3))
