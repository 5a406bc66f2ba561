"""What an environment offers to be judged by: held-out cases that share nothing, rules, and optima that are its own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from heron_env import make
from heron_env.errors import ConfigError
from heron_env.lab import benchmark
from heron_env.worlds.energy_management import calendar

GRID = "heron/BatteryGrid-v0"


def test_held_out_cases_do_not_overlap():
    env = make(GRID)
    test, validation = (benchmark.cases(env, 50, split=split) for split in ("test", "validation"))
    assert not {case.seed for case in test} & {case.seed for case in validation}
    assert [case.seed for case in benchmark.cases(env, 2, repeats=2)] == [1_000_000, 1_000_001, 1_000_002, 1_000_003]
    with pytest.raises(ConfigError, match="split='tests' must be one of"):
        benchmark.cases(env, 1, split="tests")
    with pytest.raises(ConfigError, match="must be 1 to"):
        benchmark.cases(env, 0)


def test_energy_days_bring_their_rules_their_seeds_and_their_optima(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    env = make("heron/EnergyManagement-v1")
    assert env.benchmark().strongest in benchmark.baselines(env)
    plain = benchmark.cases(env, 3, repeats=2)
    days = {
        str(case.options["day"]): {"value": -case.seed / 1e9, "bound": 0.0, "gap": 0.0, "fingerprint": 0.0}
        for case in plain[:3]
    }
    (tmp_path / "optima.json").write_text(json.dumps({"what": "", "days": days}))
    monkeypatch.setattr(calendar, "OPTIMA", tmp_path / "optima.json")
    cases = benchmark.with_optima(env, plain, {})
    assert [case.optimum for case in cases[:3]] == [-case.seed / 1e9 for case in plain[:3]]
    assert [case.optimum for case in cases[3:]] == [None] * 3, "another seed is another day"
    other_day = [replace(plain[0], options={"day": plain[1].options["day"]})]
    assert benchmark.with_optima(env, other_day, {}) == other_day, "so is another day with the same seed"
    fine = {"dt": 60.0, "physics_substeps": 60}
    assert benchmark.with_optima(make("heron/EnergyManagement-v1", **fine), plain, fine) == cases
    for other in ({"dt": 900.0}, {"physics_substeps": 1}, {"num_batteries": 4}):
        found = benchmark.with_optima(make("heron/EnergyManagement-v1", **other), plain, other)
        assert all(case.optimum is None for case in found)
    assert all(case.options["day"] % 5 == 2 for case in cases)
