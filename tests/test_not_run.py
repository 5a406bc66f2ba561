"""The closing lines of a test run name what was not run, and why."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

TESTS = """
import pytest

def test_runs(): pass

@pytest.mark.e2e
def test_takes_long(): raise AssertionError

@pytest.mark.parametrize("n", [1, 2])
def test_needs_a_program(n): pytest.skip("no chromium on this machine")
"""
SETTINGS = "[pytest]\nmarkers =\n    e2e: takes long\n"


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "two workers"])
def test_what_is_left_out_or_skipped_is_told(tmp_path: Path, workers: list[str]):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not e2e", *workers]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("not run: ")]
    assert told == [
        "not run: 1 tests left out by -m 'not e2e'; `make check` runs those too",
        "not run: 2 skipped: no chromium on this machine",
    ]
