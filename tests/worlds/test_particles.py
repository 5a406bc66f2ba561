"""MPE's particle worlds by themselves; tests/foreign/test_particles.py holds them to mpe2's."""

import pickle
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from laws.checks_event_batch import check_event_batch

from heron_env import BatchEnv, ScheduleConfig, make
from heron_env.errors import ConfigError
from heron_env.lab import benchmark
from heron_env.lab.robust_stats import mean_interval
from heron_env.testing import check_env
from heron_env.worlds.particles import Plane
from heron_env.worlds.particles.hunting import outside
from worlds.batches import batch_is_its_lanes

TEAMS: dict[str, dict[str, tuple[str, ...]]] = {
    "heron/Tag-v0": {"hunters": ("adversary",), "prey": ("agent",)},
    "heron/Adversary-v0": {"intruder": ("adversary",), "guards": ("agent",)},
    "heron/Push-v0": {"shover": ("adversary",), "runner": ("agent",)},
    "heron/Reference-v0": {"both": ("agent",)},
    "heron/SpeakerListener-v0": {"both": ("speaker", "listener")},
    "heron/Crypto-v0": {"eve": ("eve",), "alice and bob": ("alice", "bob")},
    "heron/WorldComm-v0": {"pursuers": ("leadadversary", "adversary"), "foragers": ("agent",)},
}
"""Groups of agents that earn together."""
FORMS = [
    *((name, False) for name in TEAMS),
    *(pytest.param(name, True, marks=pytest.mark.e2e) for name in TEAMS),
]


def started(name: str, places: dict[int, tuple[float, float]], **options: Any) -> tuple[Any, Any]:
    """The environment and its bodies, some of them at these places, all others far from each other."""
    env = make(name, compile=False, **options)
    env.reset(seed=0)
    world = env.world[Plane].Bodies
    for k in range(world.x.shape[1]):
        world.x[0, k], world.y[0, k] = places.get(k, (50.0 + 9.0 * k, -50.0))
    return env, world


@pytest.mark.parametrize(
    ("name", "options", "sees", "acts"),
    [
        ("Tag", {}, {"adversary_2": 16, "agent_0": 14}, {"adversary_2": 5, "agent_0": 5}),
        ("Tag", {"num_good": 2, "num_adversaries": 1, "num_obstacles": 0}, {"adversary_0": 12, "agent_1": 10}, {}),
        ("Adversary", {}, {"adversary_0": 8, "agent_1": 10}, {"adversary_0": 5}),
        ("Adversary", {"N": 4}, {"adversary_0": 16, "agent_3": 18}, {}),
        ("Push", {}, {"adversary_0": 8, "agent_0": 19}, {"agent_0": 5}),
        ("Reference", {}, {"agent_0": 21, "agent_1": 21}, {"agent_0": 50}),
        ("SpeakerListener", {}, {"speaker_0": 3, "listener_0": 11}, {"speaker_0": 3, "listener_0": 5}),
        ("Crypto", {}, {"eve_0": 4, "bob_0": 8, "alice_0": 8}, {"eve_0": 4, "bob_0": 4, "alice_0": 4}),
        ("WorldComm", {}, {"leadadversary_0": 34, "adversary_2": 34, "agent_1": 28},
         {"leadadversary_0": 20, "adversary_0": 5}),
        ("WorldComm", {"num_forests": 0, "num_good": 1}, {"leadadversary_0": 24, "agent_0": 18}, {}),
    ],
)  # fmt: skip
def test_spaces_are_those_that_mpe2_documents(
    name: str, options: dict[str, Any], sees: dict[str, int], acts: dict[str, int]
):
    env = make(f"heron/{name}-v0", continuous=False, **options)
    assert {agent: env.observation_space(agent).shape for agent in sees} == {a: (n,) for a, n in sees.items()}
    assert {agent: int(env.action_space(agent).n) for agent in acts} == acts
    assert {env.possible_agents[0], env.possible_agents[-1]} == {next(iter(sees)), [*sees][-1]} or name == "Tag"


def test_bodies_at_the_very_same_place_stay_finite():
    env, world = started("heron/Tag-v0", {0: (0.1, 0.1), 1: (0.1, 0.1)})
    seen, *_ = env.step({})
    assert np.isfinite(world.x).all() and all(np.isfinite(vector).all() for vector in seen.values())


