"""Bad inputs: worlds and matrices in YAML files."""

# ruff: noqa: E501 (a message is one line)

from catalogue.case import Case
from catalogue.small_world import env, written

from heron_env import load_config
from heron_env.errors import ConfigError, DeclarationError

WORLD = """\
simulation:
  name: banks
  max_turns: 10
engine:
  type: economic
agents:
  - name: Bank_A
  - name: Bank_B
    initial_state: {reserves: 2.0}
state_variables:
  agent_vars:
    reserves: {type: float, default: 1.0, min: 0.0, max: 10.0}
    mood: {type: categorical, default: calm, categories: [calm, wild]}
  global_vars:
    rate: {type: float, default: 0.02}
observability:
  variable_visibility: {external: [reserves]}
  matrix:
    - [Bank_A, Bank_B, external, 0.1]
"""


def loaded(folder, old, new):
    """The world of the file, with `new` in the place of `old`."""
    assert WORLD.count(old) == 1
    return load_config(written(folder, "world.yaml", WORLD.replace(old, new)))


def text_loaded(folder, text):
    return load_config(written(folder, "world.yaml", text))


def with_neighbour(folder):
    written(folder, "world.yaml", WORLD)
    return load_config(folder / "wrold.yaml")


def file_met(folder):
    return env(observability=written(folder, "who.yaml", "matrix:\n  - [battery_1, batery_2, insider, 0.1]\n"))


YAML = [
    Case(
        "a variable's mark in words",
        DeclarationError,
        lambda d: loaded(d, "default: 0.02}", "default: 0.02, foreknown: published}"),
        "'published'",
        "must be true or false",
        "DIR/world.yaml:15: state_variables.global_vars.rate.foreknown: must be true or false, got 'published' (str)",
    ),
    Case(
        "a misspelt mark",
        DeclarationError,
        lambda d: loaded(d, "default: 0.02}", "default: 0.02, foreknow: true}"),
        "foreknow",
        "Did you mean",
        "DIR/world.yaml:15: state_variables.global_vars.rate.foreknow: unknown key. Did you mean 'foreknown'?",
        "foreknown",
    ),
    Case(
        "a misspelt setting",
        DeclarationError,
        lambda d: loaded(d, "  max_turns: 10", "  max_turns: 10\n  trn: 2"),
        "trn",
        "Known keys",
        "DIR/world.yaml:4: simulation.trn: unknown key. Known keys: name, max_turns, dt, termination",
    ),
    Case(
        "a misspelt section of the file",
        DeclarationError,
        lambda d: loaded(d, "  matrix:", "  defualt: {level: insider}\n  matrix:"),
        "defualt",
        "Did you mean",
        "DIR/world.yaml:18: observability.defualt: unknown key. Did you mean 'default'?",
        "default",
    ),
    Case(
        "an unknown observer",
        DeclarationError,
        lambda d: loaded(d, "[Bank_A, Bank_B", "[Bnk_A, Bank_B"),
        "'Bnk_A'",
        "Did you mean",
        "DIR/world.yaml:19: observability.matrix[0].observer: Unknown observer 'Bnk_A'. Did you mean 'Bank_A'?",
        "Bank_A",
    ),
    Case(
        "an unknown level in a file",
        DeclarationError,
        lambda d: loaded(d, "external, 0.1", "Insider, 0.1"),
        "'Insider'",
        "must be one of",
        "DIR/world.yaml:19: observability.matrix[0].level: Invalid observability level 'Insider'; must be one of 'unaware', 'external', 'insider'. Did you mean 'insider'?",
        "insider",
    ),
    Case(
        "a number that YAML reads as text",
        DeclarationError,
        lambda d: loaded(d, "0.1]", "1e-1]"),
        "'1e-1'",
        "write 1.0e-1",
        "DIR/world.yaml:19: observability.matrix[0].noise: must be a number, got '1e-1' (str); YAML reads 1e-1 as text: write 1.0e-1",
    ),
    Case(
        "an initial value of nothing",
        DeclarationError,
        lambda d: loaded(d, "{reserves: 2.0}", "{reservs: 2.0}"),
        "'reservs'",
        "Did you mean",
        "DIR/world.yaml:9: agents[1].initial_state.reservs: Unknown variable 'reservs'. Did you mean 'reserves'?",
        "reserves",
    ),
    Case(
        "an initial value too high",
        DeclarationError,
        lambda d: loaded(d, "{reserves: 2.0}", "{reserves: 20.0}"),
        "20.0",
        "must lie in [0, 10]",
        "DIR/world.yaml:9: agents[1].initial_state.reserves: must lie in [0, 10], got 20.0",
    ),
    Case(
        "an unknown category",
        DeclarationError,
        lambda d: loaded(d, "default: calm", "default: clam"),
        "'clam'",
        "must be one of",
        "DIR/world.yaml:13: state_variables.agent_vars.mood.default: must be one of 'calm', 'wild', got 'clam'. Did you mean 'calm'?",
        "calm",
    ),
    Case(
        "an unknown type",
        DeclarationError,
        lambda d: loaded(d, "type: float, default: 0.02", "type: flaot, default: 0.02"),
        "'flaot'",
        "must be 'float'",
        "DIR/world.yaml:15: state_variables.global_vars.rate.type: must be 'float', 'int', 'bool' or 'categorical', got 'flaot' (str). Did you mean 'float'?",
        "float",
    ),
    Case(
        "min above max",
        DeclarationError,
        lambda d: loaded(d, "min: 0.0, max: 10.0", "min: 10.0, max: 0.0"),
        "got 0",
        "must be above min 10",
        "DIR/world.yaml:12: state_variables.agent_vars.reserves.max: must be above min 10, got 0",
    ),
    Case(
        "a key twice",
        DeclarationError,
        lambda d: loaded(d, "  matrix:", "  matrix: []\n  matrix:"),
        "'matrix'",
        "keep one",
        "DIR/world.yaml:19: observability.matrix: Duplicate key 'matrix', see line 18; keep one",
    ),
    Case(
        "a tab",
        ConfigError,
        lambda d: loaded(d, "  name: banks", "\tname: banks"),
        "'\\t'",
        "replace the tab",
        "DIR/world.yaml:2: is no valid YAML: found character '\\t' that cannot start any token; YAML indents with blanks, replace the tab",
    ),
    Case(
        "an empty file",
        ConfigError,
        lambda d: text_loaded(d, ""),
        "world.yaml",
        "it must hold a mapping",
        "DIR/world.yaml: is empty; it must hold a mapping, `key: value`",
    ),
    Case(
        "a list for a file",
        ConfigError,
        lambda d: text_loaded(d, "- Bank_A\n"),
        "a list",
        "must hold a mapping",
        "DIR/world.yaml:1: must hold a mapping, `key: value`, not a list",
    ),
    Case(
        "a misspelt file",
        ConfigError,
        lambda d: with_neighbour(d),
        "wrold.yaml",
        "Did you mean",
        "DIR/wrold.yaml: no such file. Did you mean 'world.yaml'?",
        "world.yaml",
    ),
    Case(
        "a stranger in an environment's file",
        DeclarationError,
        lambda d: file_met(d),
        "who.yaml:2",
        "Did you mean",
        "DIR/who.yaml:2: matrix[0].target: Unknown target 'batery_2'. Did you mean 'battery_2'?",
        "battery_2",
    ),
]
