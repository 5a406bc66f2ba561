"""`under_network(plan=k)`: trainers give arrays of k actions, which are the plans of `Planned(horizon=k)`."""

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from black_boxes import Bookkeeper
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from laws.test_plans import network
from pettingzoo.test import parallel_api_test
from plan_worlds import Integrator, Switch, rolled_out
from refusing import refuses

from heron_env import Answer, Plan, Planned, ScheduleConfig, under_network
from heron_env.core.plans import MERGES
from heron_env.errors import ConfigError, InvalidAction
from heron_env.seeding import key, uniforms

K = 5


def choices(seen: Any) -> Any:
    """K choices of three, by the observation."""
    return (uniforms(key("choices", int(seen[0])), K) * 3).astype(int)


def by_hand(env: Any, policy: Any, seed: int) -> list[Any]:
    """Rewards, decisions in force and places in their plans, stepping; who isn't active answers nonsense."""
    observation, info = env.reset(seed=seed)
    course, over = list[Any](), False
    while not over:
        answer = policy(observation) if info["is_active"] else "nothing of use"
        observation, reward, terminated, truncated, info = env.step(answer)
        over = terminated or truncated
        course.append((reward, info["applied"], info.get("index"), info["aoi"]))
    return course


@pytest.mark.parametrize(("world", "policy"), [(Integrator, rolled_out(K)), (Switch, choices)], ids=["Box", "Discrete"])
@pytest.mark.parametrize("merge", [None, *MERGES])
def test_arrays_are_the_plans_of_a_run(world: Any, policy: Any, merge: Any) -> None:
    for number in range(5):
        net = network(number)
        stacked = under_network(world(), net, noop=0 if world is Switch else None, plan=K, merge=merge)
        stepped = by_hand(stacked, policy, number)
        taken = getattr(stacked.unwrapped, "taken", None)
        run = stacked.run_event_driven({"*": policy}, seed=number)
        plain = under_network(world(), net, noop=0 if world is Switch else None)
        planned = plain.run_event_driven({"*": Planned(policy, horizon=K, merge=merge or "drop")}, seed=number)
        assert [reward for reward, *_ in stepped] == [reward for _, reward in planned.rewards["agent"]]
        assert run.same_course(planned) and run.messages == planned.messages and run.latency == planned.latency
        assert taken == getattr(plain.unwrapped, "taken", None) and run.masked == planned.masked


def test_thinking_agents_are_not_active_and_their_actions_are_ignored() -> None:
    env = under_network(Integrator(rest=True), ScheduleConfig(thinking=3.0), plan=4)
    _, info = env.reset(seed=0)
    active, index = list[bool](), list[Any]()
    for number in range(7):
        active.append(info["is_active"])
        info = env.step(0.1 * number + np.arange(4.0)[:, None] if active[-1] else None)[4]
        index.append((info["applied"], info.get("index")))
    assert active == [True, False, False, True, False, False, True]
    assert index == [(-1, None)] * 3 + [(0, 3)] * 3 + [(3, 3)]
    assert env.unwrapped.pushes == [0.0] * 3 + [3.0] * 3 + [pytest.approx(3.3)]


def test_policies_of_runs_may_answer_plans_and_nothing_new() -> None:
    env = under_network(Integrator(), plan=2)
    every = env.run_event_driven({"*": lambda seen: Plan([[1.0], [2.0], [0.5]])}, seed=0)
    assert env.unwrapped.pushes == [1.0] * 120

    class Once:
        def answer(self, asked: Any) -> Answer:
            assert asked.space == env.env.action_space
            return Answer(None if asked.number else [[1.0], [2.0]])

    once = env.run_event_driven({"*": Once()}, seed=0)
    assert env.unwrapped.pushes == [1.0] + [2.0] * 119 and once.messages.sent < every.messages.sent
    with refuses(InvalidAction, "the policy of 'agent' returned None, and no plan before; return an action"):
        env.run_event_driven({"*": lambda seen: None}, seed=0)


def test_spaces_are_stacked() -> None:
    box = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, np.inf], np.float32))
    for inner, outer in (
        (box, spaces.Box(np.tile(box.low, (3, 1)), np.tile(box.high, (3, 1)))),
        (spaces.Box(-1, 5, (2, 2), np.int16), spaces.Box(-1, 5, (3, 2, 2), np.int16)),
        (spaces.Box(0.0, 1.0, (), np.float64), spaces.Box(0.0, 1.0, (3,), np.float64)),
        (spaces.Discrete(4, start=-1), spaces.MultiDiscrete([4] * 3, start=[-1] * 3)),
    ):
        bare = Switch()
        bare.action_space = inner
        space = under_network(bare, noop=inner.sample(), plan=3).action_space
        assert space == outer and space.dtype == inner.dtype
    team = under_network(Bookkeeper(), plan=3)
    assert team.action_space("fox").shape == (3, 2) and team.action_space("fox") is team.action_space("fox")
    assert under_network(Switch(), noop=0).action_space == spaces.Discrete(3)


