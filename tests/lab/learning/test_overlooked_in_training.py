"""Training tells what an author wrote and nothing calls, and that nobody earns anything."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from cli_kit import heron

from heron_env import train
from heron_env.errors import HeronWarning

IDLE = """
from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, quantity
class Level(FeatureProvider):
    value: float = quantity(default=0.0, low=0.0, high=1.0)
class Idle(FieldAgent):
    features = (Level,)
    action = Continuous(-1.0, 1.0)
def idle():
    return HeronEnv(SystemAgent("system_agent", Idle("idle_1")), max_steps=2)
"""


def test_train_tells_it_in_python_and_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "idleworld.py").write_text(IDLE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    stopped = RuntimeError("no need to train")

    def stop(*arguments: Any, **keywords: Any) -> Any:
        raise stopped

    monkeypatch.setattr("heron_env.lab.learning.train.Validation", stop)
    with pytest.warns(HeronWarning, match="nobody earns anything: no agent has a reward"), pytest.raises(RuntimeError):
        train("idleworld:idle", tmp_path / "run", total_steps=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = heron("train", "idleworld:idle", "--steps", "8", "--out", tmp_path / "two", code=None)
    assert result.exception is stopped
    assert result.stderr.startswith(
        "warning: nobody earns anything: no agent has a reward, so that all rewards are 0; "
    )
