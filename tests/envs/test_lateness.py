"""What agents that see and act late decide on, and when their decisions take effect."""

from typing import Any

import pytest

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    make,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, RemovedName

DT = 0.5
LATE = ScheduleConfig(obs_delay=2 * DT, act_delay=DT)


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


def counting(**options: Any) -> HeronEnv:
    return HeronEnv(SystemAgent("system_agent", Counter("counter_1")), dt=DT, max_steps=9, **options)


@pytest.mark.parametrize("compile", [False, True])
def test_an_agent_decides_on_what_was_and_acts_on_what_will_be(compile: bool):
    env, seen = counting(compile=compile, observe_age=True), list[list[float]]()

    def decide(vector: Any) -> list[float]:
        seen.append(vector.tolist())
        return [1.0 + vector[0]]

    result = env.run_event_driven({"counter_1": decide}, seed=0, schedule=LATE)
    steps, done, age = zip(*seen, strict=True)
    assert list(steps) == [0, 1, 2, 3, 4, 5, 6]
    assert list(done) == [0, 0, 0, 0, 1, 2, 3]
    assert list(age) == [2 * DT] * 7
    assert [reward for _, reward in result.rewards["counter_1"]] == [0, 0, 0, 1, 2, 3, 4, 5, 6]


def test_the_synchronous_clock_knows_no_delay():
    policies = {"*": lambda vector: vector[:1] + 1.0}
    late, prompt = counting(schedule=LATE), counting()
    assert late.run_synchronous(policies, seed=1).same_course(prompt.run_synchronous(policies, seed=1))
    assert not late.run_event_driven(policies, seed=1).same_course(prompt.run_event_driven(policies, seed=1))


REMOVED = "delays stand in a schedule of the event clock"


@pytest.mark.parametrize("value", [None, 2])
def test_training_delays_are_gone_and_what_takes_their_place_is_named(value: Any):
    for build in (counting, lambda **options: make("heron/BatteryGrid-v0", **options)):
        with pytest.raises(ConfigError, match=rf"HeronEnv\(training_delays={value}\): is gone since .*{REMOVED}"):
            build(training_delays=value)
    with pytest.raises(RemovedName, match=REMOVED):
        from heron_env import TrainingDelays  # noqa: F401
