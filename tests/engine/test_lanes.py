"""Lanes: a batch is its lanes one by one, in any number of threads, and all of them are what plain Python gives."""

from typing import Any

import numpy as np
import pytest
from lanes_kit import RESULTS, Batch, distance
from rule_kit import Head, Station, Sun, Tank, Valve

from heron_env import (
    HeronEnv,
    make,
)


class KitEnv(HeronEnv):
    global_features = (Sun,)
    dt, physics_substeps = 0.5, 2


def kit_world() -> HeronEnv:
    """Everything that a rule may read, write and do; some allocate."""
    near = Station("near", Tank("a"), Valve("b"), Tank("c"), Valve("d"))
    return KitEnv(Head("head", near, Station("far", Tank("e"), Tank("f"))), max_steps=6, compile=False)


WORLDS: dict[str, Any] = {
    "rule kit": kit_world,
    "BatteryGrid": lambda: make("heron/BatteryGrid-v0", num_batteries=5, zone_size=3, max_steps=7, compile=False),
    "BatteryGrid by zone": lambda: make(
        "heron/BatteryGrid-v0", num_batteries=5, zone_size=3, control="zone", max_steps=7, compile=False
    ),
    "EnergyManagement": lambda: make("heron/EnergyManagement-v1", control="zone", compile=False),
}
EXACT = ("BatteryGrid", "BatteryGrid by zone")
"""Nothing but sums and products in the order written: plain Python gives the same bits."""


@pytest.mark.parametrize("name", WORLDS)
def test_lanes_are_single_lanes_in_any_number_of_threads_and_are_plain_python(name: str):
    lanes, seed, rng = 4, 5, np.random.default_rng(1)
    batch = Batch(WORLDS[name](), lanes, seed)
    threaded = [Batch(WORLDS[name](), lanes, seed, threads=n) for n in (2, 3)]
    singles = [Batch(WORLDS[name](), 1, seed + b) for b in range(lanes)]
    plain = [WORLDS[name]() for _ in range(lanes)]
    for b, env in enumerate(plain):
        env.reset(seed=seed + b)
    worst, earned = 0.0, np.zeros_like(batch.arrays.rewards)
    for step in range(24):
        named = batch.give(rng)
        for other in threaded:
            other.take_from(batch)
        for b, single in enumerate(singles):
            single.take_from(batch, slice(b, b + 1))
        found = batch.step()
        others = [other.step() for other in threaded]
        alone = [single.step() for single in singles]
        for array in (*RESULTS, "observations"):
            for other in others:
                assert np.array_equal(found[array], other[array]), (step, array)
            assert np.array_equal(found[array], np.concatenate([one[array] for one in alone])), (step, array)
        earned += found["rewards"]
        assert np.array_equal(found["returns"], earned)
        ended = found["ended"] == 1
        assert np.array_equal(found["last_returns"][ended], earned[ended])
        earned[ended] = 0.0
        for b, env in enumerate(plain):
            seen = env.step(named[b])[0]
            worst = max(worst, distance(env, batch, b, found))
            if not env.agents:
                seen = env.reset()[0]
            for agent, span in zip(env.possible_agents, batch.lanes.spans, strict=True):
                if agent in seen:
                    np.testing.assert_allclose(found["observations"][b, span], seen[agent], rtol=3e-7, atol=1e-9)
    assert worst == 0.0 if name in EXACT else worst <= 1e-9


def test_one_call_is_the_phases_one_after_another():
    phases, whole = (Batch(kit_world(), 5, 3) for _ in range(2))
    rng = np.random.default_rng(4)
    for _ in range(15):
        phases.give(rng)
        whole.take_from(phases)
        found = phases.step()
        published = whole.lanes.step()
        assert published.observations.tobytes() == found["observations"].tobytes()
        assert np.array_equal(whole.arrays.truth, phases.arrays.truth)
        assert np.array_equal(whole.arrays.rewards, found["rewards"])
        assert np.array_equal(whole.arrays.ended, found["ended"])
        places = [whole.lanes.position[rank] for rank in whole.simulation.possible]
        assert np.array_equal(published.rewards, found["rewards"][:, places])
        assert np.array_equal(published.truncated, found["truncated"][:, places].astype(bool))


