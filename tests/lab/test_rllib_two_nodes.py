"""RLlib's trainings over one node and two: what is kept is what the report says, and runners were where it says."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.environ", dict(__import__("os").environ))  # the script sets Ray's
    import rllib_two_nodes

    monkeypatch.delitem(sys.modules, "rllib_two_nodes")
    return rllib_two_nodes


def test_the_report_is_that_of_the_trainings(study):
    folder = ROOT / study.OUT
    kept = json.loads((folder / "trainings.json").read_text())
    told = study.report(kept)
    assert told == json.loads((folder / "study.json").read_text())
    assert study.as_table(told) == (folder / "table.md").read_text()
    assert study.drawn(told) == (folder / "curves.svg").read_bytes()
    assert {name: one["nodes_of_runners"] for name, one in told["arms"].items()} == {
        "one node": [1],
        "two nodes": [2],
        "one node, other seeds": [1],
    }
    assert all(one["trainings"] >= 5 for one in told["arms"].values())


def test_arms_that_differ_are_told(study):
    def one(arm: str, place: int, level: float) -> dict:
        return {"arm": arm, "place": place, "curve": [level + place] * study.ITERATIONS, "runners": ["a", "b"]}

    levels = {"one node": 0.0, "two nodes": 0.5, "one node, other seeds": 50.0}
    told = study.report({f"{arm}, {n}": one(arm, n, level) for arm, level in levels.items() for n in range(3)})
    assert [told["arms"][arm]["inside"] for arm in levels] == [study.ITERATIONS, study.ITERATIONS, 0]
    assert told["arms"]["two nodes"]["minus_one_node"] == "0.50 [0.50, 0.50]"
