"""Models made from declared variables, and the state of a whole simulation."""

import copy
import pickle

import pytest
from refusing import refuses

from heron_env import SimulationState, create_agent_state_model, create_global_state_model
from heron_env.errors import ConfigError, DeclarationError
from heron_env.observability.state_models import builder

VARIABLES = {
    "strength": {"type": "float", "min": 0.0, "max": 10.0, "default": 1.0},
    "units": {"type": "int", "default": 3},
    "open": {"type": "bool", "default": True},
    "mood": {"type": "categorical", "categories": ["calm", "wild"], "default": "calm", "visibility": "internal"},
}


def test_a_model_has_the_declared_fields_types_and_defaults():
    state = create_agent_state_model(VARIABLES)(strength=2)
    assert vars(state) == {"strength": 2.0, "units": 3, "open": True, "mood": "calm"}
    assert isinstance(state.strength, float)
    state.strength = 4.0
    assert state.model_dump() == {"strength": 4.0, "units": 3, "open": True, "mood": "calm"}


def test_equal_variables_make_the_same_class():
    assert create_agent_state_model(VARIABLES) is create_agent_state_model(dict(VARIABLES))
    assert create_agent_state_model(VARIABLES) is not create_global_state_model(VARIABLES)


def test_wrong_values_are_refused():
    for values, message in [
        ({"strength": 11.0}, "strength: must lie in [0, 10], got 11.0"),
        ({"units": 1.5}, "units: must be a whole number, got 1.5"),
        ({"mood": "cam"}, "mood: must be one of 'calm', 'wild', got 'cam'. Did you mean 'calm'?"),
        ({"strenght": 1.0}, "strenght: unknown key. Did you mean 'strength'?"),
    ]:
        with refuses(DeclarationError, message):
            create_agent_state_model(VARIABLES)(**values)


def test_wrong_definitions_are_refused():
    with pytest.raises(DeclarationError, match=r"global_vars.rate.type: must be 'float', .*Did you mean 'float'"):
        create_global_state_model({"rate": {"type": "flaot", "default": 0.1}})


def test_a_state_with_absent_variables_copies_pickles_and_dumps():
    model = create_agent_state_model(VARIABLES)
    part = builder(model, ["units"])({"units": 7})
    assert not hasattr(part, "strength")
    for other in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part)), part.model_copy()):
        assert other == part
        assert type(other) is model
        assert vars(other) == {"units": 7}
    assert part.model_dump() == {"units": 7}
    assert part.model_dump_json() == '{"units":7}'
    assert repr(part) == "AgentState(units=7)"


def test_a_simulation_state_takes_models_and_mappings_and_survives_pickle():
    truth = SimulationState(turn=3, agents={"A": create_agent_state_model(VARIABLES)(), "B": {"x": 1}})
    assert truth.global_state == {}
    assert truth.reasoning_chains == []
    assert pickle.loads(pickle.dumps(truth)) == truth
    assert truth.model_dump()["agents"]["B"] == {"x": 1}


def test_a_wrong_simulation_state_is_refused():
    for fields, message in [
        ({"turn": -1, "agents": {}}, "turn: must be >= 0, got -1"),
        ({"turn": 0, "agents": {3: {}}}, "agents['3']: must be text: it is a name, got 3 (int)"),
        ({"turn": 0}, "agents: must be given"),
    ]:
        with refuses(ConfigError, message):
            SimulationState(**fields)
