"""Groups, pictures and percentiles."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_worlds import Price

from heron_env import (
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ObservabilityConfig,
    ObservabilityMatrix,
    ScheduleConfig,
    SystemAgent,
    quantity,
)
from heron_env.envs import percentiles
from heron_env.errors import UnknownAgent
from heron_env.pictures.notebook import html_table


class Charge(FeatureProvider):
    visibility = ("public",)
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    free: float = 12345.678
    hidden: float = quantity(low=0.0, high=1.0, observed=False)


class Battery(FieldAgent):
    features = (Charge,)
    action = Continuous(-1.0, 1.0)


class Wide(Battery):
    action = Continuous(-2.0, 2.0)


class Valve(FieldAgent):
    action = Discrete(2)


class PricedEnv(HeronEnv):
    global_features = (Price,)


def env(**options: object) -> HeronEnv:
    agents = (
        Battery("battery_1", Charge(soc=0.0)),
        Wide("battery_2", Charge(soc=1.0)),
        Battery("battery_3"),
        Valve("valve"),
    )
    built = PricedEnv(SystemAgent("system_agent", CoordinatorAgent("zone_1", *agents)), max_steps=3, **options)
    built.reset(seed=0)
    return built


def test_a_group_is_a_name_stem_with_equal_spaces_and_lists_who_decides():
    assert env().group_map == {"battery": ["battery_1", "battery_3"], "battery:1": ["battery_2"], "valve": ["valve"]}
    assert list(env().groups) == ["system_agent", "zone", "battery", "battery:1", "valve"]


def test_a_group_shares_a_policy():
    result = env().run_synchronous({"*": lambda v: 0, "battery:1": lambda v: 2.0, "battery": lambda v: 1.0})
    assert {a: float(rows[0][1][0]) for a, rows in result.actions.items()} == {
        "battery_1": 1.0, "battery_2": 2.0, "battery_3": 1.0, "valve": 0.0,
    }  # fmt: skip


def test_text_shows_the_tree_with_all_observed_values():
    assert env(render_mode="ansi").render() == "\n".join(
        [
            "t = 0 s",
            "system_agent",
            "  zone_1",
            "    battery_1  Charge.soc=0  Charge.free=1.235e+04",
            "    battery_2  Charge.soc=1  Charge.free=1.235e+04",
            "    battery_3  Charge.soc=0.5  Charge.free=1.235e+04",
            "    valve",
            "global  Price.value=0.3",
        ]
    )


def test_nothing_to_show_is_still_a_picture():
    bare = HeronEnv(SystemAgent("s", Valve("valve")), render_mode="rgb_array")
    bare.reset(seed=0)
    assert bare.render().shape == (576, 512, 3)
    assert (bare.state().shape, bare.state_names) == ((0,), [])


def test_the_picture_has_a_bar_for_each_quantity_from_zero_to_its_value():
    priced = env(render_mode="rgb_array")
    soc = [priced.simulation.model.layout.full_names.index(f"battery_{i}.Charge.soc") for i in (1, 2)]
    counts = []
    for value in (0.0, 0.25, 0.5, 1.0):
        priced.simulation.truth[soc] = value
        counts.append(int((priced.render() == (0, 114, 178)).all(axis=2).sum()))
    assert counts == sorted(counts) and np.diff(counts).min() > 100
    assert counts[3] - counts[2] == pytest.approx(2 * (counts[2] - counts[1]), rel=0.15)


def test_percentiles_say_how_many_and_nan_where_there_are_none():
    p = percentiles.Percentiles.of([1.0, 2.0, 3.0, 10.0])
    assert (p.count, p.mean, p.p50, p.max) == (4, 4.0, 2.5, 10.0)
    assert p.p95 == pytest.approx(8.95)
    nothing = percentiles.Percentiles.of([])
    assert nothing.count == 0
    assert all(math.isnan(v) for v in (nothing.mean, nothing.p50, nothing.p95, nothing.max))


def require_numpys(values: np.ndarray, share: float):
    assert np.array(percentiles.quantile(values, share)).tobytes() == np.array(np.quantile(values, share)).tobytes()


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, math.nan])),
    st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]),
)
def test_quantiles_are_numpys(values: np.ndarray, share: float):
    require_numpys(values, share)


def test_quantiles_round_as_numpys_do():
    rng = np.random.default_rng(0)
    for size in range(1, 300):
        values = rng.exponential(size=size)
        for share in (0.5, 0.95, rng.random()):
            require_numpys(values, float(share))


# In a notebook


def test_an_environment_is_one_line_and_in_a_notebook_a_tree() -> None:
    shown = env()
    assert repr(shown) == "<PricedEnv: 6 agents, 4 decide; dt 1 s; 10 state columns>"
    html = shown._repr_html_()
    assert all(agent in html for agent in shown.hierarchy.ids)
    assert "\u2003\u2003valve" in html and "\u2003zone_1" in html, "depth is indented"
    assert "Discrete(2)" in html and "Global: Price." in html


def test_a_result_is_one_line_whatever_it_holds() -> None:
    policies = {"*": lambda vector: np.zeros(1), "valve": lambda vector: 0}
    result = env().run_event_driven(policies, seed=0, schedule=ScheduleConfig(msg_delay=0.1, loss=0.2))
    assert len(repr(result)) < 160 and "\n" not in repr(result)
    assert "3 s, 3 steps, 6 agents" in repr(result) and f"{result.messages.lost:,} lost" in repr(result)
    html = result._repr_html_()
    assert all(f"{agent}</td>" in html for agent in result.returns)
    assert f"{result.staleness['valve'].p95:.4g}" in html


def test_of_many_agents_a_notebook_shows_the_first_and_counts_the_rest() -> None:
    many = [Battery(f"battery_{i}") for i in range(50)]
    crowd = HeronEnv(SystemAgent("system_agent", *many), max_steps=1)
    assert "and 11 more agents" in crowd._repr_html_()
    result = crowd.run_synchronous({"*": lambda vector: np.zeros(1)}, seed=0)
    assert "and 21 more agents" in result._repr_html_() and result._repr_html_().count("<tr>") == 31


def test_matrices_show_who_sees_what() -> None:
    matrix = env().visibility_matrix()
    head, *rows = matrix._repr_html_().split("<tr>")[1:]
    cells = [row.split("</td>")[i].rpartition(">")[2] for row in rows for i in (0, 1)]
    assert "battery_1.Charge.soc" in cells and "critic" in head
    hidden = next(row for row in rows if "battery_1.Charge.hidden" in row)
    assert hidden.count("hidden</td>") == len(matrix.observers), "all but the critic, and its own name"
    config = ObservabilityConfig(matrix=[["zone_1", "battery_1", "insider", 0.25]])
    told = ObservabilityMatrix.of(config)
    assert repr(told) == "<ObservabilityMatrix: 1 row, else unaware>"
    assert "0.25" in told._repr_html_() and "any other" in told._repr_html_()


def test_names_are_escaped() -> None:
    assert html_table(["<b>"], [["a<i>"]], note="&") == (
        '<table><thead><tr><th style="text-align:left">&lt;b&gt;</th></tr></thead>'
        '<tbody><tr><td style="text-align:left">a&lt;i&gt;</td></tr></tbody></table><p>&amp;</p>'
    )


def test_a_result_is_drawn_over_time() -> None:
    policies = {"*": lambda vector: np.full(1, 0.5), "valve": lambda vector: 1}
    result = env().run_synchronous(policies, seed=0)
    earned, done = result.plot().axes
    lines = {line.get_label(): line for line in earned.lines if not line.get_label().startswith("_")}
    assert list(lines) == ["system_agent", "battery_1", "battery_2", "battery_3"]
    assert lines["battery_1"].get_ydata()[-1] == result.returns["battery_1"]
    assert [line.get_ydata()[0] for line in done.lines if line.get_label() == "battery_2"] == [0.5]
    assert result.plot(["valve"]).axes[1].lines[0].get_ydata()[0] == 1.0
    with pytest.raises(UnknownAgent, match=r"plot\(\) got 'valv'.*Did you mean 'valve'"):
        result.plot(["valv"])
