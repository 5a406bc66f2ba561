"""TrafficCorridor: vehicles are conserved, flows are bounded, green has a minimum, offsets move it along."""

import numpy as np
import pytest

from heron_env import BatchEnv, make
from heron_env.adapters import HeronVecEnv
from heron_env.adapters.gymnasium import JointEnv
from heron_env.core.masking import flat
from heron_env.errors import ConfigError
from heron_env.worlds.traffic_corridor import (
    CLEARANCE,
    CYCLE,
    MIN_GREEN,
    SATURATION,
    SPEEDS,
    Corridor,
    Intersection,
    green_wave,
    poisson,
)

ID = "heron/TrafficCorridor-v0"


def test_vehicles_are_conserved():
    env = make(ID, max_steps=60)
    env.reset(seed=1)
    came = 0.0
    for step in range(60):
        hidden = env.world[Intersection].Hidden
        came += 5.0 * (hidden.main[0] + hidden.side.sum())
        env.step(dict.fromkeys(env.group_map["intersection"], step % 3 == 0))
        traffic = env.world[Intersection].Traffic
        inside = traffic.main.sum() + traffic.side.sum() + traffic.approach.sum()
        assert inside + env.kpis()["served"] == pytest.approx(came, rel=1e-9)
    assert came > 100.0


def test_a_queue_leaves_at_saturation_flow_after_the_clearance_and_not_before():
    env = make(ID, num_intersections=1)
    env.reset(seed=0)
    env.world[Intersection].Hidden.main[:] = env.world[Intersection].Hidden.side[:] = 0.0
    env.world[Intersection].Traffic.side[:] = 50.0
    env.world[Intersection].Signal.elapsed[:] = 60.0
    env.step({"intersection_1": 1})
    green = 5.0 - CLEARANCE
    assert env.world[Intersection].Traffic.side[0] == pytest.approx(50.0 - SATURATION * green)
    env.step({"intersection_1": 0})
    came = env.world[Intersection].Traffic.side[0] - (50.0 - SATURATION * (green + 5.0))
    assert 0.0 <= came == pytest.approx(round(came)), "whole vehicles came, the rest left at saturation flow"


def test_green_has_a_minimum():
    env = make(ID, num_intersections=2)
    seen, infos = env.reset(seed=0)
    least = int(np.ceil((CLEARANCE + MIN_GREEN) / env.dt))
    for step in range(3 * least):
        told = flat(infos["intersection_1"]["action_mask"]).tolist()
        assert step > least or told == [1, int(step == least)]
        assert told[1] == int(seen["intersection_1"][1] >= CLEARANCE + MIN_GREEN)
        seen, *_, infos = env.step({"intersection_1": told[1]})
    result = env.run_synchronous({"intersection": lambda vector: 1, "corridor": green_wave}, seed=0)
    decided = [vector[0] for _, vector in result.actions["intersection_1"]]
    assert result.masked["intersection_1"] == decided.count(0.0) > decided.count(1.0) > 0
    assert "corridor_1" not in result.masked and "action_mask" not in infos["corridor_1"]


def test_offsets_are_distances_by_the_speed_of_progression():
    env = make(ID)
    env.reset(seed=0)
    for choice, speed in enumerate(SPEEDS, start=1):
        env.step({"corridor_1": choice})
        assert env.world[Corridor].Progression.speed[0] == speed
        expected = (env.simulation.time - np.arange(4) * 300.0 / speed) % CYCLE
        assert env.world[Intersection].Signal.clock == pytest.approx(expected)
        env.step({"corridor_1": 0})
        assert env.world[Corridor].Progression.speed[0] == speed, "0 keeps it"


def test_counts_are_poisson_s():
    mean, drawn = 1.5, np.random.default_rng(0).random(4000)
    counts = np.array([poisson(u, mean) for u in drawn])
    assert counts.mean() == pytest.approx(mean, abs=0.06) and counts.var() == pytest.approx(mean, abs=0.12)


def test_signals_that_react_delay_less_than_a_fixed_cycle():
    env = make(ID)
    mine, cycle = (
        [env.run_synchronous(rules, seed=seed).returns["system_agent"] for seed in range(6)]
        for rules in (env.benchmark().baselines(0)[name] for name in ("actuated", "fixed cycle"))
    )
    assert sum(a > b for a, b in zip(mine, cycle, strict=True)) >= 5


def test_a_number_of_intersections_that_is_none_is_refused():
    with pytest.raises(ConfigError, match=r"num_intersections=0\): must be a whole number >= 1"):
        make(ID, num_intersections=0)


# The ways to MaskablePPO


def test_the_slots_of_a_vec_env_have_the_masks_of_their_agents():
    venv, batch = (kind(ID, 3, seed=4, compile=False) if kind is BatchEnv else kind(ID, 3, seed=4, group="intersection")
                   for kind in (HeronVecEnv, BatchEnv))  # fmt: skip
    venv.reset()
    _, told = batch.reset()
    for step in range(8):
        masks = venv.action_masks()
        assert masks.dtype == np.bool_ and masks.shape == (12, 2)
        assert masks.tolist() == (told["intersection"]["action_mask"].reshape(12, 2) != 0).tolist()
        assert np.array_equal(venv.env_method("action_masks", indices=[5]), masks[5:6])
        assert masks[:, 1].any() == (step >= 3)
        venv.step(np.zeros(12, dtype=np.int64))
        *_, told = batch.step({"intersection": np.zeros((3, 4, 1))})


def test_the_joint_view_joins_the_masks():
    joint = JointEnv(make(ID, num_intersections=2))
    joint.reset(seed=0)
    for step in range(5):
        masks = joint.action_masks()
        assert masks.tolist() == [True] * 5 + [True, step >= 3] * 2
        *_, infos = joint.step(np.zeros(3))
        assert infos["intersection_1.action_mask"].shape == (2,)


def test_maskable_ppo_learns_through_both():
    contrib = pytest.importorskip("sb3_contrib", reason="pip install heron_env[train]")
    venv = HeronVecEnv(ID, 2, group="intersection", max_steps=16)
    for env in (venv, JointEnv(make(ID, num_intersections=2, max_steps=16))):
        model = contrib.MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
        model.learn(64)
        assert model.num_timesteps >= 64