def test_agents_bounce_off_obstacles_which_stay_and_keep_their_top_speed():
    env, world = started("heron/Tag-v0", {0: (0.0, 0.0), 4: (0.2, 0.0)}, num_obstacles=1)
    right = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    for _ in range(25):
        env.step({"adversary_0": right, "agent_0": right})
        assert (world.x[0, 4], world.y[0, 4], world.vx[0, 4]) == (0.2, 0.0, 0.0)
        assert np.hypot(world.vx[0], world.vy[0]).max() <= 1.3 + 1e-12
    assert world.x[0, 0] < 0.0
    assert world.vx[0, 3] == pytest.approx(1.3), "a full push of the prey reaches its top speed"


def test_the_prey_pays_for_each_hunter_and_for_leaving():
    far = 1.5
    env, _ = started("heron/Tag-v0", {0: (0.0, far), 1: (0.1, far), 2: (5.0, 5.0), 3: (0.05, far)})
    _, rewards, *_ = env.step({})
    assert rewards == pytest.approx(
        {**{f"adversary_{i}": 20.0 for i in range(3)}, "agent_0": -20.0 - np.exp(2 * far - 2)}
    )
    assert [outside(x) for x in (0.0, -0.95, 3.0)] == pytest.approx([0.0, 0.5, 10.0])


def test_words_are_heard_a_step_later_and_before_the_first_there_are_none():
    env = make("heron/SpeakerListener-v0", continuous=False)
    seen, _ = env.reset(seed=0)
    heard = [seen["listener_0"][-3:].tolist()]
    for word in (2, 1):
        seen, *_ = env.step({"speaker_0": word, "listener_0": 0})
        heard.append(seen["listener_0"][-3:].tolist())
    assert heard == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("silence", "words", "heard", "paid"),
    [
        (True, ([0, 0, 1], [0, 0, 0], [0.5, 0, 0]), ([0, 0, 1], [0, 0, 1], [0.5, 0, 0]), (True, False, True)),
        (False, ([0, 0, 1], [0, 0, 0], [0.5, 0, 0]), ([0, 0, 1], [0, 0, 0], [0.5, 0, 0]), (True, True, True)),
        (True, (2, 3, 0), ([0, 0, 1], [0, 0, 1], [1, 0, 0]), (True, False, True)),
    ],
    ids=["numbers", "as in MPE", "choices"],
)
def test_who_says_nothing_sends_nothing_where_that_is_asked_for(silence: bool, words: Any, heard: Any, paid: Any):
    cost, still = 0.25, 0 if isinstance(words[0], int) else [0.0] * 5
    env = make("heron/SpeakerListener-v0", continuous=still != 0, silence=silence, speech_cost=cost, compile=False)
    env.reset(seed=0)
    for word, expected, pays in zip(words, heard, paid, strict=True):
        seen, rewards, *_ = env.step({"speaker_0": word, "listener_0": still})
        assert seen["listener_0"][-3:].tolist() == expected
        assert rewards["listener_0"] - rewards["speaker_0"] == pytest.approx(cost * pays)


@pytest.mark.parametrize("name", ["heron/SpeakerListener-v0", "heron/Reference-v0"])
def test_words_are_as_late_and_as_lossy_as_their_speaker_s_link(name: str):
    """Half a step in transit is a step later; what is lost is not heard; both clocks are one without delay."""
    env = make(name, compile=False)
    rule = benchmark.baselines(env)["rule"]
    assert env.run_synchronous(rule, seed=3).same_course(env.run_event_driven(rule, seed=3))
    speaker, listener = env.possible_agents
    words, late = {}, {}
    for kept, schedule in ((words, None), (late, {speaker: ScheduleConfig(msg_delay=0.05)})):
        run = env.run_event_driven(rule, seed=3, schedule=schedule, record=("observations",))
        kept.update({round(t, 3): vector for t, vector in run.observations[listener]})
    silent = env.run_event_driven(rule, seed=3, schedule={speaker: ScheduleConfig(loss=1.0)}, record=("observations",))
    size = 3 if name.startswith("heron/Sp") else 10
    assert words[0.1][-size:].any() and not late[0.1][-size:].any() and late[0.3][-size:].any()
    assert not any(vector[-size:].any() for _, vector in silent.observations[listener])


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["heron/SpeakerListener-v0", "heron/Reference-v0"])
@pytest.mark.parametrize("options", [{}, {"continuous": False, "silence": True, "speech_cost": 0.1}], ids=str)
def test_words_are_the_same_in_batches_and_in_both_event_clocks(name: str, options: dict[str, Any]):
    batch_is_its_lanes(name, **options, max_steps=4, compile=True)
    rough = ScheduleConfig(act_delay=0.06, msg_delay=0.05, jitter_type="lognormal", jitter_ratio=0.8, loss=0.2)
    check_event_batch(partial(make, name, **options, compile=True), rough, seed=11, lanes=3, episodes=2)


