"""The study of training under the network: what its arms are, its statistics, and that text and figure are of its data.

Planted once and caught: ages left out of their environment, seeds taken for pairs, a cell's title in another's panel.
"""

import json
from dataclasses import asdict
from itertools import product
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
from heron_env.lab import RunFolder, Smoothing
from heron_env.lab.learning.resolution import require_resolved
from heron_env.worlds.energy_management import MPC, STRONGEST, TunedRule

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


CURVES = ([-3.0, -2.5, -2.2, -2.1, -2.0], [-4.0, -3.5, -2.0, -2.5, -2.1])
TUNED = {
    "rule": {"baseline": STRONGEST, "best": {"follow": 0.1, "guard": 0.2, "return": -3.0}},
    "MPC, smoothed": {"baseline": MPC, "best": {"follow": 0.1, "excess": 1.5, "smoothing": 0.5, "return": -4.0}},
}
for found in TUNED.values():
    found["tried"] = [found["best"]]


def told(returns: dict[str, Any] = RETURNS) -> dict[str, Any]:
    cells = ("late/field", "slow/zone")
    how = {"updates": 3, "settings": {"num_envs": 64}}
    curves = [{"curve": [{"validation_return": x} for x in xs], "arm": "synchronous"} for xs in CURVES]
    return {
        "schema_version": 3, "random_networks": {}, "days": 8, "env_id": study.ENV,
        "returns": {name: {"rule, tuned": returns["rule"], **returns} for name in cells},
        "cells": {name: {"title": study.CELLS[name].title, **how} for name in cells},
        "tuned": dict.fromkeys(cells, TUNED),
        "recorded": {name: dict.fromkeys(returns, "0.1.0") | {"rule": "0.2.0"} for name in cells},
        "late": {"slow/zone": {"rule": {"0": DAYS.tolist(), "30": (DAYS - 12.0).tolist()}}},
        "training": {name: [{"seconds": 1800.0, **run} for run in curves] for name in cells},
    }  # fmt: skip


def test_half_of_a_gap_is_half_closed_and_seeds_have_no_pairs():
    found = {line.policy: line for line in reporting.lines(RETURNS, "rule")}
    under = found["under the network"]
    assert under.share is not None and under.more is not None and under.gap.value == pytest.approx(5.0)
    assert under.share.value == pytest.approx(0.5, abs=0.02) and under.share.low < 0.5 < under.share.high
    assert 0.1 < under.more.high - under.more.low < 1.0  # of seeds that spread by 0.1, and no less than that
    assert found["synchronous"].more is None and found["rule"].over_reference is None
    assert found["synchronous"].over_reference.value == pytest.approx(2.0, abs=0.3)


def test_policies_are_compared_with_the_strongest_reference_tuned_for_the_network():
    tuned = {"sync": DAYS.tolist(), "network": (DAYS - 7.0).tolist()}
    returns = {**RETURNS, "rule, tuned": tuned, "MPC, smoothed": {**tuned, "network": DAYS.tolist()}}
    assert reporting.reference(TUNED) == "rule, tuned"  # by validation days, whatever test days say
    assert reporting.reference({"MPC, smoothed": TUNED["MPC, smoothed"]}) == "MPC, smoothed"
    found = {line.policy: line for line in reporting.lines(returns, reporting.reference(TUNED))}
    assert found["rule, tuned"].over_reference is None
    assert found["under the network"].over_reference.value == pytest.approx(2.0, abs=0.3)
    assert found["rule"].over_reference.value == pytest.approx(-5.0)


def test_text_and_figure_are_of_the_data(tmp_path: Path):
    text = reporting.write(tmp_path, told())
    assert "2 trainings of 3 updates, 64 days in each, took 1.0 hours" in text
    assert "## Actions 60 s late, batteries decide" in text and "follow 0.1, guard 0.2, of 1 tried" in text
    assert "MPC, smoothed: follow 0.1, smoothing 0.5, of 1 tried" in text  # what is as usual is not said
    assert "best in 1 of them" in text and "brought there, EUR a day: synchronous 0.25." in text
    assert "| return, messages late by | 0 s | 30 s |" in text
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


def test_every_arm_is_trained_in_a_world_that_resolves_its_network():
    for cell in study.CELLS.values():
        env = make(study.ENV, **cell.options)
        for arm in cell.arms:
            training = study.Training(arm, cell, 0, 60)
            schedule = training.arguments().get("schedule")
            world = make(study.ENV, **cell.options, **training.world)
            assert (world.dt, world.bin_length, world.metering) == (env.dt, env.bin_length, env.metering)
            told = [] if schedule is None else require_resolved(schedule, env, world, training.world)
            assert all("= 0.5 s" in note for note in told) and bool(told) == (
                cell.network.startswith("bursty") and arm not in (study.SYNCHRONOUS, study.DELAYS, study.RANDOM)
            )


def test_lanes_play_the_random_networks():
    env = make(study.ENV, control="field", dt=900.0, physics_substeps=9, compile=True)
    batch = BatchEnv(env, 2, seed=3, clock="event", schedule=study.RANDOM_NETWORKS)
    assert len(batch.begin())


