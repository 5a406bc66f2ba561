"""Bad inputs: the observability matrix, in Python."""

# ruff: noqa: E501 (a message is one line)

import math

from catalogue.case import Case
from catalogue.small_world import env

from heron_env import ObservabilityConfig
from heron_env.errors import ConfigError, DeclarationError


def matrix(*rows):
    return ObservabilityConfig(matrix=list(rows))


def met(**section):
    return env(observability=section)


MATRIX = [
    Case(
        "an unknown level",
        DeclarationError,
        lambda d: matrix(["a", "b", "Insider", 0.0]),
        "'Insider'",
        "must be one of",
        "matrix[0].level: Invalid observability level 'Insider'; must be one of 'unaware', 'external', 'insider'. Did you mean 'insider'?",
        "insider",
    ),
    Case(
        "negative noise",
        DeclarationError,
        lambda d: matrix(["a", "b", "insider", -0.1]),
        "-0.1",
        "must be >= 0",
        "matrix[0].noise: must be >= 0, got -0.1",
    ),
    Case(
        "noise as text",
        DeclarationError,
        lambda d: matrix(["a", "b", "insider", "0.1"]),
        "'0.1' (str)",
        "must be a number",
        "matrix[0].noise: must be a number, got '0.1' (str)",
    ),
    Case(
        "noise that is nan",
        DeclarationError,
        lambda d: matrix(["a", "b", "insider", math.nan]),
        "nan",
        "must be finite",
        "matrix[0].noise: must be finite, got nan",
    ),
    Case(
        "noise that is true",
        DeclarationError,
        lambda d: matrix(["a", "b", "insider", True]),
        "True",
        "must be a number",
        "matrix[0].noise: must be a number, got True (bool)",
    ),
    Case(
        "a row of three",
        DeclarationError,
        lambda d: matrix(["a", "b", "insider"]),
        "got 3",
        "a row has 4 elements",
        "matrix[0]: a row has 4 elements, [observer, target, level, noise], got 3: ['a', 'b', 'insider'] (list)",
    ),
    Case(
        "a pair twice",
        DeclarationError,
        lambda d: matrix(["a", "b", "insider", 0.0], ["a", "b", "external", 0.0]),
        "'a'",
        "keep one",
        "matrix[1]: Duplicate row for observer 'a' and target 'b', see matrix[0]; keep one",
    ),
    Case(
        "a row for oneself",
        DeclarationError,
        lambda d: matrix(["a", "a", "external", 0.0]),
        "[a, a, external, 0.0]",
        "remove it",
        "matrix[0]: an agent always sees all of itself, exactly, but the row says [a, a, external, 0.0]; remove it",
    ),
    Case(
        "external and internal",
        DeclarationError,
        lambda d: ObservabilityConfig(variable_visibility={"external": ["b"], "internal": ["b"]}),
        "internal: b",
        "keep one of the two",
        "variable_visibility: Variables cannot be both external and internal: b; keep one of the two",
    ),
    Case(
        "a misspelt key",
        DeclarationError,
        lambda d: ObservabilityConfig(defualt={}),
        "defualt",
        "Did you mean",
        "defualt: unknown key. Did you mean 'default'?",
        "default",
    ),
    Case(
        "a misspelt key of a row",
        DeclarationError,
        lambda d: matrix({"observer": "a", "target": "b", "level": "insider", "niose": 0.1}),
        "niose",
        "Did you mean",
        "matrix[0].niose: unknown key. Did you mean 'noise'?",
        "noise",
    ),
    Case(
        "a misspelt law",
        DeclarationError,
        lambda d: matrix({"observer": "a", "target": "b", "level": "insider", "law": "aditive"}),
        "'aditive'",
        "must be 'multiplicative'",
        "matrix[0].law: must be 'multiplicative' or 'additive', got 'aditive' (str). Did you mean 'additive'?",
        "additive",
    ),
    Case(
        "an observer that is not there",
        DeclarationError,
        lambda d: met(matrix=[["batery_1", "zone_1", "insider", 0.1]]),
        "'batery_1'",
        "Did you mean",
        "matrix[0].observer: Unknown observer 'batery_1'. Did you mean 'battery_1'?",
        "battery_1",
    ),
    Case(
        "a target that is not there",
        DeclarationError,
        lambda d: met(matrix=[["battery_1", "battery2", "insider", 0.1]]),
        "'battery2'",
        "Did you mean",
        "matrix[0].target: Unknown target 'battery2'. Did you mean 'battery_2'?",
        "battery_2",
    ),
    Case(
        "a stranger though not enabled",
        DeclarationError,
        lambda d: met(enabled=False, matrix=[["x", "zone_1", "insider", 0.1]]),
        "'x'",
        "Known:",
        "matrix[0].observer: Unknown observer 'x'. Known: system_agent, zone_1, battery_1, battery_2",
    ),
    Case(
        "a variable that is not there",
        DeclarationError,
        lambda d: met(variable_visibility={"external": ["scc"]}),
        "'scc'",
        "Did you mean",
        "variable_visibility.external[0]: Unknown variable 'scc'. Did you mean 'soc'?",
        "soc",
    ),
    Case(
        "a misspelt section",
        DeclarationError,
        lambda d: met(matrx=[]),
        "matrx",
        "Did you mean",
        "matrx: unknown key. Did you mean 'matrix'?",
        "matrix",
    ),
    Case(
        "observability that is true",
        ConfigError,
        lambda d: env(observability=True),
        "True",
        "give an ObservabilityConfig",
        "observability=True: give an ObservabilityConfig, a mapping of its fields, or the path of a YAML file",
    ),
    Case(
        "a missing file",
        ConfigError,
        lambda d: env(observability="nowhere.yaml"),
        "nowhere.yaml",
        "Correct the path",
        "nowhere.yaml: no such file. Correct the path",
    ),
]
