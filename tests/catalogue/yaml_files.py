"""Bad inputs: worlds and matrices in YAML files."""

# ruff: noqa: E501 (a message is one line)

from catalogue.small_world import env, written

from heron_env import load_config

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


YAML = {
    "a variable's mark in words": (
        lambda d: loaded(d, "default: 0.02}", "default: 0.02, foreknown: published}"),
        "DeclarationError: DIR/world.yaml:15: state_variables.global_vars.rate.foreknown: ⟨must be true or false⟩, got «'published'» (str)",
    ),
    "a misspelt mark": (
        lambda d: loaded(d, "default: 0.02}", "default: 0.02, foreknow: true}"),
        "DeclarationError: DIR/world.yaml:15: state_variables.global_vars.rate.«foreknow»: unknown key. ⟨Did you mean⟩ 'foreknown'?",
    ),
    "a misspelt setting": (
        lambda d: loaded(d, "  max_turns: 10", "  max_turns: 10\n  trn: 2"),
        "DeclarationError: DIR/world.yaml:4: simulation.«trn»: unknown key. ⟨Known keys⟩: name, max_turns, dt, termination",
    ),
    "a misspelt section of the file": (
        lambda d: loaded(d, "  matrix:", "  defualt: {level: insider}\n  matrix:"),
        "DeclarationError: DIR/world.yaml:18: observability.«defualt»: unknown key. ⟨Did you mean⟩ 'default'?",
    ),
    "an unknown observer": (
        lambda d: loaded(d, "[Bank_A, Bank_B", "[Bnk_A, Bank_B"),
        "DeclarationError: DIR/world.yaml:19: observability.matrix[0].observer: Unknown observer «'Bnk_A'». ⟨Did you mean⟩ 'Bank_A'?",
    ),
    "an unknown level in a file": (
        lambda d: loaded(d, "external, 0.1", "Insider, 0.1"),
        "DeclarationError: DIR/world.yaml:19: observability.matrix[0].level: Invalid observability level «'Insider'»; ⟨must be one of⟩ 'unaware', 'external', 'insider'. Did you mean 'insider'?",
    ),
    "a number that YAML reads as text": (
        lambda d: loaded(d, "0.1]", "1e-1]"),
        "DeclarationError: DIR/world.yaml:19: observability.matrix[0].noise: must be a number, got «'1e-1'» (str); YAML reads 1e-1 as text: ⟨write 1.0e-1⟩",
    ),
    "an initial value of nothing": (
        lambda d: loaded(d, "{reserves: 2.0}", "{reservs: 2.0}"),
        "DeclarationError: DIR/world.yaml:9: agents[1].initial_state.reservs: Unknown variable «'reservs'». ⟨Did you mean⟩ 'reserves'?",
    ),
    "an initial value too high": (
        lambda d: loaded(d, "{reserves: 2.0}", "{reserves: 20.0}"),
        "DeclarationError: DIR/world.yaml:9: agents[1].initial_state.reserves: ⟨must lie in [0, 10]⟩, got «20.0»",
    ),
    "an unknown category": (
        lambda d: loaded(d, "default: calm", "default: clam"),
        "DeclarationError: DIR/world.yaml:13: state_variables.agent_vars.mood.default: ⟨must be one of⟩ 'calm', 'wild', got «'clam'». Did you mean 'calm'?",
    ),
    "an unknown type": (
        lambda d: loaded(d, "type: float, default: 0.02", "type: flaot, default: 0.02"),
        "DeclarationError: DIR/world.yaml:15: state_variables.global_vars.rate.type: ⟨must be 'float'⟩, 'int', 'bool' or 'categorical', got «'flaot'» (str). Did you mean 'float'?",
    ),
    "min above max": (
        lambda d: loaded(d, "min: 0.0, max: 10.0", "min: 10.0, max: 0.0"),
        "DeclarationError: DIR/world.yaml:12: state_variables.agent_vars.reserves.max: ⟨must be above min 10⟩, «got 0»",
    ),
    "a key twice": (
        lambda d: loaded(d, "  matrix:", "  matrix: []\n  matrix:"),
        "DeclarationError: DIR/world.yaml:19: observability.matrix: Duplicate key «'matrix'», see line 18; ⟨keep one⟩",
    ),
    "a tab": (
        lambda d: loaded(d, "  name: banks", "\tname: banks"),
        "ConfigError: DIR/world.yaml:2: is no valid YAML: found character «'\\t'» that cannot start any token; YAML indents with blanks, ⟨replace the tab⟩",
    ),
    "an empty file": (
        lambda d: text_loaded(d, ""),
        "ConfigError: DIR/«world.yaml»: is empty; ⟨it must hold a mapping⟩, `key: value`",
    ),
    "a list for a file": (
        lambda d: text_loaded(d, "- Bank_A\n"),
        "ConfigError: DIR/world.yaml:1: ⟨must hold a mapping⟩, `key: value`, not «a list»",
    ),
    "a misspelt file": (
        lambda d: with_neighbour(d),
        "ConfigError: DIR/«wrold.yaml»: no such file. ⟨Did you mean⟩ 'world.yaml'?",
    ),
    "a stranger in an environment's file": (
        lambda d: file_met(d),
        "DeclarationError: DIR/«who.yaml:2»: matrix[0].target: Unknown target 'batery_2'. ⟨Did you mean⟩ 'battery_2'?",
    ),
}
