"""Reproductions of RDC and DAMARL (training/reproductions): sensors of their own age, reckoning, commands, pages."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heron_env import Empirical, HeronEnv, make
from heron_env.lab import Condition
from training import packed
from training.reproductions import damarl, rdc
from training.reproductions.late_spread import RECKONED, STEP, Study, markdown
from training.reproductions.rdc import ASSIGNED, uniform
from training.reproductions.sensed_spread import ENTITIES, Reckoning

ROOT = Path(__file__).resolve().parents[2]
STUDIES = [rdc.STUDY, damarl.STUDY]
OWN, SEEN = slice(0, 4), slice(4, 4 + 2 * ENTITIES)


class Recording:
    """Pushes to one side after the other, and keeps what it saw."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, vector: Any) -> int:
        self.seen.append(np.array(vector))
        return 1 + len(self.seen) % 4


def watched(delay: Any, seed: int = 3, **options: Any) -> Any:
    """What agent_0 saw at each of its ticks, `[25, 14 + ages]`, and what was so then, `[25, 14]`."""
    both = []
    for late in (delay, 0.0):
        env = make(rdc.ENV, observe_age=True, **options)
        agents = {name: Recording() for name in env.possible_agents}
        env.run_event_driven(agents, seed=seed, schedule=Condition(msg_delay={"sensor": late}).schedule(env))
        both.append(np.array(agents["agent_0"].seen))
    return both[0], both[1][:, :14]


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_without_delay_it_is_spread(compile: bool) -> None:
    """Velocity, place, landmarks and others, and rewards, bit for bit; only what nobody says is left out."""
    sensed, spread = make(rdc.ENV, compile=compile), make("heron/Spread-v0", continuous=False, compile=compile)
    mine, theirs = sensed.reset(seed=5)[0], spread.reset(seed=5)[0]
    for step in range(25):
        assert all((mine[name] == theirs[name][:14]).all() for name in theirs)
        act = {name: (step + number) % 5 for number, name in enumerate(theirs)}
        (mine, earned, *_), (theirs, reward, *_) = sensed.step(act), spread.step(act)
        assert {name: earned[name] for name in reward} == reward


def test_positions_that_are_given_are_seen() -> None:
    places = {"agents": np.eye(3, 2), "landmarks": -np.eye(3, 2)}
    seen = make(rdc.ENV).reset(seed=5, options=places)[0]
    assert np.allclose(seen["agent_0"][SEEN], [-2, 0, -1, -1, -1, 0, -1, 1, -1, 0])


def test_a_fixed_delay_ages_what_is_around_and_nothing_else() -> None:
    """At step t an agent sees step t - 4 of landmarks and others, from where it was then, and itself as it is."""
    seen, true = watched(0.4)
    assert (seen[:, OWN] == true[:, OWN]).all()
    assert all((seen[t, SEEN] == true[max(t - 4, 0), SEEN]).all() for t in range(25))
    assert np.ptp(true[:, 4]) > 0.1


def test_each_entity_has_an_age_of_its_own_as_in_their_code() -> None:
    """There age = min(a draw, the last age + 1): above a where all of the last draws were above a, a - 1, ..."""
    runs = [np.rint(watched(uniform(3, 9), seed)[0][:, -ENTITIES:] * 10.0).astype(int) for seed in range(40)]
    ages = np.array(runs)
    assert (np.diff(ages, axis=1) <= 1).all() and (ages[:, 12:] >= 3).all() and ages.max() <= 9
    assert (ages[:, 12:].std(axis=2) > 0.0).mean() > 0.9
    for age in range(3, 9):
        above = np.prod([(9 - least) / 7.0 for least in range(3, age + 1)])
        found, spread = (ages[:, 24] > age).mean(), np.sqrt(above * (1.0 - above) / ages[:, 24].size)
        assert abs(found - above) < 4.0 * spread + 1e-9, (age, found, above)


class Shown:
    """A policy that notes what it is shown."""

    def __init__(self) -> None:
        self.of = Recording()

    def build(self, env: HeronEnv, seed: int) -> Any:
        """For agent_0; the others do as they do above."""
        return {name: self.of if name == "agent_0" else Recording() for name in env.possible_agents}


