"""How often 95 % intervals hold the truth, on values such as sweeps have: the table in `robust_stats` is this one.

Every kind is asked at 5, 8 and 20 cases; 90 % is the aim. What misses it is stated with its figure, here and there.
Planted once and caught: the quantile of a spread that is known, seeds counted as cases.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import trim_mean

from heron_env.lab import Estimate, Intervals, robust_stats

TRIALS, CASES = 4000, (5, 8, 20)
MARGIN = 1.5
"""Percentage points that a table of other draws may differ by: three standard errors."""
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def far_out(random: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """One case in seven costs about 4 more, as a cloudy day among clear ones."""
    return np.where(random.random(size) < 1 / 7, random.normal(4.0, 2.0, size), random.normal(0.0, 0.7, size))


VALUES: dict[str, Draw] = {
    "normal": lambda random, size: random.normal(size=size),
    "skewed": lambda random, size: random.gamma(2.0, size=size),
    "very skewed": lambda random, size: random.lognormal(0.0, 0.6, size),
    "far out": far_out,
}
EXPECTED = {
    ("mean", "normal"): (95, 95, 95),
    ("mean", "skewed"): (92, 92, 93),
    ("mean", "very skewed"): (91, 91, 92),
    ("mean", "far out"): (85, 82, 90),
    ("interquartile mean", "normal"): (93, 92, 94),
    ("interquartile mean", "skewed"): (91, 92, 93),
    ("interquartile mean", "very skewed"): (92, 92, 93),
    ("interquartile mean", "far out"): (94, 94, 95),
    ("share", "skewed"): (92, 92, 94),
    ("5 seeds x cases: mean", "normal"): (96, 95, 95),
    ("5 seeds x cases: mean", "skewed"): (95, 95, 95),
    ("5 seeds x cases: interquartile mean", "skewed"): (98, 97, 96),
    ("5 seeds x cases: difference of two pools", "skewed"): (97, 96, 96),
}
"""Percent, by kind of figure and of values."""


def samples(kind: str, values: str, n: int) -> tuple[Callable[[np.ndarray], Estimate], np.ndarray, float]:
    """The figure, the trials, and the truth."""
    random, make, draw = np.random.default_rng(n), Intervals(range(n)), VALUES[values]
    many = draw(np.random.default_rng(1), (2_000_000,))
    if kind == "share":  # of a gain of 3 or more, a part that varies with the case
        whole = 3.0 + draw(random, (TRIALS, n))
        part = 0.3 * whole + draw(random, (TRIALS, n)) - 1.0
        truth = 0.3 + (many.mean() - 1.0) / (3.0 + many.mean())
        return lambda x: make.share(x[0], x[1]), np.stack([part, whole], axis=1), float(truth)
    if kind in ("mean", "interquartile mean"):
        truth = many.mean() if kind == "mean" else trim_mean(many, 0.25)
        return (make.mean if kind == "mean" else make.interquartile_mean), draw(random, (TRIALS, n)), float(truth)
    spread = float(many.std())
    seeds = 0.5 * spread * random.normal(size=(2, TRIALS, 5, 1))
    rest = 0.5 * spread * random.normal(size=(2, TRIALS, 5, n))
    table = draw(random, (TRIALS, 1, n)) + seeds + rest
    if "difference" in kind:
        return lambda x: make.difference(x[0], x[1]), np.moveaxis(table, 0, 1), 0.0
    alike = many + 0.5 * spread * np.random.default_rng(2).normal(size=(2, len(many))).sum(axis=0)
    truth = many.mean() if kind.endswith(": mean") else trim_mean(alike, 0.25)
    return (make.mean if kind.endswith(": mean") else make.interquartile_mean), table[0], float(truth)


def covered(kind: str, values: str, n: int) -> float:
    figure, trials, truth = samples(kind, values, n)
    found = [figure(x) for x in trials]
    return percent([one.low <= truth <= one.high for one in found])


def percent(hits: object) -> float:
    return round(100.0 * float(np.mean(hits)), 1)


@pytest.mark.draw
@pytest.mark.parametrize(("kind", "values"), EXPECTED, ids=lambda name: name)
def test_intervals_hold_the_truth_as_often_as_the_table_says(kind: str, values: str):
    found = [covered(kind, values, n) for n in CASES]
    assert found == pytest.approx(EXPECTED[kind, values], abs=MARGIN), found
    if (kind, values) != ("mean", "far out"):
        assert min(found) >= 90.0


def test_the_table_of_the_docstring_is_the_one_that_is_measured():
    told = " ".join(str(robust_stats.__doc__).split())
    for kind, values, line in (
        ("mean", "normal", "mean, normal"),
        ("mean", "very skewed", "mean, very skewed (lognormal, skewness 2.3)"),
        ("mean", "far out", "mean, one case in seven far out"),
        ("share", "skewed", "share of two skewed means"),
        ("5 seeds x cases: mean", "skewed", "5 seeds x cases: mean, skewed"),
        ("5 seeds x cases: interquartile mean", "skewed", "5 seeds x cases: interquartile mean, skewed"),
    ):
        assert f"{line} {' '.join(map(str, EXPECTED[kind, values]))}" in told


@pytest.mark.draw
@pytest.mark.parametrize(("n", "expected"), [(5, 80), (8, 86)])
def test_the_percentile_bootstrap_covers_far_less(n: int, expected: int):
    _, trials, truth = samples("mean", "skewed", n)
    draws = np.random.default_rng(0).integers(n, size=(400, n))
    low, high = np.percentile(trials[:, draws].mean(axis=2), [2.5, 97.5], axis=1)
    assert percent((low <= truth) & (truth <= high)) == pytest.approx(expected, abs=MARGIN)


@pytest.mark.draw
def test_bootstrap_t_of_an_interquartile_mean_of_five_has_no_ends():
    _, trials, _ = samples("interquartile mean", "skewed", 5)
    ordered = np.sort(trials[:500, np.random.default_rng(0).integers(5, size=(1000, 5))], axis=2)
    flat = ordered[..., 1] == ordered[..., 3]  # the three in the middle are one value drawn three times: no spread
    assert np.median(flat.mean(axis=1)) > 0.05  # of all resamples: more than lie beyond both ends
