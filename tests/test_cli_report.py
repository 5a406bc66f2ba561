"""`heron report`: what it reads, writes and refuses."""

from pathlib import Path

import pytest
from cli_kit import as_json, heron

pytest.importorskip("matplotlib")

GRID = "heron/BatteryGrid-v0"
SMALL = ("-o", "max_steps=10", "-o", "num_batteries=2")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of a sweep and of a trace."""
    base = tmp_path_factory.mktemp("runs")
    asked = ("--axis", "act_delay=0,1,2", "--cases", 2, "--processes", 1)
    heron("sweep", GRID, "random", *asked, *SMALL, "--out", base / "s")
    heron("trace", GRID, "--policy", "random", "--until", 4, *SMALL, "--out", base / "t")
    return base / "s", base / "t"


def test_a_sweep_and_a_trace_become_one_page_with_its_figures(folders: tuple[Path, Path], tmp_path: Path):
    told = as_json("report", *folders, "--out", tmp_path / "r")
    names = {"report.html", "timeline.svg", "timeline.png"}
    names |= {f"{n}.{e}" for n in ("act_delay", "one_case", "hierarchy", "who_sees_what") for e in ("svg", "png")}
    assert set(told["files"]) == names
    assert {path.name for path in (tmp_path / "r").iterdir()} == names
    assert told["finding"][0].startswith("On 2 held-out cases 'random' earns ")


def test_the_finding_and_the_file_are_printed(folders: tuple[Path, Path], tmp_path: Path):
    told = heron("report", folders[1], "--out", tmp_path).stdout
    assert "One episode of 4 s" in told and f"wrote {tmp_path / 'report.html'}" in told.replace("\n", "")


@pytest.mark.parametrize("broken", ["nowhere", "unfinished"])
def test_what_is_no_result_is_refused_in_one_line(folders: tuple[Path, Path], tmp_path: Path, broken: str):
    path = tmp_path / broken
    if broken == "unfinished":
        path.mkdir()
        (path / "sweep.json").write_text((folders[0] / "sweep.json").read_text())
    told = heron("report", path, "--out", tmp_path / "r", code=2).stderr
    assert ("neither a folder of `heron sweep`" if broken == "nowhere" else "episodes are done") in told
    assert not (tmp_path / "r").exists()
