"""States: a sequence of features that also takes names and classes; free ones own their arrays."""

import numpy as np
import pytest
from refusing import refuses

from heron_env import CoordinatorAgentState, FeatureProvider, FieldAgentState, State, SystemAgentState, quantity
from heron_env.core.state import Features, FeatureVector
from heron_env.errors import FeatureError, UnknownFeature


class Charge(FeatureProvider):
    visibility = ("owner", "upper_level")
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    capacity: float = 100.0


class Secret(FeatureProvider):
    key: float = 7.0


def state() -> FieldAgentState:
    return FieldAgentState("a", 1, [Charge(), Secret()])


def test_features_are_found_by_position_name_and_class():
    features = state().features
    assert features[0] is features["Charge"] is features[Charge]
    assert features[-1] is features[Secret]
    assert [type(f) for f in features] == [Charge, Secret]
    assert len(features) == 2
    assert "Charge" in features
    assert Secret in features
    assert "Other" not in features
    assert repr(features) == "[Charge(soc=0.5, capacity=100.0), Secret(key=7.0)]"


def test_a_place_beyond_the_last_feature_is_an_index_error():
    with pytest.raises(IndexError):
        _ = state().features[2]


def test_a_state_holds_nothing_but_features():
    features = Features([Charge()])
    with refuses(FeatureError, "features.append('Charge'): expected a FeatureProvider instance"):
        features.append("Charge")


def test_updates_are_clipped_and_reach_the_feature():
    s = state()
    s.update_feature("Charge", soc=2.0)
    s.update({"Secret": {"key": 3.0}, "Charge": {"capacity": 50.0}})
    assert s.to_dict() == {"Charge": {"soc": 1.0, "capacity": 50.0}, "Secret": {"key": 3.0}}
    assert s.vector().tolist() == [1.0, 50.0, 3.0]
    with refuses(
        UnknownFeature, "no feature 'Chart' in this state, which has ['Charge', 'Secret']. Did you mean 'Charge'?"
    ):
        s.update_feature("Chart", soc=0.1)


def test_a_state_survives_its_dictionary_with_class_owner_and_level():
    for kind, level in [(FieldAgentState, 1), (CoordinatorAgentState, 2), (SystemAgentState, 3)]:
        s = kind("a", features=[Charge(soc=0.25)])
        values = s.to_dict(include_metadata=True)
        assert values == {
            "_owner_id": "a",
            "_owner_level": level,
            "_state_type": kind.__name__,
            "features": {"Charge": {"soc": 0.25, "capacity": 100.0}},
        }
        twin = State.from_dict(values, near=[Charge])
        assert (type(twin), twin.owner_id, twin.owner_level, twin.to_dict()) == (kind, "a", level, s.to_dict())
        plain = FieldAgentState.from_dict(s.to_dict(), owner_id="b", near=[Charge])
        assert (plain.owner_id, plain.owner_level, plain.to_dict()) == ("b", 1, s.to_dict())


def test_a_dictionary_of_an_unknown_kind_is_refused():
    message = f"no state class is called 'Staet'; known are {list(State.registry)}"
    with refuses(UnknownFeature, message):
        State.from_dict({"_state_type": "Staet", "_owner_id": "a", "_owner_level": 1, "features": {}})


def test_what_a_free_state_shows_follows_tags_and_levels():
    s = state()
    assert {name: v.tolist() for name, v in s.observed_by("a", 1).items()} == {"Charge": [0.5, 100.0], "Secret": [7.0]}
    assert list(s.observed_by("zone", 2)) == ["Charge"]
    assert s.observed_by("b", 1) == {}
    assert s.observed_by("system", 3) == {}


class Mixed(FeatureProvider):
    visibility = ("system",)
    word: float = 1.0
    pair: np.ndarray = quantity(default=(2.0, 3.0), shape=(2,), visibility=("owner", "upper_level"))
    said: float = quantity(default=4.0, to_owner=False, visibility=("public",))
    ledger: float = quantity(default=5.0, observed=False, visibility=("public",))


def test_of_a_free_state_a_field_with_tags_of_its_own_follows_them():
    for asker, level, shown in [
        ("a", 1, {"pair[0]": 2.0, "pair[1]": 3.0}),
        ("zone", 2, {"pair[0]": 2.0, "pair[1]": 3.0, "said": 4.0}),
        ("b", 1, {"said": 4.0}),
        ("top", 3, {"word": 1.0, "said": 4.0}),
    ]:
        seen = FieldAgentState("a", 1, [Mixed()]).observed_by(asker, level)["Mixed"]
        assert dict(zip(seen.names, seen.tolist(), strict=True)) == shown


def test_a_free_state_hides_from_its_owner_what_no_tag_opens_to_it():
    class Order(FeatureProvider):
        visibility = ("upper_level",)
        up: float = 0.3

    assert FieldAgentState("a", 1, [Order(), Secret()]).observed_by("a", 1).keys() == {"Secret"}


def test_a_visible_vector_answers_by_position_field_and_attribute():
    vector = state().observed_by("a", 1)["Charge"]
    assert vector[0] == vector["soc"] == vector.soc == 0.5
    assert isinstance(vector, np.ndarray)
    assert vector.dtype == np.float64
    assert (vector * 2).names == ()
    assert vector.names == ("soc", "capacity")
    vector[0] = 0.9
    assert FeatureVector([1.0], ["x"]).x == 1.0
    message = "no visible field 'sok'; visible are ['soc', 'capacity']. Did you mean 'soc'?"
    with refuses(UnknownFeature, message):
        _ = vector["sok"]
    with refuses(AttributeError, "no visible field 'sok'; visible are ['soc', 'capacity']. Did you mean 'soc'?"):
        _ = vector.sok


def test_what_is_handed_out_is_a_copy():
    s = state()
    s.observed_by("a", 1)["Charge"][0] = 0.9
    s.vector()[0] = 0.9
    assert s.features[0].soc == 0.5


def test_states_read_well():
    assert repr(FieldAgentState("a", 1, [Secret()])) == "FieldAgentState('a', [Secret(key=7.0)])"
