"""`heron dcop`: a graph is solved, algorithms are compared, and mistakes cost a line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heron_env.cli import app

INSTANCES = Path(__file__).parents[2] / "training" / "instances"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["dcop", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_graph_is_solved_from_the_shell():
    told = run("solve", "g15", "--algo", "elimination")
    assert "0 of 23 edges in conflict, cost 0; no assignment costs less" in told
    found = json.loads(run("solve", str(INSTANCES / "er15.json"), "--algo", "dsa", "--seed", "1", "--json"))
    assert found["conflicts"] == 0 and found["proven"] and len(found["assignment"]) == 15


def test_algorithms_are_compared_beside_the_optimum(tmp_path: Path):
    figure = tmp_path / "any.svg"
    algorithms = ("--algo", "dsa", "--algo", "mgm", "--algo", "greedy")
    table = run(
        "compare", "ring50", str(INSTANCES / "er100.json"), *algorithms, "--seeds", "3", "--figure", str(figure)
    )
    lines = table.splitlines()
    assert len(lines) == 7 and lines[0].split()[:4] == ["instance", "algorithm", "conflicts", "sat_ratio"]
    assert figure.read_bytes().startswith(b"<?xml")
    rows = json.loads(run("compare", str(INSTANCES / "er100.json"), *algorithms, "--seeds", "3", "--json"))
    dsa = rows[0]
    conflicts = sorted(dsa["conflicts"])[1]
    assert dsa["sat_ratio"] == pytest.approx((250 - conflicts) / (250 - 3))
    assert dsa["norm_gap"] == pytest.approx((250 / 3 - conflicts) / (250 / 3 - 3))


def test_without_names_all_algorithms_are_tried_and_those_that_can_not_are_left_out():
    rows = {row["algorithm"]: row for row in json.loads(run("compare", str(INSTANCES / "er50.json"), "--json"))}
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
    done = CliRunner().invoke(app, ["dcop", *arguments])
    assert done.exit_code == 2
    assert words in done.stderr and done.stderr.count("\n") == 1
