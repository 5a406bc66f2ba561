"""The recipes that train under a network: trainings, what is reported of them, the page that shows it."""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import under_network_cleanrl as spread
import under_network_report as reporting
import under_network_sb3 as sb3
from under_network_report import BARE, POLICIES, UNDER

from heron_env import make

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "training" / "results" / "under_network"
PAGE = (ROOT / "docs" / "how_to" / "train_under_a_network.md").read_text(encoding="utf-8")
FEW = spread.Settings(env_steps=100, num_envs=2, num_steps=25, minibatch=50, epochs=1, hidden=8)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own simple_spread where mpe2's would be, which is not installed everywhere."""
    module = type(sys)("mpe2.simple_spread_v3")
    module.parallel_env = lambda: make("heron/Spread-v0", continuous=False)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpe2.simple_spread_v3", module)


def made(plain: tuple[Any, Any], trained: tuple[Any, Any]) -> reporting.Study:
    """A study of two policies: what each earns without a network and under it, `[seeds][cases]`."""
    places = (dict(zip((BARE, UNDER), both, strict=True)) for both in (plain, trained))
    return {"env": "made", "cases": [0, len(plain[0][0])], "returns": dict(zip(POLICIES.values(), places, strict=True))}


def test_the_share_that_is_closed_is_that_of_the_means():
    found = reporting.findings(made(([[10.0, 12.0]] * 2, [[3.0, 5.0]] * 2), ([[9.0, 11.0]] * 2, [[6.0, 10.0]] * 2)))
    means = {name: estimate.value for name, estimate in found.items()}
    assert means == {"lost": 7.0, "left": 2.0, "won": 4.0, "pays": 1.0, "closed": pytest.approx(4.0 / 7.0)}


def test_where_no_gap_shows_no_share_is_reported():
    study = made(([[10.0, 12.0]], [[12.0, 10.0]]), ([[9.0, 11.0]], [[6.0, 10.0]]))
    assert "| share of the loss won back | no interval: the gap's own reaches 0 |" in reporting.table([study])


def test_what_was_made_once_is_read_where_its_settings_are_the_same(tmp_path: Path):
    file = tmp_path / "new" / "run.json"
    for value in (1, 2):
        kept = reporting.once(file, {"steps": 5}, lambda value=value: {"earned": value})
        assert kept == {"settings": {"steps": 5}, "earned": 1}
    message = f"{file} was trained with {{'steps': 5}}, not {{'steps': 6}}: give another folder as --runs"
    with pytest.raises(SystemExit, match=f"^{re.escape(message)}$"):
        reporting.once(file, {"steps": 6}, dict)


@pytest.mark.parametrize("recipe", sb3.RECIPES.values(), ids=sb3.RECIPES)
def test_returns_side_by_side_are_those_of_single_runs(recipe: sb3.Recipe):
    low, high = recipe.build(None).observation_space.low, recipe.build(None).observation_space.high
    assert low.shape == high.shape

    def act(rows: Any) -> Any:  # a rule that looks at what it observes
        push = rows[:, -1] > 0.0
        return push.astype(int) if recipe.env == "CartPole-v1" else np.where(push, 1.0, -1.0)[:, None]

    cases = range(7, 10)
    for where, schedule in recipe.schedules.items():
        env = recipe.build(schedule)
        single = [env.run_event_driven({"agent": lambda seen: act(seen[None])[0]}, seed=case) for case in cases]
        found = sb3.returns(recipe, schedule, act, cases)
        assert found == pytest.approx([run.returns["agent"] for run in single], abs=1e-3), where
    assert sb3.in_both(recipe, act, cases)[BARE] != sb3.in_both(recipe, act, cases)[UNDER]


@pytest.mark.usefixtures("ours")
def test_without_a_network_it_is_the_training_on_the_bare_environment(monkeypatch: pytest.MonkeyPatch):
    def weights(agent: spread.Agent) -> bytes:
        return b"".join(each.detach().numpy().tobytes() for each in agent.parameters())

    behind, late = (spread.train(schedule, 0, FEW) for schedule in spread.SCHEDULES.values())
    monkeypatch.setattr(spread, "under_network", lambda env, schedule, noop: Bare(env))
    bare = spread.train(None, 0, FEW)
    assert weights(behind) == weights(bare) != weights(late)


