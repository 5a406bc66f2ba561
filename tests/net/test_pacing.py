"""Pacing: never more than allowed at once or in any second, in the order of asking, and nothing is lost on the way."""

import asyncio
from itertools import pairwise

import pytest
from fake_clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

from heron_env.net.limits import Pacing


def starts(
    durations: list[float], *, in_flight: int = 10, per_second: int = 100, until: float = 1e9
) -> tuple[list[tuple[int, float]], int]:
    """Who started when, in this order, and the most that were under way at once."""
    clock, began, now, most = FakeClock(0.0), [], [0], [0]

    async def one(number: int, seconds: float, pace: Pacing) -> None:
        if not await pace.enter(until):
            return
        began.append((number, clock.monotonic()))
        now[0] += 1
        most[0] = max(most[0], now[0])
        await clock.sleep(seconds)
        now[0] -= 1
        pace.leave()

    async def run() -> None:
        pace = Pacing(clock, in_flight=in_flight, per_second=per_second)
        await asyncio.gather(*(one(number, seconds, pace) for number, seconds in enumerate(durations)))

    asyncio.run(run())
    return began, most[0]


@given(
    st.lists(st.sampled_from([0.0, 0.01, 0.3, 0.999, 1.0, 2.5]), max_size=60),
    st.integers(1, 6),
    st.integers(1, 9),
)
def test_caps_hold_in_any_window_and_nobody_overtakes(durations: list[float], in_flight: int, per_second: int):
    began, most = starts(durations, in_flight=in_flight, per_second=per_second)
    assert [number for number, _ in began] == list(range(len(durations)))
    assert most <= in_flight
    times = [time for _, time in began]
    assert all(later >= earlier for earlier, later in pairwise(times))
    assert all(times[index + per_second] - times[index] >= 1.0 - 1e-9 for index in range(len(times) - per_second))


def test_the_window_slides_and_is_full():
    began, most = starts([0.0] * 250)
    assert most <= 10
    assert [time for _, time in began] == [0.0] * 100 + [1.0] * 100 + [2.0] * 50


def test_a_request_counts_until_a_second_after_its_end_whatever_time_it_traveled():
    began, _ = starts([0.25] * 4, in_flight=2, per_second=2)
    assert [time for _, time in began] == [0.0, 0.0, 1.25, 1.25]


def test_who_finds_no_place_in_time_goes_and_takes_none():
    began, _ = starts([5.0] * 12, until=3.0)
    assert len(began) == 10
    began, _ = starts([5.0] * 12, until=6.0)
    assert [time for _, time in began] == [0.0] * 10 + [5.0] * 2


@pytest.mark.parametrize("served", [False, True])
def test_a_cancelled_caller_leaves_its_place_to_the_next(served: bool):
    async def run() -> list[bool]:
        pace = Pacing(FakeClock(), in_flight=1)
        assert await pace.enter(1e9)
        second, third = (asyncio.ensure_future(pace.enter(1e9)) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if served:
            pace.leave()  # the place is the second's, who is cancelled before it knows
        second.cancel()
        await asyncio.wait({second})
        if not served:
            pace.leave()
        return [second.cancelled(), await third]

    assert asyncio.run(run()) == [True, True]
