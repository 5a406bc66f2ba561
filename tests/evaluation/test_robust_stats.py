"""Interquartile means, bootstrap intervals and probabilities of improvement, against scipy and arch."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.errors import ConfigError
from heron_env.evaluation.robust_stats import (
    Bootstrap,
    Estimate,
    interquartile_mean,
    mean,
    probability_of_improvement,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "bootstrap_arch.json").read_text())
STATISTICS = {"mean": mean, "interquartile mean": interquartile_mean}
values = st.lists(st.floats(-1e3, 1e3, allow_nan=False), min_size=1, max_size=25)


def labels(sizes: list[int]) -> list[int]:
    return [stratum for stratum, size in enumerate(sizes) for _ in range(size)]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: str(case["sizes"]))
@pytest.mark.parametrize("name", STATISTICS)
def test_estimates_are_those_of_arch(case, name: str):
    draws = Bootstrap(
        labels(case["sizes"]),
        repetitions=case["repetitions"],
        level=case["level"],
        seed=np.random.default_rng(case["seed"]),
    )
    found = draws.estimate(np.concatenate(case["values"]), STATISTICS[name])
    assert [found.value, found.low, found.high] == pytest.approx(case["estimates"][name], rel=1e-12)


def test_the_golden_figures_are_what_arch_says_today():
    pytest.importorskip("arch", reason="arch is not installed: its figures are in tests/golden/bootstrap_arch.json")
    from golden.record_bootstrap import CASES, recorded

    for case, kept in zip(CASES, GOLDEN["cases"], strict=True):
        assert recorded(**case)["estimates"] == kept["estimates"]


@given(values)
def test_the_interquartile_mean_is_scipys(x: list[float]):
    from scipy.stats import trim_mean

    assert float(interquartile_mean(np.array(x))) == pytest.approx(float(trim_mean(x, 0.25)), rel=1e-9, abs=1e-9)


@given(values, values)
def test_the_probability_of_improvement_is_mann_whitneys(x: list[float], y: list[float]):
    from scipy.stats import mannwhitneyu

    expected = mannwhitneyu(x, y).statistic / (len(x) * len(y))
    assert probability_of_improvement(x, y) == pytest.approx(float(expected))
    assert probability_of_improvement(x, y) + probability_of_improvement(y, x) == pytest.approx(1.0)


def test_paired_improvement_counts_cases_and_halves_ties():
    found = Bootstrap(range(4)).improvement([1.0, 2.0, 3.0, 9.0], [0.0, 2.0, 4.0, 4.0])
    assert found.value == (1 + 0.5 + 0 + 1) / 4
    assert 0.0 <= found.low < found.value < found.high <= 1.0


def test_strata_are_drawn_each_by_itself():
    strata = ["monday", "tuesday", "monday", "tuesday"]
    draws = Bootstrap(strata, repetitions=50).draws
    assert {tuple(sorted(strata[i] for i in row)) for row in draws} == {("monday", "monday", "tuesday", "tuesday")}
    assert set(draws[:, :2].ravel()) == {0, 2}


def test_what_differs_between_strata_alone_has_no_spread():
    found = Bootstrap(["a", "a", "b", "b"]).estimate([1.0, 1.0, 9.0, 9.0])
    assert (found.value, found.low, found.high) == (5.0, 5.0, 5.0)
    assert Bootstrap(range(4)).estimate([1.0, 1.0, 9.0, 9.0]).low < 5.0  # single cases are one stratum


def test_an_estimate_reads_as_value_and_ends():
    assert str(Estimate(2.314, 1.9, -0.001, 5)) == "2.31 [1.90, 0.00]"
    assert str(Estimate(2.314, math.nan, math.nan, 1)) == "2.31"
    assert str(Estimate(0.00034, -0.00002, 0.00123, 5)) == "0.00034 [-0.00002, 0.00123]"
    assert Estimate(0.00034, -0.00002, 0.00623, 5).beside(9.8) == "0.00 [0.00, 0.01]"
    assert str(Estimate(0.0, -1e-12, 0.0, 5)) == "0.00 [0.00, 0.00]"


def test_one_case_has_no_interval_and_equal_values_an_empty_one():
    one = Bootstrap([0]).estimate([3.0])
    assert one.value == 3.0
    assert math.isnan(one.low) and math.isnan(one.high) and not one.excludes_zero
    assert Bootstrap(range(5)).estimate([2.0] * 5) == Estimate(2.0, 2.0, 2.0, 5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Bootstrap(range(3)).estimate([1.0, math.nan, 2.0]),
        lambda: Bootstrap(range(3)).estimate([1.0, math.inf, 2.0]),
        lambda: Bootstrap(range(3)).estimate([1.0, 2.0]),
        lambda: Bootstrap([]),
        lambda: Bootstrap(range(3), level=1.0),
        lambda: Bootstrap(range(3), repetitions=0),
        lambda: probability_of_improvement([], [1.0]),
        lambda: probability_of_improvement([math.nan], [1.0]),
    ],
)
def test_what_no_statistic_can_be_made_of_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"finite values|at least"):
        wrong()


def test_the_same_seed_draws_the_same_resamples():
    assert (Bootstrap(range(6)).draws == Bootstrap(range(6)).draws).all()
    assert (Bootstrap(range(6), seed=1).draws != Bootstrap(range(6)).draws).any()


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    draws, x = Bootstrap(range(20), repetitions=400), generator.normal(size=(300, 20))
    found = [draws.estimate(row) for row in x]
    assert 0.85 < np.mean([e.low <= 0.0 <= e.high for e in found]) < 0.99
