"""Spread: equal to MPE's simple_spread as recorded from mpe2, in both clocks."""

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heron_env
from heron_env.errors import ConfigError
from heron_env.lab import benchmark
from heron_env.testing import check_env
from heron_env.worlds import spread as module
from heron_env.worlds.spread import discs
from heron_env.worlds.spread.discs import TOUCH, Disc

NAME = "heron/Spread-v0"
GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "spread_mpe2.npz")
ABOUT = json.loads(str(GOLDEN["about"]))
CLOSE = 1e-4
"""The agreement that is asked for; what is found is equal observations, and rewards within 1e-14."""


def build(case: dict[str, Any], **options: Any) -> module.SpreadEnv:
    given = {"num_agents": case["N"], "local_ratio": case["local_ratio"], "continuous": case["continuous_actions"]}
    return heron_env.make(NAME, **given, **options)


def column(values: dict[str, Any]) -> np.ndarray:
    return np.stack(list(values.values()))


PLAIN = [(name, False) for name in ABOUT["cases"]]


@pytest.mark.parametrize(
    ("name", "compiled"), [*PLAIN, ("continuous", True), pytest.param("five_discrete", True, marks=pytest.mark.e2e)]
)
def test_it_equals_mpe2(name: str, compiled: bool):
    """Observations, rewards and ends of whole episodes, from the same places by the same actions."""
    case, contacts = ABOUT["cases"][name], 0.0
    env = build(case, compile=compiled)
    assert env.compiled is compiled
    for episode in range(case["episodes"]):
        mpe = {key.partition(".")[2]: GOLDEN[key][episode] for key in GOLDEN if key.startswith(f"{name}.")}
        seen, _ = env.reset(seed=0, options={"agents": mpe["agents"], "landmarks": mpe["landmarks"]})
        assert list(seen) == [f"agent_{i}" for i in range(case["N"])]
        assert np.abs(column(seen) - mpe["observations"][0]).max() <= CLOSE
        for step, actions in enumerate(mpe["actions"]):
            seen, *results, _ = env.step(dict(zip(env.agents, actions, strict=True)))
            rewards, terminated, truncated = map(column, results)
            assert np.abs(column(seen) - mpe["observations"][step + 1]).max() <= CLOSE
            assert np.abs(rewards - mpe["rewards"][step]).max() <= CLOSE
            assert np.array_equal(terminated, mpe["terminations"][step])
            assert np.array_equal(truncated, mpe["truncations"][step])
        assert env.agents == []
        contacts += env.kpis()["contacts"]
    assert contacts > 30, "without collisions the record would prove little"


def test_the_record_holds_what_was_asked_for():
    assert ABOUT["mpe2"] == "1.1.1"
    assert GOLDEN["continuous.observations"].shape == (20, 26, 3, 18)
    assert {case["N"] for case in ABOUT["cases"].values()} == {3, 5}


def test_agents_are_one_group_and_an_observation_is_in_mpe_s_order():
    env = heron_env.make(NAME)
    assert env.group_map == {"agent": ["agent_0", "agent_1", "agent_2"]}
    assert env.observation_names("agent_1") == [
        "Velocity.x", "Velocity.y", "Position.x", "Position.y",
        *(f"Surroundings.landmarks[{i}]" for i in range(6)),
        *(f"Surroundings.others[{i}]" for i in range(4)),
        *(f"Surroundings.messages[{i}]" for i in range(4)),
    ]  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_any_number_of_agents_sees_everything_from_itself(n: int):
    env = heron_env.make(NAME, num_agents=n)
    rng = np.random.default_rng(n)
    agents, landmarks = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, (n, 2))
    observations, _ = env.reset(seed=0, options={"agents": agents, "landmarks": landmarks})
    for i, vector in enumerate(observations.values()):
        others = np.delete(agents, i, axis=0) - agents[i]
        parts = [[0, 0], agents[i], (landmarks - agents[i]).ravel(), others.ravel(), np.zeros(2 * (n - 1))]
        assert np.array_equal(vector, np.concatenate(parts).astype(np.float32))


def test_the_reward_weighs_the_team_s_distance_against_one_s_own_collisions():
    agents = [[0.0, 0.0], [0.2, 0.0], [-2.0, 0.0]]
    landmarks = [[0.0, 1.0], [0.0, 0.5], [-2.0, 0.0]]
    for ratio in (0.0, 0.3, 1.0):
        env = heron_env.make(NAME, local_ratio=ratio)
        env.reset(seed=0, options={"agents": agents, "landmarks": landmarks})
        _, rewards, *_ = env.step({})  # velocities are 0 until the end of the step, so nobody has moved yet
        assert rewards == pytest.approx(
            {a: -(1 - ratio) * 1.5 - ratio * hit for a, hit in zip(env.possible_agents, (1, 1, 0), strict=True)}
        )
        assert env.kpis() == pytest.approx(
            {"distance": 1.5, "contacts": 2.0, "covered": 1.0, "mpe_return": 3 * (-1.5 - 1.0) - 2.0}
        )


