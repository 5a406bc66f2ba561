"""GraphColoring: clusters know their part and what they are told, rewards are costs, consensus is one for good."""

import importlib.util
import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from heron_env import Answer, Letter, ScheduleConfig, make, stream
from heron_env.dcop import Problem, g15, solve
from heron_env.errors import ConfigError
from heron_env.lab import Condition, Sweep, along
from heron_env.lab.show.sweeps import gap_part
from heron_env.worlds.graph_coloring import ClusterAgent, GraphColoringEnv, agents, parallel_env
from heron_env.worlds.graph_coloring import env as aec
from worlds.batches import batch_is_its_lanes

ID = "heron/GraphColoring-v0"
EVERYTHING = ("rewards", "actions", "observations")
KEEP, RED, GREEN, BLUE = 3, 0, 1, 2
SLOW = {
    "messages": ScheduleConfig(msg_delay=1.7),
    "loss": ScheduleConfig(loss=0.3),
    "both": ScheduleConfig(msg_delay=0.6, loss=0.2, jitter_type="uniform", jitter_ratio=0.9),
    "actions": ScheduleConfig(act_delay=2.5),
}


def colouring(**options: Any) -> GraphColoringEnv:
    made: Any = make(ID, **{"compile": False, **options})
    return made


def painted(env: GraphColoringEnv, colours: Mapping[str, str], satisfied: bool = True) -> dict[str, Any]:
    """Actions of all clusters that give the nodes these colours."""
    parts = {name: env.problem.part(name) for name in env.possible_agents}
    return {name: env.shape.action(part, colours, satisfied) for name, part in parts.items()}


def drawn(env: GraphColoringEnv, step: int, nodes: Any = None) -> dict[str, str]:
    """Random colours of some nodes."""
    problem = env.problem
    codes = stream(1, "painted", step).integers(3, size=len(problem.nodes))
    return {n: problem.domain[c] for n, c in zip(problem.nodes, codes, strict=True) if nodes is None or n in nodes}


def now(env: GraphColoringEnv) -> dict[str, str]:
    """The colours of all nodes."""
    agents, index, domain = env.hierarchy.agents, env.hierarchy.index, env.problem.domain
    return {node: domain[agents[index[node]].state.features[0].value] for node in env.problem.nodes}


class Painter:
    """Paints what was drawn for each turn, whatever it sees, and keeps what it saw."""

    def __init__(self, env: GraphColoringEnv, name: str) -> None:
        self.env, self.name, self.seen = env, name, []

    def begin(self, seed: int, episode: int) -> None:
        self.seen.clear()

    def forward(self, vector: np.ndarray) -> np.ndarray:
        self.seen.append(vector.copy())
        return painted(self.env, drawn(self.env, len(self.seen)), False)[self.name]


def painters(env: GraphColoringEnv) -> dict[str, Painter]:
    return {name: Painter(env, name) for name in env.possible_agents}


# Clocks and executions


def players(env: GraphColoringEnv) -> dict[str, dict[str, Any]]:
    """Both processes, silent and writing letters."""
    found = {name: env.benchmark().baselines(0)[name] for name in ("seed process", "stable process")}
    writing = {
        f"{name}, writing": {
            cluster: Writing(policy, env.may_write_to(cluster)) for cluster, policy in policies.items()
        }
        for name, policies in found.items()
    }
    return {**found, **writing}


@pytest.mark.parametrize("turns", ["apart", "all", "one"])
def test_the_study_graph_has_one_course_in_both_clocks(turns: str):
    env = colouring(turns=turns, fixed="default", max_steps=30)
    for name, policies in players(env).items():
        runs = [run(policies, seed=1, record=EVERYTHING) for run in (env.run_synchronous, env.run_event_driven)]
        assert runs[0].same_course(runs[1]) and runs[0].kpis == runs[1].kpis, name
        assert (runs[0].letters.sent > 0) == name.endswith("writing")


def test_a_batch_is_so_many_single_ones():
    batch_is_its_lanes(ID, steps=12, start="random", max_steps=40, turns="all")


# What a cluster knows


