"""Shares of causes in a gap: identities and axioms on games whose answer is known.

Planted once and caught: weights as if subsets of all sizes counted alike.
"""

from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.errors import ConfigError
from heron_env.lab import IDEAL, Condition, Intervals, Sweep, finding
from heron_env.lab.show.sweeps import causes_part
from heron_env.lab.sweep.conditions import grid
from heron_env.lab.sweep.decomposition import INTERACTION, decomposed, one_at_a_time, shapley
from heron_env.lab.sweep.tables import to_markdown

NAMES = ("loss", "delay", "jitter", "noise", "ticks", "more")


def subsets(causes):
    return [frozenset(s) for s in chain.from_iterable(combinations(causes, n) for n in range(len(causes) + 1))]


@st.composite
def games(draw, most: int = 4):
    """Random costs of every subset, in three cases; none costs nothing."""
    causes = NAMES[: draw(st.integers(1, most))]
    amounts = st.lists(st.floats(-100, 100), min_size=3, max_size=3).map(np.array)
    return causes, {s: draw(amounts) if s else np.zeros(3) for s in subsets(causes)}


def by_orders(costs, causes):
    """Shapley's definition, word for word."""
    orders = list(permutations(causes))
    return {
        cause: sum(
            costs[frozenset(order[: order.index(cause) + 1])] - costs[frozenset(order[: order.index(cause)])]
            for order in orders
        )
        / len(orders)
        for cause in causes
    }


@given(games())
def test_parts_add_up_to_the_gap_in_every_case(game):
    causes, costs = game
    gap = costs[frozenset(causes)]
    for parts in (shapley(costs, causes), one_at_a_time(costs, causes)):
        assert np.abs(sum(parts.values()) - gap).max() <= 1e-9


@given(games())
def test_the_value_is_the_mean_over_all_orders(game):
    causes, costs = game
    expected = by_orders(costs, causes)
    for cause, value in shapley(costs, causes).items():
        assert np.allclose(value, expected[cause], atol=1e-9)


@given(games())
def test_a_cause_that_adds_nothing_gets_nothing(game):
    causes, costs = game
    with_dummy = {s: costs[s - {"dummy"}] for s in subsets((*causes, "dummy"))}
    found = shapley(with_dummy, (*causes, "dummy"))
    assert np.abs(found["dummy"]).max() <= 1e-9
    for cause, value in shapley(costs, causes).items():
        assert np.allclose(found[cause], value, atol=1e-9)


@given(games())
def test_causes_that_do_the_same_get_the_same(game):
    causes, costs = game
    twins = (*causes, "twin")

    def cost(s):  # the first cause and its twin can't be told apart
        count = ("twin" in s) + (causes[0] in s)
        return costs[(s - {"twin", causes[0]}) | ({causes[0]} if count else set())] * (1 + (count == 2))

    found = shapley({s: cost(s) for s in subsets(twins)}, twins)
    assert np.allclose(found["twin"], found[causes[0]], atol=1e-9)


@given(games(3), games(3))
def test_the_shares_of_a_sum_are_the_sums_of_the_shares(one, other):
    (causes, a), (others, b) = sorted((one, other), key=lambda game: len(game[0]))
    both = {s: a[s & frozenset(causes)] + b[s] for s in b}
    found, parts = shapley(both, others), shapley(b, others)
    for cause, value in shapley(a, causes).items():
        assert np.allclose(found[cause], value + parts[cause], atol=1e-9)


def test_six_causes_are_exact_and_seven_are_refused():
    costs = {s: np.array([float(len(s))]) for s in subsets(NAMES)}
    assert [float(value[0]) for value in shapley(costs, NAMES).values()] == pytest.approx([1.0] * 6)
    with pytest.raises(ConfigError, match="7 causes"):
        shapley(costs, (*NAMES, "one too many"))


def test_a_missing_subset_is_named():
    with pytest.raises(ConfigError, match=r"\['delay', 'loss'\] is not known"):
        shapley({s: np.zeros(1) for s in subsets(NAMES[:2]) if len(s) < 2}, NAMES[:2])


def test_intervals_of_the_parts_are_over_the_paired_cases():
    causes, n = NAMES[:2], 6
    both = np.arange(n, dtype=float)
    costs = {frozenset(): np.zeros(n), frozenset({"loss"}): np.ones(n), frozenset({"delay"}): both}
    costs[frozenset(causes)] = both + 1.0
    found = decomposed("p", IDEAL, "shapley", shapley(costs, causes), costs[frozenset(causes)], Intervals(range(n)))
    loss, delay = found.parts
    assert (loss.mean.low, loss.mean.value, loss.mean.high) == (1.0, 1.0, 1.0)
    assert delay.mean.low < delay.mean.value == 2.5 < delay.mean.high
    assert sum(part.mean.value for part in found.parts) == pytest.approx(found.gap.mean.value, abs=1e-9)
    assert found.gap.mean.low == pytest.approx(delay.mean.low + 1.0)


def test_a_waterfall_ends_with_the_interaction():
    costs = {s: np.array([float(len(s) ** 2)]) for s in subsets(NAMES[:2])}
    assert {name: float(v[0]) for name, v in one_at_a_time(costs, NAMES[:2]).items()} == {
        "loss": 1.0, "delay": 1.0, INTERACTION: 2.0,
    }  # fmt: skip


def test_of_several_conditions_with_equal_causes_the_last_is_taken_apart_and_named():
    conditions = grid(act_delay=(0.0, 1.0, 2.0), loss=(0.0, 0.3))
    result = Sweep.of(
        "heron/BatteryGrid-v0", {"random": "random"}, conditions, cases=2, options={"max_steps": 10}
    ).run(processes=1)  # fmt: skip
    last = Condition(act_delay=2.0, loss=0.3)
    assert [found.condition for found in result.decompositions] == [last, last]
    gap = result.point("random", last).gap
    assert all(found.gap.mean == gap for found in result.decompositions)
    assert result.decompositions[0].to_dict()["condition"] == "act_delay=2 loss=0.3"
    told = [sentence for sentence in finding(result) if sentence.startswith("By cause")]
    assert len(told) == 1 and "(Shapley values): the gap of 'random' under action delay 2 s, loss 0.3 is " in told[0]
    assert "## random under action delay 2 s, loss 0.3: gap by cause, shapley" in to_markdown(result)
    part = causes_part(result)
    assert all("under action delay 2 s, loss 0.3" in p.caption and "under act" in p.alternative for p in part.blocks)
