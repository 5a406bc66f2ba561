"""Progress: a bar where somebody looks, nothing elsewhere, and one line for a result."""

import sys

import pytest

from heron_env.errors import ConfigError
from heron_env.lab import Condition, Hyperparameters, Sweep, SweepResult, output, train

LATE = Condition(act_delay=1.0)


def swept(**how: object) -> SweepResult:
    sweep = Sweep.of("heron/BatteryGrid-v0", {"idle": "do nothing"}, [LATE], cases=2, options={"max_steps": 5})
    return sweep.run(processes=1, **how)


def test_nobody_looks_at_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert not output.watched()
    swept()
    assert capsys.readouterr() == ("", "")


def test_a_sweep_tells_its_episodes_to_a_terminal_or_to_a_function(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert output.watched()
    monkeypatch.setattr(output, "watched", lambda: True)  # capsys has another stderr
    swept()
    drawn = capsys.readouterr().err
    assert "episodes: 100 %" in drawn and "6 of 6" in drawn
    told: list[int] = []
    swept(progress=False)
    swept(progress=lambda p: told.append(p.done))
    assert told == [0, 1, 2, 3, 4, 5, 6] and capsys.readouterr().err == ""


def test_training_tells_its_transitions(monkeypatch, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "watched", lambda: True)
    small = {"num_envs": 2, "n_steps": 10, "batch_size": 20, "n_epochs": 1, "hidden": (4,)}

    train(
        "heron/BatteryGrid-v0", tmp_path / "run", total_steps=40, hyperparameters=Hyperparameters(**small),
        env_options={"max_steps": 5}, validations=0, validation_episodes=1,
    )  # fmt: skip
    assert "100 %" in (shown := capsys.readouterr().err) and "40 transitions, return" in shown


def test_a_sweep_shows_itself() -> None:
    result = swept()
    assert repr(result) == "<SweepResult: heron/BatteryGrid-v0, 1 policy x 2 conditions x 2 cases>"
    html = result._repr_html_()
    assert LATE.words in html and html.count("<tr>") == 1 + len(result.points)
    assert "action delay" in result.plot().axes[-1].get_xlabel()
    assert result.plot("act_delay", ["idle"]).axes
    with pytest.raises(ConfigError, match=r"plot\(cause='actdelay'\): must be one of \('obs_delay', .*'rate'\)\. Did"):
        result.plot("actdelay")
    with pytest.raises(ConfigError, match=r"plot\(policies=\[\]\): there is none to draw; name some of \['idle'\]"):
        result.plot(policies=[])