def all_seen(problem: Problem, observer: str, clock: str) -> bytes:
    """Everything that an observer is shown in an episode of painters, as bytes."""
    env = GraphColoringEnv(problem, turns="all", board={}, dt=1.0, max_steps=8, compile=False)
    policies = painters(env)
    if clock == "synchronous":
        seen, infos = env.reset(seed=0)
        told = [seen[observer].tobytes()]
        for step in range(6):
            seen, _, _, _, infos = env.step(painted(env, drawn(env, step), False))
            told.append(seen[observer].tobytes() + json.dumps(infos[observer], default=str).encode())
        return b"".join(told)
    env.run_event_driven(policies, seed=0, schedule=SLOW["messages"])
    return b"".join(vector.tobytes() for vector in policies[observer].seen)


BEYOND = {
    "edges inside another cluster": lambda p: p.having(
        edges=[("a1", "a3") if e == ("a1", "a2") else e for e in p.edges]
    ),
    "edges between two others": lambda p: p.having(edges=[("h1", "a3") if e == ("h1", "a2") else e for e in p.edges]),
    "another's preferences": lambda p: p.having(preferences={"a3": {"red": 4.0}, "h3": {"blue": 1.0}}),
    "another's scores": lambda p: p.having(scores={"blue": 9.0}),
}
"""Problems that are another beyond the boundary of Agent2."""


@pytest.mark.parametrize("clock", ["synchronous", "event-driven"])
@pytest.mark.parametrize("change", BEYOND)
def test_a_cluster_is_told_no_byte_of_what_lies_beyond_its_boundary(change: str, clock: str):
    assert all_seen(g15(), "Agent2", clock) == all_seen(BEYOND[change](g15()), "Agent2", clock)
    assert all_seen(g15(), "Agent2", clock), "something is seen"


@pytest.mark.parametrize("clock", ["synchronous", "event-driven"])
def test_nor_of_the_colours_there(monkeypatch: pytest.MonkeyPatch, clock: str):
    before = all_seen(g15(), "Agent2", clock)
    inner = drawn

    def others(env: GraphColoringEnv, step: int, nodes: Any = None) -> dict[str, str]:
        beyond = {node: "blue" for node in env.problem.nodes if node[0] == "a" or node in ("h1", "h3", "h4")}
        return {**inner(env, step), **beyond}

    monkeypatch.setitem(globals(), "drawn", others)
    assert all_seen(g15(), "Agent2", clock) == before


@pytest.mark.parametrize("name", SLOW)
def test_what_was_told_is_what_was_true_when_it_was_told(name: str):
    env = colouring(turns="all", max_steps=40)
    course: list[dict[str, str]] = []
    judge = agents.judge

    def noted(world: Any) -> None:
        judge(world)
        course.append(env.problem.assignment(world[agents.Judge].Graph.colours[0].astype(int)))

    policies = painters(env)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[GraphColoringEnv.__module__], "judge", noted)
        env.run_event_driven(policies, seed=4, schedule=SLOW[name])
    checked = 0
    for cluster, painter in policies.items():
        part = env.problem.part(cluster)
        for vector in painter.seen:
            sight = env.shape.read(part, vector)
            for node, at in sight.told_at.items():
                assert at <= sight.time and sight.told[node] == course[round(at) - 1][node]
                checked += 1
    assert checked > 100


def test_an_observation_reads_as_the_truth_where_nothing_is_late():
    problem = g15(preferences={"h2": {"blue": 3.0}}, fixed={"a1": "green"})
    env = colouring(problem=problem, turns="all")
    seen, _ = env.reset(seed=0)
    for name in env.possible_agents:
        assert not env.shape.read(problem.part(name), seen[name]).told, "nobody has told anything yet"
    for step in range(5):
        seen, *_ = env.step(painted(env, drawn(env, step)))
        for name in env.possible_agents:
            sight, part, truth = env.shape.read(problem.part(name), seen[name]), problem.part(name), now(env)
            assert sight.time == step + 1.0 and set(sight.told_at.values()) == {step + 1.0}
            assert sight.own == {node: truth[node] for node in part.nodes}
            assert sight.told == {node: truth[node] for node in part.owners}


def test_neighbours_of_different_sizes_are_padded_to_one():
    problem = Problem(
        ("a", "b", "c", "d"), (("a", "b"), ("b", "c"), ("a", "d")), clusters={"X": ("a",), "Y": ("b", "c"), "Z": ("d",)}
    )
    env = colouring(problem=problem, turns="all")
    assert {space.shape for space in env.observation_spaces.values()} == {(2 + 2 + 1 + 4 + 4 + 4 + 6,)}
    seen, _ = env.reset(seed=0)
    assert seen["Z"][:4].tolist() == [0.0, 3.0, 0.0, 1.0], "a node that is not there has no colour, and no choice"
    env.step({"X": [GREEN, 0], "Z": [BLUE, 0]})
    assert now(env) == {"a": "green", "b": "red", "c": "red", "d": "blue"}


