"""The study of training under the network: what its arms are, its statistics, and that text and figure are of its data.

Planted once and caught: ages left out of their environment, seeds taken for pairs, a cell's title in another's panel.
"""

from pathlib import Path
from typing import Any

import numpy as np
import packed
import pytest
import tuning
import under_the_network as study
import under_the_network_report as reporting
from training_kit import trained

from heron_env import Baseline, BatchEnv, DrawnSchedule, ScheduleConfig, load_policy, make
from heron_env.errors import ConfigError, DataError
from heron_env.lab import RunFolder
from heron_env.worlds.energy_management import STRONGEST

RNG = np.random.default_rng(5)
DAYS = RNG.normal(-25.0, 4.0, (1, 8))
RESULTS = Path("training/results/under_the_network")


def seeds(below: float) -> dict[str, Any]:
    own = DAYS + RNG.normal(0.0, 0.1, (5, 1))
    return {"sync": own.tolist(), "network": (own - below).tolist()}


RETURNS = {
    "rule": {"sync": DAYS.tolist(), "network": (DAYS - 12.0).tolist()},
    "synchronous": seeds(10.0),
    "under the network": seeds(5.0),
}


def told(returns: dict[str, Any] = RETURNS) -> dict[str, Any]:
    cells = {"late/field": returns, "slow/zone": returns}
    return {
        "days": 8, "env_id": study.ENV, "updates": 3, "seeds": [0, 1, 2, 3, 4], "returns": cells,
        "cells": {name: {"title": study.CELLS[name].title} for name in cells},
        "tuned": {
            name: {"rule": {"best": {"follow": 0.1, "guard": 0.2, "return": -3.0}, "tried": [{}]}} for name in cells
        },
        "recorded": {name: dict.fromkeys(returns, "0.1.0") | {"rule": "0.2.0"} for name in cells},
        "training": [{"seconds": 1800.0, "curve": [{"validation_return": x} for x in xs]} for xs in CURVES],
    }  # fmt: skip


CURVES = ([-3.0, -2.0], [-3.0, -2.0], [-2.0, -3.0])


def test_half_of_a_gap_is_half_closed_and_seeds_have_no_pairs():
    found = {line.policy: line for line in reporting.lines(RETURNS)}
    under = found["under the network"]
    assert under.share is not None and under.more is not None and under.gap.value == pytest.approx(5.0)
    assert under.share.value == pytest.approx(0.5, abs=0.02) and under.share.low < 0.5 < under.share.high
    assert 0.1 < under.more.high - under.more.low < 1.0  # of seeds that spread by 0.1, and no less than that
    assert found["synchronous"].more is None and found["rule"].over_reference is None
    assert found["synchronous"].over_reference.value == pytest.approx(2.0, abs=0.3)


def test_policies_are_compared_with_the_strongest_reference_tuned_for_the_network():
    tuned = {"sync": DAYS.tolist(), "network": (DAYS - 7.0).tolist()}
    found = {line.policy: line for line in reporting.lines({**RETURNS, "rule, tuned": tuned, "MPC, tuned": tuned})}
    assert found["MPC, tuned"].over_reference is None
    assert found["under the network"].over_reference.value == pytest.approx(2.0, abs=0.3)
    assert found["rule"].over_reference.value == pytest.approx(-5.0)


def test_text_and_figure_are_of_the_data(tmp_path: Path):
    text = reporting.write(tmp_path, told())
    assert "1.5 hours" in text and "## Actions 60 s late, batteries decide" in text
    assert "it is in 2 of 3 runs" in text and "follow 0.1, guard 0.2, of 1 tried" in text
    assert "By heron_env 0.2.0: rule." in text
    assert len([line for line in text.splitlines() if line.startswith("| under the network |")]) == 2
    picture = (tmp_path / "study.svg").read_text()
    assert "zones decide" in picture and "under the network" in picture
    (tmp_path / "study.md").unlink()
    assert reporting.rewrite(tmp_path) == text == (tmp_path / "study.md").read_text()
    with pytest.raises(DataError, match=r"study\.json"):
        reporting.rewrite(tmp_path / "elsewhere")


@pytest.mark.parametrize("cell", ["late/field", "bursty/zone"])
def test_arms_differ_in_one_thing(cell: str):
    arms = {arm: study.Training(arm, study.CELLS[cell], 3, 300) for arm in study.CELLS[cell].arms}
    arguments = {arm: training.arguments() for arm, training in arms.items()}
    assert arguments[study.SYNCHRONOUS]["schedule"] == ScheduleConfig()
    assert (study.DELAYS in arms) == (cell != "late/field")  # whole steps late is the network itself
    assert all((arm == study.DELAYS) == ("training_delays" in of_arm) for arm, of_arm in arguments.items())
    assert isinstance(arguments[study.RANDOM]["schedule"], DrawnSchedule)
    assert arguments[study.AGES].pop("env_options") == {
        **arguments[study.UNDER].pop("env_options"),
        "observe_age": True,
    }
    for arm in (study.AGES, study.MEMORY):
        assert arguments[arm]["schedule"] == arguments[study.UNDER]["schedule"]
    assert {arm for arm, training in arms.items() if training.settings.frames > 1} == {study.MEMORY}
    assert (study.PLANNED in arms) == (cell == "late/field")  # a zone has nothing to plan with
    if study.PLANNED in arms:
        assert arguments[study.PLANNED] == {**arguments[study.UNDER], "env_options": {"control": "field"}}
    assert len({training.folder for training in arms.values()}) == len(arms)
    assert len({training.steps for training in arms.values()}) == 1


