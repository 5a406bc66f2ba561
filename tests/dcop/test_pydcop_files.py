"""pyDCOP's files: a file costs what its own text says, and what is not read is refused where it stands."""

import json
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import yaml
from cli_kit import as_json, heron
from hypothesis import given
from hypothesis import strategies as st
from refusing import unsaid

from heron_env.dcop import Problem, erdos_renyi, read_problem, solve, write_problem
from heron_env.errors import ConfigError

HEAD = """\
name: small
objective: {objective}
domains:
  d: {{values: {values}, type: colour}}
variables:
"""
DOMAINS = {"[R, G]": ["R", "G"], "[0, 1, 2]": [0, 1, 2], "[2 .. 4]": [2, 3, 4], "['1', x y, 0.5]": ["1", "x y", 0.5]}
EDGES = {  # in the file's own sense: {c} is positive for min, negative for max
    1: ["{c} if {u} == {v} else 0", "0 if {u} != {v} else {c}", "3 + ({u} == {v}) * {c}", "{c} * (not {u} != {v}) - 1"],
    -1: ["-{c} if {v} == {u} else 0", "{c} if {u} != {v} else 0", "max(0, {c} * ({u} != {v}))"],
}
OWN = [
    "-0.25 if {v} == {one!r} else 0.5",
    "2 if {v} in ({one!r}, {two!r}) else abs(-1.5)",
    "1.5 * ({v} != {two!r})",
    "3",
]


def plain_value(text: str, assignment: dict[str, object]) -> float:
    """What Python itself makes of the numbers of a file: the sum of all its functions and tables."""
    data, total = yaml.safe_load(text), 0.0
    for name, variable in data["variables"].items():
        if "cost_function" in variable:
            total += eval(str(variable["cost_function"]), {name: assignment[name]})
    for constraint in (data["constraints"] or {}).values():
        if constraint["type"] == "intention":
            total += eval(constraint["function"], dict(assignment))
        else:
            row = " ".join(str(assignment[name]) for name in constraint["variables"])
            hits = [cost for cost, rows in constraint["values"].items() if row in str(rows).split(" | ")]
            total += hits[0] if hits else constraint["default"]
    return total


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[object], list[str]]:
    """Text, domain and variables of a small file that colours a graph."""
    written = draw(st.sampled_from([*DOMAINS]))
    domain, sign = DOMAINS[written], draw(st.sampled_from([1, -1]))
    nodes = [f"v{number}" for number in range(draw(st.integers(1, 4)))]
    text, cost = HEAD.format(objective={1: "min", -1: "max"}[sign], values=written), draw(st.sampled_from([1, 2.5, 10]))
    for node in nodes:
        own = draw(st.sampled_from(["", *OWN])).format(v=node, one=domain[0], two=domain[1])
        text += f"  {node}: {{domain: d{', cost_function: ' * bool(own)}{own and json.dumps(own)}}}\n"
    lines = []
    for u, v in [pair for pair in product(nodes, nodes) if pair[0] < pair[1]]:
        form = draw(st.sampled_from(["", "table", *EDGES[sign]]))
        if form == "table" and " " not in str(domain):
            equal = " | ".join(f"{colour} {colour}" for colour in domain)
            lines.append(
                f"{{type: extensional, variables: [{u}, {v}], values: {{{sign * cost}: {equal}}}, default: 0}}"
            )
        elif form and form != "table":
            lines.append(f"{{type: intention, function: {json.dumps(form.format(c=cost, u=u, v=v))}}}")
    lines += [f"{{type: intention, function: {json.dumps(OWN[2].format(v=nodes[0], two=domain[1]))}}}"] * draw(
        st.booleans()
    )
    return (
        text + "constraints:" + "".join(f"\n  c{i}: {line}" for i, line in enumerate(lines)) + " {}" * (not lines),
        domain,
        nodes,
    )


