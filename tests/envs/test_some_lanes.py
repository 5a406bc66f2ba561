"""The world of some lanes: what hooks put and write there is what it would be in a compacted copy of these lanes."""

from collections.abc import Sequence

import numpy as np
import pytest

from heron_env import make
from heron_env.envs.batch.views import BatchWorld, SomeLanes

LANES, COLUMNS = np.array([1, 3, 4]), np.array([2, 0, 7])


def worlds() -> tuple[BatchWorld, BatchWorld]:
    """Of five lanes, and a copy of three of them; a part of the columns has bounds."""
    layout, keys = make("heron/BatteryGrid-v0", num_batteries=6).simulation.layout, np.arange(5, dtype=np.uint64)
    truth = np.random.default_rng(0).normal(size=(5, layout.size))
    whole = BatchWorld(layout, truth, np.arange(5), keys, keys + np.uint64(7))
    copy = BatchWorld(layout, truth[LANES], LANES, keys[LANES], keys[LANES] + np.uint64(7))
    for world in (whole, copy):
        world.step, world.time = np.arange(len(world.lanes)), np.zeros((len(world.lanes), 1))
    return whole, copy


def change(world: BatchWorld, deeds: Sequence[str]) -> None:
    """Put far beyond the bounds, look, write, in this order."""
    for number, deed in enumerate(deeds):
        if deed == "put":
            world.put(COLUMNS, 100.0 * (number + 1) * np.arange(-4.0, 5.0).reshape(3, 3))
        elif deed == "get":
            world.put(COLUMNS, world.get(COLUMNS[::-1]) + 1.0)
        else:
            world.rows[:, 0] += 5.0 + world.get(np.array([2]))[:, 0]


@pytest.mark.parametrize(
    "deeds", [["put"], ["get"], ["put", "write", "put"], ["write"], ["get", "put", "write", "get"]]
)
def test_some_lanes_are_a_copy_written_back(deeds: list[str]) -> None:
    whole, copy = worlds()
    before, some = whole._array.copy(), SomeLanes(whole, LANES)
    some.step, some.time = copy.step, copy.time
    change(some, deeds)
    some.write_back()
    change(copy, deeds)
    assert np.array_equal(whole._array[LANES], copy._array) and not np.array_equal(copy._array, before[LANES])
    assert np.array_equal(whole._array[[0, 2]], before[[0, 2]]), "the other lanes stay"
    assert some.touched == copy.touched
    assert np.array_equal(some.draw("x", 2), copy.draw("x", 2))


def test_what_is_only_put_copies_nothing() -> None:
    whole, _ = worlds()
    some = SomeLanes(whole, LANES)
    change(some, ["put"])
    assert "_array" not in vars(some)
