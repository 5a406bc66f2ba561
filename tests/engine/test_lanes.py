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


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.e2e) if n in ("rule kit", "EnergyManagement") else n for n in WORLDS]
)
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