@given(files())
def test_a_file_costs_what_its_own_text_says(tmp_path_factory: pytest.TempPathFactory, file):
    text, domain, nodes = file
    path = tmp_path_factory.mktemp("p") / "p.yaml"
    path.write_text(text)
    problem = read_problem(path)
    sign = {"min": 1, "max": -1}[problem.objective]
    rows = [dict(zip(nodes, row, strict=True)) for row in product(domain, repeat=len(nodes))]
    values = [plain_value(text, row) for row in rows]
    for row, value in zip(rows, values, strict=True):
        assert sign * problem.cost({node: str(colour) for node, colour in row.items()}) == pytest.approx(value)
    best = solve(problem, "elimination")
    assert best.proven and sign * best.cost == pytest.approx({1: min, -1: max}[sign](values))
    for ending in ("yaml", "json"):  # and the same written again
        again = read_problem(write_problem(problem, path.with_name(f"again.{ending}")))
        assert again.objective == problem.objective
        assert solve(again, "elimination").cost == pytest.approx(best.cost)


def small(tmp_path: Path, *, objective: str = "min", more: str = "", **parts: str) -> Path:
    """A file of two variables with these parts changed."""
    variables = parts.get("variables", "{v1: {domain: d}, v2: {domain: d}}")
    constraints = parts.get("constraints", "{c: {type: intention, function: 10 if v1 == v2 else 0}}")
    domains = parts.get("domains", "{d: {values: [R, G]}}")
    path = tmp_path / "p.yaml"
    lines = ["name: p", f"objective: {objective}", f"domains: {domains}", f"variables: {variables}"]
    path.write_text("\n".join([*lines, f"constraints: {constraints}", more]))
    return path