# Rewards and what is counted


def visible(problem: Problem, cluster: str, colours: Mapping[str, str]) -> int:
    part = problem.part(cluster)
    return sum(colours[u] == colours[v] for u, v in (*part.inner, *part.outer))


def test_rewards_are_costs():
    problem = g15(conflict_penalty=7.0, preferences={"h2": {"blue": 3.0}, "b4": {"green": -0.5}}, fixed={"a1": "green"})
    env = colouring(problem=problem, recolour_cost=0.25)
    env.reset(seed=0)
    before, recoloured = problem.start(), 0
    for step in range(8):
        _, rewards, *_ = env.step(painted(env, drawn(env, step), False))
        truth = now(env)
        changed = [node for node in problem.nodes if truth[node] != before[node]]
        for name, own in problem.clusters.items():
            gained = sum(problem.preferences.get(node, {}).get(truth[node], 0.0) for node in own)
            moves = len(set(own) & set(changed))
            assert rewards[name] == pytest.approx(gained - 7.0 * visible(problem, name, truth) - 0.25 * moves)
        team = env.simulation.last_rewards[0]
        assert team == pytest.approx(-problem.cost(truth) - 0.25 * len(changed))
        before, recoloured = truth, recoloured + len(changed)
        told = env.kpis()
        assert (told["conflicts"], told["recolourings"]) == (problem.conflicts(truth), recoloured)
        assert truth["a1"] == "green"


def test_the_last_choice_keeps_and_so_does_silence():
    env = colouring(turns="all")
    env.reset(seed=0)
    env.step({"Human": [GREEN, KEEP, BLUE, KEEP, KEEP, 1]})
    assert env.kpis()["satisfied"] == pytest.approx(1 / 3)
    assert [now(env)[node] for node in ("h1", "h2", "h3")] == ["green", "red", "blue"]
    for _ in range(3):
        env.step({})
        assert [now(env)[node] for node in ("h1", "h2", "h3")] == ["green", "red", "blue"]
    assert env.kpis()["recolourings"] == 2 and env.kpis()["satisfied"] == 0.0, "who is silent is not satisfied"


def test_to_go_back_is_an_oscillation_and_to_go_on_is_none():
    env = colouring(turns="all")
    env.reset(seed=0)
    for colour, oscillations in ((GREEN, 0), (RED, 1), (GREEN, 2), (BLUE, 2), (BLUE, 2), (RED, 2)):
        env.step({"Human": [colour, KEEP, KEEP, KEEP, KEEP, 0]})
        assert env.kpis()["oscillations"] == oscillations


class Writing:
    """As another policy, with a letter to everybody in each turn."""

    def __init__(self, policy: Any, to: list[str]) -> None:
        self.policy, self.to, self.begin = policy, to, policy.begin

    def answer(self, asked: Any) -> Answer:
        letters = [Letter(asked.agent, name, "text", {"text": "hello"}) for name in self.to]
        return Answer(self.policy.forward(asked.vector), letters=letters)


def test_a_letter_costs_its_writer():
    free, paid = colouring(max_steps=12), colouring(max_steps=12, letter_cost=2.0)
    policies = {name: Writing(policy, free.may_write_to(name))
                for name, policy in free.benchmark().baselines(0)["seed process"].items()}  # fmt: skip
    plain, sync, event = (
        free.run_synchronous(policies, seed=0),
        paid.run_synchronous(policies, seed=0),
        paid.run_event_driven(policies, seed=0),
    )
    assert sync.same_course(event) and sync.letters.sent == sync.kpis["letters"] == 6 * (2 + 1 + 1)
    for name, sent in {"Human": 12, "Agent1": 6, "Agent2": 6, "system_agent": 24}.items():
        assert plain.returns[name] - sync.returns[name] == 2.0 * sent


# Consensus


WITNESS = solve(g15(), "elimination").assignment


