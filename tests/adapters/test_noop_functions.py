"""A no-op that is a function of what the environment shows at the boundary: position set-points that stay."""

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from black_boxes import Bookkeeper
from plan_worlds import Integrator, Switch
from refusing import refuses

from heron_env import Planned, ScheduleConfig, under_network
from heron_env.errors import ConfigError


def stay(agent: str, space: Any, observation: Any) -> Any:
    """The position; it does with its observation what it likes."""
    position = np.clip(observation[:1], space.low, space.high)
    observation[:] = np.nan
    return position


def test_it_gets_the_truth_of_the_boundary_however_old_the_agent_s_own_is() -> None:
    env = under_network(Integrator(), ScheduleConfig(obs_delay=40.0, act_delay=7.0), noop=stay, observe_age=True)
    result = env.run_event_driven({"*": lambda seen: [9.0 + 0.0 * seen[0]]}, seed=3, record=("rewards",))
    bare, pushes = Integrator(), list[float]()
    observation, _ = bare.reset(seed=3)
    for number in range(120):
        pushes.append(9.0 if number >= 40 + 7 else float(np.clip(observation[0], -3.0, 3.0)))
        observation = bare.step([pushes[-1]])[0]
    assert env.unwrapped.pushes == pushes and result.same_course(
        pickle.loads(pickle.dumps(env)).run_event_driven({"*": lambda seen: [9.0]}, seed=3, record=("rewards",))
    )


def test_it_holds_where_a_plan_ends_and_in_what_is_running() -> None:
    env, known = under_network(Integrator(), ScheduleConfig(act_delay=2.0, tick_interval=60.0), noop=stay), list[Any]()

    def plan(seen: Any, running: Any) -> Any:
        known.append((seen[0], running.remaining[0][0]))
        return np.ones((3, 1))

    env.run_event_driven({"*": Planned(plan, end="noop")}, seed=0)
    pushes = env.unwrapped.pushes
    assert pushes[2] == 1.0 and pushes[0] != pushes[5] != pushes[6] != 0.0
    assert known[0][0] == known[0][1] == pushes[0]


def test_what_lies_outside_the_space_is_refused_when_it_is_applied() -> None:
    env = under_network(Switch(), ScheduleConfig(act_delay=1.0), noop=lambda agent, space, seen: 7)
    env.reset(seed=0)
    with refuses(ConfigError, "under_network(noop=...): 7 of 'agent' lies outside Discrete(3)"):
        env.step(1)


def test_two_parameters_are_called_once_and_three_each_time() -> None:
    called = list[str]()
    twice = under_network(Bookkeeper("discrete"), noop=lambda agent, space, count=1: called.append(agent) or 0)
    assert called == list(twice.possible_agents) and twice.network.noops.plain() == dict.fromkeys(called, 0)
    late = under_network(gymnasium.make("Pendulum-v1"), ScheduleConfig(act_delay=1.0), noop=stay)
    assert gymnasium.make(late.spec).network.noops.plain() is stay
    with pytest.raises(TypeError, match="JSON"):
        late.spec.to_json()
