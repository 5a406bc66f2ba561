"""Work spread over processes: what happens when one of them is killed."""

import importlib
import os
import signal
from pathlib import Path

import pytest

from heron_env.errors import ConfigError, WorkerLost
from heron_env.lab.sweep.executors import finished
from heron_env.lab.sweep.sweep import executor_of

pytestmark = pytest.mark.e2e


def half(number: int) -> float:
    """Three's process is killed, as by a system that runs out of memory."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number / 2


@pytest.mark.parametrize(("function", "items"), [(lambda number: number, [1, 2]), (str, [1, lambda: 2, 3])])
def test_what_can_not_travel_is_an_error_that_says_where_it_works(function, items):
    with pytest.raises(ConfigError, match=r"can't travel to another process \(.*<lambda>.*processes=1\)"):
        list(finished(function, items, 2))


def test_workers_are_where_this_process_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    (tmp_path / "lies_here.py").write_text("def double(number):\n    return 2 * number\n")
    double = importlib.import_module("lies_here").double
    assert dict(finished(os.path.abspath, ["run", "."], 2)) == {"run": str(tmp_path / "run"), ".": str(tmp_path)}
    assert dict(finished(double, [1, 2], 2)) == {1: 2, 2: 4}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_process_that_is_killed_is_an_error_that_names_what_was_under_way():
    with pytest.raises(
        WorkerLost, match=r"a worker process ended suddenly.*was under way: (\d; )*3(; \d)*(; and \d more)?\. Run"
    ):
        list(finished(half, [1, 2, 3, 4, 5], 2))


def test_no_process_at_all_is_refused():
    with pytest.raises(ConfigError, match="processes=0: must be a whole number from 1"):
        executor_of(0)