def test_all_satisfied_with_true_beliefs_for_some_boundaries_is_consensus_and_ends():
    env = colouring(turns="all", rounds=3)
    env.reset(seed=0)
    ended = []
    while env.agents:
        _, _, terminated, *_ = env.step(painted(env, WITNESS))
        ended.append(all(terminated.values()))
    assert ended == [False, False, False, True], "one boundary until everybody was told, and three"
    told = env.kpis()
    assert (told["consensus"], told["rounds"], told["conflicts"], told["first_valid"]) == (1.0, 4, 0.0, 1.0)


def test_who_is_silent_or_in_conflict_stands_against_it():
    env = colouring(turns="all")
    env.reset(seed=0)
    for _ in range(5):
        env.step({**painted(env, WITNESS), "Agent1": painted(env, WITNESS, False)["Agent1"]})
    assert env.kpis()["consensus"] == env.kpis()["false_consensus"] == 0.0
    env.reset(seed=0)
    for step in range(5):
        env.step(painted(env, dict.fromkeys(WITNESS, "red")))
        assert env.kpis()["false_consensus"] == step + 1
    assert env.kpis()["consensus"] == 0.0 and env.kpis()["first_valid"] == 5.0


def test_a_belief_that_is_late_or_may_change_again_stands_against_it():
    env = colouring(turns="all", rounds=1)
    link = {"*": ScheduleConfig(), "h1": ScheduleConfig(msg_delay=3.0)}
    actions = painted(env, WITNESS)
    result = env.run_event_driven({name: lambda v, a=a: a for name, a in actions.items()}, seed=0, schedule=link)
    assert result.kpis["consensus"] == 1.0
    painted_at = 3.0 + 1.0  # the command takes 3 s to h1, and is looked at at the next boundary
    assert result.end_time == painted_at + 3.0 + 1.0, "what h1 told then takes 3 s, and is looked at likewise"


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("process", ["stable process", "patient process"])
def test_no_conflict_is_left_at_a_consensus(process: str, name: str):
    env = colouring()
    policies = env.benchmark().baselines(0)[process]
    runs = [env.run_event_driven(policies, seed=seed, schedule=SLOW[name]) for seed in range(4)]
    reached = [run for run in runs if run.kpis["consensus"]]
    assert len(reached) >= 2
    for run in reached:
        assert run.kpis["conflicts"] == 0.0 and run.kpis["satisfied"] == 1.0 and all(run.terminated.values())


def test_the_stable_process_reaches_consensus_where_nothing_is_late():
    for turns in ("apart", "all", "one"):
        env = colouring(turns=turns)
        policies = env.benchmark().baselines(0)["stable process"]
        found = [env.run_synchronous(policies, seed=seed).kpis for seed in range(8)]
        assert all(kpis["consensus"] == 1.0 and kpis["conflicts"] == 0.0 for kpis in found), turns


def test_the_seed_process_undoes_itself():
    env = colouring()
    found = env.run_synchronous(env.benchmark().baselines(0)["seed process"], seed=0).kpis
    assert found["consensus"] == 0.0 and found["oscillations"] > 50


def test_patience_pays_where_messages_are_slower_than_turns():
    env = colouring()
    known = env.benchmark().baselines(0)
    plain, patient = (
        [env.run_event_driven(known[name], seed=seed, schedule=ScheduleConfig(msg_delay=5.0)).kpis for seed in range(8)]
        for name in ("stable process", "patient process")
    )
    assert sum(k["consensus"] for k in patient) >= sum(k["consensus"] for k in plain) + 3
    assert sum(k["false_consensus"] for k in patient) == 0 < sum(k["false_consensus"] for k in plain)


@pytest.mark.skipif(importlib.util.find_spec("ortools") is None, reason="pip install heron_env[solvers]")
def test_the_exact_policy_attains_the_optimum():
    edges = [(u, v) for u in "abc" for v in "bcd" if u < v]
    crowded = Problem(tuple("abcd"), edges, clusters={"X": ("a", "b"), "Y": ("c", "d")})
    env = colouring(problem=crowded, max_steps=6)
    assert "talking process" not in env.benchmark().baselines(0), "a letter can't name a node 'a'"
    found = env.run_synchronous(env.benchmark().baselines(0)["exact"], seed=0).kpis
    assert found["conflicts"] == solve(crowded, "elimination").conflicts == 1


# Turns


