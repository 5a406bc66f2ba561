"""The observability matrix: who sees what under it (V1, V2), case by case, and what it costs."""

import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pytest
from laws.checks_cost import assert_linear, calls
from laws.visibility import visible
from small_worlds import Price

from heron_env import (
    Continuous,
    CoordinatorAgent,
    DefaultObservability,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ObservabilityConfig,
    ObservabilityEntry,
    ObservabilityMatrix,
    SystemAgent,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, RuleError
from heron_env.observability.noise import Moment


class Charge(FeatureProvider):
    visibility = ("owner", "upper_level")
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    age: float = quantity(default=3.0, low=0.0, high=9.0, visibility=("public",))


class Books(FeatureProvider):
    cost: float = quantity(default=1.0, observed=False, visibility=("public",))


class Storm(FeatureProvider):
    visibility = ("system",)
    force: float = quantity(default=2.0, low=0.0, high=12.0)


class Battery(FieldAgent):
    features = (Charge, Books)
    action = Continuous(-1.0, 1.0)


class Zone(CoordinatorAgent):
    features = (Charge,)


class Market(HeronEnv):
    global_features = (Price, Storm)


def market(config: Any) -> HeronEnv:
    return Market(SystemAgent("root", Zone("zone", Battery("one"), Battery("two"))), observability=config, max_steps=3)


def seen_by(agent: str, config: Any) -> dict[str, float]:
    """What an agent sees of others: {name: noise factor}."""
    env = market(config)
    view = env.simulation.model.plan.views[env.hierarchy.index[agent]]
    shown = dict(zip(view.names, view.factors.tolist(), strict=True))
    assert view.columns.tolist() == visible(env, view.rank)
    return {name: factor for name, factor in shown.items() if name.count(".") == 2}


def rows(*matrix: Any, **more: Any) -> dict[str, Any]:
    return {"matrix": list(matrix), **more}


def test_external_shows_what_is_public_unless_it_is_listed() -> None:
    everybody = {"default": {"level": "external", "noise": 0.1}}
    public = {"zone.Charge.age": 0.1, "two.Charge.age": 0.1, "global.Price.value": 0.1}
    assert seen_by("one", everybody) == public
    assert seen_by("one", {**everybody, "variable_visibility": {"external": []}}) == public
    listed = {"external": ["Charge.soc", "force"], "internal": ["age", "Price.value"]}
    expected = {"zone.Charge.soc": 0.1, "two.Charge.soc": 0.1, "global.Storm.force": 0.1}
    assert seen_by("one", {**everybody, "variable_visibility": listed}) == expected


def test_a_row_of_an_agent_about_itself_says_nothing_new() -> None:
    config = rows(["one", "one", "insider", 0.0], default={"level": "external", "noise": 0.1})
    assert seen_by("one", config) == seen_by("one", {"default": {"level": "external", "noise": 0.1}})
    env = market(config)
    assert env.observation_names("one")[:2] == ["Charge.soc", "Charge.age"]


def test_names_are_checked_where_the_matrix_is_not_in_force_too() -> None:
    for enabled in (True, False):
        with pytest.raises(ConfigError, match=r"Unknown target 'tow'\. Did you mean 'two'"):
            market(rows(["one", "tow", "insider", 0.0], enabled=enabled))


def test_the_lookup_of_pairs() -> None:
    matrix = ObservabilityMatrix(
        [ObservabilityEntry(observer="a", target="b", level="external", noise=0.3)],
        DefaultObservability(level="insider", noise=0.1),
    )
    assert matrix.get_observability("a", "b") == ("external", 0.3)
    assert matrix.get_observability("b", "a") == ("insider", 0.1)
    assert matrix.get_observability("a", "a") == ("insider", 0.0)
    assert ObservabilityMatrix([]).get_observability("a", "b") == ("unaware", 0.0)


class Told(NamedTuple):
    price: float


class Teller(FieldAgent):
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule
    def get_local_info(price: Price) -> Told:
        return Told(price.value)


@pytest.mark.parametrize(
    ("row", "how"),
    [
        (["teller", "global", "insider", 0.1], "which 'teller' sees with noise"),
        (["teller", "global", "unaware", 0.0], "parts of which are hidden from 'teller'"),
    ],
)
def test_an_info_rule_reads_what_its_agent_sees_exactly(row: Any, how: str) -> None:
    with pytest.raises(RuleError) as error:
        Market(SystemAgent("root", Teller("teller")), observability=rows(row))
    assert str(error.value) == (
        f"Teller.get_local_info reads Price of 'global', {how}; infos reach the learner, so leave it out or show it"
    )
    exact = Market(SystemAgent("root", Teller("teller")), observability=rows(["teller", "global", "insider", 0.0]))
    _, infos = exact.reset(seed=0)
    assert infos["teller"]["price"] == 0.3


# Cost: 100 agents with 20 variables each, everybody an insider, all with noise


def _wide(n: int = 100, variables: int = 20) -> HeronEnv:
    body: dict[str, Any] = {f"x{i}": quantity(default=1.0, low=-9.0, high=9.0) for i in range(variables)}
    feature = type("Many", (FeatureProvider,), {**body, "__annotations__": dict.fromkeys(body, float)})
    agent = type("Wide", (FieldAgent,), {"features": (feature,), "action": Continuous(-1.0, 1.0)})
    config = ObservabilityConfig(default={"level": "insider", "noise": 0.1})
    return HeronEnv(SystemAgent("root", *(agent(f"wide_{i}") for i in range(n))), observability=config)


def _costs(n: int) -> tuple[int, int]:
    """Calls of functions in a look of one of `n` observers, and of all of them."""
    env = _wide(n)
    env.reset(seed=0)
    plan, truth, ranks = env.simulation.model.plan, env.simulation.truth, range(1, n + 1)
    assert sum(len(plan.views[rank].noise.at) for rank in ranks) == n * (n - 1) * 20
    now = Moment(0, 0, 1)
    plan.vector(7, truth, now)
    one = calls(lambda: plan.vector(7, truth, now._replace(turn=2)))
    return one, calls(lambda: [plan.vector(rank, truth, now) for rank in ranks])


def test_what_a_look_costs_does_not_depend_on_how_much_is_seen() -> None:
    few, many = _costs(10), _costs(100)
    assert many[0] == few[0] < 40, "arrays are handled, not numbers"
    assert_linear("vectors", (0, 10, 100), [0, few[1], many[1]])


def test_memory_does_not_grow_over_a_thousand_turns() -> None:
    env = _wide(20)
    env.reset(seed=0)
    plan, truth = env.simulation.model.plan, env.simulation.truth

    def look(*moment: int) -> None:
        for rank in range(len(plan.views)):
            plan.vector(rank, truth, Moment(*moment))

    look(0, 0, 0)
    tracemalloc.start()
    try:
        look(0, 1, 0)  # the keys of the episode in progress are kept
        before, _ = tracemalloc.get_traced_memory()
        for turn in range(1000):
            look(0, turn // 100, turn)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000


def test_a_matrix_of_few_rows_keeps_the_plan_small() -> None:
    env = _wide()
    config = ObservabilityConfig(matrix=[[f"wide_{i}", f"wide_{i + 1}", "insider", 0.1] for i in range(99)])
    small = HeronEnv(
        SystemAgent("root", *(type(a)(a.agent_id) for a in env.hierarchy.agents[1:])), observability=config
    )
    sizes = [len(view.columns) for view in small.simulation.model.plan.views[1:]]
    assert sizes == [40] * 99 + [20]
    assert np.flatnonzero(small.simulation.model.plan.views[1].factors).tolist() == list(range(20, 40))
