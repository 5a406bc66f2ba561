"""The study that compares our QMIX and MAPPO with BenchMARL's; BenchMARL itself is not needed here."""

import json
from pathlib import Path

import benchmarl_peer
import numpy as np
import pytest

from heron_env import make


@pytest.mark.parametrize("env", benchmarl_peer.TEAMS)
@pytest.mark.parametrize("algorithm", benchmarl_peer.ALGORITHMS)
def test_trainings_are_kept_and_reported(algorithm: str, env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in {"FRAMES": 100, "ENVS": 2, "HIDDEN": (8,), "EPISODES": 4}.items():
        monkeypatch.setattr(benchmarl_peer, name, value)
    for seed in range(2):
        benchmarl_peer.run(env, "ours", algorithm, seed, tmp_path)
    kept = [json.loads((tmp_path / f"{env}-ours-{algorithm}-{seed}.json").read_text("utf-8")) for seed in range(2)]
    assert [len(one["returns"]) for one in kept] == [4, 4] and kept[0]["return"] != kept[1]["return"]
    assert kept[0]["return"] == pytest.approx(np.mean(kept[0]["returns"]), abs=1e-4)
    told = benchmarl_peer.report(tmp_path)
    wanted = f"| {env}, {algorithm.upper()}, ours | 2 |", f"{kept[0]['return']:.1f}, {kept[1]['return']:.1f}"
    assert all(part in told for part in wanted)


@pytest.mark.parametrize("env", benchmarl_peer.TEAMS)
def test_all_are_judged_on_the_same_episodes_by_the_team_s_return(env: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benchmarl_peer, "EPISODES", 3)
    returns = benchmarl_peer.earned(env, lambda group, seen: np.full((*seen.shape[:2], 1), 2.0))
    for lane, value in enumerate(returns):
        alone = make(f"heron/{env}-v0", continuous=False)
        result = alone.run_synchronous({"*": lambda vector: 2}, seed=benchmarl_peer.FIRST_TEST_SEED + lane)
        assert value == pytest.approx(result.returns["system_agent"], abs=1e-5)


def test_the_table_and_the_page_are_of_the_kept_trainings():
    told = benchmarl_peer.report(benchmarl_peer.OUT)
    assert told == (benchmarl_peer.OUT / "table.md").read_text("utf-8")
    page = (Path(__file__).parents[3] / "docs" / "science" / "learning.md").read_text("utf-8")
    assert told in page
