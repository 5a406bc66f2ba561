"""Commands that are killed (signal 9) at any moment: nothing old is lost, what is there is whole or named as torn."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_kit import heron

from heron_env import load_policy
from heron_env.files.writing import PART
from heron_env.lab import RunFolder
from heron_env.lab.traces import file

GRID = "heron/BatteryGrid-v0"
SMALL = ("-o", "max_steps=4", "-o", "num_batteries=2")
LAST = (0.0, 0.001, 0.004, 0.02, 0.1, 0.4)
"""s after a folder first changes at which the process is killed."""

TRAIN = """
import sys
from heron_env.lab.learning.train import Hyperparameters, train
tiny = Hyperparameters(num_envs=1, n_steps=8, batch_size=8, n_epochs=1, hidden=(4,))
train("heron/BatteryGrid-v0", sys.argv[1], total_steps=64, hyperparameters=tiny, seed=int(sys.argv[2]), validations=4,
      validation_episodes=1, env_options={"num_batteries": 2, "max_steps": 4}, progress=False)
"""


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Names with size and time; a file may go while we look."""
    found = {}
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = (path.stat().st_size, path.stat().st_mtime_ns)
    return found


def killed(words: list[str], folder: Path, after: float) -> bool:
    """Start it, kill it so long after the folder's first change; False where it was faster."""
    before = state(folder)
    environment = {**os.environ, "HERON_COMPILE": "0", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, *words], env=environment, stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None and state(folder) == before:
            time.sleep(0.0005)
        time.sleep(after)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return process.returncode == -signal.SIGKILL


def whole(folder: Path, checks: dict[str, Callable[[Path], object]]) -> None:
    """Every file can be read by what reads it, but those that say that they are parts."""
    for path in folder.iterdir():
        if not path.name.endswith(PART):
            checks[path.suffix](path)


def drawn(path: Path) -> None:
    text = path.read_text()
    assert text.rstrip().endswith(("</svg>", "</html>"))


def picture(path: Path) -> None:
    assert path.read_bytes().endswith(b"IEND\xaeB`\x82")


@pytest.mark.e2e
def test_a_killed_trace_leaves_whole_files(tmp_path: Path):
    checks = {".json": lambda path: json.loads(path.read_text()), ".svg": drawn}
    heron("trace", GRID, "--policy", "random", *SMALL, "--out", tmp_path)
    assert file.read(tmp_path).setting.seed == 0
    for number, after in enumerate(LAST, start=1):
        words = [GRID, "--policy", "random", "--seed", str(number), *SMALL, "--out", str(tmp_path)]
        killed(["-m", "heron_env", "trace", *words], tmp_path, after)
        assert file.read(tmp_path).setting.seed in range(number + 1)
        whole(tmp_path, checks)
    assert {"trace.json", "perfetto.json", "timeline.svg"} <= set(state(tmp_path))


@pytest.mark.e2e
def test_a_killed_report_leaves_whole_files(tmp_path: Path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "report"
    heron("trace", GRID, "--policy", "random", *SMALL, "--out", tmp_path / "t")
    heron("report", tmp_path / "t", "--out", out)
    names = set(state(out))
    for after in LAST[:4]:
        killed(["-m", "heron_env", "report", str(tmp_path / "t"), "--out", str(out)], out, after)
        whole(out, {".html": drawn, ".svg": drawn, ".png": picture})
        assert names <= set(state(out))


@pytest.mark.e2e
def test_a_killed_training_leaves_the_old_run_or_the_new_one(tmp_path: Path):
    pytest.importorskip("stable_baselines3")
    done = subprocess.run([sys.executable, "-c", TRAIN, str(tmp_path), "0"], check=True)
    assert done.returncode == 0
    policies, seeds = {RunFolder.open(tmp_path).digest()}, [0]
    for number, after in enumerate(LAST, start=1):
        killed(["-c", TRAIN, str(tmp_path), str(number)], tmp_path, after)
        run = RunFolder.open(tmp_path)
        seeds.append(run.config.seed)
        policies.add(run.digest())
        load_policy(tmp_path)
        assert [row["group"] for row in run.curve()][:1] == ["battery"]
        assert run.config.seed in range(number + 1)
    assert len(policies) == len(set(seeds))  # whole ones, one for each training that came to its end


@pytest.mark.e2e
def test_a_killed_first_training_is_no_run_and_says_so(tmp_path: Path):
    pytest.importorskip("stable_baselines3")
    folder = tmp_path / "run"
    folder.mkdir()
    assert killed(["-c", TRAIN, str(folder), "0"], folder, 0.02)
    assert "is no finished run folder" in heron("sweep", folder, code=2).stderr
    text = (folder / "progress.csv").read_text() if (folder / "progress.csv").is_file() else ""
    head = "group,transitions,seconds,training_signal,validation_return,group_return"
    assert io.StringIO(text).readline().rstrip() in ("", head)
