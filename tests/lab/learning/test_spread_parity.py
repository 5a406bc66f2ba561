"""The study that compares learning on heron/Spread-v0 and on mpe2's simple_spread; mpe2 itself is not needed here."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spread_long
import spread_parity
import spread_ppo
import torch

from heron_env import make
from heron_env.adapters import HeronVecEnv

TINY = spread_ppo.Settings(num_envs=2, n_steps=25, batch_size=75, n_epochs=1, hidden=(8, 8))


def ours_as_the_peer(num_envs: int) -> Any:
    """Our own environment where mpe2's would be: through PettingZoo's API and the study's loop over it."""
    return spread_ppo.ParallelSlots(lambda: make("heron/Spread-v0"), num_envs)


@pytest.fixture
def peer_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spread_ppo.SIDES, "mpe2", ours_as_the_peer)


def test_the_loop_over_parallel_environments_is_the_vecenv():
    one, other = spread_ppo.heron(3), ours_as_the_peer(3)
    for venv in (one, other):
        venv.seed(7)
    assert one.reset().tobytes() == other.reset().tobytes()
    rng, ends = np.random.default_rng(0), 0
    for _ in range(60):
        actions = rng.random((9, 5), dtype=np.float32)
        (seen, gained, dones, infos), told = one.step(actions), other.step(actions)
        np.testing.assert_allclose(seen, told[0], rtol=0, atol=1e-6)
        np.testing.assert_allclose(gained, told[1], rtol=0, atol=1e-6)
        assert dones.tolist() == told[2].tolist()
        for mine, theirs in zip(infos, told[3], strict=True):
            assert mine.get("TimeLimit.truncated") == theirs.get("TimeLimit.truncated")
            if theirs:
                ends += 1
                np.testing.assert_allclose(mine["terminal_observation"], theirs["terminal_observation"], atol=1e-6)
    assert ends == 2 * 9


@pytest.mark.usefixtures("peer_is_ours")
def test_identical_dynamics_show_no_difference(tmp_path: Path):
    runs = [
        spread_parity.trained(side, seed, 100, TINY, test_episodes=4) for seed in (0, 1) for side in spread_ppo.SIDES
    ]
    assert {len(run["curve"]) for run in runs} == {2}
    for _, _, change in spread_parity.compared(runs).values():
        assert (change.low, change.mean, change.high) == (0.0, 0.0, 0.0)
    assert runs[0]["curve"] != runs[2]["curve"]


@pytest.mark.usefixtures("peer_is_ours")
def test_trainings_are_kept_resumed_and_reported(tmp_path: Path):
    runs, out = tmp_path / "runs", tmp_path / "out"
    spread_parity.train_missing(["heron"], [0, 1], 100, TINY, runs, 4)
    assert "no report" in spread_parity.report(runs, out, 2, 4)
    kept = {file: file.stat().st_mtime_ns for file in runs.iterdir()}
    assert len(kept) == 2
    spread_parity.train_missing(["heron", "mpe2"], [0, 1], 100, TINY, runs, 4)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    text = spread_parity.report(runs, out, 2, 4)
    assert "agree within the interval" in text
    study = json.loads((out / "parity.json").read_text(encoding="utf-8"))
    assert len(study["runs"]) == 4
    assert [steps for steps, _ in study["runs"][0]["curve"]] == [50, 100]
    assert study["settings"]["hidden"] == [8, 8]
    assert (out / "parity.svg").read_bytes().startswith(b"<?xml")
    assert (out / "parity.md").read_text(encoding="utf-8") == text
    other = json.loads((runs / "heron-0.json").read_text(encoding="utf-8"))
    (runs / "heron-2.json").write_text(json.dumps({**other, "seed": 2, "steps": 999}), encoding="utf-8")
    with pytest.raises(SystemExit, match="differ in settings or length"):
        spread_parity.report(runs, out, 2, 4)


def invented(side: str, seed: int, level: float) -> dict[str, Any]:
    """A training that starts at -26 and is at `level` from the fourth of its ten points on."""
    curve = [[100 * (i + 1), -26.0 if i < 3 else level, 6] for i in range(10)]
    return {"side": side, "seed": seed, "curve": curve, "final": level + 1.0}


def test_statistics_of_given_trainings():
    levels = {"heron": (-18.0, -17.0, -16.0), "mpe2": (-18.5, -16.5, -16.0)}
    runs = [invented(side, seed, level) for side, found in levels.items() for seed, level in enumerate(found)]
    runs.append(invented("heron", 9, 0.0))  # has no partner
    table = spread_parity.compared(runs)
    assert spread_parity.paired_seeds(runs) == [0, 1, 2]
    last, whole, final = table.values()
    assert (last[0].mean, last[1].mean, last[0].n) == (-17.0, -17.0, 3)
    assert whole[0].mean == pytest.approx(0.3 * -26.0 + 0.7 * -17.0)
    assert final[0].mean == -16.0
    assert last[2].mean == pytest.approx(0.0)
    assert last[2].high == pytest.approx(4.303 * 0.5 / np.sqrt(3.0), rel=1e-3)  # differences 0.5, -0.5, 0
    study = {"runs": runs, "levels": {"random": -27.0}}
    assert "agree within the interval, whose farther end, 1.24, is 12% of" in spread_parity.verdict(
        next(iter(table)), study
    )
    apart = [{**run, "final": run["final"] + 5.0 * (run["side"] == "heron")} for run in runs]
    assert "they differ" in spread_parity.verdict("final policy, no exploration", {**study, "runs": apart})


