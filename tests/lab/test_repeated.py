"""A run by the wall clock is repeated from its record, bit for bit; a record of another run is refused (R1, R5)."""

import re
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from heron_env import Answer, Asked, ScheduleConfig, make
from heron_env.errors import TraceError, UnknownAgent
from heron_env.lab import run_real_time

LATE = ScheduleConfig(msg_delay=0.1, act_delay=0.2, jitter_type="uniform", jitter_ratio=0.5, loss=0.1)
EVERYTHING = ("rewards", "actions", "observations")
SPEED = 100.0


class Slow:
    """Answers after a time that nobody can foretell; what it answers depends on all that it was asked before."""

    def __init__(self, seed: int) -> None:
        self.times, self.memory = np.random.default_rng(seed), 0.0

    def begin(self, seed: int, episode: int) -> None:
        self.memory = 0.0

    def answer(self, asked: Asked) -> Answer:
        time.sleep(float(self.times.exponential(0.004)))
        self.memory = 0.9 * self.memory + float(asked.vector[0])
        thinking = 0.7 if asked.number % 5 == 4 else 0.0
        return Answer(np.clip([0.3 * self.memory - 0.4], *bounds(asked)), thinking=thinking)


class Pairs(Slow):
    """The same, of all that are asked at one instant."""

    def answer_all(self, questions: list[Asked]) -> list[Answer]:
        return [self.answer(asked) for asked in questions]


def bounds(asked: Asked) -> tuple[float, float]:
    return float(asked.space.low[0]), float(asked.space.high[0])  # type: ignore[attr-defined]


def lived(seed: int, kind: type[Slow] = Slow, **options: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    env = make("heron/BatteryGrid-v0", max_steps=25)
    policies: dict[str, Any] = {"*": kind(seed)}
    told = {"seed": seed, "schedule": LATE, "record": EVERYTHING} | options
    result, punctuality = run_real_time(env, policies, speed=SPEED, **told)
    assert sum(map(len, punctuality.answers.values())) > 3
    return env, result, punctuality.arrivals, told


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.e2e) for seed in range(2, 15))])
@pytest.mark.parametrize("kind", [Slow, Pairs])
def test_a_run_with_slow_policies_is_repeated_bit_for_bit(kind: type[Slow], seed: int):
    env, result, arrivals, options = lived(seed, kind)
    again = env.run_event_driven({"*": kind(99)}, arrivals=arrivals, **options)
    assert again.same_course(result) and again.messages == result.messages and again.busy == result.busy
    assert again.digests(EVERYTHING) == result.digests(EVERYTHING)
    played = env.run_event_driven(arrivals.policies(), arrivals=arrivals, **options)
    assert played.digests(EVERYTHING) == result.digests(EVERYTHING)
    assert result.busy != dict.fromkeys(result.busy, 0)  # or the times would not have mattered


def test_what_is_no_record_of_this_run_is_refused_or_noticed():
    env, _, arrivals, options = lived(3)
    moved = {agent: (replace(answers[0], at=answers[0].at + 400_000_000), *answers[1:])
             for agent, answers in arrivals.answers.items()}  # fmt: skip
    lost = {agent: (None, *answers[1:]) for agent, answers in arrivals.answers.items()}
    for changed in (moved, lost):
        with pytest.raises(TraceError, match=r"arrivals: .* (came out otherwise|another run)"):
            env.run_event_driven({"*": Slow(0)}, arrivals=replace(arrivals, answers=changed), **options)
    with pytest.raises(TraceError, match="came out otherwise"):
        env.run_event_driven({"*": lambda vector: [0.1]}, arrivals=arrivals, **options)
    with pytest.raises(TraceError, match=re.escape("seed=4: the recorded run has the seed 3; leave seed out")):
        env.run_event_driven({"*": Slow(0)}, arrivals=arrivals, **options | {"seed": 4})
    with pytest.raises(UnknownAgent, match="batery_1"):
        env.run_event_driven({"*": Slow(0)}, arrivals=replace(arrivals, places={"batery_1": "a"}))


def test_a_run_that_was_interrupted_is_repeated_up_to_there():
    env = make("heron/BatteryGrid-v0", max_steps=100)
    policy, options = Slow(1), {"seed": 1, "schedule": LATE, "record": EVERYTHING}
    result, punctuality = run_real_time(
        env, {"*": policy}, speed=SPEED, clock=Interrupted(0.3), sleep=time.sleep, **options
    )
    assert punctuality.interrupted and 2.0 < result.end_time < 100.0
    again = env.run_event_driven({"*": Slow(9)}, arrivals=punctuality.arrivals, **options)
    assert again.digests(EVERYTHING) == result.digests(EVERYTHING)


class Interrupted:
    """A wall clock at which somebody presses Ctrl-C once."""

    def __init__(self, after: float) -> None:
        self.begun, self.after, self.pressed = time.perf_counter(), after, False

    def __call__(self) -> float:
        now = time.perf_counter()
        if now - self.begun > self.after and not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt
        return now
