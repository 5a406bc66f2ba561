"""`--plan K --merge A,B` of `heron sweep` and `heron margin`, and `-o noop=policy.py:stay`."""

from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from cli_kit import as_json, heron

from heron_env import Planned, ScheduleConfig, make, under_network
from heron_env.errors import Untrusted
from heron_env.lab import read_sweep
from heron_env.trust import on_behalf_of

POLICY = """
import numpy as np
from heron_env import Planned

def act(seen, running=None):
    return np.outer(np.linspace(1.0, -1.0, 6), [-seen[2]]).clip(-2.0, 2.0).astype(np.float32)

def stay(agent, space, observation):
    return observation[1:2]

def one(seen):
    return 3

REST = [0.5]
drop = Planned(act)
"""
ENV = "gymnasium:Pendulum-v1"
MORE = ["--cases", 2, "--processes", 1, "-o", "dt=0.05", "-o", "max_steps=30"]


@pytest.fixture(autouse=True)
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "policy.py").write_text(POLICY)
    (tmp_path / "other.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)


def act(seen):
    return np.outer(np.linspace(1.0, -1.0, 6), [-seen[2]]).clip(-2.0, 2.0).astype(np.float32)


def stay(agent, space, observation):
    return observation[1:2]


def test_each_merge_is_a_policy_beside_one_action():
    words = [ENV, "policy.py:act", "random", "--plan", 5, "--merge", "drop,blend,freeze", "--axis", "thinking=0.05,0.1"]
    words += [*MORE, "-o", "noop=policy.py:stay", "--out", "out"]
    table = as_json("sweep", *words)
    shown = list(dict.fromkeys(row["policy"] for row in table["rows"]))
    assert shown == ["act one action", "act drop", "act blend", "act freeze", "random", "do nothing"]
    result = read_sweep("out")
    env = under_network(gymnasium.make("Pendulum-v1", max_episode_steps=30), dt=0.05, noop=stay)
    schemes = {
        "act one action": Planned(act, horizon=1),
        "act drop": Planned(act, horizon=5),
        "act blend": Planned(act, horizon=5, merge="blend"),
        "act freeze": Planned(act, horizon=5, merge="restart", replan="end"),
    }
    for condition in result.sweep.conditions[1:]:
        found = set[tuple[float, ...]]()
        net = ScheduleConfig(thinking=condition.thinking)
        for name, policy in schemes.items():
            run = partial(env.run_event_driven, {"*": policy}, schedule=net)
            returns = tuple(run(seed=case.seed).returns["agent"] for case in result.sweep.cases)
            assert result.point(name, condition).values == returns
            found.add(returns)
    assert len(found) == 4
    assert "of 26 episodes" not in heron("sweep", *words).stderr.replace("26 of 26 episodes", "")  # resumed
    (Path("policy.py")).write_text(POLICY + "\n")
    assert "holds a sweep with other settings" in heron("sweep", *words, code=2).stderr


def test_two_functions_of_one_name_are_shown_in_full():
    words = [ENV, "policy.py:act", "other.py:act", "--plan", 2, "--axis", "thinking=0", *MORE, "--out", "out"]
    shown = {row["policy"] for row in as_json("sweep", *words)["rows"]}
    assert shown == {f"{name}.py:act {how}" for name in ("policy", "other") for how in ("one action", "drop")} | {
        "do nothing"
    }


def test_a_margin_is_of_one_scheme():
    words = [ENV, "policy.py:act", "--plan", 4, "--fault", "thinking", "--largest", 0.05, "--keep", "80%", *MORE[:2]]
    words += MORE[4:]
    for more, name in (([], "act drop"), (["--merge", "freeze"], "act freeze")):
        assert as_json("margin", *words, *more, code=1)["policy"] == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep", "--merge", "drop"], "--merge 'drop': is of plans; give --plan K, too"),
        (["sweep", "--plan", 4, "--merge", "drop,dorp"], "--merge 'dorp': must be one of"),
        (["sweep", "--plan", 4, "--merge", "drop,freez"], "Did you mean 'freeze'"),
        (["sweep", "--plan", 1], "greater than or equal to 2"),
        (["margin", "--plan", 4, "--merge", "drop,blend"], "a margin is of one policy; give one of them"),
    ],
)
def test_wrong_words_are_told(words: list[object], message: str):
    axis = ["--axis", "thinking=0"] if words[0] == "sweep" else []
    assert message in " ".join(heron(words[0], ENV, "policy.py:act", *words[1:], *axis, code=2).stderr.split())


def test_what_does_not_plan_or_plans_by_itself_is_told():
    words = ["--plan", 4, "--axis", "thinking=0", *MORE, "--out", "out"]
    for policy, message in (
        ("random", "--plan 4: ['random'] has no function that answers [k, size], as policy.py:act"),
        ("policy.py:drop", "it plans already, play it as it is"),
        ("policy.py:one", "answered 3: must be a sequence of actions, [k, size]"),
    ):
        assert message in heron("sweep", ENV, policy, *words, code=2).stderr


def test_a_no_op_of_a_file_is_a_function_or_a_value_and_must_be_trusted():
    bare = under_network(gymnasium.make("Pendulum-v1", max_episode_steps=9), noop=stay)
    for observe_age in (False, True):
        env = make(ENV, noop="policy.py:stay", max_steps=9, observe_age=observe_age)
        nothing = env.run_synchronous(env.baselines()["do nothing"], seed=3)
        late = bare.run_event_driven({"*": lambda seen: [1.0]}, seed=3, schedule=ScheduleConfig(act_delay=99.0))
        assert nothing.returns["agent"] == late.returns["agent"]
    assert make(ENV, noop="policy.py:REST").env.network.noops.plain() == {"agent": [0.5]}
    with on_behalf_of("sweep.json"), pytest.raises(Untrusted, match=r"--trust policy\.py:stay"):
        env.__class__(ENV, noop="policy.py:stay")
    told = heron("sweep", ENV, "random", "-o", "noop=policy.py:sty", "--axis", "loss=0", code=2).stderr
    assert "Did you mean 'stay'" in told