def test_what_cannot_be_stacked_is_refused_in_words() -> None:
    switch = Switch()
    switch.action_space = spaces.MultiBinary(2)
    with refuses(
        ConfigError, "under_network(plan=2): the actions of 'agent' are of MultiBinary(2); only of a Box and of a "
        "Discrete is a stack an action space. Leave plan out; policies in runs may return a Plan"):  # fmt: skip
        under_network(switch, noop=[0, 0], plan=2)
    for wrong in (1, 2.5, True, "8"):
        with pytest.raises(ConfigError, match=r"under_network\(plan\)=.*must be a whole number from 2"):
            under_network(Integrator(), plan=wrong)
    with refuses(ConfigError, "under_network(merge='drop'): is of plans; give plan=k, too, or leave it out"):
        under_network(Integrator(), merge="drop")
    with pytest.raises(ConfigError, match=r"under_network\(merge='dorp'\): must be one of .* Did you mean 'drop'"):
        under_network(Integrator(), plan=2, merge="dorp")
    env = under_network(Integrator(), plan=2)
    env.reset(seed=0)
    for wrong in ([1.0], [[1.0]], [[1.0], [1.0, 2.0]], np.zeros((3, 1)), None, 0.5):
        with pytest.raises(InvalidAction, match=r"is none of Box\(-3.0, 3.0, \(2, 1\), float64\); give an array"):
            env.step(wrong)
    assert env.step([[1.0], [2.0]])[4]["applied"] == 0  # nothing has changed before


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped")
def test_trainers_and_checkers_take_it() -> None:
    late = ScheduleConfig(thinking=2.0, act_delay=1.0)
    pendulum = under_network(gymnasium.make("Pendulum-v1"), late, plan=4, merge="blend")
    check_env(pendulum, skip_render_check=True)
    parallel_api_test(under_network(Bookkeeper(), late, plan=4), 60)
    again = gymnasium.make(EnvSpec.from_json(pendulum.spec.to_json()))
    answer = np.linspace(-2.0, 2.0, 4, dtype=np.float32)[:, None]
    assert by_hand(again, lambda seen: answer, 3) == by_hand(pendulum, lambda seen: answer, 3)
    both = gymnasium.vector.SyncVectorEnv([lambda: under_network(Switch(), late, noop=0, plan=3)] * 2)
    assert both.action_space.shape == (2, 3)
    both.reset(seed=0)
    both.step(both.action_space.sample())
    pendulum.reset(seed=1)
    pendulum.step(answer)
    copy = pickle.loads(pickle.dumps(pendulum))
    for _ in range(6):
        one, other = pendulum.step(answer), copy.step(answer)
        assert np.array_equal(one[0], other[0]) and one[1:] == other[1:]


@pytest.mark.filterwarnings("ignore:.*CUDA.*")
def test_ppo_learns_plans_and_is_played_in_runs() -> None:
    ppo = pytest.importorskip("stable_baselines3").PPO
    env = under_network(gymnasium.make("Pendulum-v1", max_episode_steps=50), ScheduleConfig(thinking=2.0), plan=4)
    model = ppo("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, device="cpu", seed=0).learn(256)

    def policy(seen: Any) -> Any:
        return model.predict(seen, deterministic=True)[0]

    stepped = by_hand(env, policy, 7)
    run = env.run_event_driven({"*": policy}, seed=7)
    assert [reward for reward, *_ in stepped] == [reward for _, reward in run.rewards["agent"]]


def test_masks_are_of_one_action_and_allowed_for_each() -> None:
    bare = Switch()
    bare.action_masks = lambda: np.ones(3, bool)
    env = under_network(bare, noop=0, plan=3)
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 1, 1] and env.action_masks().tolist() == [True] * 9
    info = env.step([1, 1, 2])[4]
    assert info["action_mask"].tolist() == [1, 0, 1]
    assert env.action_masks().tolist() == [True, False, True] * 3
    slow = under_network(Switch(), ScheduleConfig(tick_interval=12.0), noop=0, plan=3)
    slow.run_event_driven({"*": lambda seen: [2, 1, 1]}, seed=0)
    assert slow.unwrapped.taken[:4] == [2, 0, 1, 0]