def test_in_forests_agents_see_those_in_the_same_one_and_the_leader_sees_all():
    # leader, three of the pack, two foragers, an obstacle, two pieces of food, two forests of radius 0.3
    places = {1: (0.0, 0.0), 2: (9.0, 0.0), 4: (0.1, 0.0), 5: (9.1, 0.0), 9: (0.0, 0.0), 10: (9.0, 0.0)}
    env, _ = started("heron/WorldComm-v0", places)
    seen, *_ = env.step({})
    names = env.possible_agents
    sees = {
        agent: [names[j] for j in range(6) if names[j] != agent and self_sees(seen[agent], names.index(agent), j)]
        for agent in names
    }
    assert sees["leadadversary_0"] == names[1:]
    assert sees["adversary_0"] == ["agent_0"] and sees["agent_0"] == ["adversary_0"]
    assert sees["adversary_1"] == ["agent_1"] and sees["agent_1"] == ["adversary_1"]
    assert sees["adversary_2"] == ["leadadversary_0"]
    assert seen["adversary_0"][-6:-4].tolist() == [1.0, -1.0], "it is in the first forest"


def self_sees(vector: np.ndarray, rank: int, other: int) -> bool:
    """Is there a way to another agent in an observation of WorldComm?"""
    at = 14 + 2 * (other - (other > rank))
    return bool(vector[at : at + 2].any())


def test_eve_bob_and_alice_earn_what_the_words_are_worth():
    env = make("heron/Crypto-v0", continuous=False)
    env.reset(seed=0)
    message = int(env.world[Plane].Bodies.goals[0, 0])
    for eve, bob in ((message, message), (message, 3), (3, message), (3, 3)):
        _, rewards, *_ = env.step({"eve_0": eve, "bob_0": bob, "alice_0": 0})
        wrong = {name: 2.0 * (word != message) for name, word in (("eve", eve), ("bob", bob))}
        team = wrong["eve"] - wrong["bob"]
        assert rewards == {"eve_0": -wrong["eve"], "bob_0": team, "alice_0": team}


@pytest.mark.e2e
def test_prey_by_rule_flees_as_the_baseline_does_and_hunters_alone_decide():
    """Up to what observations in float32 leave out; the course is the same on both clocks and in a batch."""
    alone, beside = make("heron/Tag-v0", prey="rule", num_good=2), make("heron/Tag-v0", num_good=2)
    assert list(alone.group_map) == ["adversary"]
    rules = [benchmark.baselines(env)["rule"] for env in (alone, beside)]
    for seed in range(12):
        run, other = (env.run_synchronous(rule, seed=seed) for env, rule in zip((alone, beside), rules, strict=True))
        assert run.returns == pytest.approx(other.returns, abs=1e-3)
        assert run.same_course(alone.run_event_driven(rules[0], seed=seed))
    assert any(run.returns.values())
    batch_is_its_lanes("heron/Tag-v0", prey="rule", max_steps=4, compile=True)


def test_hunters_are_trained_to_be_near_the_prey_too():
    env, _ = started("heron/Tag-v0", {0: (0.0, 0.0), 1: (0.3, 0.4), 2: (0.0, 1.0), 3: (0.0, 0.12)}, prey="rule")
    seen, rewards, *_ = env.step({})
    ways = [np.hypot(*seen[hunter][12:14]) for hunter in env.agents]
    assert [rewards[hunter] for hunter in env.agents] == [10.0] * 3
    assert env.training_signal() == pytest.approx({a: 10.0 - d for a, d in zip(env.agents, ways, strict=True)})
    batch = BatchEnv("heron/Tag-v0", 2, prey="rule", num_good=2)
    batch.reset(seed=0)
    seen, rewards, *_ = batch.step({"adversary": np.zeros((2, 3, 5))})
    ways = np.hypot(*np.moveaxis(seen["adversary"][..., 12:16].reshape(2, 3, 2, 2), -1, 0)).min(axis=-1)
    assert batch.training_rewards("adversary") == pytest.approx(rewards["adversary"] - ways)


