"""Two algorithms compared: what is said is what the intervals carry, and the number of seeds is the one that tells."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_ind
from training_kit import trained

from heron_env.errors import ConfigError
from heron_env.lab import Condition, Sources, Sweep, finding, report_of
from heron_env.lab.policies import Baseline, TrainedRun, named_policies
from heron_env.lab.robust_stats import Intervals
from heron_env.lab.show.document import render
from heron_env.lab.show.figures import profile_figure
from heron_env.lab.sweep.sentences import AlgorithmComparison, comparisons

GRID, SHORT, LATE = "heron/BatteryGrid-v0", {"max_steps": 8}, Condition(act_delay=2.0)


@dataclass(frozen=True)
class Filling:
    """Fills the batteries to a share: one share stands for one training seed."""

    share: float

    def build(self, env, seed):
        return {"*": lambda seen: self.share - seen[:1]}


def swept(first, second):
    pools = {"first": [Filling(x) for x in first], "second": [Filling(x) for x in second]}
    return Sweep.of(GRID, {**pools, "rule": Filling(0.8)}, [LATE], cases=3, options=SHORT).run(processes=1)


@pytest.fixture(scope="module")
def apart():
    return swept((0.9, 0.88, 0.92), (0.6, 0.58, 0.62))


@pytest.fixture(scope="module")
def alike():
    return swept((0.9, 0.6, 0.7), (0.85, 0.65, 0.71))


# How many seeds are enough


@given(st.integers(2, 8), st.floats(0.1, 10.0), st.floats(0.05, 3.0))
def test_where_cases_do_not_differ_seeds_are_counted_as_in_a_t_test(seeds: int, spread: float, effect: float):
    offsets = np.linspace(-1.0, 1.0, seeds)
    ours = np.repeat((effect + spread * offsets)[:, None], 5, axis=1)
    theirs = np.repeat((spread * offsets)[:, None], 5, axis=1)
    variance = 2.0 * (spread * offsets).var(ddof=1)
    reach = ((n, t.ppf(0.975, 2 * (n - 1)) * math.sqrt(variance / n)) for n in range(2, 201))
    wanted = next((n for n, half in reach if half <= effect), None)
    assert Intervals(range(5)).seeds_for(ours, theirs, effect) == wanted


def test_the_interval_of_seeds_alone_is_the_one_of_a_t_test():
    random = np.random.default_rng(0)
    ours, theirs = (np.repeat(random.normal(mean, 1.0, (6, 1)), 4, axis=1) for mean in (1.0, 0.0))
    ours, theirs = ((x - x.mean()) / x.std() + mean for x, mean in ((ours, 1.0), (theirs, 0.0)))
    made = Intervals(range(4)).difference(ours, theirs)
    wanted = ttest_ind(ours[:, 0], theirs[:, 0]).confidence_interval(0.95)
    assert (made.low, made.high) == pytest.approx((wanted.low, wanted.high))


def test_no_number_of_seeds_helps_where_cases_spread_too_far_or_one_side_has_one_seed():
    cases = np.array([[-9.0, 0.0, 9.0], [-9.0, 0.1, 9.1]])
    still = np.zeros((2, 3))
    assert Intervals(range(3)).seeds_for(cases, still, 0.5) is None
    assert Intervals(range(3)).seeds_for(cases[:1], still, 50.0) is None
    assert Intervals(range(3)).seeds_for(cases, still, 50.0) == 2
    assert Intervals(range(3)).seeds_for(still, still, 0.0) is None


# What is said


def test_a_difference_that_the_interval_carries_is_said_and_the_other_way_round_too(apart):
    one, other = AlgorithmComparison(apart, "first", "second"), AlgorithmComparison(apart, "second", "first")
    assert one.difference.low > 0.0 and f"'first' earns {one.difference} more than 'second'" in str(one)
    assert f"'second' earns {one.difference} less than 'first'" in str(other)
    assert "the probability that a run of the first earns more in the same case is 100.0 %" in str(one)
    assert one.enough <= 3 and f"About {one.enough} training seeds of each" in str(one)


def test_an_open_difference_stays_open(alike):
    made = AlgorithmComparison(alike, "first", "second")
    assert not made.difference.excludes_zero
    assert "it is not clear whether 'first' earns more than 'second'" in str(made)
    assert made.enough is None or made.enough > 3


def test_no_difference_asks_for_no_seeds():
    made = AlgorithmComparison(swept((0.9, 0.8), (0.9, 0.8)), "first", "second")
    assert made.difference.value == 0.0 and "The difference is zero" in str(made)


def test_a_name_stands_for_one_algorithm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("ra", "rb", "r[1]"):
        trained(tmp_path / folder)
    two = [TrainedRun("ra"), TrainedRun("rb")]
    assert named_policies(["a=ra,rb", "x"]) == {"a": two, "x": Baseline("x")}
    assert named_policies(["a=r[1]", "b=r?"]) == {"a": TrainedRun("r[1]"), "b": two}
    for names in (["a=ra", "a=rb"], ["rb=ra", "rb"]):
        with pytest.raises(ConfigError, match="give each policy a name of its own"):
            named_policies(names)
    with pytest.raises(ConfigError, match="'none' is no run folder"):
        named_policies(["a=ra,none"])


def test_only_policies_of_several_seeds_are_algorithms_under_both_clocks(apart):
    pairs = list(comparisons(apart))
    assert [(p.first, p.second, p.condition.words) for p in pairs] == [
        ("first", "second", "synchronous clock"),
        ("first", "second", "action delay 2 s"),
    ]
    assert all(str(pair) in finding(apart) for pair in pairs)
    with pytest.raises(ConfigError, match="no policy 'third'"):
        AlgorithmComparison(apart, "first", "third").difference  # noqa: B018


def test_the_profile_is_the_share_of_runs_that_gain_so_much(apart):
    axes = profile_figure(apart).axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    assert set(lines) == {"first", "second"}
    for name, line in lines.items():
        gains = apart.table(name) - apart.table("do nothing")[0]
        for least, share in zip(*line.get_data(), strict=True):
            assert share == pytest.approx((gains >= least).mean())


def test_a_report_of_two_algorithms_begins_with_their_profiles(apart, alike):
    made = report_of(Sources(sweeps=[apart]))
    assert made.lead.name == "profiles" and made.parts[0].title == "Algorithms compared"
    assert "seeds that are enough" in render(made)
    one = Sweep.of(GRID, {"rule": Filling(0.8)}, [LATE], cases=2, options=SHORT).run(processes=1)
    assert "profiles" not in [picture.name for picture in report_of(Sources(sweeps=[one])).pictures]
