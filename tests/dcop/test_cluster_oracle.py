"""Both processes against a second writing of the design, which goes through everything one by one."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.dcop import Problem
from heron_env.dcop.cluster import ClusterAgent

Colours = dict[str, str]


class Naive:
    """What the design says, written down a second time; knows the whole problem and looks at its own edges only."""

    def __init__(self, problem: Problem, cluster: str, process: str, algorithm: str, threshold: float) -> None:
        self.nodes, self.domain, self.cost = problem.clusters[cluster], problem.domain, problem.conflict_penalty
        self.edges = [edge for edge in problem.edges if edge[0] in self.nodes or edge[1] in self.nodes]
        self.gains, self.scores = problem.preferences, problem.scores
        self.fixed = {node: colour for node, colour in problem.fixed.items() if node in self.nodes}
        self.process, self.algorithm, self.threshold = process, algorithm, threshold
        self.now = {node: self.fixed.get(node, self.domain[0]) for node in self.nodes}
        self.told: Colours = {}
        self.forced: Colours = {}
        self.banned: set[tuple[str, str]] = set()

    def torn(self, colours: Colours) -> int:
        known = {**self.told, **colours}
        return sum(u in known and v in known and known[u] == known[v] for u, v in self.edges)

    def gain(self, node: str, colour: str) -> float:
        return self.gains.get(node, {}).get(colour, 0.0)

    def net(self, colours: Colours) -> float:
        return self.cost * self.torn(colours) - sum(self.gain(node, colour) for node, colour in colours.items())

    def may(self, node: str, forced: Colours) -> list[str]:
        if node in self.fixed:
            return [self.fixed[node]]
        if node in forced:
            return [forced[node]]
        return [c for c in self.domain if (node, c) not in self.banned] or list(self.domain)

    def best(self, forced: Colours) -> Colours:
        every = product(*(self.may(node, forced) for node in self.nodes))
        return min((dict(zip(self.nodes, colours, strict=True)) for colours in every), key=self.net)

    def greedy(self, forced: Colours) -> Colours:
        done: Colours = {}
        for node in self.nodes:
            at: dict[str, float] = {}
            for colour in self.may(node, forced):
                others = [v if u == node else u for u, v in self.edges if node in (u, v)]
                equal = [o for o in others if {**self.told, **done}.get(o) == colour]
                at[colour] = self.cost * len(equal) - self.gain(node, colour)
            done[node] = min(at, key=lambda colour: at[colour])
        return done

    def step(self) -> tuple[bool, bool]:
        """(snapped, satisfied)"""
        snapped, forced = False, {n: c for n, c in self.forced.items() if n not in self.fixed}
        if self.process == "seed":
            new = self.greedy(forced) if self.algorithm == "greedy" else self.best(forced)
            changed, self.now, self.forced = new != self.now, new, {}
            if not forced and not changed and self.net(new) > self.net(self.best({})) + self.threshold:
                self.now, snapped = self.best({}), True
            forced = {}
        else:
            had = {**self.now, **forced, **self.fixed}
            best = self.best(forced)
            legal = all(colour in self.may(node, forced) for node, colour in had.items())
            self.now = best if not legal or self.net(best) < self.net(had) else had
        satisfied = self.torn(self.now) == 0 and self.net(self.now) <= self.net(self.best(forced)) + 1e-3
        return snapped, satisfied


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Two or three clusters, few nodes, some preferences that hide conflicts."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    clusters = {f"C{i}": tuple(f"{'abc'[i]}{j}" for j in range(size)) for i, size in enumerate(sizes)}
    nodes = tuple(node for own in clusters.values() for node in own)
    pairs = [(u, v) for i, u in enumerate(nodes) for v in nodes[i + 1 :]]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12))
    domain = ("red", "green", "blue")[: draw(st.integers(2, 3))]
    colour, node = st.sampled_from(domain), st.sampled_from(nodes)
    value = st.sampled_from([-8.0, -1.0, 0.5, 4.0, 12.0])
    return Problem(
        nodes=nodes,
        edges=tuple(draw(st.permutations(edges))),
        domain=domain,
        clusters=clusters,
        conflict_penalty=draw(st.sampled_from([1.0, 5.0, 10.0])),
        preferences=draw(st.dictionaries(node, st.dictionaries(colour, value), max_size=3)),
        fixed=draw(st.dictionaries(node, colour, max_size=2)),
        scores={"red": 3.0, "green": 2.0},
    )


def turns(problem: Problem, cluster: str) -> st.SearchStrategy[list[tuple[str, Any, Any]]]:
    own, foreign = st.sampled_from(problem.clusters[cluster]), problem.foreign_boundary(cluster)
    colour = st.sampled_from(problem.domain)
    kinds = [st.tuples(st.just(kind), own, colour) for kind in ("force", "ban", "release")]
    if foreign:
        kinds += [st.tuples(st.just(kind), st.sampled_from(foreign), colour) for kind in ("tell", "tell", "forget")]
    return st.lists(st.one_of(st.just(("step", "", "")), *kinds), min_size=3, max_size=14)


def do(agent: ClusterAgent, naive: Naive, turn: tuple[str, str, str]) -> None:
    kind, node, colour = turn
    match kind:
        case "force":
            agent.forced[node] = naive.forced[node] = colour
        case "tell":
            agent.beliefs[node] = naive.told[node] = colour
        case "forget":
            agent.beliefs.pop(node, None), naive.told.pop(node, None)
        case "ban":
            agent.forbidden[node] = {*agent.forbidden.get(node, ()), colour}
            naive.banned.add((node, colour))
        case "release":
            agent.forced.pop(node, None), naive.forced.pop(node, None)


@pytest.mark.parametrize("process", ["stable", "seed"])
@pytest.mark.parametrize("algorithm", ["greedy", "exhaustive"])
@given(data=st.data())
def test_a_step_is_what_the_design_says(process: Any, algorithm: Any, data: st.DataObject):
    problem = data.draw(problems())
    cluster = data.draw(st.sampled_from(list(problem.clusters)))
    threshold = data.draw(st.sampled_from([0.0, 5.0, 30.0]))
    agent = ClusterAgent(problem.part(cluster), process=process, algorithm=algorithm, snap_threshold=threshold)
    naive = Naive(problem, cluster, process, algorithm, threshold)
    for turn in [*data.draw(turns(problem, cluster)), ("step", "", ""), ("step", "", "")]:
        if turn[0] != "step":
            do(agent, naive, turn)
            continue
        before, forced = dict(naive.now), {n: c for n, c in naive.forced.items() if n not in naive.fixed}
        wanted = naive.greedy(forced)
        snapped, satisfied = naive.step()
        report = agent.step()
        assert agent.assignments == report.assignments == naive.now
        assert (report.before, report.changed) == (before, before != naive.now)
        assert (report.snapped, report.satisfied) == (snapped, satisfied)
        assert report.net == naive.net(naive.now)
        assert report.penalty == naive.cost * naive.torn(naive.now) == naive.cost * len(report.conflicts)
        assert report.greedy == wanted and report.forced_used == forced and report.told == naive.told
        assert report.unknown_boundary == len({*problem.foreign_boundary(cluster)} - {*naive.told})
        assert agent.forced == naive.forced


@given(data=st.data())
def test_counterfactuals_are_those_of_enumeration(data: st.DataObject):
    problem = data.draw(problems())
    cluster = data.draw(st.sampled_from([c for c in problem.clusters if problem.neighbouring(c)] or [""]))
    if not cluster:
        return
    agent, naive = ClusterAgent(problem, cluster), Naive(problem, cluster, "stable", "greedy", 5.0)
    for turn in data.draw(turns(problem, cluster)):
        if turn[0] == "step":
            agent.step(), naive.step()
        do(agent, naive, turn)
    recipient = data.draw(st.sampled_from(problem.neighbouring(cluster)))
    kept = problem.foreign_boundary(cluster, recipient)
    options = agent.utility_options(recipient)
    assert len(options) == len(problem.domain) ** len(kept)
    told, actual = dict(naive.told), naive.cost * naive.torn(naive.now)
    forced = {node: colour for node, colour in naive.forced.items() if node not in naive.fixed}
    everything = [
        dict(zip(naive.nodes, colours, strict=True)) for colours in product(naive.domain, repeat=len(naive.nodes))
    ]
    legal = [x for x in everything if all(colour in naive.may(node, forced) for node, colour in x.items())]
    for option in options:
        naive.told = {**told, **option.configuration}
        assert list(option.configuration) == list(kept)
        current = all(told.get(node) == option.configuration[node] for node in kept)
        least = min(naive.net(x) for x in legal)
        answers = [x for x in legal if naive.net(x) == least]
        scores = {sum(naive.scores.get(colour, 0.0) for colour in x.values()) for x in answers}
        assert option.current == current and option.agent_score in scores
        assert option.penalty in ([actual] if current else [naive.cost * naive.torn(x) for x in answers])
        assert option.recipient_score == sum(naive.scores.get(c, 0.0) for c in option.configuration.values())
        assert option.combined == option.agent_score + option.recipient_score
    keys = [(option.penalty, -option.combined, option.current) for option in options]
    assert keys == sorted(keys)
