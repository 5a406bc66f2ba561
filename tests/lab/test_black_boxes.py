"""Sweeps of environments that are black boxes: `gymnasium:CartPole-v1`, `pettingzoo:module`."""

from pathlib import Path

import gymnasium
import pytest
from black_boxes import Bookkeeper
from cli_kit import heron
from refusing import refuses

from heron_env import Condition, ScheduleConfig, Sweep, make, team_return, under_network
from heron_env.errors import ConfigError, Untrusted
from heron_env.lab import read_sweep
from heron_env.lab.sweep.conditions import SYNC

LATE = Condition(obs_delay=2.0)
POLICY = """
def act(seen):
    return int(seen[2] + 0.3 * seen[3] > 0.0)

def spread(seen):
    return seen % 3
"""


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policy.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def balance(seen):
    return int(seen[2] + 0.3 * seen[3] > 0.0)


def test_a_sweep_of_gymnasium_has_the_returns_of_runs_by_hand(policies: Path):
    conditions = [Condition(msg_delay=0.0), LATE]
    sweep = Sweep.of("gymnasium:CartPole-v1", {"mine": "policy.py:act", "random": "random"}, conditions, cases=4,
                     options={"noop": 0})  # fmt: skip
    result = sweep.run(out=policies / "out", processes=1, progress=False)
    env = under_network(gymnasium.make("CartPole-v1"), noop=0)
    for condition, schedule in ((SYNC, {}), (LATE, ScheduleConfig(obs_delay=2.0))):
        returns = [env.run_event_driven({"*": balance}, seed=case.seed, schedule=schedule).returns["agent"]
                   for case in sweep.cases]  # fmt: skip
        assert result.point("mine", condition).values == tuple(returns)
    assert result.point("mine", conditions[0]).identical and not result.point("mine", LATE).identical
    again = read_sweep(policies / "out")
    assert again.point("random", LATE).values == result.point("random", LATE).values


def test_a_team_earns_what_its_agents_earn(policies: Path):
    env = make("pettingzoo:black_boxes", noop=0, steps=9)
    assert env.hierarchy.ids == ["team", "hare_0", "hare_1", "fox"] and env.dt == 1.0
    condition = Condition(loss={"hare": 0.5})
    result = env.run_event_driven(
        {"*": lambda seen: seen % 3}, seed=3, schedule=condition.schedule(env), record=("rewards",)
    )
    bare = under_network(Bookkeeper("discrete", steps=9, ends={"fox": 5}), {"hare": ScheduleConfig(loss=0.5)}, noop=0)
    expected = bare.run_event_driven({"*": lambda seen: seen % 3}, seed=3)
    assert {agent: result.rewards[agent] for agent in expected.rewards} == expected.rewards
    assert [time for time, _ in result.rewards["team"]] == [float(k) for k in range(1, 10)]
    assert team_return(env, result) == pytest.approx(sum(expected.returns.values()), rel=1e-12)
    assert not result.terminated["team"] and result.truncated["team"]  # the fox was terminated, the hares truncated
    synchronous = env.run_synchronous({"*": lambda seen: seen % 3}, seed=3)
    assert synchronous.messages.lost == 0 and synchronous.rewards != result.rewards


def test_a_team_is_terminated_when_all_have_ended_by_themselves(monkeypatch: pytest.MonkeyPatch):
    env = make("pettingzoo:black_boxes", noop=0, steps=9)
    bare = env.env.env
    bare.ends, bare.joins = {"hare_0": 4, "fox": 5}, {"hare_1": 8}  # nobody is left when it would join
    result = env.run_synchronous({"*": lambda seen: 0}, seed=3)
    assert result.end_time == 5.0 and result.terminated["team"] and not result.truncated["team"]
    assert not result.terminated["hare_1"] and not result.truncated["hare_1"]
    monkeypatch.setattr("black_boxes.parallel_env", lambda: Bookkeeper("discrete", ("team_1", "team_2")))
    with refuses(ConfigError, "make('pettingzoo:black_boxes'): 'team' is the sum of all agents; no agent or group may "
                 "be called so"):  # fmt: skip
        make("pettingzoo:black_boxes", noop=0)


@pytest.mark.parametrize("words", [["--preset", "quick"], ["--axis", "noise=0,0.1"]])
def test_noise_is_refused_before_anything_runs(policies: Path, words: list[str]):
    told = heron("sweep", "gymnasium:CartPole-v1", "policy.py:act", "-o", "noop=0", *words, "--out", "out", code=2)
    assert "nobody measures anew in a black box; leave noise out" in told.stderr


def test_heron_sweep_and_report_take_it(policies: Path):
    words = ["sweep", "pettingzoo:black_boxes", "policy.py:spread", "random", "--axis", "msg_delay=1", "-o", "noop=0",
             "--seeds", "3", "--out", "out", "--processes", "1"]  # fmt: skip
    table = heron(*words).stdout
    assert "Mean return of team, 3 cases" in table and "msg_delay=1" in table and "do nothing" in table
    assert heron(*words).stdout.count("of 18 episodes") <= 1  # nothing is run again
    report = heron("report", "out", "--trust", "pettingzoo:black_boxes", "--out", "report").stdout
    assert "report.html" in report and "a black box has no" in (policies / "report/report.html").read_text()


def test_a_name_in_a_file_needs_somebody_who_vouches_for_it():
    from heron_env import registry

    with pytest.raises(Untrusted, match="names 'gymnasium:CartPole-v1'"):
        registry.spec("gymnasium:CartPole-v1", "sweep.json").make(noop=0)


def test_what_there_is_not_is_refused_in_words(policies: Path):
    with pytest.raises(ConfigError, match=r"make\('gymnasium:KartPole-v1'\): NameNotFound: .*CartPole"):
        make("gymnasium:KartPole-v1")
    with refuses(ConfigError, "make('pettingzoo:nowhere/kart_v1'): ModuleNotFoundError: No module named "
                 "'pettingzoo.nowhere'; correct the name, its options, or install it"):  # fmt: skip
        make("pettingzoo:nowhere/kart_v1")
    with pytest.raises(
        ConfigError, match="'agent' is compared with doing nothing, and 0 is a no-op of a Box alone; give"
    ):
        make("gymnasium:CartPole-v1")
    told = heron("trace", "gymnasium:CartPole-v1", "-o", "noop=0", "--policy", "policy.py:act", code=2)
    assert "a black box has no 'schedule': sweeps and margins take it" in told.stderr


def test_options_are_the_network_s_or_the_environment_s():
    env = make("gymnasium:CartPole-v1", noop=1, dt=0.5, observe_age=True, max_episode_steps=7)
    assert env.dt == 0.5 and env.env.observation_space.shape == (5,)
    assert env.run_synchronous({"*": lambda seen: 1}, seed=0).end_time <= 3.5
    assert (
        make("pettingzoo:black_boxes", noop="random", steps=4).run_synchronous({"*": lambda seen: 0}, seed=0).end_time
        == 4.0
    )