def test_repulsion_is_equal_and_opposite_and_finite_at_the_same_place():
    points = np.random.default_rng(0).uniform(-0.3, 0.3, (6, 2))
    points[1] = points[0]
    env = heron_env.make(NAME, num_agents=6)
    env.reset(seed=0, options={"agents": points})
    contact = env.world[Disc].Contact
    assert np.isfinite(contact.x).all()
    assert np.abs(contact.x).max() > 1.0
    assert abs(contact.x.sum()) < 1e-12
    assert abs(contact.y.sum()) < 1e-12
    env = heron_env.make(NAME, num_agents=2)
    env.reset(seed=0, options={"agents": [[0.0, 0.0], [0.2, 0.0]]})
    push = 100.0 * (TOUCH - 0.2)
    assert env.world[Disc].Contact.x.tolist() == pytest.approx([-push, push])


def test_substeps_keep_the_damping_of_a_step():
    fine = heron_env.make(NAME, physics_substeps=4)
    fine.reset(seed=0, options={"agents": [[-5, 0], [0, 0], [5, 0]], "landmarks": np.zeros((3, 2))})
    fine.world[fine.kind].Velocity.x[...] = 1.0
    fine.step({})
    assert fine.world[fine.kind].Velocity.x.tolist() == pytest.approx([0.75] * 3, rel=1e-12)


def test_episodes_start_anywhere_in_the_square_and_differ():
    env = heron_env.make(NAME, num_agents=50)
    starts = []
    for seed in (0, None, 1):
        env.reset(seed=seed)
        marks, position = env.world.Landmarks, env.world[env.kind].Position
        starts.append(np.concatenate([marks.x[0], marks.y[0], position.x, position.y]))
    assert all(start.min() < -0.9 and start.max() > 0.9 and np.abs(start).max() <= 1.0 for start in starts)
    assert not any(np.isin(starts[i], starts[j]).any() for i, j in ((0, 1), (0, 2), (1, 2)))
    assert len(np.unique(starts[0])) == 200


@pytest.mark.parametrize(
    "options", [{"continuous": False}, {"num_agents": 1}, {"num_agents": 5, "local_ratio": 0}, {"mates": "message"}]
)
def test_variants_pass_the_conformance_kit(options: dict[str, Any]):
    report = check_env(NAME, options=options, steps=8, only=["spaces", "rules", "pettingzoo", "parity", "same-seed"])
    report.raise_if_failed()


def test_who_drives_to_an_assigned_landmark_earns_more_than_who_drives_to_the_nearest():
    for continuous in (True, False):
        env = heron_env.make(NAME, continuous=continuous)
        team = {}
        for name, rules in benchmark.baselines(env).items():
            results = [env.run_synchronous(rules, seed=seed).returns for seed in range(12)]
            team[name] = np.mean([sum(returns[a] for a in env.possible_agents) for returns in results])
        ranked = sorted(team, key=team.__getitem__)
        assert ranked[2:] == ["nearest landmark", "assigned landmark"]
        assert {*ranked[:2]} == {"random", "do nothing"}, "numbers drawn at random add up to little more than nothing"
        assert env.benchmark().strongest == ranked[-1]


def test_a_rule_for_many_observations_is_the_rule_for_each():
    for continuous in (True, False):
        env = heron_env.make(NAME, num_agents=4, continuous=continuous)
        vectors = np.concatenate([column(env.reset(seed=seed)[0]) for seed in range(5)])
        for rules in env.benchmark().baselines(0).values():
            actions = rules["*"].forward_batch(vectors)
            assert np.array_equal(actions, np.stack([rules["*"].forward(vector) for vector in vectors]))


def test_copies_find_the_features_of_their_size():
    env = heron_env.make(NAME, num_agents=4)
    env.reset(seed=0)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert column(twin.step({})[0]).tolist() == column(copy.deepcopy(env).step({})[0]).tolist()
    assert discs.Surroundings4 is discs.surroundings(4)
    with pytest.raises(AttributeError, match="has no attribute 'SurroundingsX'"):
        _ = discs.SurroundingsX


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_agents": 0}, "spread(num_agents=0): must be a whole number >= 1"),
        ({"num_agents": True}, "spread(num_agents=True): must be a whole number >= 1"),
        ({"local_ratio": 1.5}, "spread(local_ratio=1.5): must be a number in [0, 1]"),
        ({"local_ratio": "all"}, "spread(local_ratio='all'): must be a number in [0, 1]"),
        ({"continuous": 1}, "spread(continuous=1): must be True or False"),
    ],
)
def test_wrong_arguments_are_refused_by_name_and_value(options: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        heron_env.make(NAME, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (7, "reset(options=7): must be a mapping; write {'agents': ..., 'landmarks': ...}"),
        (
            {"agents": [0.0, 1.0]},
            "reset(options={'agents': ...}): the shape is (2,); give x and y of each, numbers of shape (3, 2)",
        ),
        (
            {"landmarks": "here"},
            "reset(options={'landmarks': ...}): 'here' is no array of numbers; give x and y of each, numbers of shape "
            "(3, 2)",
        ),
        (
            {"agents": np.full((3, 2), np.nan)},
            "reset(options={'agents': ...}): [[nan, nan], [nan, nan], [nan, nan]] lies outside [-1000.0, 1000.0]; "
            "place them within",
        ),
    ],
)
def test_impossible_places_are_refused(options: Any, message: str):
    env = heron_env.make(NAME)
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        env.reset(seed=0, options=options)
