"""Means, interquartile means, shares and probabilities of improvement with their intervals, against scipy."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.errors import ConfigError
from heron_env.lab import Estimate, Intervals, mean_interval, paired_difference
from heron_env.lab.robust_stats import t_quantile, wilson
from heron_env.lab.sweep.play import require_finite

values = st.lists(st.floats(-1e3, 1e3, allow_nan=False), min_size=1, max_size=25)
several = st.lists(st.floats(-1e3, 1e3, allow_nan=False), min_size=2, max_size=25)


def ends(found: Estimate) -> tuple[float, float]:
    return found.low, found.high


def test_the_t_quantile_is_scipys():
    from scipy.stats import t

    for level, df in product([0.5, 0.9, 0.95, 0.99], [1, 2, 5, 10, 250]):
        assert t_quantile(level, df) == pytest.approx(t.ppf(0.5 + level / 2, df), rel=1e-9)


@given(several, st.floats(-50, 50))
def test_the_mean_and_the_paired_difference_are_scipys(x: list[float], shift: float):
    from scipy.stats import ttest_1samp, ttest_rel

    make, y = Intervals(range(len(x))), np.asarray(x) - shift - np.random.default_rng(len(x)).normal(size=len(x))
    expected = ttest_rel(x, y).confidence_interval(0.95)
    for found in (make.difference(x, y), paired_difference(x, y.tolist())):
        assert found.value == pytest.approx(np.mean(x - y), abs=1e-6)
        assert ends(found) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert (mean_interval(x).mean, mean_interval(x).n) == (pytest.approx(np.mean(x)), len(x))
    assert mean_interval(x) == make.mean(x)
    if np.std(x) > 1e-6:
        assert ends(make.mean(x)) == pytest.approx(tuple(ttest_1samp(x, 0.0).confidence_interval(0.95)), abs=1e-6)


@given(several)
def test_the_interquartile_mean_and_its_interval_are_scipys(x: list[float]):
    from scipy.stats import t, trim_mean
    from scipy.stats.mstats import winsorize

    found, n = Intervals(range(len(x))).interquartile_mean(x), len(x)
    assert found.value == pytest.approx(float(trim_mean(x, 0.25)), rel=1e-9, abs=1e-9)
    cut = n // 4
    spread = float(np.std(winsorize(np.array(x), limits=(cut / n, cut / n)), ddof=1))
    half = t.ppf(0.975, n - 2 * cut - 1) * spread / ((1 - 2 * cut / n) * math.sqrt(n))
    if np.ptp(x) > 1e-6:
        assert found.high - found.value == pytest.approx(half, rel=1e-6, abs=1e-6)
        assert found.value - found.low == pytest.approx(half, rel=1e-6, abs=1e-6)


def test_two_levels_are_the_variance_by_case_and_by_seed_with_satterthwaites_freedom():
    from scipy.stats import t

    x = np.random.default_rng(0).normal(size=(5, 8)) + np.arange(5.0)[:, None]
    found = Intervals(range(8)).mean(x)
    by_case, by_seed = x.mean(axis=0).var(ddof=1) / 8, x.mean(axis=1).var(ddof=1) / 5
    freedom = math.floor((by_case + by_seed) ** 2 / (by_case**2 / 7 + by_seed**2 / 4))
    half = t.ppf(0.975, freedom) * math.sqrt(by_case + by_seed)
    assert (found.value, found.runs, found.n) == (pytest.approx(x.mean()), 5, 8)
    assert ends(found) == (pytest.approx(x.mean() - half), pytest.approx(x.mean() + half))


def test_training_seeds_widen_what_cases_alone_would_say():
    random = np.random.default_rng(0)
    days, seeds = random.normal(size=(1, 20)), random.normal(size=(5, 1))
    make = Intervals(range(20))
    alone, pooled = make.mean((days + seeds).mean(axis=0)), make.mean(days + seeds)
    assert pooled.value == pytest.approx(alone.value) and alone.runs == 1
    assert pooled.high - pooled.low > 1.5 * (alone.high - alone.low)


def test_training_seeds_of_two_policies_have_no_pairs():
    random = np.random.default_rng(0)
    ours, theirs = random.normal(size=(5, 12)), random.normal(size=(3, 12))
    make = Intervals(range(12))
    found = make.difference(ours, theirs)
    assert ends(make.difference(ours[::-1], theirs)) == pytest.approx(ends(found))
    assert found.value == pytest.approx(ours.mean() - theirs.mean()) and found.runs == 5
    rule = theirs[:1]
    assert ends(make.difference(ours, rule)) == pytest.approx(ends(make.mean(ours - rule)))


def test_a_share_is_a_ratio_of_means_and_nothing_where_there_may_be_no_whole():
    make, whole = Intervals(range(6)), np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    assert ends(make.share(0.4 * whole, whole)) == (pytest.approx(0.4), pytest.approx(0.4))
    part = np.array([1.0, 2.0, 1.0, 3.0, 2.0, 2.0])
    found = make.share(part, whole)
    error = (part - found.value * whole) / whole.mean()
    assert found.value == pytest.approx(part.mean() / whole.mean())
    assert found.high - found.value == pytest.approx(make.mean(error).high)
    assert math.isnan(make.share(part, -whole).value)
    assert math.isnan(make.share(part, whole - 5.4).value)  # 0.1 in the mean
    assert make.share(part, whole - 5.4).percent() == "-"
    assert math.isnan(Intervals(range(1)).share([1.0], [2.0]).value)  # one case has no interval


def test_what_is_closed_of_a_gap_is_a_share_whose_training_seeds_have_no_pairs():
    rng = np.random.default_rng(3)
    late = rng.normal(-37.0, 5.0, 8)
    without, ours = late + rng.uniform(8.0, 12.0, 8), late + rng.uniform(2.0, 6.0, 8)
    make = Intervals(range(8))
    found, paired = make.closed(ours, late, without), make.share(ours - late, without - late)
    assert (found.value, found.low, found.high) == (
        pytest.approx(paired.value), pytest.approx(paired.low), pytest.approx(paired.high)
    )  # fmt: skip
    seeds = rng.normal(0.0, 1.0, (5, 1))
    alike = make.closed(ours + seeds, late + seeds, without + seeds)  # equal seeds would cancel out, were they pairs
    assert alike.high - alike.low > 1.3 * (found.high - found.low)
    assert math.isnan(make.closed(ours, without, late).value)
    assert not make.closed(ours, late, late + [9.0, -8.0] * 4).known


def test_an_improvement_counts_cases_halves_ties_and_leaves_room_even_where_it_is_sure():
    from scipy.stats import binomtest

    found = Intervals(range(4)).improvement([1.0, 2.0, 3.0, 9.0], [0.0, 2.0, 4.0, 4.0])
    assert found.value == (1 + 0.5 + 0 + 1) / 4
    assert 0.0 <= found.low < found.value < found.high <= 1.0
    sure = Intervals(range(5)).improvement(np.ones(5), np.zeros(5))
    assert (sure.value, sure.high) == (1.0, 1.0)
    assert sure.low == pytest.approx(binomtest(5, 5).proportion_ci(method="wilson").low, abs=1e-3)


@pytest.mark.parametrize(("successes", "n"), [(0, 9), (1, 9), (14, 100), (100, 100)])
def test_wilson_s_interval_is_scipy_s_and_a_proportion_s_is_hardly_wider(successes: int, n: int):
    from scipy.stats import binomtest

    theirs = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes / n, n) == pytest.approx((theirs.low, theirs.high), abs=1e-4)
    found = Intervals(range(n)).proportion(np.arange(n) < successes)
    assert 0.0 <= found.low <= theirs.low + 1e-4 and theirs.high - 1e-4 <= found.high <= 1.0
    assert (found.value, found.high - found.low) == (successes / n, pytest.approx(theirs.high - theirs.low, rel=0.25))


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=6), min_size=1, max_size=4))
def test_a_proportion_s_interval_has_no_end_beyond_none_and_all(values: list[list[float]]):
    found = Intervals(range(6)).proportion(values)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0 and found.high > found.low


def test_repeats_of_a_day_are_no_new_days():
    x = np.array([1.0, 3.0, 4.0, 6.0, 8.0, 12.0])
    repeated = Intervals(["a", "a", "b", "b", "c", "c"]).mean(x)
    assert ends(repeated) == pytest.approx(ends(Intervals(range(3)).mean([2.0, 5.0, 10.0])))
    assert Intervals(["a"] * 6).mean(x) == Intervals(range(6)).mean(x)  # of one day all seeds are cases


def test_an_estimate_reads_as_value_and_ends_and_says_whether_it_excludes_zero_or_stays_within_a_bound():
    assert str(Estimate(2.314, 1.9, -0.001, 5)) == "2.31 [1.90, 0.00]"
    assert str(Estimate(2.314, math.nan, math.nan, 1)) == "2.31"
    assert str(Estimate(0.00034, -0.00002, 0.00123, 5)) == "0.00034 [-0.00002, 0.00123]"
    assert Estimate(0.00034, -0.00002, 0.00623, 5).beside(9.8) == "0.00 [0.00, 0.01]"
    assert str(Estimate(0.0, -1e-12, 0.0, 5)) == "0.00 [0.00, 0.00]"
    assert Estimate(2.0, 1.0, 3.0, 5).excludes_zero and Estimate(-2.0, -3.0, -1.0, 5).excludes_zero
    assert not Estimate(1.0, -1.0, 3.0, 5).excludes_zero
    assert Estimate(0.01, -0.01, 0.015, 5).within(0.02) and not Estimate(0.0, -0.03, 0.015, 5).within(0.02)
    assert Estimate(0.409, 0.3512, 0.468, 5).percent() == "40.9 % [35.1, 46.8]"
    none = Estimate(-0.0, math.nan, math.nan, 1)
    assert none.percent() == "0.0 %" and not (none.known or none.excludes_zero or none.within(1.0))


def test_one_case_has_no_interval_and_equal_values_an_empty_one():
    one = Intervals([0]).mean([3.0])
    assert one.value == 3.0
    assert math.isnan(one.low) and math.isnan(one.high) and not one.excludes_zero
    assert repr(mean_interval([3.0])) == repr(one) and str(one) == "3.00"
    assert math.isnan(mean_interval([1.0, math.nan]).mean), "of what is not known nothing is"
    assert Intervals(range(5)).mean([2.0] * 5) == Estimate(2.0, 2.0, 2.0, 5)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Intervals(range(3)).mean([1.0, math.nan, 2.0]), "must be 3 finite values, one for each case"),
        (lambda: Intervals(range(3)).mean([1.0, 2.0]), "must be 3 finite values, one for each case"),
        (lambda: Intervals([]), "one case at least"),
        (lambda: Intervals(range(3), level=1.0), "a level between 0 and 1"),
        (lambda: Intervals(range(2)).proportion([0.0, 2.0]), r"\[\[0.0, 2.0\]\]: its values must lie between 0 and 1"),
        (lambda: mean_interval([]), "give a sequence of one value or more"),
        (lambda: mean_interval([1.0, 2.0], level=1.0), "a level between 0 and 1"),
        (lambda: paired_difference([1.0, 2.0], [1.0, 2.0, 3.0]), "2 and 3 values: pairs need the same cases"),
    ],
)
def test_what_no_statistic_can_be_made_of_is_refused(wrong, words: str):
    with pytest.raises(ConfigError, match=words):
        wrong()


@pytest.mark.parametrize("value", [1e308, -1.7e308, 1e151, float("inf"), float("nan")])
def test_values_whose_squares_are_beyond_all_numbers_are_refused(value: float):
    make, values = Intervals(range(3)), [1.0, value, 2.0]
    methods = (make.mean, make.interquartile_mean, lambda x: make.difference(x, [0.0] * 3), lambda x: make.share(x, x))
    for method in methods:
        with pytest.raises(ConfigError, match=r"must be 3 finite values, one for each case, of at most 1e\+150"):
            method(values)
    if np.isfinite(value):
        with pytest.raises(ConfigError, match=r"must be a sequence of numbers of at most 1e\+150"):
            mean_interval(values)
    with pytest.raises(ConfigError, match="no statistics can be made of it"):
        require_finite(SimpleNamespace(value=value))


@given(st.lists(st.floats(-1e150, 1e150), min_size=4, max_size=4))
def test_any_other_values_have_an_interval(values: list[float]):
    found = Intervals(range(4)).mean(values)
    assert found.low <= found.value <= found.high and np.isfinite([found.low, found.high]).all()
