"""Observations in object form: filtered, disturbed, and never touching the truth."""

import copy
import math
import threading
from collections import UserList, deque
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.checks_cost import assert_linear, calls
from pydantic import BaseModel, ConfigDict, Field

from heron_env import (
    NoiseKey,
    ObservabilityConfig,
    SimulationState,
    apply_noise,
    construct_observation,
    create_agent_state_model,
    create_global_state_model,
)
from heron_env.errors import ConfigError, DeclarationError, UnknownAgent
from heron_env.observability import object_plan

AGENT = {
    "strength": {"type": "float", "min": 0.0, "max": 100.0, "default": 10.0},
    "units": {"type": "int", "min": 0, "max": 1000, "default": 200},
    "secret": {"type": "float", "default": 50.0, "visibility": "internal"},
}
WORLD = {
    "rate": {"type": "float", "default": 0.5},
    "vault": {"type": "float", "default": 9.0, "visibility": "internal"},
}
Member, Shared = create_agent_state_model(AGENT), create_global_state_model(WORLD)


def truth(turn: int = 0, form: str = "models") -> SimulationState:
    agents: dict[str, Any] = {name: Member(secret=float(i)) for i, name in enumerate("ABC", start=1)}
    if form == "mappings":
        agents = {name: dict(vars(state)) for name, state in agents.items()}
    return SimulationState(turn=turn, agents=agents, global_state=Shared(), reasoning_chains=["A thinks"])


def config(*rows: Any, level: str = "unaware", noise: float = 0.0, **more: Any) -> ObservabilityConfig:
    return ObservabilityConfig(matrix=rows, default={"level": level, "noise": noise}, **more)


def test_levels_decide_what_is_there_and_what_is_absent():
    seen = construct_observation("A", truth(7), config(["A", "B", "external", 0.0], ["A", "global", "insider", 0.0]))
    assert seen.turn == 7
    assert {name: vars(state) for name, state in seen.agents.items()} == {
        "A": {"strength": 10.0, "units": 200, "secret": 1.0},
        "B": {"strength": 10.0, "units": 200},
    }
    assert vars(seen.global_state) == {"rate": 0.5, "vault": 9.0}
    assert type(seen.agents["B"]) is Member
    assert not hasattr(seen.agents["B"], "secret")
    assert seen.reasoning_chains == []


def test_unaware_of_the_world_means_a_world_without_variables():
    seen = construct_observation("A", truth(), config())
    assert list(seen.agents) == ["A"]
    assert vars(seen.global_state) == {}
    assert type(seen.global_state) is Shared


def test_listed_visibility_counts_and_unlisted_plain_variables_are_external():
    state = SimulationState(turn=0, agents={"A": {"x": 1.0, "y": 2.0}, "B": {"x": 3.0, "y": 4.0}})
    seen = construct_observation("A", state, config(level="external", variable_visibility={"internal": ["y"]}))
    assert seen.agents == {"A": {"x": 1.0, "y": 2.0}, "B": {"x": 3.0}}


@pytest.mark.parametrize("given", [None, config(["A", "B", "unaware", 0.0], enabled=False)])
def test_without_a_configuration_in_force_everybody_sees_everything_but_thoughts(given: ObservabilityConfig | None):
    full, seen = truth(), construct_observation("A", truth(), given)
    assert (seen.agents, seen.global_state, seen.reasoning_chains) == (full.agents, full.global_state, [])


def test_noise_is_the_published_law_on_qualified_names():
    state = truth(5)
    seen = construct_observation("A", state, config(level="insider", noise=0.3), seed=7, episode=2)
    for name in "BC":
        for variable, (low, high) in {
            "strength": (0.0, 100.0),
            "units": (0, 1000),
            "secret": (-math.inf, math.inf),
        }.items():
            key = NoiseKey("A", name, f"Variables.{variable}", 0, 7, 2, 5)
            expected = apply_noise(getattr(state.agents[name], variable), 0.3, key, low=low, high=high)
            found = getattr(seen.agents[name], variable)
            assert (found, type(found)) == (expected, type(expected))
    key = NoiseKey("A", "global", "Globals.rate", 0, 7, 2, 5)
    assert seen.global_state.rate == apply_noise(0.5, 0.3, key)
    assert seen.agents["A"] == state.agents["A"]
    assert seen.agents["B"].strength != 10.0


