"""What tiles must bring in and take back is what the text reads before it sets it, and what it may write."""

import math
from typing import Any

import numpy as np
import pytest

from heron_env import BatchEnv
from heron_env.engine.arrays import LANE_ARRAYS, PLACE
from heron_env.engine.kernels import table
from heron_env.engine.vector.columns import touched

SIZES = {"truth": (12, 2), "visible": (5, 2), "steps": (1, 1), "source": (2, 2)}


def text(D: Any, b: Any, number: Any) -> Any:
    t, visible, steps, source = table(D, "truth"), table(D, "visible"), table(D, "steps"), table(D, "source")
    assert source[b, 1] < 9
    t[b, 0] = t[b, 1] + number
    if t[b, 0] > 2.0:  # set above
        t[b, 2] = 3.0  # in some lanes only
    t[b, 3] = 0.0
    t[b, 3] += min(t[b, 3], 1.0)
    for k in range(2):
        t[b, 4 + k] = math.exp(t[b, 6]) if k == 1 else 0.0
    turns = 0
    while turns < steps[b]:
        t[b, 7] = np.sqrt(2.0)
        turns += 1
    if t[b, 8] < 0.0:
        return 1
    t[b, 9] = 1.0  # where it has not returned
    if number < 0.0 or turns > 3:
        visible[b, int(t[b, 8])] = 0.0
    return 0


def test_columns_are_read_before_they_are_set_or_not_at_all() -> None:
    found = touched([(text, (1.5,))], SIZES, {})
    truth = found["truth"]
    assert np.flatnonzero(truth.read).tolist() == [1, 2, 6, 7, 8, 9]
    assert np.flatnonzero(truth.written).tolist() == [0, 2, 3, 4, 5, 7, 9]
    assert found["visible"].read.all() and found["visible"].written.all(), "an index that differs from lane to lane"
    assert found["steps"].read.all() and not found["steps"].written.any()
    assert found["source"].read.tolist() == [False, True] and not found["source"].written.any()


def test_what_earlier_text_has_set_later_text_does_not_read() -> None:
    def sets(D: Any, b: Any) -> None:
        table(D, "steps")[b] = 0

    assert touched([(sets, ()), (text, (1.5,))], SIZES, {})["steps"].read.tolist() == [False]


def test_text_that_cannot_be_run_reads_and_writes_everything() -> None:
    def odd(D: Any, b: Any) -> Any:
        return f"{table(D, 'truth')[b, 0]:.1f}" if table(D, "truth")[b, 0] in (1.0, 2.0) else ""

    assert all(array.read.all() and array.written.all() for array in touched([(odd, ())], SIZES, {}).values())


@pytest.mark.parametrize("name", ["BatteryGrid", pytest.param("TrafficCorridor", marks=pytest.mark.e2e)])
def test_tiles_of_our_own_worlds_move_no_more_than_they_must(name: str) -> None:
    batch = BatchEnv(f"heron/{name}-v0", 8, threads=1, compile=True)
    batch.reset(seed=0)
    lanes = batch._engine.lanes
    lanes.step()
    moved = {int(row[0]) for row in lanes._memory.moves[len(LANE_ARRAYS) :]} - {0}
    assert lanes.tiled and PLACE["truth"] in moved | {0}
    assert not moved & {
        PLACE[array] for array in ("actions", "source_in", "returns", "last_returns", "error", "acting")
    }


SMALL, BYTES = np.array([0.1], dtype=np.float32), np.array([0, 200, 100], dtype=np.uint8)


def few_bits(D: Any, b: Any) -> None:
    if SMALL[0] + 0.2 > 0.3:  # numpy reckons in float32 here, numba in float64
        table(D, "truth")[b, 0] = 1.0


def wraps(D: Any, b: Any) -> None:
    x = 12345
    x *= 6364136223846793005  # an int of Python grows, one of numba overflows
    table(D, "truth")[b, (x >> 33) % 12] = 1.0


def one_of_bytes(D: Any, b: Any) -> None:
    table(D, "truth")[b, BYTES[0] - 1] = 1.0


@pytest.mark.parametrize("function", [few_bits, wraps, one_of_bytes])
def test_numbers_with_which_numpy_and_numba_reckon_differently_are_not_relied_on(function: Any) -> None:
    assert touched([(function, ())], SIZES, {})["truth"].read.all()


def chained(D: Any, b: Any) -> None:
    t = table(D, "truth")
    if 0.0 < FIRST[0] < t[b, 1]:
        t[b, 2] = 1.0
    if 0.0 < FIRST[0] < 0.5:
        t[b, 3] = 1.0
    for _ in range(3):
        t[b, 4] += 1.0


FIRST = np.array([1.0])


def test_chains_of_comparisons_of_known_and_unknown_numbers() -> None:
    truth = touched([(chained, ())], SIZES, {})["truth"]
    assert np.flatnonzero(truth.read).tolist() == [1, 2, 4]
    assert np.flatnonzero(truth.written).tolist() == [2, 4]


def endless(D: Any, b: Any) -> None:
    for k in range(10**9):
        table(D, "truth")[b, k % 2] = 0.0


def test_it_does_not_take_long() -> None:
    assert touched([(endless, ())], SIZES, {})["truth"].read.all()
