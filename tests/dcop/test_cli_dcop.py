"""`heron dcop`: a graph is solved, algorithms are compared, and mistakes cost a line."""

from pathlib import Path

import pytest
from cli_kit import as_json, heron

INSTANCES = Path(__file__).parents[2] / "training" / "instances"


def test_a_graph_is_solved_from_the_shell():
    told = heron("dcop", "solve", "g15", "--algo", "elimination").output
    assert "0 of 23 edges in conflict, cost 0; no assignment costs less" in told
    found = as_json("dcop", "solve", INSTANCES / "er15.json", "--algo", "dsa", "--seed", "1")
    assert found["conflicts"] == 0 and found["proven"] and len(found["assignment"]) == 15


def test_algorithms_are_compared_beside_the_optimum(tmp_path: Path):
    figure = tmp_path / "any.svg"
    algorithms = ("--algo", "dsa", "--algo", "mgm", "--algo", "greedy")
    asked = ("dcop", "compare", INSTANCES / "er100.json", *algorithms, "--seeds", "3")
    lines = heron(*asked, "ring50", "--figure", figure).output.splitlines()
    assert len(lines) == 7 and lines[0].split()[:4] == ["instance", "algorithm", "conflicts", "sat_ratio"]
    assert figure.read_bytes().startswith(b"<?xml")
    dsa = as_json(*asked)[0]
    conflicts = sorted(dsa["conflicts"])[1]
    assert dsa["sat_ratio"] == pytest.approx((250 - conflicts) / (250 - 3))
    assert dsa["norm_gap"] == pytest.approx((250 / 3 - conflicts) / (250 / 3 - 3))


def test_without_names_all_algorithms_are_tried_and_those_that_can_not_are_left_out():
    rows = {row["algorithm"]: row for row in as_json("dcop", "compare", INSTANCES / "er50.json")}
    assert "more than" in rows["elimination"]["why_not"]
    assert {"greedy", "dsa", "mgm", "maxsum"} <= {name for name, row in rows.items() if "conflicts" in row}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "g16"], "g16: a problem's file ends with"),
        (["solve", "g15", "--algo", "dpop"], "is no algorithm"),
        (["compare", "g15", "--figure", "x.pdf"], "figures are .svg or .png"),
        (["compare", "g15", "--seeds", "0"], "seeds=0"),
        (["compare", str(INSTANCES / "er100.json"), "--algo", "elimination"], "take algo='cpsat'"),
    ],
)
def test_a_mistake_is_told_in_a_line(arguments, words):
    told = heron("dcop", *arguments, code=2).stderr
    assert words in told and told.count("\n") == 1
