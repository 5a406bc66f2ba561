"""A study: what its words mean, what it opens and builds, and how little of the lab a sweep goes through."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_kit import heron
from training_kit import trained

from heron_env import HeronEnv, load_policy, make, registry
from heron_env.errors import ConfigError
from heron_env.lab import IDEAL, SYNC, Baseline, Condition, Sweep, TrainedRun, benchmark, runs
from heron_env.lab.external import AgentsFile, EndpointPolicy, FixturePolicy
from heron_env.lab.policies import InMemory, PythonPolicy, kind_of, policy_spec
from heron_env.lab.sweep.conditions import Scheduled
from heron_env.lab.sweep.play import WORLDS, Worlds
from heron_env.lab.sweep.study import Study

SPREAD, PPO = "heron/Spread-v0", "shipped:heron/Spread-v0/ppo"
GRID, SHORT = "heron/BatteryGrid-v0", {"max_steps": 4}


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[str]:
    """Grows with each call."""
    original, calls = getattr(owner, name), []

    def call(*args: Any, **more: Any) -> Any:
        calls.append(name)
        return original(*args, **more)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_a_sweep_opens_its_weights_once_and_builds_few_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    opened, built = counted(monkeypatch, runs, "open_run"), counted(monkeypatch, HeronEnv, "__init__")
    words = ["--axis", "msg_delay=0,0.25", "--cases", 2, "--processes", 1, "--out", tmp_path / "out"]
    heron("sweep", PPO, *words)
    assert len(opened) == 1 and len(built) <= 3


def test_a_run_folder_is_read_once_and_travels_with_its_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    trained(tmp_path / "run", env_options=SHORT)
    read = counted(monkeypatch, runs, "weights_in")
    sweep = Sweep.of(GRID, {"mine": f"run:{tmp_path / 'run'}"}, [Condition(loss=0.2)], cases=2, options=SHORT)
    for file in (tmp_path / "run").iterdir():
        file.unlink()  # nobody looks there again
    here, workers = (sweep.run(processes=count, progress=False) for count in (1, 2))
    assert len(read) == 1 and here.points[0].values == workers.points[0].values


def test_a_sweep_goes_through_few_files_of_the_lab(tmp_path: Path):
    entered = set[str]()

    def enter(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename.rpartition("/heron_env/")[2]
        if event == "call" and name.startswith(("lab/", "cli/")) and frame.f_code.co_flags & 2:  # no module, no class
            entered.add(name)

    sys.setprofile(enter)
    try:
        words = ["--axis", "msg_delay=0,0.25", "--cases", 2, "--processes", 1, "--out", tmp_path / "out"]
        heron("sweep", PPO, *words)
    finally:
        sys.setprofile(None)
    assert len(entered) <= 23, sorted(entered)


def test_policies_and_sweeps_load_neither_endpoints_nor_trainers():
    heavy = (
        "heron_env.injection.endpoint",
        "heron_env.injection.policy",
        "heron_env.adapters",
        "stable_baselines3",
        "torch",
        "httpx",
    )
    code = f"import sys, heron_env.lab.policies, heron_env.lab.sweep.sweep; assert not {{*{heavy}}} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ("run:runs/a", TrainedRun("runs/a")),
        ("a.npz", TrainedRun("a.npz")),
        ("shipped:x/ppo", TrainedRun("shipped:x/ppo")),
        ("rule:a.npz", Baseline("a.npz")),
        ("MPC(follow=0.15)", Baseline("MPC(follow=0.15)")),
        ("grid-friendly with zone feedback", Baseline("grid-friendly with zone feedback")),
        ("tariff+hold", Baseline("tariff")),
        ("py:mine:act", PythonPolicy("mine:act")),
        ("mine:act", PythonPolicy("mine:act")),
        ("file:run.py:act", PythonPolicy("run.py:act")),
        ("sb3:model.zip", PythonPolicy("model.zip")),
        ("model.onnx", PythonPolicy("model.onnx")),
        ("agents:a.txt", AgentsFile("a.txt")),
        ("agents.yaml", AgentsFile("agents.yaml")),
        ("recorded:a.txt", FixturePolicy("a.txt")),
        ("runs/trace/fixture.jsonl", FixturePolicy("runs/trace/fixture.jsonl")),
    ],
)
def test_a_kind_says_what_a_policy_is_and_short_forms_mean_one(words: str, spec: Any):
    assert policy_spec(words) == spec


def test_an_address_is_one_with_its_kind_and_without_it():
    url = "http://127.0.0.1:9/a"
    assert isinstance(policy_spec(url), EndpointPolicy)
    assert policy_spec(f"http:{url}") == policy_spec(url) == policy_spec(f"mine={url}")
    assert kind_of(f"http:{url}") == kind_of(url) == ("http", url)


def test_a_rule_with_its_kind_is_called_by_its_name(tmp_path: Path):
    words = ["--axis", "loss=0", "--cases", 1, "--processes", 1, "-o", "max_steps=4", "--out", tmp_path]
    shown = heron("sweep", GRID, "rule:do nothing", "rule:random", *words, "--json").stdout
    assert shown.count('"policy": "do nothing"') == 2 and '"policy": "random"' in shown


def test_policies_in_memory_are_played_on_both_clocks_and_under_a_schedule():
    env = make(SPREAD)
    policies, late = load_policy(PPO, env=env), Condition(msg_delay=0.5).schedule(env)
    study = Study(
        env=registry.spec(SPREAD), policies={"mine": InMemory(policies)}, conditions=[SYNC, IDEAL, Scheduled(late)],
        cases=benchmark.cases(env, 2, split="validation"), record=(),
    )  # fmt: skip
    for number, case in enumerate(study.cases):
        done = study.play()
        returns = [done["mine", number, name].outcome.value for name in ("sync", "ideal", "schedule")]
        alone = env.run_event_driven(policies, seed=case.seed, schedule=late).returns["system_agent"]
        sync = env.run_synchronous(policies, seed=case.seed).returns["system_agent"]
        assert returns == [sync, sync, alone] and sync != alone


def test_environments_that_differ_are_apart_and_the_last_few_are_kept():
    sweep = Sweep.of(GRID, {"r": "random"}, [Condition(noise=0.1)], cases=1, options=SHORT)
    sync, noisy = (next(i for i in sweep.items() if i.condition.noise == noise) for noise in (0.0, 0.1))
    worlds = Worlds()
    with worlds.lent(sync) as first, worlds.lent(sync) as second, worlds.lent(noisy) as other:
        assert first is not second, "one that is lent is nobody else's"
        assert other.observability is not None and first.observability is None
    with worlds.lent(sync) as again, worlds.lent(noisy) as noisy_again:
        assert again in (first, second) and noisy_again is other
    with pytest.raises(ConfigError), worlds.lent(sync) as left:
        raise ConfigError("half-way")
    with worlds.lent(sync) as another:
        assert another is not left
    assert len(worlds._envs) <= WORLDS
