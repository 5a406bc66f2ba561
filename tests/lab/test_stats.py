"""Means and paired differences with intervals, against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.errors import ConfigError
from heron_env.lab import mean_interval, paired_difference
from heron_env.lab.robust_stats import Estimate, t_quantile

values = st.lists(st.floats(-1e3, 1e3, allow_nan=False), min_size=2, max_size=30)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 9, 10, 29, 30, 250])
def test_the_t_quantile_is_scipys(df: int, level: float):
    from scipy.stats import t

    assert t_quantile(level, df) == pytest.approx(t.ppf(0.5 + level / 2, df), rel=1e-9)


@given(values)
def test_the_mean_interval_is_scipys(x: list[float]):
    from scipy.stats import sem, t

    found, spread = mean_interval(x), sem(x)
    assert found.mean == pytest.approx(np.mean(x))
    assert found.n == len(x)
    if spread > 1e-9:
        low, high = t.interval(0.95, len(x) - 1, loc=np.mean(x), scale=spread)
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


@given(values, st.floats(-50, 50))
def test_a_paired_difference_is_scipys_and_ignores_what_the_pairs_share(x: list[float], shift: float):
    from scipy.stats import ttest_rel

    noise = np.random.default_rng(len(x)).normal(size=len(x))
    y = np.asarray(x) - shift - noise
    found = paired_difference(x, y.tolist())
    expected = ttest_rel(x, y).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(expected.low, abs=1e-6), pytest.approx(expected.high, abs=1e-6))
    assert found.mean == pytest.approx(shift + noise.mean(), abs=1e-6)


def test_one_value_has_no_interval_and_says_so():
    found = mean_interval([3.0])
    assert found.mean == 3.0
    assert math.isnan(found.low) and math.isnan(found.high)
    assert not found.excludes_zero
    assert str(found) == "3.00"


def test_an_interval_reads_as_mean_and_ends():
    assert str(Estimate(-1.234, -1.5, -0.968, 5)) == "-1.23 [-1.50, -0.97]"
    assert Estimate(-1.0, -2.0, -0.1, 5).excludes_zero
    assert not Estimate(-1.0, -2.0, 0.1, 5).excludes_zero


@pytest.mark.parametrize("wrong", [lambda: mean_interval([]), lambda: mean_interval([1.0, 2.0], level=1.0)])
def test_nothing_to_average_and_impossible_levels_are_refused(wrong):
    with pytest.raises(ConfigError, match=r"give a sequence|between 0 and 1"):
        wrong()


def test_pairs_need_the_same_cases():
    with pytest.raises(ConfigError, match=r"2 and 3 values: pairs need the same cases"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])
