"""Errors of rules, hooks and policies: nobody steps on in a half-done step, and what ended it is named."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heron_env import (
    BatchEnv,
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    quantity,
    rule,
)
from heron_env.adapters.gymnasium import HeronVectorEnv, JointEnv
from heron_env.errors import InvalidAction, ResetNeeded, RuleError
from heron_env.registry import make_aec

ERROR: list[BaseException] = []
"""What the world raises, once."""


def fail_once(*_: Any) -> None:
    if ERROR:
        raise ERROR.pop()


class Tank(FeatureProvider):
    level: float = quantity(default=0.0, low=-99.0, high=99.0)


class Valve(FieldAgent):
    features = (Tank,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Tank.level)
    def apply_action(tank: Tank, action: Vector) -> float:
        return tank.level + action[0]

    @staticmethod
    @rule
    def compute_local_reward(tank: Tank) -> float:
        return tank.level


class FailsToBegin(HeronEnv):
    def begin(self, world: Any) -> None:
        fail_once()


class FailsToAdvance(HeronEnv):
    def advance(self, world: Any, dt: float) -> None:
        fail_once()


class FailsToFinish(HeronEnv):
    def finish(self, world: Any) -> None:
        fail_once()


KINDS: dict[str, type[HeronEnv]] = {
    "begin": FailsToBegin, "advance": FailsToAdvance, "finish": FailsToFinish, "rule": HeronEnv,
}  # fmt: skip


class Torn(Valve):
    """Its rule fails, in Python: a part of the others has acted by then."""

    @staticmethod
    @rule(writes=Tank.level)
    def apply_action(tank: Tank, action: Vector) -> float:
        fail_once()
        return tank.level + action[0]


def plant(place: str = "finish", compile: bool = False, **options: Any) -> HeronEnv:
    agents = Valve("valve_1"), (Torn if place == "rule" else Valve)("valve_2")
    return KINDS[place](SystemAgent("system_agent", *agents), max_steps=9, compile=compile, **options)


@pytest.fixture(autouse=True)
def calm() -> Any:
    ERROR.clear()
    yield
    ERROR.clear()


ACTIONS = {"valve_1": [0.5], "valve_2": [0.25]}


def same(a: Any, b: Any) -> bool:
    return all(x == y if not isinstance(x, np.ndarray) else np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def arrives_as(place: str, error: BaseException) -> type[BaseException]:
    """As what it leaves the environment: those of rules have words of our own."""
    return RuleError if place == "rule" and isinstance(error, Exception) else type(error)


def course(env: HeronEnv, steps: int = 3) -> list[Any]:
    """Observations and rewards."""
    return [[*(outcome[0][a] for a in ACTIONS), outcome[1]] for outcome in (env.step(ACTIONS) for _ in range(steps))]


def require_torn(env: Any, step: Callable[[], Any], words: str) -> None:
    for _ in range(2):
        with pytest.raises(ResetNeeded, match=words):
            step()


PLACES = ["advance", "finish", "rule"]
VALUE, INTERRUPT, INVALID = ValueError("leak"), KeyboardInterrupt("leak"), InvalidAction("leak")


@pytest.mark.parametrize(
    ("place", "error"),
    [("advance", VALUE), ("finish", INTERRUPT), ("finish", INVALID), ("rule", ZeroDivisionError("leak")),
     ("rule", INTERRUPT)],
)  # fmt: skip
def test_after_an_error_in_a_step_only_a_reset_or_a_kept_state_goes_on(place: str, error: BaseException):
    env = plant(place)
    env.reset(seed=1)
    course(env)
    kept = env.get_state()
    expected = course(copy.deepcopy(env))
    ERROR.append(error)
    kind = arrives_as(place, error)
    with pytest.raises(kind, match="leak"):
        env.step(ACTIONS)
    words = rf"step\(\): the last step\(\) ended in {kind.__name__}: .*leak.*; call reset\(\) first"
    other = plant(place)
    other.set_state(env.get_state())
    for one in (env, copy.deepcopy(env), other):
        require_torn(one, lambda one=one: one.step(ACTIONS), words)
    env.set_state(kept)
    for a, b in zip(course(env), expected, strict=True):
        assert same(a[:2], b[:2]) and a[2] == b[2]
    env.reset(seed=1)
    fresh = plant(place)
    fresh.reset(seed=1)
    assert [one[2] for one in course(env)] == [one[2] for one in course(fresh)]


def test_a_compiled_world_is_no_other():
    env = plant(compile=True)
    env.reset(seed=0)
    ERROR.append(ValueError("leak"))
    with pytest.raises(ValueError, match="leak"):
        env.step(ACTIONS)
    require_torn(env, lambda: env.step(ACTIONS), "ended in ValueError: leak")
    env.reset()
    env.step(ACTIONS)


@pytest.mark.parametrize(
    "wrong", [{"valve_1": [7.0]}, {"valve_1": ["left"]}, {"valve_3": [0.0]}, {"valve_1": [0.1, 0.1]}]
)
def test_after_an_action_that_is_refused_the_next_one_counts(wrong: Any):
    env, plain = plant(), plant()
    env.reset(seed=0), plain.reset(seed=0)
    for _ in range(3):
        with pytest.raises((InvalidAction, KeyError)):
            env.step({**ACTIONS, **wrong})
        assert same([env.step(ACTIONS)[1]], [plain.step(ACTIONS)[1]])


def test_an_agent_s_own_policy_that_fails_leaves_the_step_to_be_tried_again():
    tired = [False]

    def act(vector: Any) -> Any:
        if tired[0]:
            raise OSError("no answer")
        return [0.25]

    env = plant()
    env.hierarchy.agents[env.hierarchy.index["valve_2"]].policy = act
    env.reset(seed=0)
    env.step({"valve_1": [0.5]})
    tired[0] = True
    with pytest.raises(OSError, match="no answer"):
        env.step({"valve_1": [0.5]})
    tired[0] = False
    assert env.step({"valve_1": [0.5]})[1] == {"valve_1": 1.0, "valve_2": 0.5}


def test_after_an_error_in_reset_nobody_steps_on():
    env = plant("begin")
    env.reset(seed=0)
    env.step(ACTIONS)
    ERROR.append(OSError("no data"))
    with pytest.raises(OSError, match="no data"):
        env.reset()
    require_torn(env, lambda: env.step(ACTIONS), r"step\(\): the last reset\(\) ended in OSError: no data; call reset")
    env.reset(), env.step(ACTIONS)


@pytest.mark.parametrize(
    ("run", "error"),
    [("run_synchronous", VALUE), ("run_synchronous", INTERRUPT), ("run_event_driven", INTERRUPT),
     ("run_event_driven", INVALID)],
)  # fmt: skip
def test_after_an_aborted_run_nobody_steps_on_in_it(run: str, error: BaseException):
    def tire(vector: Any) -> Any:
        if vector[0] >= 1.5:
            raise error
        return [0.5]

    env = plant()
    env.reset(seed=0)
    with pytest.raises(type(error), match="leak"):
        getattr(env, run)({"*": tire}, seed=0)
    require_torn(
        env, lambda: env.step(ACTIONS), rf"the last {run}\(\) ended in {type(error).__name__}: leak; call reset"
    )
    env.reset(), env.step(ACTIONS)


def test_what_a_run_refuses_before_it_begins_changes_nothing():
    env = plant()
    env.reset(seed=0), env.step(ACTIONS)
    for run in (env.run_synchronous, env.run_event_driven):
        with pytest.raises(ValueError, match=r"."):
            run({"valve": 3}, seed=0)
        env.step(ACTIONS)


@pytest.mark.parametrize("place", ["policy", *PLACES])
def test_an_event_driven_run_that_failed_is_not_carried_on(place: str):
    tired = [False]

    def act(vector: Any) -> Any:
        if place == "policy" and tired[0]:
            raise ValueError("leak")
        return [0.5]

    env = plant("finish" if place == "policy" else place)
    run = env.start_event_driven({"*": act}, seed=0, schedule=ScheduleConfig(act_delay=0.25))
    run.until(2.0)
    tired[0] = True
    if place != "policy":
        ERROR.append(ValueError("leak"))
    kind = arrives_as(place, ValueError("leak"))
    with pytest.raises(kind, match="leak"):
        run.until(4.0)
    tired[0] = False
    require_torn(run, lambda: run.until(5.0), rf"until\(\): the last until\(\) ended in {kind.__name__}: .*; start")


# What drives an environment


def test_the_joint_view_says_what_ended_its_last_step():
    env = JointEnv(plant())
    env.reset(seed=0)
    with pytest.raises(InvalidAction):
        env.step(np.array([0.5, 7.0]))
    env.step(np.array([0.5, 0.5]))
    ERROR.append(ValueError("leak"))
    with pytest.raises(ValueError, match="leak"):
        env.step(np.array([0.5, 0.5]))
    require_torn(env, lambda: env.step(np.array([0.5, 0.5])), r"the last step\(\) ended in ValueError: leak")


def drivers() -> dict[str, Callable[[], tuple[Any, Any]]]:
    def vector() -> tuple[Any, Any]:
        env = HeronVectorEnv(plant, 2)
        return env, lambda: env.step(np.full((2, 2), 0.5))

    def batch() -> tuple[Any, Any]:
        env = BatchEnv(plant, 2)
        return env, lambda: env.step({"valve": np.full((2, 2, 1), 0.5)})

    def sb3() -> tuple[Any, Any]:
        pytest.importorskip("stable_baselines3")
        from heron_env.adapters.sb3 import HeronVecEnv

        env = HeronVecEnv(plant, 2)
        return env, lambda: env.step(np.full((4, 1), 0.5))

    return {"HeronVectorEnv": vector, "BatchEnv": batch, "HeronVecEnv": sb3}


@pytest.mark.parametrize(
    ("driver", "error"),
    [("HeronVectorEnv", VALUE), ("BatchEnv", INTERRUPT), ("BatchEnv", INVALID), ("HeronVecEnv", VALUE)],
)
def test_batches_say_what_ended_their_last_step(driver: str, error: BaseException):
    env, step = drivers()[driver]()
    env.reset()
    step()
    ERROR.append(error)
    with pytest.raises(type(error), match="leak"):
        step()
    require_torn(
        env,
        step,
        rf"an error ended its last step or reset half-way \(the last step\(\) ended in {type(error).__name__}",
    )
    env.reset()
    step()


def test_agent_by_agent_an_action_is_refused_at_its_own_turn():
    aec, plain = make_aec(f"{__name__}:plant"), plant()
    aec.reset(seed=0), plain.reset(seed=0)
    for _ in range(4):
        for agent in ("valve_1", "valve_2"):
            assert aec.agent_selection == agent
            with pytest.raises(InvalidAction, match=f"action of '{agent}'"):
                aec.step([7.0])
            aec.step(ACTIONS[agent])
        assert aec.rewards == plain.step(ACTIONS)[1]
    assert copy.deepcopy(aec).agent_selection == pickle.loads(pickle.dumps(aec)).agent_selection == "valve_1"