def test_rows_of_other_cells_and_arms_are_kept_and_other_settings_refused(tmp_path: Path):
    reporting.write(tmp_path, told())
    new = told({name: RETURNS[name] for name in ("rule", "synchronous")})
    for what in ("returns", "recorded", "cells", "training", "tuned"):
        new[what] = {"late/field": new[what]["late/field"]}
    new["late"], new["training"]["late/field"] = {}, new["training"]["late/field"][:1]
    both = reporting.merged(tmp_path, new)
    assert both["returns"].keys() == both["training"].keys() == {"late/field", "slow/zone"}
    assert "under the network" in both["returns"]["late/field"] and both["late"]
    assert [len(runs) for runs in both["training"].values()] == [1, 2]  # of an arm measured anew, its new runs alone
    new["cells"]["late/field"]["updates"] = 4
    with pytest.raises(DataError, match="measured with other late/field"):
        reporting.merged(tmp_path, new)


def test_what_networks_have_no_part_in_is_trained_once():
    runs = study.Study(cells=("late/field", "slow/field")).trainings()
    assert len(runs) == 5 * (2 + 4 + 5) and len({run.folder for run in runs}) == len(runs)
    assert {run.seed for run in runs} == {0, 1, 2, 3, 4}


def test_only_finished_runs_are_measured_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(study.Training, "finished", lambda self, runs: self if self.seed < counts[self.arm] else None)
    monkeypatch.setattr(study.Study, "_references", lambda self, cell: {"rule, tuned": Baseline(STRONGEST)})
    monkeypatch.setattr(study.Study, "_sweep", lambda self, cell, policy, spec, **options: (spec, options))
    counts = {study.UNDER: 3, study.SYNCHRONOUS: 1, study.AGES: 2}
    asked = study.Study(tmp_path, arms=tuple(counts), seeds=tuple(range(10)))
    found = dict(asked.sweeps(study.CELLS["slow/field"]))
    assert [len(found[arm][0]) for arm in (study.UNDER, study.AGES)] == [3, 2]
    assert isinstance(found[study.SYNCHRONOUS][0], str) and found[study.AGES][1] == {"observe_age": True}
    counts[study.UNDER] = 0
    assert study.UNDER not in dict(asked.sweeps(study.CELLS["slow/field"]))


def test_other_delays_are_those_of_one_cell_and_of_few_policies():
    conditions = {(name, arm): cell.conditions(arm) for name, cell in study.CELLS.items() for arm in study.ORDER}
    several = {key for key, own in conditions.items() if len(own) > 1}
    assert {policy for _, policy in several} == set(study.CURVED) and {name[:4] for name, _ in several} == {"slow"}
    assert all(own[0] == study.CELLS[name].condition for (name, _), own in conditions.items())


@pytest.mark.skipif(not (RESULTS / "study.json.gz").is_file(), reason="not measured yet")
def test_the_committed_text_is_what_the_committed_data_give():
    data = packed.load(RESULTS / "study.json.gz")
    assert reporting.markdown(data) == (RESULTS / "study.md").read_text()
    for cell, table in data["returns"].items():
        arms = [run["arm"] for run in data["training"][cell]]
        for name, runs in table.items():
            assert len(runs["sync"]) == (1 if name in reporting.REFERENCES else arms.count(name))


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
    asked = len(days)
    assert tuning.tuned("rule", cell.control, cell.condition, tmp_path) == found and len(days) == asked
    assert tuning.policy(found) == Baseline(tuning.named(found))
    smoothed = {"rule": tuning.Reference(STRONGEST, tuning.RULES[-1:], shares=(0.01, 1.0))}
    monkeypatch.setattr(tuning, "REFERENCES", smoothed)
    least, whole = tuning.tuned("rule", cell.control, cell.condition, tmp_path / "smoothed")["tried"]
    assert whole["return"] == found["tried"][-1]["return"] and least["return"] != whole["return"]
    monkeypatch.setattr(tuning, "REFERENCES", few)
    monkeypatch.setattr(tuning, "DAYS", 2)
    with pytest.raises(DataError, match="tuned on other days, or of other constants; remove it"):
        tuning.tuned("rule", cell.control, cell.condition, tmp_path)


@pytest.mark.parametrize("name", tuning.REFERENCES)
def test_the_policy_that_is_measured_is_the_validated_one_with_all_its_constants(name: str):
    reference, env = tuning.REFERENCES[name], make(study.ENV, compile=False)
    for constants, share in product(reference.tried, reference.shares):
        measured = tuning.policy(
            {"baseline": reference.baseline, "best": {**tuning.row(constants, share), "return": 0.0}}
        )
        assert (measured.share if isinstance(measured, Smoothing) else 1.0) == share
        inner = measured.of if isinstance(measured, Smoothing) else measured
        assert benchmark_constants(inner.name, env) == constants


def benchmark_constants(name: str, env: Any) -> Any:
    """Of the rule that is built of a name."""
    (rule,) = Baseline(name).build(env, 0).values()
    return rule.tuning if hasattr(rule, "tuning") else rule.foresight


@pytest.mark.parametrize("file", sorted(tuning.FOLDER.glob("*.json")), ids=lambda file: file.stem)
def test_every_tuning_that_is_kept_says_all_constants_of_what_it_chose(file: Path):
    found = json.loads(file.read_text())
    said = set(tuning.constants(found)) - {tuning.SMOOTHING}
    assert said == set(asdict(TunedRule.of(found["baseline"], {}).tuning)) and found["best"] in found["tried"]
    assert found["best"]["return"] == max(one["return"] for one in found["tried"])
    assert ("smoothed" in file.stem) == (tuning.SMOOTHING in found["best"])
