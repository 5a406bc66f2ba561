"""A world in one YAML file: what it declares is checked across its sections."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from heron_env import SimulationConfig, load_config
from heron_env.errors import ConfigError
from heron_env.observability.config import load_observability
from heron_env.observability.state_models import VariableDefinition

WORLD = """\
simulation:
  name: Riverside
  max_turns: 20
  dt: 2
  termination: {variable: inflation, low: -0.5}
engine:
  type: growth
  params: {rate: 0.02}
agents:
  - {name: Bank, type: bank, initial_state: {strength: 4, mood: bad}, policy: "my.module:decide"}
  - name: Firm
validator:
  type: clip
  limits: {action: [-1, 0.5]}
state_variables:
  agent_vars:
    strength: {type: float, min: 0, max: 10, default: 1.0, unit: EUR}
    position: {type: int, min: 0, max: 5, default: 2}
    reserves: {type: float, min: 0, default: 0.0, visibility: internal}
    mood: {type: categorical, categories: [good, bad], default: good}
    open: {type: bool, default: true}
  global_vars:
    interest: {type: float, min: 0, default: 0.02}
    inflation: {type: float, min: -1, max: 1, default: 0.0}
    secret: {type: int, default: 100, visibility: internal}
observability:
  variable_visibility:
    internal: [mood]
  matrix:
    - [Bank, Firm, insider, 0.1]
    - [Firm, global, external, 0.0]
