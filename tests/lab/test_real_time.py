"""The event clock by the wall clock: the course is the event clock's, and what comes late is counted."""

import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import as_json, heron
from endpoint_kit import serving

from heron_env import Answer, Asked, Planned, ScheduleConfig, make
from heron_env.errors import ConfigError
from heron_env.injection import ExternalPolicy
from heron_env.lab import run_real_time

GRID = "heron/BatteryGrid-v0"
SLOW = ScheduleConfig(
    tick_interval=1.0, msg_delay=0.2, act_delay=0.4, jitter_type="uniform", jitter_ratio=0.5, loss=0.1
)


class Wall:
    """A wall clock that moves when somebody sleeps, or computes."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def hold(vector: np.ndarray) -> np.ndarray:
    return 0.2 * (0.5 - vector[:1])


@pytest.mark.parametrize("speed", [0.5, 1.0, 20.0])
def test_the_course_is_that_of_the_event_clock_and_takes_its_time(speed: float):
    wall, env = Wall(), make(GRID, max_steps=8)
    plain = env.run_event_driven({"*": hold}, seed=3, schedule=SLOW)
    found, told = run_real_time(
        env, {"*": hold}, speed=speed, clock=wall.clock, sleep=wall.sleep, seed=3, schedule=SLOW
    )
    assert found.same_course(plain) and found.messages == plain.messages
    assert wall.now - 100.0 == pytest.approx(plain.end_time / speed) == pytest.approx(told.seconds)
    assert told.actions == {agent: len(acts) for agent, acts in plain.actions.items()}
    assert sum(told.missed.values()) == 0 and max(told.done) < 1e-9 and not told.interrupted


def test_an_end_that_was_asked_for_is_waited_for():
    wall, env = Wall(), make(GRID)
    found, _ = run_real_time(env, {"*": hold}, t_end=2.5, clock=wall.clock, sleep=wall.sleep, seed=0)
    assert found.end_time == 2.5 and wall.now == pytest.approx(102.5)


def test_who_thinks_for_long_makes_actions_late_and_they_are_counted():
    wall, env = Wall(), make(GRID, max_steps=6)
    asked = []

    def slow(vector: np.ndarray) -> np.ndarray:
        asked.append(wall.now)
        if len(asked) == 3:
            wall.now += 1.5  # thinks
        return hold(vector)

    _, told = run_real_time(
        env, {"battery_1": hold, "battery_2": slow}, tolerance=0.1, clock=wall.clock, sleep=wall.sleep, seed=0
    )
    assert told.actions == {"battery_1": 6, "battery_2": 6}
    assert told.missed == {"battery_1": 2, "battery_2": 2}  # of t = 2 s, when it thought, and of t = 3 s
    late = told.to_dict()["done_late"]
    assert late["max"] == pytest.approx(1.5) and "4 of 12 actions more than 100 ms late" in str(told)


def test_on_the_real_clock_it_takes_its_time():
    env = make(GRID, max_steps=4)
    begun = time.perf_counter()
    found, told = run_real_time(env, {"*": hold}, speed=20.0, seed=1)
    assert time.perf_counter() - begun >= found.end_time / 20.0 == 0.2
    assert found.same_course(env.run_event_driven({"*": hold}, seed=1)) and told.to_dict()["instants"] > 4


def test_ctrl_c_keeps_what_there_is():
    wall, env = Wall(), make(GRID, max_steps=50)

    def sleep(seconds: float) -> None:
        wall.sleep(seconds)
        if wall.now >= 105.0:
            raise KeyboardInterrupt

    found, told = run_real_time(env, {"*": hold}, clock=wall.clock, sleep=sleep, seed=0)
    assert told.interrupted and found.end_time == 4.0 and told.actions["battery_1"] == 5
    assert len(found.rewards["battery_1"]) == 4


def test_ctrl_c_while_somebody_decides_keeps_what_there_is():
    env, asked = make(GRID, max_steps=20), []

    def stops(vector: np.ndarray) -> np.ndarray:
        asked.append(1)
        if len(asked) == 9:
            raise KeyboardInterrupt
        return hold(vector)

    found, told = run_real_time(env, {"*": stops}, speed=1000.0, seed=0)
    assert told.interrupted and found.end_time == 4.0 and sum(told.actions.values()) == 8


class Thinker:
    """Answers after so many seconds of the wall clock; the answer that it gave when told how long it took before."""

    def __init__(self, seconds: float, known: dict[tuple[str, int], float] | None = None) -> None:
        self.seconds, self.known = seconds, known
        self.log: list[tuple[str, int]] = []

    def answer(self, asked: Asked) -> Answer:
        self.log.append((asked.agent, asked.number))
        action = 0.3 * np.sin(float(asked.vector.sum()) + asked.number)
        if self.known is not None:
            return Answer(action, thinking=self.known[asked.agent, asked.number])
        time.sleep(self.seconds * (1 + asked.number % 3))
        return Answer(action)


def test_who_thinks_for_long_holds_nobody_up():
    env = make(GRID, num_batteries=3, max_steps=12)
    policies = {"battery_1": Thinker(0.03), "battery_2": Thinker(0.06), "battery_3": hold}
    found, told = run_real_time(env, policies, speed=20.0, tolerance=0.02, seed=2, trace=True)
    assert told.actions["battery_3"] == 12
    assert min(told.skipped["battery_1"], told.skipped["battery_2"]) > 0 and told.skipped == found.busy
    assert min(told.answers["battery_2"]) >= 0.06
    assert told.to_dict()["answers"]["battery_1"]["count"] == len(told.answers["battery_1"])
    assert "observations came while their agent was thinking" in str(told)

    thoughts = [row for row in found.trace or () if row.kind == "Answered"]
    took = {(env.hierarchy.ids[r.agent], r.number): (r.t_ns - r.payload.asked) / 1e9 for r in thoughts}
    assert all(row.latency == row.t_ns - row.payload.asked for row in thoughts)
    asked = [one for name in ("battery_1", "battery_2") for one in policies[name].log]
    known = {one: took.get(one, 1e6) for one in asked}  # those that had not come at the end
    again = {"battery_1": Thinker(0.0, known), "battery_2": Thinker(0.0, known), "battery_3": hold}
    plain = env.run_event_driven(again, seed=2)
    assert found.same_course(plain) and found.busy == plain.busy


def test_who_is_waited_for_holds_the_others_up():
    env = make(GRID, max_steps=4)
    policies = {"battery_1": Thinker(0.05), "battery_2": hold}
    found, told = run_real_time(env, policies, speed=20.0, tolerance=0.02, wait_for_answers=True, seed=0)
    assert told.missed["battery_2"] >= 3 and not any(told.skipped.values()) and not told.answers
    assert found.same_course(env.run_event_driven({"battery_1": Thinker(0.0), "battery_2": hold}, seed=0))


def rows(vector: np.ndarray, running: Any) -> Any:
    """A plan of all that it knows; it takes its time."""
    time.sleep(0.03)
    known = float(vector.sum()) + running.index + running.prefix + running.age + running.number
    return 0.3 * np.sin(known + np.arange(4.0))[:, None]


def test_plans_by_the_wall_clock_are_those_of_the_event_clock():
    env = make(GRID, max_steps=14)

    def planning() -> dict[str, Any]:
        return {"*": Planned(rows, replan=3, merge="blend", end="noop")}

    waiting, _ = run_real_time(env, planning(), speed=30.0, tolerance=1.0, wait_for_answers=True, seed=0, schedule=SLOW)
    event = env.run_event_driven(planning(), seed=0, schedule=SLOW)
    assert waiting.same_course(event) and repr(waiting.plans) == repr(event.plans)

    free, told = run_real_time(env, planning(), speed=20.0, tolerance=1.0, seed=0, schedule=SLOW)
    again = env.run_event_driven(planning(), schedule=SLOW, arrivals=told.arrivals)
    assert free.same_course(again) and repr(free.plans) == repr(again.plans)
    spoken = env.run_event_driven(told.arrivals.policies(), schedule=SLOW, arrivals=told.arrivals)
    assert free.same_course(spoken) and sum(count.in_force for count in free.plans.values()) > 6


def test_an_endpoint_answers_when_it_answers():
    env = make(GRID, max_steps=12)

    def brain(request: dict[str, Any]) -> Any:
        time.sleep(0.2)
        return {"action": [0.25]}

    with serving(brain) as endpoint:
        policies = {"battery_1": ExternalPolicy(endpoint.url, env=env), "battery_2": hold}
        found, told = run_real_time(env, policies, speed=6.0, seed=0)
    busy, came = found.busy["battery_1"], told.answers["battery_1"]
    assert 0 < busy < 11 and len(endpoint.asked) == len(came) + found.unfinished_effects == 12 - busy
    assert told.actions["battery_2"] == 12 and min(came) >= 0.2
    assert {float(action[0]) for _, action in found.actions["battery_1"]} == {0.25}
    assert all(origin.source == "external" for _, origin in found.origins["battery_1"])


def test_an_answer_that_never_comes_ends_nothing():
    gone = threading.Event()

    class Gone:
        def answer(self, asked: Asked) -> Answer:
            gone.wait(60.0)
            return Answer(0.0)

    env = make(GRID, max_steps=4)
    begun = time.perf_counter()
    found, told = run_real_time(env, {"battery_1": Gone(), "battery_2": hold}, speed=20.0, seed=0)
    gone.set()
    assert time.perf_counter() - begun < 10.0
    assert (told.actions["battery_1"], told.skipped["battery_1"], found.unfinished_effects) == (0, 3, 1)


def test_what_a_policy_raises_is_raised_where_the_clock_runs():
    class Broken:
        def answer(self, asked: Asked) -> Answer:
            raise ValueError("no idea")

    with pytest.raises(ValueError, match="no idea"):
        run_real_time(make(GRID, max_steps=4), {"battery_1": Broken(), "battery_2": hold}, speed=20.0, seed=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({"speed": speed}, "must be a number > 0") for speed in (0.0, -1.0, float("nan"), "fast", True, 10**400)),
        *(({"tolerance": value}, "must be seconds >= 0") for value in (-1.0, True, "long", 10**400)),
        ({"wait_for_answers": "no"}, "wait_for_answers='no'): must be True or False"),
        ({"sleep": None}, "sleep=None): must be a function"),
        ({"clock": 3}, "clock=3): must be a function"),
        ({"clock": lambda: float("nan")}, "clock=...): returned nan; it must return seconds"),
        ({"clock": lambda: "noon"}, "clock=...): returned 'noon'; it must return seconds"),
        ({"record": 3}, "record=3: give a tuple"),
        ({"record": "actions"}, "record='actions': give a tuple"),
    ],
)
def test_options_that_are_none_are_refused(options: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=re.escape(words)):
        run_real_time(make(GRID, max_steps=2), {"*": hold}, **{"speed": 1e9, **options})


def test_what_is_no_environment_is_refused():
    with pytest.raises(ConfigError, match=r"run_real_time\(3\): give an environment"):
        run_real_time(3, {})  # type: ignore[arg-type]


def test_the_command_tells_how_it_kept_time(tmp_path: Path):
    file = tmp_path / "told.json"
    args = ["run", GRID, "--policy", "do nothing", "--realtime", "--speed", "50", "--option", "max_steps=4"]
    done = heron(*args, "--out", file).stdout
    assert done.startswith(f"{GRID}, do nothing, seed 0: 4 s of virtual time")
    assert "instants in" in done and "actions more than 10 ms late" in done
    told = json.loads(file.read_text())
    assert told["real_time"]["speed"] == 50.0 and told["end_time"] == 4.0
    plain = as_json(*args[:4], "--option", "max_steps=4")
    assert plain["returns"] == told["returns"] and "real_time" not in plain
