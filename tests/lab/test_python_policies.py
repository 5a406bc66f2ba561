"""A controller of one's own, named as `module:policy` or `path.py:policy`: it runs, and only who names it vouches."""

import pytest
from cli_kit import heron
from training_kit import trained

from heron_env import make
from heron_env.errors import ConfigError, TraceError, Untrusted
from heron_env.lab import Sweep, along, record_episode
from heron_env.lab.policies import policy_spec
from heron_env.lab.traces.replaying import replay

GRID, SHORT = "heron/BatteryGrid-v0", {"max_steps": 6}
SOURCE = """
def fill(seen):
    return 0.9 - seen[:1]

class Filling:
    def forward(self, seen):
        return fill(seen)

class Built:
    def build(self, env, seed):
        return {agent: fill for agent in env.possible_agents}

by_agent = {"battery_1": fill, "battery_2": Filling()}
"""


@pytest.fixture
def controllers(tmp_path, monkeypatch):
    """`controllers.py` in the working directory, which is on the path."""
    (tmp_path / "controllers.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "controllers", raising=False)
    return tmp_path / "controllers.py"


def returns(text: str) -> dict[str, float]:
    env = make(GRID, **SHORT)
    return env.run_synchronous(policy_spec(text).build(env, 0), seed=3).returns


@pytest.mark.parametrize("form", ["controllers:{}", "{path}:{}"])
def test_each_form_of_a_policy_is_the_same_controller(controllers, form):
    earned = [returns(form.format(name, path=controllers)) for name in ("fill", "Filling", "Built", "by_agent")]
    assert all(each == earned[0] for each in earned) and earned[0] != returns("do nothing")


def test_beside_a_run_folder_the_command_still_vouches_for_it(controllers, tmp_path):
    trained(tmp_path / "run", env_options=SHORT)
    for words in (
        ["run", "run", "--policy", "controllers.py:fill"],
        ["trace", "run", "--policy", "controllers:fill", "--out", "traced"],
        ["sweep", "controllers.py:fill", "run", "--cases", "1", "--axis", "loss=0", "--processes", "2"],
    ):
        heron(*words)


def test_two_files_of_alike_paths_are_two_modules(controllers, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text(SOURCE)
    (tmp_path / "a_b.py").write_text(SOURCE.replace("0.9", "0.5"))
    assert returns("a/b.py:fill") != returns("a_b.py:fill")
    (tmp_path / "a_b.py").write_text("raise ValueError('no')")
    for _ in range(2):
        with pytest.raises(ConfigError, match="raised ValueError: no"):
            returns("a_b.py:fill")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("controllers:fil", "module 'controllers' has no attribute 'fil'.*Did you mean 'fill'"),
        ("nowhere:fill", "No module named 'nowhere'"),
        ("nowhere.py:fill", "no file 'nowhere.py'"),
    ],
)
def test_what_is_not_there_is_named(controllers, text, message):
    with pytest.raises(ConfigError, match=f"policy '{text}'.*{message}"):
        returns(text)


def test_a_sweep_goes_on_only_with_the_same_source(controllers, tmp_path):
    def asked() -> Sweep:
        return Sweep.of(GRID, {"mine": "controllers.py:fill"}, along(act_delay=(0.0, 2.0)), cases=2, options=SHORT)

    first = asked().run(tmp_path / "sweep", processes=1)
    assert asked().run(tmp_path / "sweep", processes=1).point("mine").values == first.point("mine").values
    controllers.write_text(SOURCE.replace("0.9", "0.5"))
    with pytest.raises(ConfigError, match="mine"):
        asked().run(tmp_path / "sweep", processes=1)


def test_a_record_runs_it_again_only_where_somebody_vouches(controllers):
    episode = record_episode(GRID, "controllers.py:fill", seed=1, options=SHORT)
    assert episode.setting.policy.kind == "python"
    with pytest.raises(Untrusted, match=r"names 'controllers.py:fill'.*--trust controllers.py:fill"):
        replay(episode)
    assert replay(episode, trust="controllers.py:fill").difference is None
    controllers.write_text(SOURCE.replace("0.9", "0.5"))
    with pytest.raises(TraceError, match="has changed since the episode was recorded"):
        replay(episode, trust="controllers.py:fill")