"""


def world() -> dict[str, Any]:
    """The content of WORLD, to be changed at will."""
    found: dict[str, Any] = yaml.safe_load(WORLD)
    return found


def changed(place: str, value: Any) -> dict[str, Any]:
    """WORLD with another value at a place such as `agents.0.name`; ... takes it away."""
    found = world()
    inner: Any = found
    *path, last = (int(part) if part.isdigit() else part for part in place.split("."))
    for part in path:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return found


def refusal(given: Any) -> str:
    """What is said of a declaration."""
    with pytest.raises(ConfigError) as caught:
        SimulationConfig.model_validate(given)
    return str(caught.value)


def test_a_world_is_what_its_file_says(tmp_path: Path):
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, "utf-8")
    config = load_config(path)
    assert (config.simulation.name, config.simulation.max_turns, config.simulation.dt) == ("Riverside", 20, 2.0)
    assert (config.engine.type, config.engine.params) == ("growth", {"rate": 0.02})
    assert [(a.name, a.type, a.policy) for a in config.agents] == [
        ("Bank", "bank", "my.module:decide"),
        ("Firm", "agent", None),
    ]
    assert config.validator is not None
    assert (config.validator.type, config.validator.limits.action) == ("clip", (-1.0, 0.5))
    assert config.observability == load_observability(path)
    bank = {"strength": 4.0, "position": 2, "reserves": 0.0, "mood": "bad", "open": True}
    assert config.initial_state(config.agents[0]) == bank
    assert config.initial_state(config.agents[1]) == {**bank, "strength": 1.0, "mood": "good"}
    assert config.initial_globals() == {"interest": 0.02, "inflation": 0.0, "secret": 100}
    assert config.state_variables.agent_vars["strength"].bounds == (0.0, 10.0)
    assert config.state_variables.agent_vars["reserves"].bounds == (0.0, float("inf"))


def test_worlds_are_values():
    config = SimulationConfig(**world())
    assert config == SimulationConfig(**config.model_dump()) == pickle.loads(pickle.dumps(config))
    assert config == SimulationConfig.model_validate(config.model_dump(mode="json")) == copy.deepcopy(config)


def test_validator_termination_observability_and_globals_may_be_left_out():
    given = world()
    for key in ("validator", "observability"):
        del given[key]
    del given["simulation"]["termination"], given["simulation"]["dt"], given["state_variables"]["global_vars"]
    config = SimulationConfig(**given)
    assert (config.validator, config.observability, config.simulation.termination) == (None, None, None)
    assert config.simulation.dt == 1.0
    assert config.initial_globals() == {}


def test_external_is_what_is_listed_so_or_not_declared_internal():
    config = SimulationConfig(**world())
    public = {"Variables.strength", "Variables.position", "Variables.open", "Globals.interest", "Globals.inflation"}
    assert config.external_variables() == public
    assert SimulationConfig(**changed("observability", None)).external_variables() == public | {"Variables.mood"}


def test_names_in_two_places_need_their_feature():
    given = changed("state_variables.global_vars.mood", {"type": "bool", "default": False})
    assert "write 'Variables.mood' or 'Globals.mood'" in refusal(given)
    given["observability"]["variable_visibility"]["internal"] = ["Globals.mood"]
    external = SimulationConfig(**given).external_variables()
    assert "Variables.mood" in external
    assert "Globals.mood" not in external


A = "state_variables.agent_vars"
MISTAKES: list[tuple[str, Any, str]] = [
    ("engine", ..., "engine: must be given"),
    ("engin", {}, "engin: unknown key. Did you mean 'engine'?"),
    ("simulation.max_turns", 0, "simulation.max_turns: must be >= 1, got 0"),
    ("simulation.max_turns", 2.5, "simulation.max_turns: must be a whole number, got 2.5"),
    ("simulation.max_turns", True, "simulation.max_turns: must be a number, got True (bool)"),
    ("simulation.dt", 0, "simulation.dt: must be > 0, got 0"),
    ("simulation.dt", "1", "simulation.dt: must be a number, got '1' (str)"),
    ("simulation.termination.high", -0.5, "simulation.termination.high: must be above low -0.5, got -0.5"),
    ("simulation.termination.low", ..., "simulation.termination: must have low, high or both"),
    ("simulation.termination.variable", "inflatoin",
     "simulation.termination.variable: Unknown variable 'inflatoin'. Did you mean 'inflation'?"),
    ("simulation.termination.variable", "mood",
     "simulation.termination.variable: must be a float or int to have bounds, but 'mood' is categorical"),
    ("engine.params", [1], "engine.params: must be a mapping, got [1] (list)"),
    ("engine.params", {1: 2}, "engine.params['1']: must be text: it is a name, got 1 (int)"),
    ("agents", [], "agents: must list at least one agent"),
    ("agents", {"Bank": {}}, "agents: must be a list, got {'Bank': {}} (dict)"),
    ("agents.0.nmae", "x", "agents[0].nmae: unknown key. Did you mean 'name'?"),
    ("agents.0.policy", "my module:decide",
     "agents[0].policy: must read package.module:attribute, or be a name that the engine offers, "
     "got 'my module:decide'"),
    ("agents.1.initial_state", {"strength": 11}, "agents[1].initial_state.strength: must lie in [0, 10], got 11"),
    ("agents.1.initial_state", {"position": 1.5}, "agents[1].initial_state.position: must be a whole number, got 1.5"),
    ("agents.1.initial_state", {"open": 1}, "agents[1].initial_state.open: must be true or false, got 1 (int)"),
    ("agents.1.initial_state", {"mood": "god"},
     "agents[1].initial_state.mood: must be one of 'good', 'bad', got 'god'. Did you mean 'good'?"),
    ("agents.1.initial_state", {"strenth": 1},
     "agents[1].initial_state.strenth: Unknown variable 'strenth'. Did you mean 'strength'?"),
    ("validator.type", "Clip", "validator.type: must be 'clip' or 'reject', got 'Clip' (str). Did you mean 'clip'?"),
    ("validator.limits.action", [0], "validator.limits.action: must be [low, high], got [0] (list)"),
    ("validator.limits.action", [1, 1], "validator.limits.action: must be [low, high] with low < high, got [1, 1]"),
    (f"{A}.strength.type", "flaot",
     f"{A}.strength.type: must be 'float', 'int', 'bool' or 'categorical', got 'flaot' (str). Did you mean 'float'?"),
    (f"{A}.strength.default", 11, f"{A}.strength.default: must lie in [0, 10], got 11"),
    (f"{A}.strength.default", ..., f"{A}.strength.default: must be given"),
    (f"{A}.strength.min", 10, f"{A}.strength.max: must be above min 10, got 10"),
    (f"{A}.strength.categories", ["a"],
     f"{A}.strength.categories: are for categorical variables, this one is float; leave them out"),
    (f"{A}.strength.visibility", "public",
     f"{A}.strength.visibility: must be 'external' or 'internal', got 'public' (str)."),
    (f"{A}.position.min", 0.5, f"{A}.position.min: must be a whole number as the variable is, got 0.5"),
    (f"{A}.open.min", 0, f"{A}.open.min: is for numbers, this variable is bool; leave it out"),
    (f"{A}.mood.categories", [], f"{A}.mood.categories: must list at least one word, as in [low, high]"),
    (f"{A}.mood.categories", ["good", "good"],
     f"{A}.mood.categories[1]: Duplicate category 'good', see categories[0]; keep one"),
    (f"{A}.2nd", {"type": "bool", "default": True},
     f"{A}['2nd']: '2nd' (str) is no name for a variable: use letters, digits and _, a letter first"),
    (f"{A}.class", {"type": "bool", "default": True},
     f"{A}.class: 'class' (str) is no name for a variable: use letters, digits and _, a letter first"),
    (f"{A}.copy", {"type": "bool", "default": True},
     f"{A}.copy: features and state models have a 'copy' of their own; choose another name"),
    (f"{A}.to_dict", {"type": "bool", "default": True},
     f"{A}.to_dict: features and state models have a 'to_dict' of their own; choose another name"),
    ("observability.defualt", {}, "observability.defualt: unknown key. Did you mean 'default'?"),
    ("observability.matrix.0.3", -0.1, "observability.matrix[0].noise: must be >= 0, got -0.1"),
    ("observability.matrix.0.0", "Z", "observability.matrix[0].observer: Unknown observer 'Z'. Known: Bank, Firm"),
    ("observability.matrix.1.1", "Z", "observability.matrix[1].target: Unknown target 'Z'. Known: Bank, Firm, global"),
    ("observability.variable_visibility.external", ["secret"],
     "observability.variable_visibility.external[0]: 'secret' is listed as external, "
     "but its own definition says internal; change one of the two"),
    ("observability.matrix.0",
     {"observer": "Bank", "target": "Firm", "level": "insider", "noise": 0.1, "law": "additive"},
     "observability.matrix[0].law: additive noise is relative to a range: give min and max to Variables.reserves"),
    ("observability.default", {"level": "external", "noise": 0.1, "law": "additive"},
     "observability.default.law: additive noise is relative to a range: give min and max to Globals.interest"),
]  # fmt: skip


def test_every_mistake_is_told_with_place_value_and_remedy():
    for place, value, message in MISTAKES:
        assert refusal(changed(place, value)) == message


def test_no_agent_has_a_reserved_name():
    for name in ["global", "*", "env", "proxy"]:
        given = changed("agents.1.name", name)
        del given["observability"]
        assert (
            refusal(given)
            == f"agents[1].name: an agent can't be called {name!r}: that name is reserved; choose another"
        )


def test_no_two_agents_have_one_name():
    given = changed("agents.1.name", "Bank")
    del given["observability"]
    assert refusal(given) == "agents[1].name: Duplicate agent 'Bank', see agents[0]; rename one"


def test_the_file_and_line_of_every_mistake_are_told(tmp_path: Path):
    path = tmp_path / "world.yaml"
    text = (
        WORLD.replace("name: Firm", "name: no").replace("max_turns: 20", "max_turns: 0").replace("[Bank, F", "[Bk, F")
    )
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).splitlines() == [
        f"{path}:3: simulation.max_turns: must be >= 1, got 0",
        f"{path}:11: agents[1].name: must be text, got False (bool); YAML reads no as False: quote it, 'no'",
    ]
    path.write_text(WORLD.replace("[Bank, F", "[Bk, F").replace("[mood]", "[mod]"), "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).splitlines() == [
        f"{path}:30: observability.matrix[0].observer: Unknown observer 'Bk'. Did you mean 'Bank'?",
        f"{path}:28: observability.variable_visibility.internal[0]: Unknown variable 'mod'. Did you mean 'mood'?",
    ]


def test_additive_noise_may_hide_what_has_no_range():
    """`reserves` is endless, but internal: an outsider never sees it."""
    given = changed("observability.matrix.0", {"observer": "Bank", "target": "Firm", "level": "external"})
    given["observability"]["matrix"][0].update(noise=0.1, law="additive")
    assert SimulationConfig(**given).observability is not None
    rows = [["Bank", "Firm", "insider", 0.1], ["Firm", "Bank", "insider", 0.1]]
    rows += [["Bank", "global", "insider", 0.1], ["Firm", "global", "insider", 0.1]]
    given["observability"] = {"matrix": rows, "default": {"level": "insider", "noise": 0.1, "law": "additive"}}
    assert SimulationConfig(**given).observability is not None, "no pair is left for the default"


NUMBERS = st.integers(-5, 5) | st.floats(allow_nan=True) | st.booleans() | st.none() | st.just("1")


@given(st.sampled_from(["float", "int", "bool", "categorical"]), NUMBERS, NUMBERS, NUMBERS)
def test_what_a_variable_accepts_lies_within_its_bounds_and_has_its_type(kind: str, low: Any, high: Any, value: Any):
    given = {"type": kind, "default": value, "min": low, "max": high}
    try:
        known = VariableDefinition(**given, categories=["1", "2"] if kind == "categorical" else [])
    except ConfigError:
        return
    held = known.checked(value)
    assert held == value
    assert type(held) is {"float": float, "int": int, "bool": bool, "categorical": str}[kind]
    if kind in ("float", "int"):
        assert (low is None or low <= value) and (high is None or value <= high)


PLACES = ["simulation", "engine", "agents", "agents.0", "agents.0.initial_state", "validator.limits", "observability"]
PLACES += ["state_variables", A, f"{A}.mood", f"{A}.strength.min", "simulation.termination", "observability.matrix"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "type", "default", "action", "min"]) | st.integers(), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(PLACES), JUNK)
def test_junk_raises_nothing_but_config_errors(place: str, junk: Any):
    try:
        config = SimulationConfig.model_validate(changed(place, junk))
    except ConfigError as error:
        assert str(error)
    else:
        again = SimulationConfig(**config.model_dump())
        assert repr(again) == repr(config)