class Bare:
    """An environment as it is, each choice used."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, seed: int | None) -> Any:
        observations, infos = self.env.reset(seed=seed)
        return observations, {agent: {"is_active": True} for agent in infos}

    def step(self, choices: Any) -> Any:
        *told, infos = self.env.step(choices)
        return *told, {agent: {"is_active": True} for agent in infos}


@pytest.mark.usefixtures("ours")
def test_before_something_has_arrived_choices_are_not_learned_from(monkeypatch: pytest.MonkeyPatch):
    used: list[int] = []
    monkeypatch.setattr(spread, "learn", lambda agent, optimizer, batch, settings: used.append(len(batch[0])))
    for schedule in (None, spread.ScheduleConfig(obs_delay=2.0)):
        spread.train(schedule, 0, FEW)
    assert used == [2 * 25 * 3] * 2 + [2 * (25 - 2) * 3] * 2


@pytest.mark.usefixtures("ours")
def test_returns_are_those_of_the_environment():
    env, cases = make("heron/Spread-v0", continuous=False), range(3, 5)
    single = [env.run_synchronous({"*": lambda seen: 1}, seed=case).returns for case in cases]
    found = spread.returns(None, lambda rows: np.ones(len(rows), dtype=np.int64), cases)
    assert found == pytest.approx([np.mean([run[agent] for agent in env.possible_agents]) for run in single], abs=1e-3)


def test_where_mpe2_is_missing_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mpe2", None)
    with pytest.raises(SystemExit, match=r"^simple_spread is in mpe2 \(.*\): pip install mpe2$"):
        spread.Lanes(None, 1)


@pytest.mark.e2e
@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize(("script", "name"), [(sb3, "sb3"), (spread, "spread")], ids=["sb3", "spread"])
def test_it_runs_quickly_goes_on_and_writes_what_it_prints(
    script: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    words = ["--quick", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", [name, *words])
    script.main()
    first = capsys.readouterr().out
    monkeypatch.setattr(script, "train", None)  # nothing is trained again
    script.main()
    assert capsys.readouterr().out == first
    assert (tmp_path / "out" / f"{name}.md").read_text(encoding="utf-8") in first
    studies = json.loads((tmp_path / "out" / f"{name}.json").read_text(encoding="utf-8"))
    assert {len(study["returns"][POLICIES[UNDER]][UNDER]) for study in studies.values()} == {2}


def test_mpe2s_simple_spread_is_what_is_trained_on():
    pytest.importorskip("mpe2")
    lanes = spread.Lanes(spread.ScheduleConfig(obs_delay=1.0), 2)
    rows, active = lanes.reset(0)
    assert rows.shape == (6, 18) and rows.dtype == np.float32 and not active.any()
    _, active, gained, over = lanes.step(np.zeros(6, dtype=np.int64))
    assert active.all() and not over and gained.shape == (6,)


@pytest.mark.parametrize("name", ["sb3", "spread"])
def test_tables_and_figures_are_those_of_the_results(name: str):
    studies = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert (RESULTS / f"{name}.svg").read_bytes() == reporting.figure([*studies.values()])
    text = reporting.table([*studies.values()])
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == text
    for study in studies.values():
        assert study["seeds"] == [*reporting.SEEDS] and study["cases"] == [reporting.CASES[0], len(reporting.CASES)]
        assert {len(study["returns"][policy][place]) for policy in POLICIES.values() for place in POLICIES} == {5}


def test_the_tables_of_the_page_are_lines_of_one_table_of_all_results():
    studies = [*json.loads((RESULTS / "sb3.json").read_text()).values()]
    studies += json.loads((RESULTS / "spread.json").read_text()).values()
    shown = re.findall(r"^\|.*\[.*\|$", PAGE[PAGE.index("## What is it worth?") : PAGE.index("## Other")], re.MULTILINE)
    assert len(shown) == 10
    assert [line for line in shown if line not in reporting.table(studies).splitlines()] == []


def test_the_results_are_of_what_the_scripts_train():
    studies = {**json.loads((RESULTS / "sb3.json").read_text()), **json.loads((RESULTS / "spread.json").read_text())}
    for recipe in sb3.RECIPES.values():
        found = studies[recipe.env]
        assert (found["network"], found["steps"]) == (recipe.schedules[UNDER], recipe.steps)
    found = studies[spread.ENV]
    assert (found["network"], found["ppo"]) == (spread.NETWORK, asdict(spread.Settings()))


def test_the_program_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    program, *_ = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec(re.sub(r"STEPS = [\d_]+", "STEPS = 64", program).replace("seed=0,", "seed=0, n_steps=64,"), {})
    for line in capsys.readouterr().out.splitlines():
        assert min(map(float, line.split()[:2])) >= 8.0
    assert (tmp_path / "under.zip").is_file()
