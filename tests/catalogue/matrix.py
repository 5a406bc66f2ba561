"""Bad inputs: the observability matrix, in Python."""

# ruff: noqa: E501 (a message is one line)

import math

from catalogue.small_world import env

from heron_env import ObservabilityConfig


def matrix(*rows):
    return ObservabilityConfig(matrix=list(rows))


def met(**section):
    return env(observability=section)


MATRIX = {
    "an unknown level": (
        lambda d: matrix(["a", "b", "Insider", 0.0]),
        "DeclarationError: matrix[0].level: Invalid observability level «'Insider'»; ⟨must be one of⟩ 'unaware', 'external', 'insider'. Did you mean 'insider'?",
    ),
    "negative noise": (
        lambda d: matrix(["a", "b", "insider", -0.1]),
        "DeclarationError: matrix[0].noise: ⟨must be >= 0⟩, got «-0.1»",
    ),
    "noise as text": (
        lambda d: matrix(["a", "b", "insider", "0.1"]),
        "DeclarationError: matrix[0].noise: ⟨must be a number⟩, got «'0.1' (str)»",
    ),
    "noise that is nan": (
        lambda d: matrix(["a", "b", "insider", math.nan]),
        "DeclarationError: matrix[0].noise: ⟨must be finite⟩, got «nan»",
    ),
    "noise that is true": (
        lambda d: matrix(["a", "b", "insider", True]),
        "DeclarationError: matrix[0].noise: ⟨must be a number⟩, got «True» (bool)",
    ),
    "a row of three": (
        lambda d: matrix(["a", "b", "insider"]),
        "DeclarationError: matrix[0]: ⟨a row has 4 elements⟩, [observer, target, level, noise], «got 3»: ['a', 'b', 'insider'] (list)",
    ),
    "a pair twice": (
        lambda d: matrix(["a", "b", "insider", 0.0], ["a", "b", "external", 0.0]),
        "DeclarationError: matrix[1]: Duplicate row for observer «'a'» and target 'b', see matrix[0]; ⟨keep one⟩",
    ),
    "a row for oneself": (
        lambda d: matrix(["a", "a", "external", 0.0]),
        "DeclarationError: matrix[0]: an agent always sees all of itself, exactly, but the row says «[a, a, external, 0.0]»; ⟨remove it⟩",
    ),
    "external and internal": (
        lambda d: ObservabilityConfig(variable_visibility={"external": ["b"], "internal": ["b"]}),
        "DeclarationError: variable_visibility: Variables cannot be both external and «internal: b»; ⟨keep one of the two⟩",
    ),
    "a misspelt key": (
        lambda d: ObservabilityConfig(defualt={}),
        "DeclarationError: «defualt»: unknown key. ⟨Did you mean⟩ 'default'?",
    ),
    "a misspelt key of a row": (
        lambda d: matrix({"observer": "a", "target": "b", "level": "insider", "niose": 0.1}),
        "DeclarationError: matrix[0].«niose»: unknown key. ⟨Did you mean⟩ 'noise'?",
    ),
    "a misspelt law": (
        lambda d: matrix({"observer": "a", "target": "b", "level": "insider", "law": "aditive"}),
        "DeclarationError: matrix[0].law: ⟨must be 'multiplicative'⟩ or 'additive', got «'aditive'» (str). Did you mean 'additive'?",
    ),
    "an observer that is not there": (
        lambda d: met(matrix=[["batery_1", "zone_1", "insider", 0.1]]),
        "DeclarationError: matrix[0].observer: Unknown observer «'batery_1'». ⟨Did you mean⟩ 'battery_1'?",
    ),
    "a target that is not there": (
        lambda d: met(matrix=[["battery_1", "battery2", "insider", 0.1]]),
        "DeclarationError: matrix[0].target: Unknown target «'battery2'». ⟨Did you mean⟩ 'battery_2'?",
    ),
    "a stranger though not enabled": (
        lambda d: met(enabled=False, matrix=[["x", "zone_1", "insider", 0.1]]),
        "DeclarationError: matrix[0].observer: Unknown observer «'x'». ⟨Known:⟩ system_agent, zone_1, battery_1, battery_2",
    ),
    "a variable that is not there": (
        lambda d: met(variable_visibility={"external": ["scc"]}),
        "DeclarationError: variable_visibility.external[0]: Unknown variable «'scc'». ⟨Did you mean⟩ 'soc'?",
    ),
    "a misspelt section": (lambda d: met(matrx=[]), "DeclarationError: «matrx»: unknown key. ⟨Did you mean⟩ 'matrix'?"),
    "observability that is true": (
        lambda d: env(observability=True),
        "ConfigError: observability=«True»: ⟨give an ObservabilityConfig⟩, a mapping of its fields, or the path of a YAML file",
    ),
    "a missing file": (
        lambda d: env(observability="nowhere.yaml"),
        "ConfigError: «nowhere.yaml»: no such file. ⟨Correct the path⟩",
    ),
}
