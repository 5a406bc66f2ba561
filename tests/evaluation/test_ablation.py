"""The clock x fault ablation: four arms, paired, and their interaction."""

import json
import math
from typing import Any

import pytest

from heron_env import ScheduleConfig
from heron_env.errors import ConfigError
from heron_env.evaluation.ablation import Ablation, ArmsOfCase, ablation
from heron_env.evaluation.benchmark import Case

OPTIONS = {"dt": 900.0, "physics_substeps": 3}
RULE = "grid-friendly with zone feedback"


def test_the_interaction_is_that_of_each_case() -> None:
    def case(seed: int, *returns: float) -> ArmsOfCase:
        return ArmsOfCase(Case(seed), dict(zip("ABCD", returns, strict=True)), {arm: {} for arm in "ABCD"}, 1)

    found = Ablation("x", "y", "EUR", [case(0, 10.0, 8.0, 7.0, 4.0), case(1, 20.0, 17.0, 18.0, 12.0)])
    assert [c.interaction for c in found.cases] == [-1.0, -3.0]
    assert (found.clock_effect.mean, found.fault_effect.mean, found.both.mean) == (-2.5, -2.5, -7.0)
    assert found.interaction.mean == -2.0 == found.both.mean - found.clock_effect.mean - found.fault_effect.mean
    half = 12.7062047 * math.sqrt(2.0) / math.sqrt(2.0)  # t of one degree of freedom, standard deviation sqrt(2)
    assert found.interaction.half_width == pytest.approx(half)
    assert "D - (B + C - A)  -2.00" in found.text()
    assert json.loads(json.dumps(found.to_dict()))["returns"]["D"] == [4.0, 12.0]


@pytest.fixture(scope="module")
def found() -> Any:
    network = ScheduleConfig(msg_delay=60.0, act_delay=300.0)
    return ablation("heron/EnergyManagement-v0", RULE, "all", network=network, cases=2, options=OPTIONS)


def test_four_arms_of_a_real_environment(found: Any) -> None:
    assert all(case.faults > 5 for case in found.cases)
    for case in found.cases:
        assert len(set(case.returns.values())) == 4, "each arm is a run of its own"
        assert set(case.kpis["A"]) == set(case.kpis["D"])
    again = ablation(
        "heron/EnergyManagement-v0", RULE, "all", network=ScheduleConfig(msg_delay=60.0, act_delay=300.0),
        cases=[case.case for case in found.cases], options=OPTIONS, spread=lambda f, items: [f(i) for i in items],
    )  # fmt: skip
    assert again.to_dict() == found.to_dict()


def test_what_is_asked_wrongly_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"has the sets .* Did you mean 'clouds'"):
        ablation("heron/EnergyManagement-v0", RULE, "cloud", network=1.0, cases=1)
    with pytest.raises(ConfigError, match=r"has no disturbance_sets\(\)"):
        ablation("heron/BatteryGrid-v0", "do nothing", "clouds", network=1.0, cases=1)
    with pytest.raises(ConfigError, match="must be a delay"):
        ablation("heron/EnergyManagement-v0", RULE, "clouds", network="sync", cases=1)
