"""Steps of cluster agents: the specification's own cases, what its process gets wrong and the stable one cures."""

import logging
import pickle
import pickletools
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from heron_env.dcop import Problem, erdos_renyi, g15, solve
from heron_env.dcop.cluster import ClusterAgent
from heron_env.errors import ConfigError
from tests.dcop.settling_cases import cases, oscillating

G15 = g15()
TOLD = {"h2": "red", "h5": "green"}


def agent(process: Any = "stable", told: dict[str, str] = TOLD, **how: Any) -> ClusterAgent:
    one = ClusterAgent(G15, "Agent2", process=process, **how)
    one.beliefs.update(told)
    return one


def pair(gain: float = 0.0, cost: float = 10.0) -> Problem:
    """One own node x beside a foreign one y: x likes red by `gain`."""
    return Problem(
        ("x", "y"),
        (("x", "y"),),
        conflict_penalty=cost,
        clusters={"X": ("x",), "Y": ("y",)},
        preferences={"x": {"red": gain}},
    )


def chain(gain: float) -> Problem:
    """Greedy search gives u and v red and green, and w, which is told both, a conflict that a swap would spare."""
    edges = (("u", "v"), ("v", "w"), ("w", "f"))
    return Problem(
        ("u", "v", "w", "f"), edges, ("red", "green"), {"X": ("u", "v", "w"), "Y": ("f",)}, 10.0, {"w": {"red": gain}}
    )


# The specification's cases


def test_a_colour_in_another_case_is_the_same_colour(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "heron_env.dcop")
    one = agent("seed", {"h2": "RED", "h5": "Green"})
    one.forced["b2"] = "Red"
    report = one.step()
    assert report.conflicts == (("b1", "b2"), ("b2", "h2")) and report.penalty == 20.0 and not report.satisfied
    assert "Agent2: BOUNDARY CONFLICT: b2(red) <-> h2(red)" in caplog.messages
    assert "Agent2: Not satisfied: penalty=20.0 > 0" in caplog.messages


def test_snap_runs_only_where_nothing_was_ordered_nothing_changed_and_more_than_the_threshold_is_gained():
    def stuck(threshold: float) -> ClusterAgent:
        one = ClusterAgent(chain(0.0), "X", process="seed", snap_threshold=threshold)
        one.beliefs["f"] = "red"
        return one

    one = stuck(5.0)
    first, second, third = one.step(), one.step(), one.step()
    assert first.assignments == {"u": "red", "v": "green", "w": "red"} and first.penalty == 10.0
    assert first.snap_reason == "Skipping snap: greedy just found new solution (trusting its choice)"
    assert second.snapped and second.changed and second.penalty == 0.0 and second.satisfied
    assert second.assignments == {"u": "green", "v": "red", "w": "green"} and second.greedy == first.assignments
    assert second.nodes["u"].reason == "snap" and second.nodes["w"].penalties == {"red": 20.0, "green": 0.0}
    assert second.snap_reason == "Snapping: significant improvement available (pen 10.0 -> 0.0)"
    assert third.assignments == first.assignments  # greedy undoes the snap
    one = stuck(10.0)  # not more than the threshold
    one.step()
    report = one.step()
    assert not report.snapped and not report.changed
    assert report.snap_reason == "Skipping snap: improvement too small (pen 10.0 -> 0.0, threshold=10.0)"
    one.forced["u"] = "red"
    assert one.step().snap_reason == "Skipping snap: forced assignments just applied (respecting human intent)"


def test_a_step_logs_the_lines_of_the_specification_in_its_order(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "heron_env.dcop")
    one = ClusterAgent(chain(0.0), "X", process="seed")
    one.step()
    one.beliefs["f"] = "red"
    one.forced["u"] = "red"
    one.step(), one.step()
    told = [message.removeprefix("X: ") for message in caplog.messages if " of {" not in message]
    start, stuck = dict.fromkeys("uvw", "red"), {"u": "red", "v": "green", "w": "red"}
    assert told == [
        "Known boundary colors: {}",
        "WARNING: No known boundary colors",
        f"Updated assignments from {start} to {stuck}",
        "Skipping snap: greedy just found new solution (trusting its choice)",
        "Satisfied: True",
        "Known boundary colors: {'f': 'red'}",
        f"Assignments unchanged: {stuck}",
        "WARNING: Assignments didn't change despite penalty=10.0",
        "Clearing forced_local_assignments: {'u': 'red'}",
        "Skipping snap: forced assignments just applied (respecting human intent)",
        "BOUNDARY CONFLICT: w(red) <-> f(red)",
        "Not satisfied: penalty=10.0 > 0",
        "Satisfied: False",
        "Known boundary colors: {'f': 'red'}",
        f"Assignments unchanged: {stuck}",
        "WARNING: Assignments didn't change despite penalty=10.0",
        "Snapping: significant improvement available (pen 10.0 -> 0.0)",
        "Snapped to best local assignment",
        "Satisfied: True",
    ]
    assert "X: v: red (snap) of {'red': 0.0, 'green': 20.0}" in caplog.messages


