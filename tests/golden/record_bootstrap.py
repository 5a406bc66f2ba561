"""Record intervals of the package arch, to which our bootstrap is held: `python tests/golden/record_bootstrap.py`.

Runs where arch is installed (in an environment of its own: it is no dependency of heron_env) and writes
bootstrap_arch.json beside itself. arch draws with the generator it is given, one argument for each stratum.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import trim_mean

TARGET = Path(__file__).with_name("bootstrap_arch.json")
CASES: list[dict[str, Any]] = [
    {"sizes": [5], "seed": 1, "repetitions": 500, "level": 0.95},
    {"sizes": [17], "seed": 2, "repetitions": 400, "level": 0.9},
    {"sizes": [4, 4, 4], "seed": 3, "repetitions": 400, "level": 0.95},
    {"sizes": [2, 7, 3], "seed": 4, "repetitions": 300, "level": 0.99},
]
STATISTICS = {
    "mean": lambda *strata: float(np.concatenate(strata).mean()),
    "interquartile mean": lambda *strata: float(trim_mean(np.concatenate(strata), 0.25)),
}


def recorded(sizes: list[int], seed: int, repetitions: int, level: float) -> dict[str, Any]:
    """Values, and each statistic with its interval."""
    from arch.bootstrap import IndependentSamplesBootstrap

    values = [np.random.default_rng((seed, n, size)).normal(-30.0, 5.0, size) for n, size in enumerate(sizes)]
    found = {}
    for name, statistic in STATISTICS.items():
        bootstrap = IndependentSamplesBootstrap(*values, seed=np.random.default_rng(seed))
        low, high = bootstrap.conf_int(statistic, reps=repetitions, method="percentile", size=level)[:, 0]
        found[name] = [statistic(*values), float(low), float(high)]
    return {"values": [stratum.tolist() for stratum in values], "estimates": found}


if __name__ == "__main__":
    told = {"arch": version("arch"), "numpy": np.__version__, "cases": [{**c, **recorded(**c)} for c in CASES]}
    TARGET.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {TARGET} with arch {told['arch']}")
