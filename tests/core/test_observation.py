"""Observations in object form flatten in the order in which they were written."""

import numpy as np

from heron_env import Observation

LOCAL = {"Charge": {"soc": 0.5, "capacity": 100.0}}
OTHERS = {"b": {"Charge": np.array([0.25, 90.0])}, "global": {"Price": [0.3]}}


def test_the_vector_is_own_values_then_the_others_in_insertion_order():
    o = Observation(LOCAL, OTHERS, 3.0)
    assert o.vector().tolist() == np.array([0.5, 100.0, 0.25, 90.0, 0.3], np.float32).tolist()
    assert o.vector().dtype == np.float32
    assert o.local_vector().tolist() == [0.5, 100.0]
    assert o.global_vector().shape == (3,)
    assert Observation({"b": 1.0, "a": 2.0}).vector().tolist() == [1.0, 2.0]
    assert len(o) == 5


def test_an_observation_is_an_array_wherever_one_is_needed():
    o = Observation(LOCAL, OTHERS)
    assert np.asarray(o).dtype == np.float32
    assert np.asarray(o, dtype=np.float64).dtype == np.float64
    assert np.array_equal(np.tanh(o), np.tanh(o.vector()))


def test_an_observation_survives_its_dictionary():
    o = Observation(LOCAL, OTHERS, 3.0)
    plain = o.to_dict()
    assert plain == {
        "timestamp": 3.0,
        "local": LOCAL,
        "global_info": {"b": {"Charge": [0.25, 90.0]}, "global": {"Price": [0.3]}},
    }
    twin = Observation.from_dict(plain)
    assert twin.timestamp == 3.0
    assert np.array_equal(twin.vector(), o.vector())
    assert twin.to_dict() == plain


def test_an_empty_observation_is_an_empty_vector():
    assert Observation().vector().shape == (0,)
    assert repr(Observation()) == "Observation(local={}, global_info={}, timestamp=0.0)"