def test_a_run_corrects_a_baseline_with_constants_and_does_so_when_it_is_read_back(tmp_path: Path):
    options, name = {"dt": 900.0, "physics_substeps": 1}, "MPC(follow=0.2, window=6, excess=1)"
    run = trained(tmp_path, study.ENV, total_steps=32, env_options=options, training_options={}, residual=name)
    assert run.config.base == name and {name, "MPC"} <= run.config.validation.keys()
    assert run.config.validation[name] != run.config.validation["MPC"]
    env = make(study.ENV, **options)
    (rule,) = RunFolder.open(tmp_path).rules(env).values()
    (tuned,) = Baseline(name).build(env, 0).values()
    seen = env.reset(seed=1)[0]["battery_1"]
    assert np.array_equal(rule.forward(seen), tuned.forward(seen))
    assert load_policy(tmp_path).keys() == {"battery"}
    (tmp_path / "config.json").write_text((tmp_path / "config.json").read_text().replace("MPC(follow", "MPC(folow"))
    with pytest.raises(ConfigError, match="no constant 'folow'"):
        load_policy(tmp_path)


def test_lanes_play_the_random_networks():
    env = make(study.ENV, control="field", dt=900.0, physics_substeps=9, compile=True)
    batch = BatchEnv(env, 2, seed=3, clock="event", schedule=study.RANDOM_NETWORKS)
    assert len(batch.begin())


def test_what_networks_have_no_part_in_is_trained_once():
    runs = study.Study(cells=("late/field", "slow/field")).trainings()
    assert len(runs) == 5 * (2 + 4 + 5) and len({run.folder for run in runs}) == len(runs)
    assert {run.seed for run in runs} == {0, 1, 2, 3, 4}


@pytest.mark.skipif(not (RESULTS / "study.json.gz").is_file(), reason="not measured yet")
def test_the_committed_text_is_what_the_committed_data_give():
    data = packed.load(RESULTS / "study.json.gz")
    assert reporting.markdown(data) == (RESULTS / "study.md").read_text()
    seeds = {arm: len({run["seed"] for run in data["training"] if run["arm"] == arm}) for arm in study.ARMS}
    for name, runs in ((name, runs) for table in data["returns"].values() for name, runs in table.items()):
        assert len(runs["sync"]) == (1 if name in reporting.REFERENCES else seeds[name])


def test_references_are_tuned_on_validation_days_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cell, days = study.CELLS["late/field"], []
    few = {"rule": tuning.Reference(STRONGEST, tuning.RULES[-2:])}

    def played(env_id: str, **options: Any) -> Any:
        days.append(options.get("day"))
        return make(env_id, dt=900.0, physics_substeps=9, **options)

    monkeypatch.setattr(tuning, "REFERENCES", few)
    monkeypatch.setattr(tuning, "DAYS", 1)
    monkeypatch.setattr(tuning, "make", played)
    found = tuning.tuned("rule", cell.control, cell.condition, tmp_path)
    assert found["best"] in found["tried"] and len(found["tried"]) == 2
    assert found["best"]["return"] == max(one["return"] for one in found["tried"])
    assert tuning.named(found) == f"{STRONGEST}(margin={found['best']['margin']:g})"
    asked = len(days)
    assert tuning.tuned("rule", cell.control, cell.condition, tmp_path) == found and len(days) == asked
    monkeypatch.setattr(tuning, "DAYS", 2)
    with pytest.raises(DataError, match="tuned on other days, or of other constants; remove it"):
        tuning.tuned("rule", cell.control, cell.condition, tmp_path)


def test_a_sweep_of_another_version_is_refused_before_anything_is_trained(tmp_path: Path):
    folder = tmp_path / "runs" / "sweeps" / "late-field" / "memory"
    folder.mkdir(parents=True)
    (folder / "sweep.json").write_text((RESULTS.parent / "honest_gap" / "trained" / "sweep.json").read_text())
    asked = study.Study(tmp_path / "runs", tmp_path, ("late/field",), (study.MEMORY,))
    with pytest.raises(DataError, match=r"memory/sweep.json was recorded by heron_env 0.1.0"):
        asked.measured()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["sweeps"]