REFUSED = {
    "agreement": ({"objective": "max"}, "5: constraints.c: gains more where its ends are equal"),
    "disagreement": (
        {"constraints": "{c: {type: intention, function: 0 if v1 == v2 else 10}}"},
        "5: constraints.c: costs less where",
    ),
    "objective": ({"objective": "best"}, "2: objective: must be min or max, got 'best'"),
    "section": (
        {"more": "agentz: [a]"},
        "6: agentz: is no key of pyDCOP that heron reads; remove it. Did you mean 'agents'",
    ),
    "external": (
        {"more": "external_variables: {e: {domain: d, initial_value: R}}"},
        "6: external_variables: says what changes in the midst of a run",
    ),
    "start": (
        {"domains": "{d: {values: [0, 1]}}", "variables": "{v1: {domain: d, initial_value: 0}, v2: {domain: d}}"},
        "4: variables.v1.initial_value: says a start",
    ),
    "noise": (
        {"variables": "{v1: {domain: d, cost_function: 2 * (v1 == 'R'), noise_level: 0.2}, v2: {domain: d}}"},
        "4: variables.v1.noise_level: says noise",
    ),
    "another variable's cost": (
        {"variables": "{v1: {domain: d, cost_function: v2 == 'R'}, v2: {domain: d}}"},
        "4: variables.v1.cost_function: must be an expression of v1 alone, and has v2",
    ),
    "a function of Python": (
        {"variables": "{v1: {domain: d, cost_function: hash(v1)}, v2: {domain: d}}"},
        "4: variables.v1.cost_function: must be an expression such as 10 if u == v else 0: `hash(v1)` is not read",
    ),
    "an attribute": (
        {"constraints": "{c: {type: intention, function: v1.__class__ == v2}}"},
        "5: constraints.c: must be an expression such as 10 if u == v else 0: `v1.__class__` is not read",
    ),
    "a text of any length": (
        {"constraints": "{c: {type: intention, function: v1 * 999999999 == v2}}"},
        "5: constraints.c: must be an expression such as 10 if u == v else 0: it counts with 'R'",
    ),
    "division by 0": (
        {"variables": "{v1: {domain: d, cost_function: 1 / (v1 == 'R')}, v2: {domain: d}}"},
        "4: variables.v1.cost_function: must be an expression such as 10 if u == v else 0: for {'v1': 'G'} it can't be",
    ),
    "infinity": (
        {"constraints": "{c: {type: intention, function: 1e999 if v1 == v2 else 0}}"},
        "5: constraints.c: must be an expression such as 10 if u == v else 0: for {'v1': 'R', 'v2': 'R'} it is inf",
    ),
    "statements": (
        {"constraints": "{c: {type: intention, function: 'if v1 == v2: return 10'}}"},
        "5: constraints.c: must be an expression such as 10 if u == v else 0: it is no Python expression",
    ),
    "a source": (
        {"constraints": "{c: {type: intention, function: source.f(v1), source: f.py}}"},
        "5: constraints.c.source: says Python files",
    ),
    "three ends": (
        {
            "variables": "{v1: {domain: d}, v2: {domain: d}, v3: {domain: d}}",
            "constraints": "{c: {type: intention, function: v1 == v2 == v3}}",
        },
        "5: constraints.c: depends on 3 variables",
    ),
    "a soft edge": (
        {"domains": "{d: {values: [0, 1, 2]}}", "constraints": "{c: {type: intention, function: abs(v1 - v2)}}"},
        "5: constraints.c: is no edge of a graph to colour",
    ),
    "another cost": (
        {
            "variables": "{v1: {domain: d}, v2: {domain: d}, v3: {domain: d}}",
            "constraints": "{c: {type: intention, function: v1 == v2}, e: {type: intention, function: 2 * (v1 == v3)}}",
        },
        "5: constraints.e: a conflict costs 2, and 1 in c; give all constraints the same cost",
    ),
    "a table with holes": (
        {"constraints": "{c: {type: extensional, variables: [v1, v2], values: {10: R R | G G}}}"},
        "5: constraints.c: says no cost of 'R G'",
    ),
    "a table of two minds": (
        {"constraints": "{c: {type: extensional, variables: [v1, v2], values: {1: R R, 2: R R}, default: 0}}"},
        "5: constraints.c.values['2']: 'R R' has another cost already",
    ),
    "a table's colour": (
        {"constraints": "{c: {type: extensional, variables: [v1, v2], values: {1: R X}, default: 0}}"},
        "5: constraints.c.values['1']: 'R X' is no assignment of v1, v2",
    ),
    "a table's cost": (
        {"constraints": "{c: {type: extensional, variables: v1, values: {much: R}, default: 0}}"},
        "5: constraints.c.values.much: the cost must be a finite number",
    ),
    "a table's default": (
        {"constraints": "{c: {type: extensional, variables: v1, values: {1: R}, default: .inf}}"},
        "5: constraints.c.default: must be a finite number",
    ),
    "a colour twice": ({"domains": "{d: {values: [1, '1']}}"}, "3: domains.d.values[1]: '1' stands there twice"),
    "a wide range": ({"domains": "{d: {values: [0 .. 999999999]}}"}, "3: domains.d.values: must be 2 to 26 colours"),
    "a range of letters": (
        {"domains": "{d: {values: [A1 ..]}}"},
        "3: domains.d.values: must be a list of values, or a",
    ),
    "no colours": ({"domains": "{d: {values: [[R], G]}}"}, "3: domains.d.values: must be a list of texts or numbers"),
    "a domain's key": ({"domains": "{d: {values: [R, G], initial: R}}"}, "3: domains.d.initial: is no key of pyDCOP"),
    "a scalar host": (
        {"more": "agents: [a1]\ndistribution_hints:\n  must_host: {a1: v1}"},
        "8: distribution_hints.must_host.a1: must be a list, as [v1]",
    ),
    "a host that is none": (
        {"more": "agents: {a1: {capacity: 1}}\ndistribution_hints:\n  must_host:\n    a2: [v1]"},
        "9: distribution_hints.must_host.a2: 'a2' is no agent of this file; there are a1",
    ),
    "a guest that is none": (
        {"more": "agents: [a1]\ndistribution_hints:\n  must_host:\n    a1: [c, v1, v9]"},
        "9: distribution_hints.must_host.a1[2]: 'v9' is no node",
    ),
    "neighbours": (
        {"more": "agents: [a1]\ndistribution_hints: {host_with: {v1: [v2]}}"},
        "7: distribution_hints.host_with: says which nodes belong together; write them below must_host",
    ),
}


def test_what_would_change_the_result_is_read_or_refused_at_its_line(tmp_path: Path):
    def read(changes: dict[str, str]) -> None:
        read_problem(small(tmp_path, **changes))

    cases = [(partial(read, changes), f"{tmp_path / 'p.yaml'}:{words}") for changes, words in REFUSED.values()]
    assert unsaid(ConfigError, cases) == []


def test_what_only_places_computations_is_let_be(tmp_path: Path):
    placing = "agents: {a1: {capacity: 3, speed: 2}, a2:}\nroutes: {default: 2, a1: {a2: 9}}\n"
    placing += "hosting_costs: {default: 7}\ndistribution_hints: {must_host: {a1: [v2, c]}, host_with: {}}\n"
    problem = read_problem(small(tmp_path, more=placing + "description: of the page\n"))
    assert problem.clusters == {"a1": ("v2",)}
    assert problem.having(clusters={}) == read_problem(small(tmp_path))