def test_common_noise_is_on_top_of_a_matrix_and_alone_where_none_is_in_force():
    both = config(level="insider", noise=0.1, common_noise=0.2)
    once = config(level="insider", noise=0.1 + 0.2)
    assert construct_observation("A", truth(3), both) == construct_observation("A", truth(3), once)
    seen = construct_observation("A", truth(3), config(enabled=False, common_noise=0.3))
    assert seen == construct_observation("A", truth(3), config(level="insider", noise=0.3))
    assert seen.agents["A"] == truth(3).agents["A"] and seen.agents["B"] != truth(3).agents["B"]


def test_models_and_mappings_are_disturbed_alike_where_no_bounds_bite():
    forms = [
        construct_observation("A", truth(1, form), config(level="external", noise=0.5))
        for form in ("models", "mappings")
    ]
    assert vars(forms[0].agents["B"])["strength"] == forms[1].agents["B"]["strength"]
    assert vars(forms[0].agents["B"])["units"] == forms[1].agents["B"]["units"]


class Engine(BaseModel):
    model_config = ConfigDict(extra="allow")
    power: float = Field(default=99.0, ge=0.0, le=100.0)
    label: str = "x"


@dataclass
class Place:
    lat: float
    name: str


NESTED: dict[str, Any] = {
    "big": 10**40, "text": "hello", "nothing": None, "flag": True, "money": Decimal("1.5"),
    "list": [1.0, [2.0, "x"], {"k": 3.0}], "model": Engine(more=[5.0]), "models": [Engine(power=100.0)],
    "place": Place(4.0, "here"), "array": np.array([1.0, 2.0]), "counts": np.array([200, 100], dtype=np.uint8),
    "words": np.array(["a", "b"]), "pair": (6.0, 7), "group": {8.0, 9.0}, "single": np.float64(3.0), "x": 2.5,
}  # fmt: skip


def leaves(value: Any) -> list[Any]:
    """All leaves, depth first: an independent walk."""
    if isinstance(value, BaseModel):
        return leaves({**vars(value), **(value.model_extra or {})})
    if isinstance(value, Place):
        return leaves([value.lat, value.name])
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    if isinstance(value, np.ndarray):
        return leaves(value.tolist())
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_any_value_is_observed_leaf_by_leaf_and_shares_nothing_with_the_truth(noise: float):
    state = SimulationState(turn=4, agents={"A": {}, "B": copy.deepcopy(NESTED)}, global_state=None)
    seen = construct_observation("A", state, config(level="insider", noise=noise), seed=1).agents["B"]
    assert list(seen) == list(NESTED)
    for name in NESTED.keys() - {"group", "model", "models", "counts"}:
        for element, (exact, found) in enumerate(zip(leaves(NESTED[name]), leaves(seen[name]), strict=True)):
            key = NoiseKey("A", "B", f"Variables.{name}", element, 1, 0, 4)
            assert found == apply_noise(exact, noise, key), (name, element)
            assert type(found) is type(exact) or name == "single"
    for name in ("list", "model", "models", "place", "array", "group", "words"):
        assert seen[name] is not state.agents["B"][name]
    assert seen["list"][1] is not state.agents["B"]["list"][1]
    assert repr(state.agents["B"]) == repr(NESTED)
    assert 0.0 <= seen["models"][0].power <= 100.0
    assert seen["counts"].dtype == np.uint8
    assert len(seen["group"]) == 2
    if noise:
        assert seen["big"] != 10**40
        assert seen["model"].more != [5.0]
        assert seen["list"][0] / 1.0 != seen["list"][1][0] / 2.0  # each leaf has its own u


def test_bounds_of_any_model_hold():
    state = SimulationState(turn=0, agents={"A": {}, **{f"B{i}": Engine(power=99.9) for i in range(40)}})
    seen = construct_observation("A", state, config(level="insider", noise=0.5))
    powers = [seen.agents[f"B{i}"].power for i in range(40)]
    assert max(powers) == 100.0
    assert min(powers) < 90.0


def test_whole_numbers_around_the_end_of_float64_are_disturbed_alike():
    for value in (2**53 - 1, 2**53, -(2**60), 10**400):
        state = SimulationState(turn=0, agents={"A": {}, "B": {"n": value, "m": 5}})
        seen = construct_observation("A", state, config(level="insider", noise=0.1)).agents["B"]
        assert seen["n"] == apply_noise(value, 0.1, NoiseKey("A", "B", "Variables.n"))
        assert seen["m"] == apply_noise(5, 0.1, NoiseKey("A", "B", "Variables.m"))


