"""Published test vectors of the noise (noise_vectors.json): three implementations of one law must give these bits.

The plain one (laws/plain_noise.py: hashlib and whole numbers) made the file; this module, run with PYTHONPATH=tests:.,
prints it anew. `u` and floats are written so that they read back exactly.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laws.plain_noise import Look, plain_noisy, plain_uniform

from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, NoiseKey, SystemAgent, apply_noise, quantity
from heron_env import FeatureProvider as Feature
from heron_env.observability.noise import Moment, noise_uniform

PATH = Path(__file__).with_name("noise_vectors.json")
FIRST = Look("battery_1", "battery_2", "Charge.soc")
LOOKS = [
    FIRST,
    *(FIRST._replace(turn=turn) for turn in (1, 2, 9_999, 2**32, 2**32 + 1, 3 * 2**32 + 7)),
    *(FIRST._replace(episode=episode) for episode in (1, 2, 10**6)),
    *(FIRST._replace(seed=seed) for seed in (1, 42, 2**32, 2**63, 2**64 - 1, 2**64 + 1, 10**30)),
    *(FIRST._replace(element=element) for element in (1, 2, 1_000)),
    Look("battery_2", "battery_1", "Charge.soc"),
    Look("battery_1", "battery_2", "Charge.capacity"),
    Look("battery_1", "global", "Price.value"),
    Look("A", "B", "Charge.soc", seed=7, turn=3),
    Look("Zürich", "東京", "Größe.λ", seed=5, episode=1, turn=11),
    Look("", "😀", "Variables.economic_strength", element=3, seed=2**70, episode=4, turn=2 * 2**32 + 5),
]
VALUES: list[tuple[Any, float, str, float, float]] = [
    (0.5, 0.0, "multiplicative", 0.0, 1.0),
    (0.5, 0.2, "multiplicative", 0.0, 1.0),
    (0.95, 0.5, "multiplicative", 0.0, 1.0),
    (-3.25, 0.1, "multiplicative", -1e6, 1e6),
    (1.0, 1.5, "multiplicative", -1e6, 1e6),
    (1.0, 1e4, "multiplicative", -1e6, 1e6),
    (0.5, 0.2, "additive", 0.0, 1.0),
    (0.0, 0.05, "additive", -40.0, 60.0),
    (7, 0.3, "multiplicative", 0, 20),
    (1, 0.5, "multiplicative", 0, 3),
    (-12, 1.5, "multiplicative", -100, 100),
    (50, 0.1, "additive", 0, 100),
    (3, 0.9, "additive", 0, 4),
    (2**60 + 1, 0.25, "multiplicative", -(2**80), 2**80),
    (10**30, 0.01, "multiplicative", -(10**40), 10**40),
]


def made() -> dict[str, Any]:
    """The whole file, by the plain implementation."""
    chosen = (LOOKS[0], LOOKS[2], LOOKS[13], LOOKS[-2])
    names = ("value", "factor", "law", "low", "high")
    return {
        "schema": 1,
        "uniforms": [look._asdict() | {"u": plain_uniform(look)} for look in LOOKS],
        "values": [
            look._asdict()
            | dict(zip(names, case, strict=True))
            | {"noisy": plain_noisy(case[0], plain_uniform(look), *case[1:])}
            for look, case in product(chosen, VALUES)
        ],
    }


GOLDEN = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {"uniforms": [], "values": []}


def key_of(case: dict[str, Any]) -> NoiseKey:
    return NoiseKey(**{name: case[name] for name in NoiseKey._fields})


def test_the_plain_law_gives_the_published_vectors() -> None:
    assert json.loads(json.dumps(made())) == GOLDEN
    assert len(GOLDEN["uniforms"]) == len(LOOKS)
    assert len({case["u"] for case in GOLDEN["uniforms"]}) == len(
        {look._replace(seed=look.seed % 2**64) for look in LOOKS}
    )


@pytest.mark.parametrize("case", GOLDEN["uniforms"], ids=lambda case: str(key_of(case)[:3]))
def test_the_package_draws_the_published_uniforms(case: dict[str, Any]) -> None:
    u = noise_uniform(key_of(case))
    assert u == case["u"]
    assert -1.0 <= u < 1.0
    assert (u * 2**23).is_integer()


@pytest.mark.parametrize("case", GOLDEN["values"], ids=lambda case: f"{case['value']}-{case['factor']}-{case['law']}")
def test_the_package_makes_the_published_values(case: dict[str, Any]) -> None:
    bounds = {"low": case["low"], "high": case["high"], "law": case["law"]}
    seen = apply_noise(case["value"], case["factor"], key_of(case), **bounds)
    assert seen == case["noisy"]
    assert type(seen) is type(case["value"])


def world(case: dict[str, Any]) -> HeronEnv:
    """A world of two agents in which one sees this case's value."""
    kind, own = (int if isinstance(case["value"], int) else float), case["name"].split(".")
    bounds = {"low": float(case["low"]), "high": float(case["high"])}
    body = {own[1]: quantity(default=case["value"], **bounds), "__annotations__": {own[1]: kind}}
    feature: type[Feature] = type(own[0], (FeatureProvider,), body)
    agent = type("Shown", (FieldAgent,), {"features": (feature,), "action": Continuous(-1.0, 1.0)})
    row = {"level": "insider", "noise": case["factor"], "law": case["law"]}
    config = {"matrix": [{"observer": case["observer"], "target": case["target"], **row}]}
    return HeronEnv(SystemAgent("root", agent(case["observer"]), agent(case["target"])), observability=config)


IN_COLUMNS = [case for case in GOLDEN["values"] if abs(case["value"]) < 2**53 and not case["element"]]


@pytest.mark.parametrize("case", IN_COLUMNS, ids=lambda case: f"{case['value']}-{case['factor']}-{case['law']}")
def test_the_plan_shows_the_published_values(case: dict[str, Any]) -> None:
    env = world(case)
    env.reset(seed=0)
    moment = Moment(case["seed"], case["episode"], case["turn"])
    seen = env.simulation.model.plan.views[1].read(env.simulation.truth, moment)
    assert seen.tolist() == [case["value"], case["noisy"]]
    assert env.simulation.model.plan.vector(1, env.simulation.truth, moment).tolist() == np.float32(seen).tolist()


if __name__ == "__main__":
    print(json.dumps(made(), ensure_ascii=False, indent=1))
