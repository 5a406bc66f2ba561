"""The programs of the tutorials run with few steps, and the pages show all of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = {"cartpole": "cartpole", "drones": "own_world"}
"""Programs and their pages."""
STEPS = {"cartpole": "512", "drones": "256"}


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_page_shows_the_parts_of_its_program(name: str):
    page = (ROOT / "docs" / "tutorials" / f"{TUTORIALS[name]}.md").read_text(encoding="utf-8")
    program = (ROOT / "examples" / "tutorials" / f"{name}.py").read_text(encoding="utf-8")
    marks = re.findall(r"^# (\[\w+\])$", program, re.MULTILINE)
    shown = re.findall(r':start-after: "# (\[\w+\])"', page)
    assert set(shown) <= set(marks) and len(shown) >= 3
    assert set(re.findall(r':end-before: "# (\[\w+\])"', page)) <= set(marks)
    assert all(len(line) <= 88 for line in program.split("# [", 1)[1].splitlines())


@pytest.mark.e2e
@pytest.mark.parametrize("name", TUTORIALS)
def test_the_program_of_a_tutorial_runs(name: str, tmp_path: Path):
    words = [sys.executable, str(ROOT / "examples" / "tutorials" / f"{name}.py"), STEPS[name]]
    printed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r": -?\d[\d.]* \[", printed)) >= 4, printed
    assert (tmp_path / "curve.svg").stat().st_size > 1000
