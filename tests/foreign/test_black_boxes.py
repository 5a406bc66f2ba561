"""Environments of other people under our network without delay: the bare environment, bit for bit.

They live in an environment of their own (requirements.txt beside this file): `.ci/run foreign`.
"""

import copy
import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
import pytest
from black_boxes import own, same
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from heron_env import Condition, Plan, ScheduleConfig, Sweep, under_network

pytest.importorskip("mpe2", reason="tests/foreign/requirements.txt is installed by .ci/run foreign")
mo_gymnasium = pytest.importorskip("mo_gymnasium")
pytest.importorskip("supersuit")  # without a name: it has none of the attributes that collecting asks a module for
pytestmark = pytest.mark.far
os.environ["SDL_VIDEODRIVER"] = os.environ["SDL_AUDIODRIVER"] = "dummy"

HARD = ScheduleConfig(obs_delay=0.7, act_delay=1.4, msg_delay=0.6, jitter_type="lognormal", jitter_ratio=0.8, loss=0.25)
MPE = ("simple", "simple_spread", "simple_tag", "simple_adversary", "simple_crypto", "simple_push",
       "simple_reference", "simple_speaker_listener", "simple_world_comm", "simple_formation", "simple_line",
       "collect_treasure")  # fmt: skip

VERSIONS = {"simple_speaker_listener": 4, "simple_formation": 1, "simple_line": 1, "collect_treasure": 1}


def of(module: str, **options: Any) -> Callable[[], Any]:
    return lambda: import_module(module).parallel_env(**options)


PARALLEL: dict[str, Callable[[], Any]] = {
    **{f"mpe2/{name}": of(f"mpe2.{name}_v{VERSIONS.get(name, 3)}") for name in MPE},
    "mpe2/simple_spread, numbers": of("mpe2.simple_spread_v3", continuous_actions=True),
    "mpe2/simple_spread, agent by agent": lambda: import_module("mpe2.simple_spread_v3").env(),
    "mpe2/simple_spread, three frames": lambda: import_module("supersuit").frame_stack_v1(
        of("mpe2.simple_spread_v3")(), 3),
    "sisl/pursuit": of("pettingzoo.sisl.pursuit_v5", max_cycles=30),
    "sisl/multiwalker": of("pettingzoo.sisl.multiwalker_v9", max_cycles=60),
    "classic/rps": of("pettingzoo.classic.rps_v2", max_cycles=30),
    "butterfly/knights_archers_zombies": of(
        "pettingzoo.butterfly.knights_archers_zombies_v11", spawn_delay=2, max_zombies=30),
    "butterfly/pistonball": of("pettingzoo.butterfly.pistonball_v6", n_pistons=6, max_cycles=12),
    "butterfly/cooperative_pong": of("pettingzoo.butterfly.cooperative_pong_v6", max_cycles=12),
}  # fmt: skip
SINGLE = (
    "CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0", "Pendulum-v1", "LunarLander-v3", "BipedalWalker-v3",
    "CarRacing-v3", "Taxi-v4", "Blackjack-v1", "FrozenLake-v1", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5",
    "Swimmer-v5", "Reacher-v5", "InvertedPendulum-v5", "Humanoid-v5",
)  # fmt: skip
OF_MO = ("deep-sea-treasure-v0", "mo-mountaincar-v0", "mo-hopper-v5")


def drawn(space: Any, seed: int) -> Callable[[Any, Any], Any]:
    """Random actions, by the mask where there is one: but every third, which the environment judges."""
    space = copy.deepcopy(space)
    space.seed(seed)
    count = iter(range(10**9))

    def draw(observation: Any, info: Any) -> Any:
        mask = info.get("action_mask", observation.get("action_mask") if isinstance(observation, dict) else None)
        return space.sample() if mask is None or next(count) % 3 == 2 else space.sample(mask)

    return draw


def parallel_course(env: Any, most: int) -> list[Any]:
    draws = {agent: drawn(env.action_space(agent), rank) for rank, agent in enumerate(env.possible_agents)}
    course: list[Any] = []
    for seed in (7, None):  # the second episode goes on from the first
        outcome = copy.deepcopy(env.reset(seed=seed))
        course.append((outcome[0], own(outcome[1])))
        for _ in range(most):
            seen, infos = outcome[0], outcome[-1]
            outcome = copy.deepcopy(env.step({agent: draws[agent](seen[agent], infos[agent]) for agent in env.agents}))
            course.append((*outcome[:4], own(outcome[4]), list(env.agents)))
            if not env.agents:
                break
    env.close()
    return course


@pytest.mark.parametrize("name", PARALLEL)
def test_a_pettingzoo_environment_without_delay_is_the_bare_one(name: str):
    bare = PARALLEL[name]()
    if not hasattr(bare, "step") or hasattr(bare, "last"):
        from pettingzoo.utils.conversions import aec_to_parallel

        bare = aec_to_parallel(bare)
    courses = parallel_course(bare, 250), parallel_course(under_network(PARALLEL[name](), ScheduleConfig()), 250)
    assert len(courses[0]) == len(courses[1]) > 10
    for step, (a, b) in enumerate(zip(*courses, strict=True)):
        assert same(a, b), step
    if name.endswith("zombies"):  # some die before the others
        assert {len(step[-1]) for step in courses[0] if len(step) == 6} > {0, 4}