def earned(name: str, continuous: bool, playing: tuple[str, ...], groups: tuple[str, ...]) -> np.ndarray:
    """What groups earn together by episode, where those that are playing do so by rule, the others by chance."""
    env = make(name, continuous=continuous)
    offered = benchmark.baselines(env)
    policies = {group: offered["rule" if group in playing else "random"][group] for group in env.group_map}
    episodes = 240 if groups == ("eve",) else 60
    runs = [env.run_synchronous(policies, seed=seed).returns for seed in range(episodes)]
    return np.array([sum(run[a] for group in groups for a in env.group_map[group]) for run in runs])


@pytest.mark.draw
@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize(("name", "team"), [(name, team) for name, teams in TEAMS.items() for team in teams])
def test_who_plays_by_rule_earns_more_than_who_plays_by_chance(name: str, team: str, continuous: bool):
    """Against the same opponents: by chance; Alice, whom Eve overhears, by rule."""
    groups, against = TEAMS[name][team], ("alice", "bob") if team == "eve" else ()
    by_rule, by_chance = (earned(name, continuous, own, groups) for own in ((*groups, *against), against))
    gain = mean_interval(by_rule - by_chance)
    assert gain.low > 0.0, str(gain)


@pytest.mark.parametrize("name", TEAMS)
def test_variants_pass_the_conformance_kit(name: str):
    only = ["spaces", "rules", "pettingzoo", "parity", "same-seed", "set-points"]
    check_env(name, options={"continuous": False}, steps=8, only=only).raise_if_failed()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Tag", {"num_good": 0}, "tag(num_good=0): must be a whole number >= 1"),
        ("Tag", {"num_adversaries": True}, "tag(num_adversaries=True): must be a whole number >= 1"),
        ("Tag", {"num_obstacles": -1}, "tag(num_obstacles=-1): must be a whole number >= 0"),
        ("Tag", {"prey": "rules"}, "tag(prey='rules'): must be one of ('policy', 'rule'). Did you mean 'rule'?"),
        ("Adversary", {"N": 0}, "adversary(N=0): must be a whole number >= 1"),
        ("Push", {"continuous": 1}, "PushEnv(continuous=1): must be True or False"),
        ("Reference", {"local_ratio": 2}, "reference(local_ratio=2): must be a number in [0, 1]"),
        ("SpeakerListener", {"continuous": "no"}, "SpeakerListenerEnv(continuous='no'): must be True or False"),
        ("Reference", {"speech_cost": -1}, "ReferenceEnv(speech_cost=-1): must be a number >= 0"),
        ("Crypto", {"silence": True}, "CryptoEnv: here words are no messages; leave out silence and speech_cost"),
        ("Crypto", {"continuous": None}, "CryptoEnv(continuous=None): must be True or False"),
        ("WorldComm", {"num_adversaries": 1}, "world_comm(num_adversaries=1): must be a whole number >= 2"),
        ("WorldComm", {"num_forests": 51}, "world_comm(num_forests=51): too many; take 50 at the most"),
    ],
)
def test_wrong_arguments_are_refused_by_name_and_value(name: str, options: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        make(f"heron/{name}-v0", **options)


def test_hunters_of_tag_see_the_prey_that_is_near() -> None:
    tag: dict[str, Any] = {"mates": "message", "prey": "rule"}
    env, _ = started("heron/Tag-v0", {0: (0.0, 0.0), 1: (0.3, 0.3), 3: (0.0, 0.4)}, sight=0.5, **tag)
    hidden = pickle.loads(pickle.dumps(env)).step(dict.fromkeys(env.agents, np.zeros(5)))[0]
    first, second = hidden["adversary_0"], hidden["adversary_2"]
    assert np.hypot(first[12], first[13]) < 0.5 and not second[12:].any() and second[8:12].any()
    everything, same = make("heron/Tag-v0", sight=1e3, **tag), make("heron/Tag-v0", **tag)
    rule: Any = same.benchmark().baselines(0)["rule"]
    assert everything.run_synchronous(rule, seed=1).same_course(same.run_synchronous(rule, seed=1))
    with pytest.raises(ConfigError, match="mates='message'"):
        make("heron/Tag-v0", sight=1.0)
    with pytest.raises(ConfigError, match="number >= 0"):
        make("heron/Tag-v0", mates="message", sight=-1.0)


def test_a_batch_of_tag_with_sight_is_its_lanes() -> None:
    batch_is_its_lanes("heron/Tag-v0", mates="message", sight=0.6, num_good=2, max_steps=6, compile=True)
