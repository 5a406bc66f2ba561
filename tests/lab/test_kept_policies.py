"""Policies that stand in files: of a run that corrects a baseline, around a run, and of a recorded sweep."""

import json
from dataclasses import dataclass
from pathlib import Path

import again
import episodes
import numpy as np
import pytest
from training_kit import trained

from heron_env import Baseline, Sweep, TrainedRun, load_policy, make
from heron_env.errors import ConfigError
from heron_env.lab import PolicySpec, RunFolder


@dataclass(frozen=True)
class Around:
    """Does what a run does."""

    of: PolicySpec

    def build(self, env, seed):
        return self.of.build(env, seed)


def test_a_run_corrects_a_baseline_with_constants_and_does_so_when_it_is_read_back(tmp_path: Path):
    energy, options = "heron/EnergyManagement-v1", {"dt": 900.0, "physics_substeps": 1}
    name = "MPC(follow=0.2, window=6, excess=1)"
    run = trained(tmp_path, energy, total_steps=32, env_options=options, training_options={}, residual=name)
    assert run.config.base == name and {name, "MPC"} <= run.config.validation.keys()
    assert run.config.validation[name] != run.config.validation["MPC"]
    env = make(energy, **options)
    (rule,) = RunFolder.open(tmp_path).rules(env, "battery").values()
    (tuned,) = Baseline(name).build(env, 0).values()
    seen = env.reset(seed=1)[0]["battery_1"]
    assert np.array_equal(rule.forward(seen), tuned.forward(seen))
    assert load_policy(tmp_path).keys() == {"battery"}
    (tmp_path / "config.json").write_text((tmp_path / "config.json").read_text().replace("MPC(follow", "MPC(folow"))
    with pytest.raises(ConfigError, match="no constant 'folow'"):
        load_policy(tmp_path)


def test_a_policy_around_a_run_is_another_one_once_the_run_is_trained_anew(tmp_path: Path):
    run = TrainedRun(str(tmp_path))
    found = []
    for seed in (0, 1):
        trained(tmp_path, total_steps=16, seed=seed, validations=0, validation_episodes=0)
        sweep = Sweep.of("heron/BatteryGrid-v0", {"blind": Around(run)}, [], cases=1)
        found.append(sweep.identities["blind"])
    assert found[0] != found[1] and all(text.startswith(repr(Around(run))) for text in found)


def test_policies_of_a_recorded_sweep_are_measured_again_beside_it(tmp_path: Path):
    policies = {"do nothing": "do nothing", "random": "random"}
    asked = Sweep.of("heron/BatteryGrid-v0", policies, [], cases=2, options={"max_steps": 4})
    work, study = tmp_path / "work", tmp_path / "study"
    first = asked.run(work, processes=1)
    lines = [json.loads(line) for line in (work / "results.jsonl").read_text().splitlines()]
    wrong = [{**line, "value": 7.0} if line["policy"] == "random" else line for line in lines]  # by an older law
    (work / "results.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in wrong))
    episodes.keep(study, {"sweep": work})
    before = episodes.rows(study)
    assert episodes.read(study, "sweep").point("random").values == (7.0, 7.0)
    again.measured(study, "sweep", ["random"], processes=1)
    assert episodes.read(study, "sweep").point("random").values == first.point("random").values
    assert [row for row in episodes.rows(study) if row["sweep"] == "sweep"] == before
