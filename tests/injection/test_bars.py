"""The table of bars: it can fail, and says what was not measured; two of its bars, measured in short."""

import json
import sys
from pathlib import Path

import pytest
from fault_server import FAULTS

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))
pytest.importorskip("uvicorn", reason="pip install heron_env[serve]")

import injection_bars

from training.bars import Bar, Found, Setting
from training.endpoints import client, faults


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
    assert injection_bars.main(["--out", str(tmp_path)], bars) == code
    kept = json.loads((tmp_path / "bars.json").read_text())["bars"]
    assert [row["name"] for row in kept] == ["one", "two"]
    assert ("missed: two" in (tmp_path / "bars.md").read_text()) == (code == 1)
    assert ("not measured: two" in capsys.readouterr().out) == (kept[1]["met"] is None)


def test_one_bar_alone_leaves_the_others_as_they_were(tmp_path: Path):
    both = [answering("one", False), answering("two", False)]
    assert injection_bars.main(["--out", str(tmp_path)], both) == 1
    mended = [answering("one", False), answering("two", True)]
    assert injection_bars.main(["--out", str(tmp_path), "--only", "two"], mended) == 0
    assert [row["met"] for row in json.loads((tmp_path / "bars.json").read_text())["bars"]] == [False, True]


def test_every_bar_has_a_name_of_its_own():
    names = [bar.name for bar in injection_bars.BARS]
    assert len(set(names)) == len(names) == 18


@pytest.mark.parametrize(
    "bar", [bar for bar in client.BARS if bar.name in ("half-open", "breaker")], ids=lambda b: b.name
)
def test_a_cheap_bar_is_met(bar: Bar, tmp_path: Path):
    found = bar.measure(Setting(True, tmp_path))
    assert found.met, found.measured


def test_a_row_of_the_failure_table_is_met_and_one_with_another_code_is_not():
    fault = FAULTS["NaN"]
    assert faults.problems_of(fault) == []
    wrong = faults.problems_of(faults.planted(fault))
    assert {words.split(":")[0] for words in wrong} == {"NaN, step", "NaN, event-driven"}
