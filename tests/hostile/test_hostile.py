"""The short form of `run.py`: bad values and damaged files get an answer or an error of ours."""

from pathlib import Path
from typing import Any

import pytest
import run
from verdict import asked

from heron_env.errors import ConfigError

CALLS, FILES, SCHEDULES = 900, 220, 400


@pytest.mark.draw
def test_hostile_calls_get_an_answer_or_an_error_of_ours_and_the_clocks_agree():
    found = [
        f"call {number}, {name}: {answer.told}" for number, name, answer in run.all_calls(CALLS, 7) if answer.is_finding
    ]
    assert found == []


@pytest.mark.draw
def test_damaged_files_get_an_answer_or_an_error_of_ours():
    pytest.importorskip("stable_baselines3")
    found = [
        f"file {number}, {name}: {answer.told}" for number, name, answer in run.all_files(FILES, 7) if answer.is_finding
    ]
    assert found == []


@pytest.mark.draw
def test_hostile_schedules_are_refused_with_a_field_or_run_alike_in_both_clocks():
    found = [
        f"schedule {number}, {way}: {answer.told}"
        for number, way, answer in run.all_schedules(SCHEDULES, 7)
        if answer.is_finding
    ]
    assert found == []


def raw(*values: object) -> None:
    raise KeyError("raw")


def refuses(*values: object) -> None:
    raise ConfigError("no; write something else")


def silent(*values: object) -> None:
    raise ConfigError("")


def test_the_verdict_knows_a_finding():
    import heron_env.errors as ours

    assert asked(lambda: refuses()).kind == "ConfigError"
    assert asked(lambda: silent()).is_finding
    assert asked(lambda: refuses(wrong=1)).kind == "python"  # type: ignore[call-arg]
    assert asked(lambda: ours.did_you_mean("x", 3)).is_finding  # type: ignore[arg-type]  # raised by a line of ours
    assert asked(lambda: 3).kind == "works"


def test_a_file_below_a_clone_named_as_the_package_is_not_ours(tmp_path: Path):
    caller = tmp_path / "heron_env" / "tests" / "caller.py"
    scope: dict[str, Any] = {}
    exec(compile("def call(): return {}['x']", caller, "exec"), scope)
    assert asked(scope["call"]).kind == "python"
