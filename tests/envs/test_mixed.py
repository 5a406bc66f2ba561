"""Numbers and choices in one action: one world in every execution, learned to its optimum, and taken away."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endpoint_kit import fast, serving
from mixed_world import CARTS, Cart, best, carts, driven
from refusing import refuses

from heron_env import BatchEnv, Hyperparameters, ScheduleConfig, load_policy, train
from heron_env.adapters import HeronVecEnv
from heron_env.adapters.gymnasium import JointEnv
from heron_env.errors import ConfigError, InvalidAction
from heron_env.injection import ExternalPolicy
from heron_env.testing import Status, check_env


def test_a_forbidden_choice_becomes_the_no_op_and_its_number_stays():
    env = carts(1)
    seen, infos = env.reset(seed=0)
    while seen["cart_1"][1] != 1.0:
        seen, *_, infos = env.step({"cart_1": [0.0, 1]})
    assert infos["cart_1"]["action_mask"]["d"].tolist() == [1, 1, 0] and infos["cart_1"]["action_mask"]["c"] is None
    env.step({"cart_1": {"c": [0.75], "d": 2}})
    assert env.simulation.model.hierarchy.agents[1].current_action.vector().tolist() == [0.75, 0.0]


@pytest.mark.e2e
def test_the_conformance_kit_and_pettingzoo_pass():
    report = check_env(CARTS)
    report.raise_if_failed()
    assert [finding.check for finding in report.of(Status.PASSED)].count("masks") == 1
    assert [finding.check for finding in report.of(Status.SKIPPED)] == []


# The known optimum


def test_no_action_earns_more_than_the_optimum():
    env, throttles = carts(1), np.linspace(0.0, 1.0, 21)
    seen, infos = env.reset(seed=3)
    for _ in range(19):
        mask, vector, state = infos["cart_1"]["action_mask"]["d"], seen["cart_1"], env.get_state()
        earned = []
        for gear in np.flatnonzero(mask):
            for throttle in throttles:
                env.set_state(state)
                earned.append(env.step({"cart_1": [throttle, gear]})[1]["cart_1"])
        env.set_state(state)
        seen, rewards, *_, infos = env.step({"cart_1": driven(vector)})
        assert rewards["cart_1"] == pytest.approx(best(vector), abs=1e-6)
        assert rewards["cart_1"] >= max(earned) - 1e-6


QUICK = Hyperparameters(
    n_steps=16, batch_size=256, learning_rate=3e-3, gamma=0.0, gae_lambda=0.0, hidden=(64,)
)  # what is done now counts for nothing later


@pytest.mark.e2e
def test_the_lean_trainer_comes_within_a_hundredth_of_the_optimum(tmp_path: Path):
    train(
        CARTS, tmp_path, total_steps=40_000, hyperparameters=QUICK, validations=0, validation_episodes=1, progress=False
    )
    policy, lanes = load_policy(tmp_path)["cart"], BatchEnv(CARTS, 64, seed=1_000_000)
    seen, infos = lanes.reset()
    short = []
    for _ in range(20):
        vectors = seen["cart"].copy()
        actions = policy.forward_batch(vectors.reshape(-1, 2), infos["cart"]["action_mask"].reshape(-1, 3))
        seen, rewards, _, _, infos = lanes.step({"cart": actions.reshape(*vectors.shape[:2], 2)})
        short.append(best(vectors) - rewards["cart"])
    assert np.mean(short) < 0.01 < 1 / 12  # of whoever never drives back; whoever is mostly out of gear misses 0.2


# Other programs


def test_an_endpoint_drives_as_the_policy_does():
    def brain(body: dict[str, Any]) -> dict[str, Any]:
        throttle, gear = driven(np.array(body["decision"]["observation"]["vector"], np.float32))
        return {"action": {"c": [throttle], "d": int(gear)}}

    env = carts()
    own = env.run_synchronous({"*": driven}, seed=5)
    late = ScheduleConfig(act_delay=0.5)
    own_late = env.run_event_driven({"*": driven}, seed=5, schedule=late)
    with serving(brain) as endpoint:
        policy = {"*": ExternalPolicy(fast(endpoint.url), env=env)}
        assert env.run_synchronous(policy, seed=5).same_course(own)
        assert env.run_event_driven(policy, seed=5, schedule=late).same_course(own_late)
    space = json.loads(endpoint.raw[0])["decision"]["action_space"]
    assert (space["type"], space["low"], space["high"], space["n"]) == ("mixed", [0.0], [1.0], 3)


def test_stable_baselines3_and_one_vector_are_refused_with_what_to_use_instead():
    with refuses(
        ConfigError,
        "HeronVecEnv: group 'cart' mixes numbers and choices, and Stable-Baselines3 takes no Dict actions; train with "
        "`heron train` (lab.train), TorchRL (HeronTorchEnv) or RLlib (HeronMultiAgentEnv), or split "
        "the agent in two: one for the numbers, one for the choices",
    ):
        HeronVecEnv(CARTS, 2)
    with pytest.raises(ConfigError, match="can't hold continuous and discrete actions together"):
        JointEnv(carts())


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ({"c": np.zeros((3, 2, 1))}, "has 0 elements in 'd', expected 6"),
        ({"d": np.zeros((3, 2))}, "has 0 elements in 'c', expected 6"),
        ({"c": np.zeros((3, 2, 2)), "d": ()}, "has 12 elements in 'c', expected 6"),
    ],
)
def test_a_batch_names_the_part_that_is_missing_or_too_long(actions: Any, words: str):
    lanes = BatchEnv(CARTS, 3)
    lanes.reset()
    shown = f"{Cart.action.describe()}; give {{'c': numbers, 'd': choices}}"
    with refuses(InvalidAction, f"step(): the action of group 'cart' {words}: {shown}"):
        lanes.step({"cart": actions})
    with refuses(
        InvalidAction,
        "step(): the action of group 'cart' has the keys ['numbers']; name its parts 'c' (numbers) and 'd' (choices)",
    ):
        lanes.step({"cart": {"numbers": np.zeros(6)}})