def test_an_answer_is_in_the_files_own_sense(tmp_path: Path):
    variables = "{v1: {domain: d, cost_function: 3 * (v1 == 'R')}, v2: {domain: d}}"
    path = small(
        tmp_path, objective="max", variables=variables, constraints="{c: {type: intention, function: 10 * (v1 != v2)}}"
    )
    answer = heron("dcop", "solve", path, "--algo", "elimination").output
    assert "R: v1\nG: v2\n" in answer
    assert "0 of 1 edges in conflict, utility 13; no assignment has more" in answer
    figures = as_json("dcop", "solve", path, "--algo", "greedy")
    assert (figures["utility"], figures["bound"], figures["curve"]) == (13.0, 13.0, [13.0])
    assert "cost" not in figures
    least = heron("dcop", "solve", small(tmp_path, variables=variables), "--algo", "elimination").output
    assert "G: v1\n" in least and "cost 0; no assignment costs less" in least


@pytest.mark.parametrize("algo", ["dsa", "mgm", "maxsum", "greedy", "elimination", "cpsat"])
@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_what_can_be_bettered_is_never_called_proven(algo: str, scale: float):
    if algo == "cpsat":
        pytest.importorskip("ortools")
    triangle = (("x", "y"), ("y", "z"), ("x", "z"))
    problem = Problem(
        ("x", "y", "z"), triangle, ("red", "blue"), conflict_penalty=scale, fixed={"x": "red", "y": "blue"}
    )
    found = solve(problem.having(preferences={"z": {"red": scale / 2}}), algo, cycles=1)
    least = 0.5 * scale
    assert found.cost >= least
    assert not found.proven or found.cost == least
    assert found.bound <= least * (1 + 1e-6)
    loose = solve(
        erdos_renyi(30, 6.0, seed=1).having(conflict_penalty=scale), algo if algo != "cpsat" else "dsa", cycles=0
    )
    assert loose.proven is (loose.cost <= loose.bound)
    assert loose.conflicts == 0 or algo == "elimination" or not loose.proven


def test_a_graph_that_is_cut_off_is_refused(tmp_path: Path):
    path = tmp_path / "p.col"
    for text, edges in (("p edge 3 2\ne 1 2\ne 2 3\n", 2), ("p col 3 4\ne 1 2\ne 2 1\ne 2 3\ne 3 2\n", 2)):
        path.write_text(text)
        assert len(read_problem(path).edges) == edges
    for text, words in {
        "p edge 3 3\ne 1 2\ne 2 3\n": r"p\.col: 3 edges are announced, and 2 follow",
        "e 1 2\n": r"p\.col:1: 1-2 is no edge",
        "c nothing\n": r"p\.col: has no line",
        "p edge 2 1\np edge 3 1\ne 1 2\n": r"p\.col:2: .* or the second one",
        "p cnf 3 2\n": r"p\.col:1: 'p cnf 3 2' is no",
        "p edge 99999999999 0\n": r"p\.col:1: ",
        "p 3 2\n": r"p\.col:1: ",
        "p edge 2 1\ne 1 2\nn 1 4\n": r"p\.col:3: 'n 1 4' begins with none of",
    }.items():
        path.write_text(text)
        with pytest.raises(ConfigError, match=words):
            read_problem(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"proven": true', '"proven": "no"', "proven='no': must be true or false"),
        ('"conflicts": 0', '"conflicts": 0.7', "conflicts=0.7: must be a whole number"),
        ('"conflicts": 0', '"conflict": 0', "optimum: has ['conflict']"),
        ('"format": 1', '"format": 1, "objective": "most"', "objective: must be one of min, max"),
        ('"format": 1', '"format": 1, "fixed": {"h1": "red"}', "witness changes a fixed node"),
    ],
)  # fmt: skip
def test_what_our_file_says_of_its_optimum_is_checked(tmp_path: Path, old: str, new: str, words: str):
    text = (Path(__file__).parents[2] / "training" / "instances" / "clu15.json").read_text()
    assert old in text
    path = tmp_path / "p.json"
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        read_problem(path)
    assert str(path) in str(caught.value) and words in str(caught.value)