def test_what_was_handed_out_last_stays_for_one_step():
    batch = Batch(kit_world(), 2)
    first = batch.lanes.step()
    kept = first.observations.copy()
    second = batch.lanes.step()
    assert second.observations is not first.observations
    assert np.array_equal(first.observations, kept)
    assert batch.lanes.step().observations is first.observations
    assert batch.lanes.published.observations is first.observations


def test_the_final_observation_is_the_one_before_the_restart():
    batch, twin = (Batch(kit_world(), 2, final=final) for final in (True, False))
    for _ in range(6):
        twin.act()
        for number in range(2):
            twin.lanes.substep(number)
        twin.lanes.close()
        published = batch.lanes.step()
    assert twin.arrays.ended.tolist() == batch.arrays.ended.tolist() == [1, 1]
    assert np.array_equal(published.final, twin.lanes.observe().observations)
    assert not np.array_equal(published.final, published.observations)
    assert batch.arrays.last_length.tolist() == [6, 6]
    assert np.array_equal(batch.arrays.last_returns, twin.arrays.returns)


def test_a_lane_that_is_over_stands_still_until_it_restarts():
    batch = Batch(kit_world(), 3)
    for _ in range(6):
        batch.act()
        batch.lanes.substep(0)
        batch.lanes.close()
    assert batch.arrays.over.tolist() == [1, 1, 1]
    before = batch.arrays.truth.copy()
    batch.lanes.restart(np.array([0, 1, 0]))
    started = batch.arrays.truth[1].copy()
    batch.act()
    batch.lanes.substep(0)
    batch.lanes.close()
    assert np.array_equal(batch.arrays.truth[[0, 2]], before[[0, 2]])
    assert not np.array_equal(batch.arrays.truth[1], started)
    assert batch.arrays.steps.tolist() == [6, 1, 6]
    assert batch.arrays.episodes.tolist() == [0, 1, 0]
    assert batch.arrays.ended.tolist() == [0, 0, 0]
    assert not batch.arrays.rewards[[0, 2]].any()


def test_phases_of_a_range_of_lanes_leave_the_others_alone():
    batch, twin = Batch(kit_world(), 4), Batch(kit_world(), 4)
    rng = np.random.default_rng(0)
    batch.give(rng, 1.0)
    twin.take_from(batch)
    before = batch.arrays.truth.copy()
    for part in (range(1, 3), range(0, 1), range(3, 4)):
        batch.act(part)
        batch.lanes.substep(0, part)
        batch.lanes.close(part)
        if part == range(1, 3):
            assert np.array_equal(batch.arrays.truth[[0, 3]], before[[0, 3]])
    twin.act()
    twin.lanes.substep(0)
    twin.lanes.close()
    assert np.array_equal(batch.arrays.truth, twin.arrays.truth)


def test_single_applications_are_the_ones_of_a_step():
    batch, one = Batch(kit_world(), 2), Batch(kit_world(), 2)
    batch.give(np.random.default_rng(2), 1.0)
    one.take_from(batch)
    batch.act()
    acting = [rank for rank, spec in enumerate(batch.simulation.specs) if spec.size]
    for rank in acting:
        one.lanes.apply(1, rank)
    assert np.array_equal(one.arrays.truth[1], batch.arrays.truth[1])
    assert not np.array_equal(one.arrays.truth[0], batch.arrays.truth[0])


def test_a_hierarchy_of_the_same_classes_shares_the_loops():
    first, other = Batch(kit_world(), 1), KitEnv(Head("head", Station("s", Tank("t"), Valve("v")), Valve("w")))
    second = Batch(other, 1)
    assert second.lanes.loops is first.lanes.loops
    by_numba = {"Station_advance"}  # np.max does, unless something else had it compiled before without
    assert {*first.lanes.loops.facts.allocates} - by_numba == {
        "Station_compute_local_reward",
        "Tank_advance",
        "Tank_compute_local_reward",
        "Valve_apply_action",
    }
    assert first.lanes.loops.facts.infos == {"Tank": ("level", "double", "mode")}