def test_of_more_than_ten_boundary_nodes_the_best_thousand_are_listed_and_the_current_one():
    far, own = [f"f{i}" for i in range(11)], [f"x{i}" for i in range(3)]
    edges = [(node, own[i % 3]) for i, node in enumerate(far)] + [("x0", "x1"), ("x1", "x2")]
    problem = Problem(tuple(far + own), tuple(edges), ("a", "b"), {"F": tuple(far), "X": tuple(own)}, scores={"a": 1.0})
    one = ClusterAgent(problem, "X", start={"x1": "b"})
    whole = one.utility_options("F")
    assert len(whole) == 1000
    every = []
    for told in product("ab", repeat=11):
        at = [[told[i::3].count(colour) for colour in "ab"] for i in range(3)]  # neighbours of each own node
        torn = [
            a[x == "b"] + b[y == "b"] + c[z == "b"] + (x == y) + (y == z)
            for a, b, c in [at]
            for x, y, z in product("ab", repeat=3)
        ]
        every.append(10.0 * min(torn))
    every.sort()
    assert [option.penalty for option in whole] == every[:1000]
    one.beliefs.update(dict.fromkeys(far, "a"))
    assert [option.current for option in one.utility_options("F")] == [False] * 999 + [True]


# What the described process gets wrong, and the stable one cures


def test_with_beliefs_that_stay_the_described_process_oscillates_in_156_of_240_cases_and_the_stable_one_in_none():
    assert len([*cases()]) == 240
    assert oscillating(process="seed") == 156
    assert oscillating(process="stable") == 0


def test_an_oscillation_is_marked_in_the_history():
    told, fixed = {"h1": "red", "h4": "red"}, {"a3": "green"}
    for process, marked in (("seed", True), ("stable", False)):
        one = ClusterAgent(G15.having(fixed=fixed), "Agent1", process=process)  # type: ignore[arg-type]
        one.beliefs.update(told)
        reports = [one.step() for _ in range(8)]
        assert [past.satisfied for past in one.history] == [report.satisfied for report in reports]
        assert [past.step for past in one.history] == [*range(8)] == [report.step for report in reports]
        assert [past.returns for past in one.history[4:]] == [marked] * 4
        assert [past.flickers for past in one.history[4:]] == [marked] * 4
        assert not any(past.returns or past.flickers for past in one.history[:2])


def test_the_stable_process_moves_with_its_probability_and_draws_by_seed_agent_and_step():
    moved = [agent(p=0.3, seed=seed).step().changed for seed in range(400)]
    assert abs(np.mean(moved) - 0.3) < 0.07
    assert moved == [agent(p=0.3, seed=seed).step().changed for seed in range(400)]
    one, other = agent(p=0.5, seed=1), agent(p=0.5, seed=1, start={"b1": "blue", "b3": "green"})
    for _ in range(30):
        one.assignments.update(dict.fromkeys(one.part.nodes, "red"))
        other.assignments.update(dict.fromkeys(other.part.nodes, "blue"))
        assert one.step().changed == other.step().changed
    drawn = []
    for cluster in ("Agent1", "Human"):
        part = G15.part(cluster)
        agents = [ClusterAgent(part, p=0.5, seed=seed) for seed in range(50)]
        drawn.append([one.step().changed for one in agents])
    assert drawn[0] != drawn[1]
    waiting = agent(p=0.0)
    assert waiting.step().snap_reason == "waited, better: net 70.0 -> 0.0" and waiting.step().penalty == 70.0


def test_sideways_leaves_a_conflict_that_nothing_mends_for_another_best_response():
    problem = Problem(("x", "y", "z"), (("x", "y"), ("x", "z")), ("red", "green"), {"X": ("x",), "Y": ("y", "z")})

    def colours(**how: Any) -> list[str]:
        one = ClusterAgent(problem, "X", **how)
        one.beliefs.update(y="red", z="green")
        return [one.step().assignments["x"] for _ in range(200)]

    assert colours() == ["red"] * 200
    assert colours(sideways=True) == ["green", "red"] * 100
    half = colours(sideways=True, p=0.5)
    assert 70 < sum(now != then for now, then in pairwise(half)) < 130
    one = agent(sideways=True)
    one.step()
    assert not any(one.step().changed for _ in range(5))  # no conflict is left


def test_sideways_works_in_parts_too_large_to_go_through():
    nodes = tuple(f"x{i}" for i in range(15))
    odd = Problem(nodes, tuple(zip(nodes, (*nodes[1:], nodes[0]), strict=True)), ("red", "green"), {"X": nodes})
    one = ClusterAgent(odd, "X", sideways=True)
    reports = [one.step() for _ in range(12)]
    assert {report.penalty for report in reports} == {10.0}
    assert any(report.changed for report in reports[1:])


# What it may know, large parts, mistakes


def words(one: ClusterAgent) -> set[object]:
    """All that is written in what an agent holds."""
    return {held for _, held, _ in pickletools.genops(pickle.dumps(one)) if isinstance(held, str)}


