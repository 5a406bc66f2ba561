"""What agents with training delays see, when it is their turn, and when their decisions take effect."""

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
    SystemAgent,
    TrainingDelays,
    Vector,
    make,
    quantity,
    registered,
    rule,
)
from heron_env.errors import ConfigError
from heron_env.testing import Source

DT = 0.5
LATE = TrainingDelays(observation=2, action=1)
SOME = TrainingDelays(observation=(0, 2), action=(0, 2))
HELD, EXPLICIT, POLICY, COMMAND, NOOP = Source.HELD, Source.EXPLICIT, Source.POLICY, Source.COMMAND, Source.NOOP


class Meter(FeatureProvider):
    """Counts steps and remembers what was done."""

    visibility = ("owner", "upper_level")
    steps: float = quantity(default=0.0)
    done: float = quantity(default=0.0)


class Counter(FieldAgent):
    """Its reward is what was done last."""

    features = (Meter,)
    action = Continuous(-10.0, 10.0)

    @staticmethod
    @rule(writes=Meter.done)
    def apply_action(meter: Meter, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Meter.steps)
    def advance(meter: Meter) -> float:
        return meter.steps + 1.0

    @staticmethod
    @rule
    def compute_local_reward(meter: Meter) -> float:
        return meter.done


def counting(agent: Any = None, **options: Any) -> HeronEnv:
    system = SystemAgent("system_agent", agent or Counter("counter_1"))
    return HeronEnv(system, **{"dt": DT, "training_delays": LATE, "max_steps": 9, **options})