def test_infinite_and_overflowing_numbers_raise_no_warning():
    state = SimulationState(turn=0, agents={"A": {}, "B": {"n": 1.7e308, "inf": math.inf, "nan": math.nan}})
    for turn in range(20):
        state.turn = turn
        seen = construct_observation("A", state, config(level="insider", noise=5.0)).agents["B"]
        assert seen["inf"] == math.inf
        assert math.isnan(seen["nan"])


def test_additive_noise_needs_a_finite_range():
    law = {"observer": "A", "target": "B", "level": "external", "noise": 0.1, "law": "additive"}
    state = truth(2)
    with pytest.raises(ConfigError, match=r"B\.secret has the bounds \[-inf, inf\]: additive noise"):
        construct_observation("A", state, config({**law, "level": "insider"}))
    seen = construct_observation("A", state, config(law))
    key = NoiseKey("A", "B", "Variables.strength", turn=2)
    assert seen.agents["B"].strength == apply_noise(10.0, 0.1, key, low=0.0, high=100.0, law="additive")


@pytest.mark.parametrize("observer", ["D", "a", "global"])
def test_an_unknown_observer_is_named_with_those_that_exist(observer: str):
    with pytest.raises(KeyError) as caught:
        construct_observation(observer, truth(), config())
    assert isinstance(caught.value, UnknownAgent)
    assert f"Unknown observer {observer!r}; the state has ['A', 'B', 'C']" in str(caught.value)


def test_a_near_miss_is_suggested():
    state = SimulationState(turn=0, agents={"country_1": {}})
    with pytest.raises(UnknownAgent, match=r"Did you mean 'country_1'\?"):
        construct_observation("contry_1", state, None)


def test_a_misspelt_variable_is_refused_before_it_can_leak_even_when_not_enabled():
    for enabled in (True, False):
        wrong = config(level="external", variable_visibility={"internal": ["secrte"]}, enabled=enabled)
        with pytest.raises(DeclarationError, match=r"Unknown variable 'secrte'. Did you mean 'secret'"):
            construct_observation("A", truth(), wrong)


def test_rows_may_name_agents_that_have_left():
    assert list(construct_observation("A", truth(), config(["Z", "Y", "insider", 0.0])).agents) == ["A"]


def test_a_state_that_has_no_variables_is_refused():
    state = SimulationState(turn=0, agents={"A": {}, "B": 3})
    with pytest.raises(ConfigError, match=r"the state of 'B' is int: give a pydantic model or a mapping"):
        construct_observation("A", state, config(level="insider"))


def test_derived_and_private_attributes_of_a_model_stay_behind():
    class Careful(BaseModel):
        model_config = ConfigDict(ignored_types=())
        shown: float = 1.0
        _hidden: float = 2.0

    state = SimulationState(turn=0, agents={"A": {}, "B": Careful()})
    seen = construct_observation("A", state, config(level="insider"))
    assert vars(seen.agents["B"]) == {"shown": 1.0}
    assert seen.agents["B"].__pydantic_private__ is None


def test_a_change_of_shape_between_turns_is_noticed():
    state, seeing = truth(), config(level="insider", noise=0.1)
    construct_observation("A", state, seeing)
    state.agents["B"] = {"fresh": 1.0, "n": 2}
    assert list(construct_observation("A", state, seeing).agents["B"]) == ["fresh", "n"]
    state.agents["B"] = {"n": 2.5, "fresh": [1]}
    assert list(construct_observation("A", state, seeing).agents["B"]) == ["n", "fresh"]
    del state.agents["C"]
    state.agents["D"] = Member()
    assert list(construct_observation("A", state, seeing).agents) == ["A", "B", "D"]
    assert construct_observation("A", state, seeing) == construct_observation("A", state, copy.deepcopy(seeing))


values = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.text(max_size=3), st.none(), st.booleans(),
    st.lists(st.floats(-1e6, 1e6), max_size=3),
)  # fmt: skip


@given(
    agents=st.dictionaries(st.sampled_from("ABCDE"), st.dictionaries(st.sampled_from("xyz"), values), min_size=2),
    default=st.sampled_from(["unaware", "external", "insider"]),
    noise=st.sampled_from([0.0, 0.3]),
    data=st.data(),
)
def test_what_is_hidden_changes_nothing_and_the_truth_stays(
    agents: dict[str, Any], default: str, noise: float, data: st.DataObject
):
    names = sorted({name for state in agents.values() for name in state})
    internal = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    seeing = config(level=default, noise=noise, variable_visibility={"internal": internal})
    state = SimulationState(turn=data.draw(st.integers(0, 3)), agents=agents)
    before = repr(state)
    observer = data.draw(st.sampled_from(sorted(agents)))
    seen = construct_observation(observer, state, seeing)
    assert repr(state) == before
    changed = copy.deepcopy(agents)
    for name, fields in changed.items():
        if name != observer:
            for field in fields:
                if default == "unaware" or (default == "external" and field in internal):
                    assert field not in seen.agents.get(name, {})
                    fields[field] = "another"
                else:
                    assert field in seen.agents[name]
    other = SimulationState(turn=state.turn, agents=changed)
    assert repr(construct_observation(observer, other, seeing)) == repr(seen)