@pytest.mark.parametrize(("turns", "places"), [("apart", [0, 1, 1]), ("all", [0, 0, 0]), ("one", [0, 1, 2])])
def test_clusters_decide_in_turn_in_both_clocks(turns: str, places: list[int]):
    env, of = colouring(turns=turns, max_steps=9), max(places) + 1
    expected = {
        name: [float(t) for t in range(9) if t % of == place]
        for name, place in zip(("Human", "Agent1", "Agent2"), places, strict=True)
    }
    policies = painters(env)
    for result in (
        env.run_synchronous(policies, seed=0),
        env.run_event_driven(policies, seed=0, schedule=ScheduleConfig()),
        env.run_event_driven(policies, seed=0, schedule={"Human": ScheduleConfig(loss=0.0)}),
    ):
        assert {name: [time for time, _ in result.actions[name]] for name in expected} == expected


def test_neighbours_never_decide_together_in_the_ring():
    env = colouring(problem="ring50")
    for name, (place, _) in env.turns.items():
        assert all(env.turns[near][0] != place for near in env.problem.neighbouring(name))


def test_a_tick_that_is_asked_for_stands():
    env = colouring(schedule={"Human": ScheduleConfig(tick_interval=4.0)}, max_steps=9)
    result = env.run_synchronous(painters(env), seed=0)
    assert [time for time, _ in result.actions["Human"]] == [0.0, 4.0, 8.0]
    assert [time for time, _ in result.actions["Agent1"]] == [1.0, 3.0, 5.0, 7.0]


def test_starts_are_the_problem_s_or_random_ones():
    first, random = colouring(), colouring(start="random", fixed="default")
    first.reset(seed=0)
    assert now(first) == g15().start()
    starts = []
    for seed in (0, 1, 0):
        seen, _ = random.reset(seed=seed)
        starts.append(now(random))
        assert starts[-1]["h3"] == "green" and random.kpis()["recolourings"] == 0.0
        for name, own in random.problem.clusters.items():
            assert random.shape.read(random.problem.part(name), seen[name]).own == {n: starts[-1][n] for n in own}
    assert starts[0] == starts[2] != starts[1] and len(set(starts[0].values())) == 3


def test_a_report_shows_what_the_environment_counts_against_delay_and_loss():
    amounts = along(msg_delay=(0.0, 5.0), loss=(0.3,))
    sweep = Sweep.of(ID, {"stable process": "stable process"}, amounts, cases=2, options={"compile": False})
    result = sweep.run(processes=1, progress=False)
    (grid,) = [
        block for block in gap_part(result).blocks if getattr(block, "caption", "") == "Figures of the environment"
    ]
    assert {"conflicts", "rounds", "false_consensus", "letters"} <= set(grid.head)
    told = {row[1]: dict(zip(grid.head[2:], row[2:], strict=True)) for row in reversed(grid.rows)}
    point = result.point("stable process", Condition(msg_delay=5.0))
    assert told["message delay 5 s"] == {name: f"{value:.4g}" for name, value in point.kpis.items()}
    assert float(told["message delay 5 s"]["rounds"]) > float(told["synchronous clock"]["rounds"])


# What is refused


@pytest.mark.parametrize(("options", "words"), [
    ({"turns": "apat"}, r"turns='apat'\): must be one of .*Did you mean 'apart'"),
    ({"start": "end"}, "start='end'"),
    ({"control": "node"}, "control='node'"),
    ({"rounds": 0}, "rounds=.*must be a whole number from 1"),
    ({"recolour_cost": -1.0}, "recolour_cost=-1.0.: must be a number >= 0"),
    ({"letter_cost": float("nan")}, "letter_cost=nan"),
    ({"fixed": {"h1": "pink"}}, "pink"),
    ({"problem": Problem(("a", "b"), (("a", "b"),))}, "nobody owns 'a'"),
    ({"problem": Problem(("a",), (), clusters={"X": ("a",), "Y": ()})}, "cluster 'Y' has no nodes"),
    ({"problem": Problem(("a",), (), clusters={"X": ("a",)}, fixed={"a": "red"})}, "every node is fixed"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(options: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        colouring(**options)


def test_public_names():
    assert ClusterAgent(g15(), "Human").part.cluster == "Human"
    assert isinstance(parallel_env(compile=False), GraphColoringEnv)
    assert aec(compile=False).possible_agents == ["Human", "Agent1", "Agent2"]