def follow(env: HeronEnv, decide: Callable[[int], dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What one agent saw, the info that came with it, and then its reward."""
    agent, found = env.possible_agents[0], []
    seen, infos = env.reset(seed=0)
    while env.agents:
        shown = seen[agent].tolist(), infos[agent]["is_active"], float(infos[agent]["aoi"][0])
        seen, rewards, _, _, infos = env.step(decide(env.simulation.step_index))
        found.append((*shown, rewards[agent], Source(infos[agent]["decision"])))
    return found


@pytest.mark.parametrize("compile", [False, True])
def test_an_agent_decides_on_what_was_and_acts_on_what_will_be(compile: bool):
    course = follow(counting(compile=compile), lambda step: {"counter_1": np.array([1.0 + step])})
    seen, active, age, reward, source = zip(*course, strict=True)
    assert [steps for steps, _ in seen] == [0, 0, 0, 1, 2, 3, 4, 5, 6]
    assert [done for _, done in seen] == [0, 0, 0, 0, 0, 0, 3, 4, 5]
    assert list(active) == [0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert list(age) == [0.0, DT, 2 * DT, 2 * DT, 2 * DT, 2 * DT, 2 * DT, 2 * DT, 2 * DT]
    assert list(reward) == [0, 0, 0, 3, 4, 5, 6, 7, 8]  # of the steps 0 and 1 nothing counts: it had seen nothing
    assert list(source) == [HELD, HELD, HELD, *[EXPLICIT] * 6]


def test_who_says_nothing_does_nothing_a_step_later():
    given = {2: {"counter_1": 5.0}}
    _, _, _, reward, source = zip(*follow(counting(), lambda step: given.get(step, {})), strict=True)
    assert list(reward) == [0, 0, 0, 5, 0, 0, 0, 0, 0]
    assert list(source) == [HELD] * 3 + [EXPLICIT] + [NOOP] * 5


def test_truth_is_of_now():
    env = counting()
    env.reset(seed=0)
    seen = [env.step({})[0]["counter_1"][0] for _ in range(4)][-1]
    assert (seen, env.state()[0], env.proxy.get_local_state("counter_1")["Meter"][0]) == (2.0, 4.0, 4.0)


def test_the_event_driven_clock_has_delays_of_its_own():
    policies = {"*": lambda vector: vector[:1] + 1.0}
    with_delays, without = counting(), counting(training_delays=None)
    assert with_delays.run_event_driven(policies, seed=1).same_course(without.run_event_driven(policies, seed=1))
    assert not with_delays.run_synchronous(policies, seed=1).same_course(without.run_synchronous(policies, seed=1))


def grid(**options: Any) -> HeronEnv:
    options = {"num_batteries": 4, "zone_size": 2, "control": "zone", "max_steps": 12, **options}
    return make("heron/BatteryGrid-v0", training_delays=SOME, **options)


def test_a_state_with_delays_fits_no_environment_without():
    env, other = counting(), counting(training_delays=None)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="of an environment with training_delays, this one is without"):
        other.set_state(env.get_state())
    with pytest.raises(ConfigError, match="of an environment without training_delays, this one is with"):
        env.set_state(other.get_state())


def test_delays_are_drawn_for_every_episode_and_the_same_for_the_same_seed():
    env = grid()
    drawn = []
    for seed in (3, None, 3):
        env.reset(seed=seed)
        drawn.append((env._late.lines.observation.tolist(), env._late.lines.action.tolist()))
    assert drawn[0] == drawn[2] != drawn[1]


@pytest.mark.parametrize("env_id", [one for one in registered() if one.startswith("heron/")])
def test_every_registered_environment_takes_delays(env_id: str):
    options = {"heron/Economy-v0": {}, "heron/GraphColoring-v0": {"max_steps": 8, "turns": "all"}}
    options = options.get(env_id, {"max_steps": 8})
    late, none, prompt = (make(env_id, training_delays=delays, **options) for delays in (LATE, TrainingDelays(), None))
    specs, index = late.simulation.specs, late.hierarchy.index
    policies = {agent: lambda vector, agent=agent: specs[index[agent]].noop for agent in late.possible_agents}
    runs = [env.run_synchronous(policies, seed=5, record=("rewards", "observations")) for env in (none, prompt)]
    assert runs[0].same_course(runs[1])
    seen, told = late.reset(seed=5)
    true, _ = prompt.reset(seed=5)
    kept = [true]
    for step in range(1, 5):
        seen, _, _, _, told = late.step({})
        kept.append(prompt.step({})[0])
        for name, vector in seen.items():
            assert told[name]["is_active"] == (step >= 2)
            rank, expected = index[name], kept[max(step - 2, 0)][name].copy()
            own = late.simulation.plan.views[rank].own if late.timings[rank].local else 0
            expected[:own] = kept[-1][name][:own]
            assert np.array_equal(vector, expected)


GRID = {"num_batteries": 3, "max_steps": 4, "training_delays": SOME}


@pytest.mark.parametrize("compile", [False, True])
def test_a_reset_of_one_s_own_sees_in_a_batch_what_the_batch_hands_out(compile: bool):
    env, seen = make("heron/BatteryGrid-v0", compile=compile, **GRID), []

    class Watching(type(env)):  # type: ignore[misc]
        def reset(self, **options: Any) -> Any:
            seen.append(np.stack([*(found := super().reset(**options))[0].values()]))
            return found

    env.__class__ = Watching
    batch = BatchEnv(env, 2, seed=3)
    for _ in range(2):
        assert np.array_equal(batch.reset(options={"any": 1})[0]["battery"], seen[-2:])
        batch.step({})


def test_a_step_of_the_environment_that_a_batch_was_given_moves_its_lane_alone() -> None:
    env = make("heron/BatteryGrid-v0", compile=False, training_delays=TrainingDelays(observation=1, action=1))
    batch = BatchEnv(env, 3)
    batch.reset(seed=0)
    given = {name: np.full((3, len(agents), 1), 0.5) for name, agents in batch.groups.items()}
    for _ in range(2):
        batch.step(given)
    others = batch.state()[1:].copy()
    env.step({agent: np.full(1, 0.5) for agent in env.agents})
    assert np.array_equal(batch.state()[1:], others)
