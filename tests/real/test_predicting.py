"""What is predicted of policies over a measured network is what episodes over it yield, on the same seeds."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from heron_env import ScheduleConfig, make
from heron_env.errors import ConfigError
from heron_env.lab.output import dumps
from heron_env.lab.robust_stats import paired_difference
from heron_env.real.network import Law, Network
from heron_env.real.predicting import Prediction, predict
from heron_env.seeding import stream

ENV = make("heron/Spread-v0", max_steps=10)
AGENTS, ROOT = ENV.hierarchy.ids[1:], ENV.hierarchy.ids[0]
SEEDS = range(40, 45)


def network(loss: float = 0.0, thinking: bool = False) -> Network:
    law = Law(messages=100, delays=(0.13,), loss=loss, bursts=None, copies=0.0, overtakes=True)
    return Network(
        schema_version=1, places={agent: agent for agent in AGENTS}, links={}, pooled=(),
        directions={"up": law, "down": law}, thinking=dict.fromkeys(AGENTS, (0.05,)) if thinking else {},
    )  # fmt: skip


def rules() -> dict[str, Any]:
    offered = ENV.benchmark().baselines
    assert offered is not None
    return dict(offered(0))


def drawn(*delays: float) -> tuple[float, ...]:
    """Returns where a schedule has the delays, of messages and thinking, that the network has."""
    late = {agent: ScheduleConfig(msg_delay=delays[0], act_delay=delays[1]) for agent in AGENTS}
    policies = rules()["assigned landmark"]
    results = (ENV.run_event_driven(policies, seed=seed, schedule=late) for seed in SEEDS)
    return tuple(result.returns[ROOT] for result in results)


def test_a_prediction_is_the_returns_of_episodes_over_the_network_and_without_each_of_its_causes():
    policies = rules()
    of = predict(ENV, policies, network(0.3, thinking=True), seeds=SEEDS)
    assert of.seeds == tuple(SEEDS) and [*of.returns] == [*policies]
    runs = of.returns["assigned landmark"]
    assert [*runs] == ["measured", "synchronous", "delays", "losses", "thinking"]
    assert runs["losses"] == drawn(0.13, 0.05)
    chosen = policies["assigned landmark"]
    synchronous = [ENV.run_synchronous(chosen, seed=seed).returns[ROOT] for seed in SEEDS]
    assert [*runs["synchronous"]] == synchronous
    for name, off in {"measured": (), "thinking": ("thinking",), "delays": ("delays",)}.items():
        again = (network(0.3, thinking=True).delivery(ENV, seed, without=off) for seed in SEEDS)
        episodes = (
            ENV.run_event_driven(chosen, seed=seed, arrivals=each) for seed, each in zip(SEEDS, again, strict=True)
        )
        assert [*runs[name]] == [episode.returns[ROOT] for episode in episodes]
    assert len({runs[name] for name in runs}) == 5
    for cause, cost in of.costs("assigned landmark").items():
        assert cost.to_dict() == pytest.approx(paired_difference(runs[cause], runs["measured"]).to_dict())


def test_what_the_network_does_not_do_has_no_cost():
    policies = {"assigned": rules()["assigned landmark"]}
    of = predict(ENV, policies, network(), seeds=SEEDS)
    assert [*of.costs("assigned")] == ["delays"] and of.returns["assigned"]["measured"] == drawn(0.13, 0.0)
    assert predict(ENV, policies, network(0.3), seeds=SEEDS, causes=False).costs("assigned") == {}
    assert predict(ENV, policies, network(), seeds=2, causes=False).seeds == (1_000_000, 1_000_001)


def prediction(*shifts: float, noise: float = 1.0, n: int = 24) -> Prediction:
    """Of policies that lose as much in the mean as `shifts` of a gain of 10."""
    draws, nothing = stream(5, "returns"), np.full(n, -20.0)
    cases = draws.normal(0.0, 5.0, n)
    returns: dict[str, Any] = {}
    for number, shift in enumerate(shifts):
        measured = cases - 10.0 - shift + noise * draws.normal(0.0, 1.0, n)
        synchronous = tuple((cases - 10.0).tolist())
        returns[f"policy {number}"] = {"measured": tuple(measured.tolist()), "synchronous": synchronous}
    return Prediction(tuple(range(n)), returns, tuple((nothing + cases).tolist()), "points")


@pytest.mark.parametrize("shifts", [(0.0, 0.1, 2.0), (3.0, 0.6, 0.0, 0.55, 0.1)])
def test_pairs_have_the_probabilities_of_the_paired_t_test_and_are_decided_by_holm(shifts: tuple[float, ...]):
    of = prediction(*shifts)
    pairs, values = of.pairs, {name: np.array(runs["measured"]) for name, runs in of.returns.items()}
    assert len(pairs) == math.comb(len(shifts), 2)
    tests = [ttest_rel(values[pair.better], values[pair.worse]) for pair in pairs]
    assert [pair.probability for pair in pairs] == pytest.approx([1.0 - test.pvalue / 2.0 for test in tests])
    assert all(pair.difference.value >= 0.0 and 0.5 <= pair.probability <= 1.0 for pair in pairs)
    adjusted, most = {}, 0.0
    for left, number in zip(range(len(pairs), 0, -1), np.argsort([test.pvalue for test in tests]), strict=True):
        adjusted[number] = most = max(most, left * tests[number].pvalue)
    assert [pair.decided for pair in pairs] == [adjusted[number] <= 0.05 for number in range(len(pairs))]
    assert {pair.decided for pair in pairs} == {True, False}


@pytest.mark.parametrize(("chance", "decided"), [(0.04, True), (0.06, False)])
def test_two_policies_are_decided_at_five_percent_of_both_sides(chance: float, decided: bool):
    apart = stream(5, "apart").normal(0.0, 1.0, 24)
    apart += t.isf(chance / 2.0, 23) * apart.std(ddof=1) / math.sqrt(24) - apart.mean()
    returns = {"ours": {"measured": tuple(apart.tolist())}, "theirs": {"measured": (0.0,) * 24}}
    (pair,) = Prediction(tuple(range(24)), returns, (0.0,) * 24, "").pairs
    assert pair.decided is decided and pair.probability == pytest.approx(1.0 - chance / 2.0)


def test_correcting_for_all_pairs_decides_less_than_each_by_itself():
    one, pairs = prediction(0.0, 0.55).pairs, prediction(0.0, 0.55, 0.5, 0.56, 0.54, 0.52).pairs
    assert one[0].decided
    assert any(pair.difference.excludes_zero and not pair.decided for pair in pairs)


def test_equal_policies_are_not_told_apart_and_a_constant_difference_is_certain():
    even, ahead = prediction(1.0, 1.0, noise=0.0).pairs[0], prediction(1.0, 2.0, noise=0.0, n=3).pairs[0]
    assert (even.probability, even.decided) == (0.5, False)
    assert ahead.probability > 0.999 and ahead.decided and ahead.better == "policy 0"


def test_the_lost_share_is_of_the_gain_over_doing_nothing():
    of = prediction(2.0, noise=0.0)
    assert of.lost("policy 0").value == pytest.approx(0.2) and of.mean("policy 0").n == 24
    idle = Prediction(of.seeds, of.returns, of.returns["policy 0"]["synchronous"], "")
    assert math.isnan(idle.lost("policy 0").value)


def test_a_prediction_is_a_table_a_sentence_a_pair_and_json():
    of = prediction(0.0, 0.5, 0.55)
    lines = str(of).splitlines()
    assert lines[0] == "Over the measured network, 24 seeds, 95 % intervals"
    assert lines[2] == "| policy | return (points) | synchronous | lost of gain |" and len(lines) == 11
    assert lines[4].startswith(
        f"| policy 0 | {of.mean('policy 0')} | {of.mean('policy 0', 'synchronous').value:.2f} | "
    )
    assert sum(line.endswith("; not decided") for line in lines) == sum(not pair.decided for pair in of.pairs) > 0
    assert "(probability 9" in str(of.pairs[0])
    data = json.loads(dumps(of.to_dict()))
    assert data["policies"]["policy 1"]["return"] == of.mean("policy 1").to_dict()
    assert tuple(data["returns"]["policy 1"]["measured"]) == of.returns["policy 1"]["measured"]
    assert [pair["better"] for pair in data["pairs"]] == [pair.better for pair in of.pairs]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policies": {}}, "policies={}: there is none to predict"),
        ({"policies": [1]}, "policies=[1]: must be a mapping"),
        ({"seeds": 1}, "seeds=1: must be a whole number from 2"),
        ({"seeds": True}, "seeds=True: must be a whole number"),
        ({"seeds": [3]}, "must be two or more, each once"),
        ({"seeds": [3, 4, 3]}, "seeds=(3, 4, 3): must be two or more, each once"),
        ({"seeds": [3, 0.5]}, "seeds: one=0.5: must be a whole number"),
        ({"seeds": "34"}, "seeds='34': must be a list"),
        ({"causes": 1}, "causes=1: must be True or False"),
        ({"network": "network.json"}, "network='network.json': must be a Network, as Network.read(path)"),
    ],
)
def test_what_can_not_be_predicted_is_refused(options: dict[str, Any], words: str):
    with pytest.raises(ConfigError) as refusal:
        predict(ENV, **{"policies": rules(), "network": network(), "seeds": SEEDS} | options)
    assert words in str(refusal.value)
