"""The event clock by the wall clock: the course is the event clock's, and what comes late is counted."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from heron_env import ScheduleConfig, make
from heron_env.cli import app
from heron_env.errors import ConfigError
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


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), "fast"])
def test_a_speed_that_is_none_is_refused(speed: object):
    with pytest.raises(ConfigError, match="must be a number > 0"):
        run_real_time(make(GRID, max_steps=2), {"*": hold}, speed=speed)  # type: ignore[arg-type]


def test_the_command_tells_how_it_kept_time(tmp_path: Path):
    file = tmp_path / "told.json"
    args = ["run", GRID, "--policy", "do nothing", "--realtime", "--speed", "50", "--option", "max_steps=4"]
    done = CliRunner().invoke(app, [*args, "--out", str(file)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{GRID}, do nothing, seed 0: 4 s of virtual time")
    assert "instants in" in done.stdout and "actions more than 10 ms late" in done.stdout
    told = json.loads(file.read_text())
    assert told["real_time"]["speed"] == 50.0 and told["end_time"] == 4.0
    plain = CliRunner().invoke(app, [*args[:4], "--option", "max_steps=4", "--json"])
    assert json.loads(plain.stdout)["returns"] == told["returns"] and "real_time" not in json.loads(plain.stdout)