def test_threads_share_nothing():
    """A view remembers the shape and the episode it looked at last, so each thread has its own."""
    state, seeing = truth(), config(level="insider", noise=0.4)
    expected = [construct_observation("A", state, seeing, seed=seed) for seed in range(4)]
    found: dict[int, Any] = {}

    def look(seed: int) -> None:
        found[seed] = (dict(object_plan._cache.plans), construct_observation("A", state, seeing, seed=seed))

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(4)] == [({}, seen) for seen in expected]


def test_work_grows_with_the_agents_and_memory_does_not_grow_with_the_turns():
    names = [f"v{i}" for i in range(20)]
    model = create_agent_state_model({name: {"type": "float", "default": 1.0} for name in names})
    seeing = config(level="insider", noise=0.2)
    counts = []
    for n in (5, 20, 80):
        state = SimulationState(turn=0, agents={f"a_{i}": model() for i in range(n)})
        construct_observation("a_0", state, seeing)
        state.turn = 1
        counts.append(calls(partial(construct_observation, "a_0", state, seeing)))
    assert_linear("looks", (5, 20, 80), counts)
    assert counts[-1] < 80 * 20, "fewer calls than numbers: they are handled as arrays"
    for turn in range(1000):
        small = truth(turn)
        small.agents[f"guest_{turn}"] = {}
        construct_observation("A", small, seeing if turn % 2 else config(level="external"))
    kept = object_plan._cache.plans
    assert len(kept) <= object_plan.MOST_CONFIGS
    assert all(len(plans) <= object_plan.MOST_PLANS for _, plans in kept.values())


class Gauge:
    """An object of one's own, with what it says in an attribute."""

    def __init__(self, reading: float) -> None:
        self.reading = reading


@pytest.mark.parametrize(
    ("value", "reading"),
    [
        (Decimal("2.5"), float),
        (2.5 + 0j, lambda seen: seen.real),
        (deque([2.5]), lambda seen: seen[0]),
        (UserList([2.5]), lambda seen: seen[0]),
        (Gauge(2.5), lambda seen: seen.reading),
        (SimpleNamespace(inner=Gauge(2.5)), lambda seen: seen.inner.reading),
        (np.array([2.5, None], dtype=object), lambda seen: seen[0]),
        (np.array([(2.5,)], dtype=[("a", float)]), lambda seen: seen["a"][0]),
    ],
)
def test_no_kind_of_value_carries_a_number_past_its_noise(value: Any, reading: Any):
    state = SimulationState(turn=0, agents={"A": {"x": value}, "B": {"x": value}})
    seen = construct_observation("A", state, config(level="insider", noise=0.5)).agents
    key = NoiseKey("A", "B", "Variables.x")
    assert reading(seen["B"]["x"]) == apply_noise(2.5, 0.5, key) != 2.5
    assert reading(seen["A"]["x"]) == reading(value) == 2.5
    assert seen["A"]["x"] is not value or isinstance(value, Decimal | complex)


def test_ones_own_masked_array_stays_masked():
    state = SimulationState(turn=0, agents={"A": {"x": np.ma.masked_array([1.0, 2.0], mask=[False, True])}})
    assert construct_observation("A", state, config(level="insider", noise=0.5)).agents["A"]["x"].mask.tolist() == [
        False,
        True,
    ]


def test_what_contains_itself_is_refused():
    loop: list[Any] = [1.0]
    loop.append(loop)
    state = SimulationState(turn=0, agents={"A": {}, "B": {"x": loop}})
    with pytest.raises(ConfigError, match=r"B\.x is nested too deeply, or contains itself"):
        construct_observation("A", state, config(level="insider"))


def test_a_state_and_a_configuration_are_asked_for():
    with pytest.raises(
        ConfigError, match=r"construct_observation\(truth=nothing \(None\)\): must be a SimulationState"
    ):
        construct_observation("A", None, config())  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match=r"\(config=\{'enabled': True\} \(dict\)\): must be an ObservabilityConfig or None"
    ):
        construct_observation("A", truth(), {"enabled": True})  # type: ignore[arg-type]
