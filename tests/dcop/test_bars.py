"""The table of bars of `python -m training.coloring`: it can fail, and says what was not measured."""

import json
from pathlib import Path

import pytest

from training.coloring.__main__ import BARS, main
from training.coloring.bars import Bar, Found, Setting


def answering(name: str, met: bool | None) -> Bar:
    return Bar(name, "a bar", "a value", lambda setting: Found("something | else", met))


def broken(setting: Setting) -> Found:
    raise RuntimeError("the measurement broke")


@pytest.mark.parametrize(
    ("bars", "code"),
    [
        ([answering("one", True), answering("two", True)], 0),
        ([answering("one", True), answering("two", False)], 1),
        ([answering("one", True), answering("two", None)], 0),
        ([answering("one", True), Bar("two", "a bar", "a value", broken)], 1),
    ],
)
def test_the_table_ends_with_1_if_a_bar_is_missed_and_keeps_what_it_found(
    bars: list[Bar], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["--out", str(tmp_path)], bars) == code
    kept = json.loads((tmp_path / "bars.json").read_text())["bars"]
    assert [row["name"] for row in kept] == ["one", "two"]
    assert ("missed: two" in (tmp_path / "bars.md").read_text()) == (code == 1)
    assert ("not measured: two" in capsys.readouterr().out) == (kept[1]["met"] is None)


def test_one_bar_alone_leaves_the_others_as_they_were(tmp_path: Path):
    both = [answering("one", False), answering("two", False)]
    assert main(["--out", str(tmp_path)], both) == 1
    mended = [answering("one", False), answering("two", True)]
    assert main(["--out", str(tmp_path), "--only", "two"], mended) == 0
    assert [row["met"] for row in json.loads((tmp_path / "bars.json").read_text())["bars"]] == [False, True]


def test_every_bar_has_a_name_of_its_own_and_a_committed_result():
    names = [bar.name for bar in BARS]
    assert len(set(names)) == len(names)
    kept = json.loads((Path(__file__).parents[2] / "training/results/coloring/bars.json").read_text())["bars"]
    assert [row["name"] for row in kept] == names and all(row["met"] for row in kept)
