"""Threads share the parts of a call: each part is done once, by whoever is free, and nothing runs on afterwards."""

import threading
import time
from typing import Any

import pytest

from heron_env import BatchEnv, make
from heron_env.engine import trial as timed
from heron_env.testing import inspect

pytestmark = pytest.mark.e2e


def test_both_ways_are_tried_in_turn_and_then_the_faster_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, clock = list[str](), [0.0]
    monkeypatch.setattr(timed, "perf_counter", lambda: clock[0])

    def way(name: str, seconds: float) -> int:
        gone.append(name)
        clock[0] += seconds
        return len(gone)

    tried = timed.Trial()
    for call in range(timed.TRIES + timed.SETTLED + 2):
        assert tried.faster(lambda: way("a", 2.0), lambda: way("b", 1.0)) == call + 1
    assert gone[: timed.TRIES] == ["a", "b"] * (timed.TRIES // 2)
    assert set(gone[timed.TRIES : timed.TRIES + timed.SETTLED]) == {"b"}
    assert gone[-2:] == ["a", "b"]


def test_a_way_that_fails_is_reported_and_tried_again() -> None:
    def fail() -> int:
        raise ValueError("no")

    tried = timed.Trial()
    with pytest.raises(ValueError, match="no"):
        tried.faster(fail, lambda: 1)
    assert [tried.faster(lambda: 0, lambda: 1) for _ in range(3)] == [1, 0, 1]


def test_every_part_is_done_once_and_a_failure_waits_for_the_others(shared: Any) -> None:
    lanes, done, lock = shared, list[int](), threading.Lock()

    def run(first: int, last: int) -> int:
        time.sleep(0.002)
        with lock:
            done.extend(range(first, last))
        return last - first

    assert lanes._pool is not None
    assert lanes._run_in_parts(lanes._pool, range(5, 42), run) == 37
    assert sorted(done) == list(range(5, 42))
    main, running = threading.get_ident(), list[int]()

    def fail_here(first: int, last: int) -> int:
        if threading.get_ident() == main:
            raise ValueError("no")
        running.append(1)
        time.sleep(0.01)
        running.pop()
        return 0

    with pytest.raises(ValueError, match="no"):
        lanes._run_in_parts(lanes._pool, range(64), fail_here)
    assert not running


@pytest.fixture
def shared() -> Any:
    return inspect(make("heron/BatteryGrid-v0")).lanes(4, threads=3)


@pytest.mark.parametrize(("threads", "shared"), [(2, True), (1, False), (None, False)])
def test_threads_that_were_asked_for_share_every_step(threads: int | None, shared: bool):
    batch = BatchEnv("heron/Spread-v0", 2, num_agents=3, threads=threads, compile=True)
    calls, lanes = [], batch._engine.lanes
    share = lanes._run_in_parts
    lanes._run_in_parts = lambda *given: calls.append(1) or share(*given)
    batch.reset(seed=0)
    batch.step({})
    assert bool(calls) is shared
