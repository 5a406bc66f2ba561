"""Bad inputs: the observability matrix, in Python."""

import math

from catalogue.small_world import env

from heron_env import ObservabilityConfig


def matrix(*rows):
    return ObservabilityConfig(matrix=list(rows))


def met(**section):
    return env(observability=section)


MATRIX = {
    "an unknown level": lambda d: matrix(["a", "b", "Insider", 0.0]),
    "negative noise": lambda d: matrix(["a", "b", "insider", -0.1]),
    "noise as text": lambda d: matrix(["a", "b", "insider", "0.1"]),
    "noise that is nan": lambda d: matrix(["a", "b", "insider", math.nan]),
    "noise that is true": lambda d: matrix(["a", "b", "insider", True]),
    "a row of three": lambda d: matrix(["a", "b", "insider"]),
    "a pair twice": lambda d: matrix(["a", "b", "insider", 0.0], ["a", "b", "external", 0.0]),
    "a row for oneself": lambda d: matrix(["a", "a", "external", 0.0]),
    "external and internal": lambda d: ObservabilityConfig(variable_visibility={"external": ["b"], "internal": ["b"]}),
    "a misspelt key": lambda d: ObservabilityConfig(defualt={}),
    "a misspelt key of a row": lambda d: matrix({"observer": "a", "target": "b", "level": "insider", "niose": 0.1}),
    "a misspelt law": lambda d: matrix({"observer": "a", "target": "b", "level": "insider", "law": "aditive"}),
    "an observer that is not there": lambda d: met(matrix=[["batery_1", "zone_1", "insider", 0.1]]),
    "a target that is not there": lambda d: met(matrix=[["battery_1", "battery2", "insider", 0.1]]),
    "a stranger though not enabled": lambda d: met(enabled=False, matrix=[["x", "zone_1", "insider", 0.1]]),
    "a variable that is not there": lambda d: met(variable_visibility={"external": ["scc"]}),
    "a misspelt section": lambda d: met(matrx=[]),
    "observability that is true": lambda d: env(observability=True),
    "a missing file": lambda d: env(observability="nowhere.yaml"),
}