def test_an_agent_holds_no_name_beyond_its_boundary():
    problem = g15(fixed="default", preferences={"a2": {"red": 1.0}})
    one = ClusterAgent(problem, "Agent2")
    one.receive("h1 = red. a1 = green. b2 = green. h2 = red")
    one.step(), one.utility_options("Human")
    held = words(one)
    beyond = {*problem.nodes} - {*problem.clusters["Agent2"], "h2", "h5"}
    assert {"b1", "h2", "h5"} <= held and not beyond & held
    assert pickle.loads(pickle.dumps(one)).step().assignments == one.step().assignments
    leaking = Problem(problem.nodes, (*problem.edges, ("b1", "a3")), clusters=problem.clusters)
    assert "a3" in words(ClusterAgent(leaking, "Agent2"))


def test_a_part_too_large_for_an_exact_answer_is_searched_and_obeys_orders():
    inner = erdos_renyi(60, 30.0, seed=3)
    nodes = (*inner.nodes, "foreign")
    edges = (*inner.edges, (inner.nodes[0], "foreign"), (inner.nodes[1], "foreign"))
    fixed, taste = {inner.nodes[2]: "green"}, {inner.nodes[9]: {"blue": 3.0}}
    problem = Problem(nodes, edges, clusters={"X": inner.nodes, "Y": ("foreign",)}, fixed=fixed, preferences=taste)
    one = ClusterAgent(problem, "X")
    one.beliefs["foreign"] = "red"
    one.forced[inner.nodes[3]] = "blue"
    one.forbidden.update({inner.nodes[i]: {"red", "green"} for i in range(4, 9)})
    report = one.step()
    wanted = {2: "green", 3: "blue", **dict.fromkeys(range(4, 9), "blue")}
    assert {i: report.assignments[inner.nodes[i]] for i in wanted} == wanted
    held = {inner.nodes[i]: colour for i, colour in wanted.items()} | {"foreign": "red"}
    assert report.net == problem.cost(report.assignments | {"foreign": "red"})
    assert report.net <= 1.02 * min(solve(problem, algo, hold=held).cost for algo in ("greedy", "dsa", "mgm"))
    assert not one.step().changed
    alone = inner.having(clusters={"X": inner.nodes})
    found = min((solve(alone, "mgm", seed=seed) for seed in range(30)), key=lambda solution: solution.cost)
    lucky = ClusterAgent(alone, "X", sideways=True, start=found.assignment)
    assert [lucky.step().net for _ in range(3)] == [found.cost] * 3  # what costs more is not taken


def test_a_part_tells_whose_it_is():
    part = g15().part("Agent1")
    assert ClusterAgent(part).step().agent == ClusterAgent(part, "Agent1").step().agent == "Agent1"


def test_a_mistaken_argument_is_told():
    for words, arguments in [
        ("'Agent3' is no cluster of the problem", {"cluster": "Agent3"}),
        ("None' is no cluster", {"cluster": None}),
        ("process='sed'): is no process. Did you mean 'seed'", {"process": "sed"}),
        (
            "algorithm='maxsum'): is no algorithm. One cluster's nodes are solved by 'exhaustive'",
            {"algorithm": "maxsum"},
        ),
        ("algorithm='best'): is no algorithm. There are greedy, exhaustive", {"algorithm": "best"}),
        ("p=1.5): must be a number from 0 to 1", {"p": 1.5}),
        ("snap_threshold=nan): must be a number >= 0", {"snap_threshold": float("nan")}),
        ("sideways=1): must be True or False", {"sideways": 1}),
        ("seed='x'", {"seed": "x"}),
        ("start['h1']: is no node that could stand there", {"start": {"h1": "red"}}),
        ("start['b1']='mauve': must be one of red, green, blue", {"start": {"b1": "mauve"}}),
    ]:
        with pytest.raises(ConfigError) as caught:
            ClusterAgent(G15, **{"cluster": "Agent2", **arguments})
        assert words in str(caught.value)


def test_a_mistaken_belief_order_or_recipient_is_told():
    one = agent()
    with pytest.raises(ConfigError, match=r"beliefs\['h1'\]: is no node that could stand there. There are h2, h5"):
        one.beliefs["h1"] = "red"
    with pytest.raises(ConfigError, match=r"forced\['b1'\]=3: must be one of"):
        one.forced["b1"] = 3  # type: ignore[assignment]
    with pytest.raises(ConfigError, match=r"forbidden\['b1'\]='red': must be a list"):
        one.forbidden["b1"] = "red"  # type: ignore[assignment]
    with pytest.raises(
        ConfigError, match=r"utility_options\('Agent1'\): Agent2 shares no edge with it, but with Human"
    ):
        one.utility_options("Agent1")
    with pytest.raises(ConfigError, match=r"receive.*must be a text"):
        one.receive({"b1": "red"})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the part is of 'Agent1'"):
        ClusterAgent(g15().part("Agent1"), "Agent2")
    with pytest.raises(ConfigError, match=r"'A'.: the cluster owns no node"):
        ClusterAgent(Problem(("x",), (), clusters={"A": ()}), "A")