@pytest.mark.parametrize("delay", [0.6, Empirical([0.3, 0.8])])
def test_reckoning_knows_where_landmarks_are_however_old(delay: Any) -> None:
    env, shown = make(rdc.ENV, observe_age=True), Shown()
    policies = Reckoning(shown).build(env, 0)
    env.run_event_driven(policies, seed=3, schedule=Condition(msg_delay={"sensor": delay}).schedule(env))
    late, true = watched(delay)
    reckoned = np.array(shown.of.seen)
    assert np.allclose(reckoned[:, :10], true[:, :10], atol=1e-5)
    assert not np.allclose(late[:, :10], true[:, :10], atol=0.1)
    assert not np.allclose(reckoned[:, 10:], true[:, 10:], atol=0.1), "nobody knows where the others went"


def small(study: Study, *names: str, conditions: tuple[str, ...]) -> Study:
    """With few arms under few conditions."""
    arms = [
        (name, replace(arm, conditions={label: c for label, c in arm.conditions.items() if label in conditions}))
        for name, arm in study.arms
        if name in names
    ]
    kept = [(name, arm) for name, arm in arms if arm.conditions]
    return replace(study, arms=kept, panels={"": dict.fromkeys(names, "black")}, columns=conditions)


def command(study: Study, folder: Path) -> Any:
    """Two trainings of each arm that last a moment, eight cases; what it keeps."""
    given = ["--seeds", "2", "--steps", "3000", "--cases", "8"]
    study.main([*given, "--out", str(folder / "out"), "--runs", str(folder / "runs")])
    return packed.load(folder / "out" / f"{study.name}.json.gz")


@pytest.mark.e2e
def test_rdc_runs_and_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule loses most of what it gains under 12 steps, and gets it back by reckoning; a second run adds nothing."""
    monkeypatch.setenv("HERON_COMPILE", "1")
    names = ("PPO", "do nothing", ASSIGNED, ASSIGNED + RECKONED, "PPO, 3 to 9, aware")
    study = small(rdc.STUDY, *names, conditions=("0", "12"))
    found = command(study, tmp_path)
    assert [np.shape(found[name]["12"]) for name in names] == [(2, 8), (1, 8), (1, 8), (1, 8), (2, 8)]
    idle, rule, reckoned = (found[name] for name in names[1:4])
    assert idle["0"] == idle["12"]
    assert np.mean(rule["12"]) < np.mean(idle["12"]) < np.mean(reckoned["12"]) - 20.0
    assert np.abs(np.subtract(reckoned["0"], rule["0"])).max() < 1e-9
    made = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    kept = tmp_path / "out" / "rdc.json.gz"
    kept.write_bytes(packed.dumped({name: of for name, of in found.items() if name in names[:2]}))
    command(study, tmp_path)
    assert {file: file.read_bytes() for file in made} == made
    config = json.loads((tmp_path / "runs" / "ppo-3-to-9-aware-1" / "config.json").read_text())
    assert config["hyperparameters"]["gru"] == 32 and config["env_options"] == {"observe_age": True}


@pytest.mark.e2e
def test_damarl_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It learns without the delay and under it."""
    monkeypatch.setenv("HERON_COMPILE", "1")
    study = small(damarl.STUDY, "PPO", damarl.UNAWARE, conditions=("0", "3"))
    found = command(study, tmp_path)
    assert {name: [*of] for name, of in found.items()} == {"PPO": ["0", "3"], damarl.UNAWARE: ["3"]}
    config = json.loads((tmp_path / "runs" / "unaware-3-0" / "config.json").read_text())
    assert config["schedule"]["*"]["act_delay"] == 3 * STEP


@pytest.mark.parametrize("study", STUDIES, ids=[study.name for study in STUDIES])
def test_pages_say_what_was_measured(study: Study) -> None:
    """All arms under all conditions with five seeds; tables are those of the returns, the page's rows are theirs."""
    folder = ROOT / "training" / "results" / study.name
    found = packed.load(folder / f"{study.name}.json.gz")
    for name, arm in study.arms:
        for label in arm.conditions:
            assert np.shape(found[name][label]) == (5 if arm.run else 1, 256)
    kept = (folder / "table.md").read_text()
    assert kept == markdown(found, study.columns)
    _, _, page = (ROOT / "docs" / "science" / "reproductions.md").read_text().partition(f"/{study.name}.svg")
    rows = [line for line in page.partition("\n## ")[0].splitlines() if line.startswith("| ") and line.count("[") >= 3]
    assert len(rows) >= 4 and {*rows} <= {*kept.splitlines()}
