"""Bad inputs: worlds and matrices in YAML files."""

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
    "a variable's mark in words": lambda d: loaded(d, "default: 0.02}", "default: 0.02, foreknown: published}"),
    "a misspelt mark": lambda d: loaded(d, "default: 0.02}", "default: 0.02, foreknow: true}"),
    "a misspelt setting": lambda d: loaded(d, "  max_turns: 10", "  max_turns: 10\n  trn: 2"),
    "a misspelt section of the file": lambda d: loaded(d, "  matrix:", "  defualt: {level: insider}\n  matrix:"),
    "an unknown observer": lambda d: loaded(d, "[Bank_A, Bank_B", "[Bnk_A, Bank_B"),
    "an unknown level in a file": lambda d: loaded(d, "external, 0.1", "Insider, 0.1"),
    "a number that YAML reads as text": lambda d: loaded(d, "0.1]", "1e-1]"),
    "an initial value of nothing": lambda d: loaded(d, "{reserves: 2.0}", "{reservs: 2.0}"),
    "an initial value too high": lambda d: loaded(d, "{reserves: 2.0}", "{reserves: 20.0}"),
    "an unknown category": lambda d: loaded(d, "default: calm", "default: clam"),
    "an unknown type": lambda d: loaded(d, "type: float, default: 0.02", "type: flaot, default: 0.02"),
    "min above max": lambda d: loaded(d, "min: 0.0, max: 10.0", "min: 10.0, max: 0.0"),
    "a key twice": lambda d: loaded(d, "  matrix:", "  matrix: []\n  matrix:"),
    "a tab": lambda d: loaded(d, "  name: banks", "\tname: banks"),
    "an empty file": lambda d: text_loaded(d, ""),
    "a list for a file": lambda d: text_loaded(d, "- Bank_A\n"),
    "a misspelt file": lambda d: with_neighbour(d),
    "a stranger in an environment's file": lambda d: file_met(d),
}