def test_a_binned_curve_keeps_the_mean_of_all_episodes():
    rows = [[10, -4.0, 1], [20, -2.0, 3], [30, -1.0, 2], [40, -3.0, 2]]
    assert spread_parity.binned(rows, 2) == [[20, -2.5], [40, -2.0]]


def test_an_agents_return_gives_the_original_mpes():
    env = make("heron/Spread-v0", num_agents=spread_ppo.AGENTS, local_ratio=0.5, continuous=True, max_steps=25)
    touched = 0.0
    for seed in range(6):
        result = env.run_synchronous({"*": lambda seen, way=1 + 2 * (seed % 2): np.eye(5)[way]}, seed=seed)
        mean = np.mean([result.returns[agent] for agent in env.possible_agents])
        kpis = env.kpis()
        touched += kpis["contacts"]
        assert spread_ppo.in_mpe_form(mean) == pytest.approx(kpis["mpe_return"], rel=1e-9)
    assert touched > 0.0


def test_levels_rank_the_rules():
    levels = spread_ppo.levels(20)
    assert levels["random"] < levels["nearest landmark"] < levels["assigned landmark"] < 0.0


def test_the_callback_counts_rewards_without_what_ppo_adds_at_a_time_limit():
    venv = spread_ppo.heron(1)
    assert isinstance(venv, HeronVecEnv)
    model, returns = replace(TINY, num_envs=1, n_steps=25, batch_size=75).model(venv, 0), spread_ppo.Returns()
    earned: list[float] = []
    step = venv.step_wait

    def counted() -> Any:
        results = step()
        earned.append(float(results[1].sum()))
        return results

    venv.step_wait = counted  # type: ignore[method-assign]
    model.learn(75, callback=returns)
    assert returns.curve == [[25, pytest.approx(sum(earned) / 3, abs=1e-4), 3]]


def test_time_limits_are_valued_at_once_as_ppo_values_them_one_by_one():
    plain, venv = spread_ppo.heron(2), spread_long.TimeLimits(spread_ppo.heron(2))
    venv.model = model = TINY.model(venv, 0)
    plain.seed(0)
    plain.reset(), venv.reset()
    rng = np.random.default_rng(0)
    for step in range(25):
        actions = rng.random((6, 5), dtype=np.float32)
        _, rewards, dones, infos = plain.step(actions)
        _, valued, _, told = venv.step(actions)
        np.testing.assert_array_equal(venv.gained, rewards)
        assert all(dones) == (step == 24)
        if step < 24:
            np.testing.assert_array_equal(valued, rewards)
    for slot in range(6):
        last = model.policy.obs_to_tensor(infos[slot]["terminal_observation"])[0]
        with torch.no_grad():
            value = model.policy.predict_values(last)[0].item()
        assert valued[slot] == pytest.approx(rewards[slot] + TINY.gamma * value, rel=1e-5)
        assert abs(value) > 1e-6
    assert told == [{}] * 6


def test_a_long_training_stops_goes_on_and_is_reported(tmp_path: Path):
    runs, out = tmp_path / "runs", tmp_path / "out"
    settings = replace(TINY, final_learning_rate=1e-4)
    options = {"episodes": 2, "points": 2, "every": 0.0}
    stopped = spread_long.session(0, 200, settings, runs, minutes=0.0, **options)
    assert (stopped["steps"], stopped["curve"]) == (0, [])
    spread_long.session(0, 100, settings, runs, **options)
    kept = json.loads((runs / "0.json").read_text(encoding="utf-8"))
    assert [row[0] for row in kept["curve"]] == [50, 100]
    run = spread_long.session(0, 200, settings, runs, **options)
    assert [row[0] for row in run["curve"]] == [50, 100, 150, 200]
    assert run["curve"][:2] == kept["curve"]
    assert (run["steps"], run["sessions"], run["tests"][-1][0]) == (200, 3, 200)
    assert run["seconds"] >= kept["seconds"]
    assert spread_long.session(0, 200, settings, runs, **options)["sessions"] == 3
    text = spread_long.report(runs, out, 4)
    assert "| 0 | 200 |" in text
    study = json.loads((out / "long.json").read_text(encoding="utf-8"))
    assert study["settings"]["final_learning_rate"] == 1e-4
    assert [steps for steps, _ in study["runs"][0]["curve"]] == [50, 100, 150, 200]
    assert (out / "long.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(SystemExit, match="other settings"):
        spread_long.session(0, 400, TINY, runs, **options)


def test_the_learning_rate_falls_to_the_end_over_both_sessions(tmp_path: Path):
    settings = replace(TINY, final_learning_rate=1e-4)
    venv = spread_long.TimeLimits(spread_ppo.heron(2))
    venv.model = model = settings.model(venv, 0)
    model.learn(300)
    model.learn(300, reset_num_timesteps=False)
    rates = [group["lr"] for group in model.policy.optimizer.param_groups]
    assert rates == [pytest.approx(1e-4)]
    assert settings.model(venv, 0).lr_schedule(1.0) == pytest.approx(1e-3)
