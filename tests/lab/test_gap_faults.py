"""Disturbances as a cause, and the clock x fault ablation as four conditions of a sweep."""

import json
from pathlib import Path

import numpy as np
import pytest

from heron_env.errors import ConfigError
from heron_env.lab import IDEAL, SYNC, Condition, Sweep, SweepResult, finding, read_sweep
from heron_env.lab.show.courses import case_part
from heron_env.lab.show.sweeps import look_at
from heron_env.lab.sweep.conditions import parsed_axis
from heron_env.lab.sweep.presets import preset

ENERGY = "heron/EnergyManagement-v1"
NETWORK = Condition(act_delay=450.0)
FAULTS = Condition(synchronous=True, disturbances="all")
BOTH = NETWORK.but(disturbances=("all",))


def sweep(conditions, **more) -> Sweep:
    options = {"dt": 900.0, "physics_substeps": 2}
    return Sweep.of(ENERGY, {"tariff": "tariff"}, conditions, cases=2, options=options, **more)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SweepResult]:
    """All four conditions, and the faults by the ideal network."""
    folder = tmp_path_factory.mktemp("ran")
    asked = sweep([IDEAL, NETWORK, FAULTS, BOTH, Condition(disturbances="all")])
    return folder, asked.run(folder, processes=1)


def test_disturbances_are_a_cause_by_name():
    assert BOTH.name == "act_delay=450 disturbances=all" and FAULTS.name == "sync disturbances=all"
    assert FAULTS.words == "synchronous clock, disturbances all"
    assert FAULTS.to_dict() == {"synchronous": True, "disturbances": ["all"]}
    assert BOTH.only("disturbances") == Condition(disturbances="all") != FAULTS
    assert BOTH.but(disturbances=()) == NETWORK and Condition(disturbances=["b", "a", "b"]).disturbances == ("b", "a")
    assert parsed_axis("disturbances=clouds,spikes") == ("disturbances", ("clouds", "spikes"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Condition(disturbances=3), "disturbances=3: give names of sets"),
        (lambda: Condition(disturbances={"all": 1.0}), "give names of sets"),
        (lambda: Condition(synchronous=True, loss=0.1, disturbances="all"), "has no network"),
        (lambda: sweep([Condition(disturbances="al")]), "no set of disturbances 'al'.*Did you mean 'all'"),
    ],
)
def test_sets_that_are_not_there_are_refused_before_anything_runs(wrong, message: str):
    with pytest.raises(ConfigError, match=message):
        wrong()


@pytest.mark.e2e
@pytest.mark.parametrize("condition", [FAULTS, BOTH])
def test_a_report_looks_at_the_case_that_was_swept_faults_included(condition: Condition, ran: tuple[Path, SweepResult]):
    result = ran[1]
    point = result.point("tariff", condition)
    look = look_at(result, point)
    case = result.sweep.cases.index(look.case)
    recorded = result.point("tariff").values[case], point.values[case]
    (picture,) = case_part(look, recorded).blocks
    late = "with disturbances" if condition.synchronous else "event-driven"
    expected = (
        f"return of system_agent {result.point('tariff').values[case]:.2f} synchronous, {point.values[case]:.2f} {late}"
    )
    assert f"{condition.words}: {expected}" in picture.alternative


def test_the_interaction_is_paired_and_is_told(ran: tuple[Path, SweepResult]):
    folder, result = ran
    a, b, c, d = (np.array(result.point("tariff", x).values) for x in (SYNC, NETWORK, FAULTS, BOTH))
    assert (c != a).all()
    found = result.interactions[0]
    assert found.by_case == tuple(d - (b + c - a))
    assert found.interaction.value == pytest.approx(np.mean(d) - np.mean(b) - np.mean(c) + np.mean(a))
    assert (found.network.value, found.faults.value) == (pytest.approx(np.mean(b - a)), pytest.approx(np.mean(c - a)))
    assert "interaction" in finding(result)[-1]
    assert json.loads((folder / "table.json").read_text())["interactions"][0]["condition"] == BOTH.name
    assert repr(read_sweep(folder).points) == repr(result.points)


def test_without_the_four_conditions_there_is_no_interaction():
    assert sweep([BOTH]).run(processes=1).interactions == ()


def test_the_preset_has_the_four_conditions():
    network, faults, both = preset("faults").conditions(60.0)
    assert faults == FAULTS and both.but(disturbances=()) == network
