"""Who sees what: the plan against the tags tested pair by pair, its order, its spaces, its work."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from laws.checks_cost import lines_run
from small_worlds import Price

from heron_env import Continuous, CoordinatorAgent, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, quantity
from heron_env.agents.agent import Agent
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.quantity import TAGS
from heron_env.errors import FeatureError, UnknownAgent
from heron_env.observability.plan import ObservationPlan


def tagged(name: str, *tags: str) -> type[FeatureProvider]:
    return type(name, (FeatureProvider,), {"visibility": tags, "__annotations__": {"x": float}})


OF_TAG = {tag: tagged(f"Is_{tag}", tag) for tag in TAGS}
NOBODY = tagged("IsNobody")
PAIR = tagged("IsPair", "siblings", "system")


class Split(FeatureProvider):
    """Fields with tags of their own."""

    visibility = ("owner",)
    open: float = quantity(visibility=("public",))
    own: float = 0.0
    shown: np.ndarray = quantity(shape=(2,), visibility=("upper_level",))
    ledger: float = quantity(observed=False, visibility=("public",))


FEATURES = (*OF_TAG.values(), NOBODY, PAIR, Split)


class Leaf(FieldAgent):
    features = FEATURES
    action = Continuous(-1.0, 1.0)


class Node(CoordinatorAgent):
    features = FEATURES


class Top(SystemAgent):
    features = FEATURES


class Outage(FeatureProvider):
    visibility = ("system",)
    risk: float = 0.1


class Insider(FeatureProvider):
    visibility = ()
    tip: float = 0.0


class PlanEnv(HeronEnv):
    global_features = (Price, Outage, Insider)


def tree() -> Top:
    inner = Node("node_3", Leaf("leaf_1"), Leaf("leaf_2"))
    return Top(
        "top", Node("node_1", Leaf("leaf_0"), inner, Leaf("leaf_3")), Node("node_2", Leaf("leaf_4")), Leaf("leaf_5")
    )


@pytest.fixture(scope="module")
def env() -> HeronEnv:
    return PlanEnv(tree(), max_steps=3)


def test_a_global_feature_has_no_relations():
    for tag in ["owner", "upper_level", "siblings", "subordinates"]:

        class Tagged(PlanEnv):
            global_features = (tagged("Wrong", tag),)

        message = (
            f"global feature Wrong: tag {tag!r} has no meaning for the row 'global', which nobody owns; "
            "use ('public',), ('system',) or () for insiders only"
        )
        with pytest.raises(FeatureError, match=f"^{re.escape(message)}$"):
            Tagged(tree(), max_steps=3)


def test_spaces_derive_from_the_bounds_and_are_finite():
    class Bounded(FeatureProvider):
        soc: float = quantity(default=0.5, low=0.0, high=1.0)
        free: float = 0.0
        half: float = quantity(low=-3.0)

    leaf = type("Leafy", (FieldAgent,), {"features": (Bounded,), "action": Continuous(-1.0, 1.0)})("leaf")
    space = HeronEnv(SystemAgent("s", leaf), max_steps=1).observation_space("leaf")
    assert space.low.tolist() == [0.0, -1e6, -3.0]
    assert space.high.tolist() == [1.0, 1e6, 1e6]
    assert space.dtype == np.float32


def test_age_columns_come_last_one_for_each_source():
    plain, aged = PlanEnv(tree(), max_steps=3), PlanEnv(tree(), max_steps=3, observe_age=True)
    names = aged.observation_names("leaf_1")
    n = len(plain.observation_names("leaf_1"))
    assert names[:n] == plain.observation_names("leaf_1")
    ages = names[n:]
    sources = list(dict.fromkeys(name.split(".")[0] if name.count(".") == 2 else "leaf_1" for name in names[:n]))
    assert ages == [f"age.{source}" for source in sources]
    assert ages[0] == "age.leaf_1"
    assert ages[-1] == "age.global"
    obs, infos = aged.reset(seed=0)
    assert obs["leaf_1"][n:].tolist() == [0.0] * len(ages)
    assert infos["leaf_1"]["aoi"].tolist() == [0.0] * len(ages)
    assert aged.observation_space("leaf_1").contains(obs["leaf_1"])
    assert aged.observation_space("leaf_1").high[-1] == 1e6


def test_an_unknown_observer_is_answered_with_the_nearest(env: HeronEnv):
    shown = list(env.hierarchy.ids)
    for method in ("observation_names", "observation_space", "action_space"):
        message = f"{method}() got 'leaf_9'; this env has {shown}. Did you mean '"
        with pytest.raises(UnknownAgent, match=f"^{re.escape(message)}leaf_"):
            getattr(env, method)("leaf_9")


def compiled(features: tuple[type[FeatureProvider], ...], n: int, zone: int) -> Callable[[], ObservationPlan]:
    """What compiles the plan of n leaves in zones of so many."""
    cls = type("Counted", (FieldAgent,), {"features": features, "action": Continuous(-1.0, 1.0)})
    zones: list[Agent] = [
        CoordinatorAgent(f"zone_{z}", *(cls(f"leaf_{z}_{i}") for i in range(min(zone, n))))
        for z in range(max(1, n // zone))
    ]
    hierarchy = Hierarchy.of(SystemAgent("top", *zones))
    owners: list[Any] = [(a.agent_id, a.level, "State", type(a), tuple(a.features)) for a in hierarchy.agents]
    layout = Layout([*owners, ("global", 0, "State", type(None), (Price,))])
    return lambda: ObservationPlan(hierarchy, layout)


@pytest.mark.parametrize(
    ("tags", "zone"), [(("owner", "upper_level"), 10), (("system",), 10), (("subordinates",), 100_000)]
)
def test_the_work_of_compiling_is_linear_in_agents_and_columns_seen(tags: tuple[str, ...], zone: int):
    features = (tagged("Counted", *tags),)
    small, large = (compiled(features, n, zone) for n in (100, 400))
    assert lines_run(large) < 4.5 * lines_run(small)
    seen = [sum(len(view.columns) for view in plan().views) for plan in (small, large)]
    assert seen[1] < 4.5 * seen[0]


def test_siblings_cost_what_they_see():
    features = (tagged("Counted", "siblings"),)
    small, large = (compiled(features, n, 10) for n in (100, 400))
    assert lines_run(large) < 4.5 * lines_run(small)