def played(name: str, config: ScheduleConfig, answer: Callable[[Any], Any]) -> Any:
    """Two episodes under the network, as far as 40 steps; `answer`: what an action is given as."""
    alone = name in SINGLE or name in OF_MO
    build = mo_gymnasium.make if name in OF_MO else gymnasium.make
    world = under_network(build(name) if alone else PARALLEL[name](), config, noop="random")
    spaces = (
        {"": world.action_space} if alone else {agent: world.action_space(agent) for agent in world.possible_agents}
    )
    draws, course = {agent: drawn(space, rank) for rank, (agent, space) in enumerate(spaces.items())}, list[Any]()
    for seed in (7, None):
        seen, infos = world.reset(seed=seed)
        for _ in range(12 if name.startswith("CarRacing") else 40):
            if alone:
                outcome = world.step(answer(draws[""](seen, infos)))
                ended = outcome[2] or outcome[3]
            else:
                outcome = world.step({agent: answer(draws[agent](seen[agent], infos[agent])) for agent in world.agents})
                ended = not world.agents
            seen, infos = outcome[0], outcome[4]
            course.append(copy.deepcopy((*outcome[:4], own({"": infos} if alone else infos))))
            if ended:
                break
    world.close()
    return course


@pytest.mark.parametrize("thinking", [0.0, 1.7])
@pytest.mark.parametrize("name", [*PARALLEL, *SINGLE, *OF_MO])
def test_a_plan_of_one_is_its_action(name: str, thinking: float):
    config = replace(HARD, thinking=thinking)
    courses = played(name, config, lambda action: action), played(name, config, lambda action: Plan([action]))
    assert len(courses[0]) == len(courses[1]) > 3
    for step, (a, b) in enumerate(zip(*courses, strict=True)):
        assert same(a, b), step


def single_course(env: Any, most: int) -> list[Any]:
    draw, course = drawn(env.action_space, 3), []
    for seed in (7, None):
        outcome = copy.deepcopy(env.reset(seed=seed))
        course.append((outcome[0], own({"": outcome[1]})))
        for _ in range(most):
            outcome = copy.deepcopy(env.step(draw(outcome[0], outcome[-1])))
            course.append((*outcome[:4], own({"": outcome[4]})))
            if outcome[2] or outcome[3]:
                break
    env.close()
    return course


@pytest.mark.parametrize("name", [*SINGLE, *OF_MO])
def test_a_gymnasium_environment_without_delay_is_the_bare_one(name: str):
    build = mo_gymnasium.make if name in OF_MO else gymnasium.make
    most = 20 if name.startswith("CarRacing") else 250
    courses = single_course(build(name), most), single_course(under_network(build(name), ScheduleConfig()), most)
    assert len(courses[0]) == len(courses[1]) > 3
    for step, (a, b) in enumerate(zip(*courses, strict=True)):
        assert same(a, b), step


@pytest.mark.parametrize("name", ["mpe2/simple_spread", "mpe2/simple_world_comm", "butterfly/knights_archers_zombies",
                                  "sisl/pursuit"])  # fmt: skip
@pytest.mark.parametrize("config", [ScheduleConfig(), HARD], ids=["plain", "hard"])
def test_pettingzoo_s_kit_passes_on_them(name: str, config: ScheduleConfig):
    parallel_api_test(under_network(PARALLEL[name](), config, noop="random", observe_age=True), 100)


@pytest.mark.parametrize("name", ["CartPole-v1", "HalfCheetah-v5", "CarRacing-v3", "Blackjack-v1"])
@pytest.mark.parametrize("config", [ScheduleConfig(), HARD], ids=["plain", "hard"])
def test_gymnasium_s_kit_passes_on_them(name: str, config: ScheduleConfig):
    check_env(under_network(gymnasium.make(name), config, noop="random"), skip_render_check=True)


def test_hops_late_are_hops_of_another_policy():
    """MuJoCo with delays: what is applied is what was decided on an observation of the past, scored undelayed."""
    env = under_network(gymnasium.make("Hopper-v5"), ScheduleConfig(obs_delay=1.0, act_delay=1.0))
    bare = gymnasium.make("Hopper-v5")
    weights = np.random.default_rng(0).normal(size=(3, 11)) / 4

    def policy(observation: Any) -> Any:
        return np.tanh(weights @ observation).astype(np.float32)

    result = env.run_event_driven({"*": policy}, seed=1)
    seen, rewards = [bare.reset(seed=1)[0]], []
    while True:
        step = len(rewards)
        action = policy(seen[step - 2]) if step >= 2 else np.zeros(3, np.float32)
        observation, reward, terminated, truncated, _ = bare.step(action)
        seen.append(observation), rewards.append((step + 1.0, reward))
        if terminated or truncated:
            break
    assert result.rewards["agent"] == rewards and len(rewards) > 10


def test_a_sweep_of_simple_spread_by_name():
    conditions, options = [Condition(loss=0.0), Condition(msg_delay=2.0)], {"noop": 0, "max_cycles": 10}
    sweep = Sweep.of("pettingzoo:mpe2/simple_spread_v3", {"random": "random"}, conditions, cases=3, options=options)
    result = sweep.run(processes=1, progress=False)
    assert result.point("random", conditions[0]).identical and not result.point("random", conditions[1]).identical
    assert result.point("random", conditions[1]).staleness_p95 == 2.0
    bare, idle = of("mpe2.simple_spread_v3", max_cycles=10)(), []
    for case in sweep.cases:
        bare.reset(seed=case.seed)
        idle.append(0.0)
        while bare.agents:
            idle[-1] += sum(bare.step(dict.fromkeys(bare.agents, 0))[1].values())
    assert result.point("do nothing", sweep.conditions[0]).values == pytest.approx(idle, rel=1e-12)
