"""The environment: clusters of nodes, who is told what, whose turn it is, and what the episode is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.horizontal import Mail, StateShare
from heron_env.core.policy import AnyPolicy
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.dcop.instances import STUDY, problem_of
from heron_env.dcop.problem import Assignment, Part, Problem
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.errors import ConfigError
from heron_env.given import is_finite, require_one_of, whole
from heron_env.scheduling.drawn import AnySchedule
from heron_env.scheduling.timing import Timing, to_ns
from heron_env.worlds.graph_coloring.agents import (
    PRICE,
    WRITTEN,
    Board,
    Cluster,
    Colour,
    FixedNode,
    Graph,
    Heard,
    Judge,
    Map,
    Own,
    Place,
    Tally,
    Vertex,
    Voice,
    confer,
    judge,
    node_of,
    recount,
    scatter,
    sized,
)
from heron_env.worlds.graph_coloring.policies import STABLE, Process, Shape, baselines, scene_of

TURNS = ("apart", "all", "one")


def turns_of(problem: Problem, turns: str) -> dict[str, tuple[int, int]]:
    """Of each cluster its place in the round, and the length of the round.

    "apart": neighbouring clusters have different places, by greedy colouring of the clusters in their order.
    """
    names = list(problem.clusters)
    places = dict.fromkeys(names, 0)
    if turns == "one":
        places = {name: place for place, name in enumerate(names)}
    if turns == "apart":
        for number, name in enumerate(names):
            taken = {places[near] for near in problem.neighbouring(name) if near in names[:number]}
            places[name] = next(place for place in range(number + 1) if place not in taken)
    of = max(places.values(), default=0) + 1
    return {name: (place, of) for name, place in places.items()}


STARTS = ("first", "random")
HONESTY = 0.3
"""What an untrue voice costs in training, in conflict penalties a step."""


class GraphColoringEnv(HeronEnv):
    """Clusters that colour a graph together, each knowing its own part and what its neighbours report.

    Args:
        problem: every node has an owner.
        turns: see `graph_coloring`.
        board: prices, rounds and start.
        options: as for HeronEnv.
    """

    batched = True
    metadata = {**HeronEnv.metadata, "name": "heron/GraphColoring-v0"}
    dt = 1.0

    def __init__(self, problem: Problem, *, turns: str, board: Mapping[str, Any], dt: float, **options: Any) -> None:
        self.problem, self.shape = problem, Shape.of(problem)
        self.turns = turns_of(problem, turns)
        made = {base: sized(base, *self.shape.sizes) for base in (Own, Heard, Map, Tally, Graph)}
        clusters = [self._cluster(problem.part(name), made) for name in problem.clusters]
        told = [(node, name) for name in problem.clusters for node in problem.part(name).owners]
        near = [(one, other) for one in problem.clusters for other in problem.neighbouring(one)]
        counted = made[Tally].letters if board.get("letter_cost") else None
        exchange = [StateShare(Colour.told, made[Heard].told, told), Mail(near, written=counted)] if near else []
        features = self._graph(made[Graph]), Board(penalty=problem.conflict_penalty, dt=dt, **board)
        super().__init__(Judge("system_agent", *clusters, *features, exchange=exchange), dt=dt, **options)

    def _cluster(self, part: Part, made: Mapping[Any, Any]) -> Cluster:
        shape, number, start = self.shape, self.problem.index, self.problem.start()
        known = shape.known(part)
        own = made[Own](
            colours=shape.codes(part.domain, [start[node] for node in part.nodes]), fixed=known.pop("fixed")
        )
        tally = made[Tally](
            nodes=shape.padded([number[node] for node in part.nodes], shape.nodes, -1),
            slots=shape.padded([number[node] for node in part.owners], shape.slots, -1),
        )
        nodes = [self._node(node, start[node]) for node in part.nodes]
        return Cluster(
            part.cluster, *nodes, Voice(f"{part.cluster}.voice"), own, made[Heard](), made[Map](**known), tally
        )

    def _node(self, node: str, colour: str) -> Vertex:
        code, place = self.problem.domain.index(colour), self.problem.index[node]
        kind: type[Vertex] = FixedNode if node in self.problem.fixed else node_of(self.shape.colours)
        return kind(node, Colour(value=code), Place(number=place, colours=self.shape.colours))

    def _graph(self, kind: Any) -> Graph:
        problem, names = self.problem, list(self.problem.clusters)
        owners = [names.index(problem.owners[node]) for node in problem.nodes]
        first, second = problem.ends if problem.edges else np.full((2, 1), -1)
        colours = problem.codes(problem.start()).astype(float)
        graph: Graph = kind(first=first, second=second, owner=owners, colours=colours)
        return graph

    def timings_of(self, schedule: AnySchedule) -> tuple[Timing, ...]:
        """Like HeronEnv's; clusters without a tick in the schedule tick in turn."""
        return tuple(self._in_turn(timing) for timing in super().timings_of(schedule))

    def _in_turn(self, timing: Timing) -> Timing:
        turn, config = self.turns.get(timing.agent), timing.config
        if turn is None or config.tick_interval is not None:
            return timing
        number, of = turn
        own = replace(config, tick_interval=of * self.dt, phase=config.phase + number * self.dt)
        return replace(Timing.of(timing.agent, own, self.dt_ns), local=timing.local)

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Set the problem's start, or a random one."""
        if world[Judge].Board.random[0] > 0.0:
            scatter(world)

    @staticmethod
    @rule(writes=WRITTEN)
    def advance(world: World, dt: float) -> None:
        """Count changes, costs and agreement at the boundary."""
        now = world.time + dt
        if now > (world.step + 1.0 - 1e-6) * world[Judge].Board.dt[0]:  # of its substeps the last one
            recount(world, now)
            judge(world)
            confer(world, now)

    def kpis(self) -> dict[str, float]:
        """The episode so far.

        conflicts, preference: of the colours now. satisfied: share of the clusters that say so. consensus: 1 once all
        reported so for `rounds` boundaries running while every belief was true for good. rounds: boundaries until then,
        or so far. first_valid: s until nothing conflicted, or so far. false_consensus: boundaries at which all claimed
        they were satisfied and something conflicted. recolourings: of nodes. oscillations: of clusters, back to what
        they had before their last change. letters: sent. belief_error: share of wrong beliefs, mean of the boundaries.
        """
        board, steps = self.world[Judge].Board, self.simulation.step_index
        value = {name: float(getattr(board, name)[0]) for name in Board.quantities}
        at, valid = value["consensus"], value["first_valid"]
        return {
            "conflicts": value["conflicts"],
            "preference": value["preference"],
            "satisfied": value["satisfied"] / len(self.problem.clusters),
            "consensus": float(at >= 0.0),
            "rounds": float(round(at / self.dt) if at >= 0.0 else steps),
            "first_valid": valid if valid >= 0.0 else steps * self.dt,
            **{name: value[name] for name in ("false_consensus", "recolourings", "oscillations")},
            "letters": float(self.letter_counts.sent),
            "belief_error": value["belief_error"] / max(steps, 1),
        }

    @staticmethod
    @rule
    def training_rewards(world: World) -> NDArray[np.float64]:
        """Return the rewards less a part of a conflict's penalty for each false claim of satisfaction."""
        tally = world[Cluster].Tally
        untrue = world[Voice].Said.satisfied == (tally.conflicts > 0.0)
        return tally.earned - HONESTY * world[Judge].Board.penalty[0] * untrue  # type: ignore[no-any-return]

    def benchmark(self) -> Benchmark:
        """Return cluster agents of both processes, patient and talking ones, local search, and a central solver."""
        from heron_env.worlds.graph_coloring.talking.policy import Talking

        def offered(seed: int) -> dict[str, dict[str, AnyPolicy]]:
            found = baselines(self.problem, self.shape, seed)
            with suppress(ConfigError):  # a node is called as other words are: no letter can be told of it
                found["talking process"] = {
                    name: Talking(Process(self.problem.part(name), self.shape, seed, **STABLE))
                    for name in self.problem.clusters
                }
            return found

        return Benchmark(
            baselines=offered,
            strongest="stable process",
            unit="minus penalties",
        )

    def scene(self, agent: str) -> Mapping[str, Any]:
        """Return the cluster's part of the graph; see `scene_of`."""
        return scene_of(self.problem.part(agent), self.shape)

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw the graph and its conflicts; frames: colours that the observing cluster knows."""
        from heron_env.worlds.graph_coloring.drawing import GraphDrawing

        return (artists or GraphDrawing(axes, self.problem, observed)).show(world, observed)

    def training_defaults(self) -> TrainingDefaults:
        """Return training from random starts, with discounting: an early conflict counts more than a late one."""
        return TrainingDefaults(options={"start": "random"}, hyperparameters={"gamma": 0.9})


def graph_coloring(
    problem: str | Path | Problem = "g15",
    turns: Literal["apart", "all", "one"] = "apart",
    conflict_penalty: float | None = None,
    fixed: Assignment | Literal["default"] | None = None,
    max_steps: int | None = 120,
    rounds: int = 2,
    start: Literal["first", "random"] = "first",
    recolour_cost: float = 0.0,
    letter_cost: float = 0.0,
    control: Literal["cluster"] = "cluster",
    dt: float = 1.0,
    **options: Any,
) -> GraphColoringEnv:
    """Graph colouring by clusters that see their own nodes and receive the colours of those next to them.

    Args:
        problem: "g15" (the study's), "ring50", a file, or a Problem.
        turns: "apart": neighbouring clusters never decide together; "all": all do at once; "one": one by one.
        conflict_penalty: cost of an edge whose ends are equal; None: the problem's own, 10 for the shipped ones.
        fixed: node to the colour that it keeps; "default": h3, a1 and b4 of g15 are green; None: the problem's own.
        max_steps: steps an episode, of 1 s each.
        rounds: boundaries for which all must agree running.
        start: "first": every node has the first colour, the fixed ones theirs; "random": another start each episode.
        recolour_cost: of each node that changes its colour.
        letter_cost: of each letter that a cluster writes.
        control: clusters decide; there is no other way yet.
        dt: control step, s.
        options: of HeronEnv. The ticks of its schedule that are left open follow the turns.

    Raises ConfigError naming the argument and its value.
    """
    for name, value, choices in (("turns", turns, TURNS), ("start", start, STARTS), ("control", control, ("cluster",))):
        require_one_of(f"graph_coloring({name}={value!r:.60})", value, choices)
    _check_costs(recolour_cost=recolour_cost, letter_cost=letter_cost)
    to_ns(dt, "dt")
    whole(rounds, "graph_coloring(rounds=...)", least=1)
    board = {"rounds": rounds, "recolour_cost": recolour_cost, "letter_cost": letter_cost, "random": start == "random"}
    found = required(
        problem_of(problem), conflict_penalty, STUDY if isinstance(fixed, str) and fixed == "default" else fixed
    )
    return GraphColoringEnv(found, turns=turns, board=board, dt=dt, max_steps=max_steps, **options)


def _check_costs(**costs: float) -> None:
    for name, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not (is_finite(cost) and 0 <= cost <= PRICE):
            raise ConfigError(f"graph_coloring({name}={cost!r:.60}): must be a number >= 0 and <= {PRICE:.0f}")


def required(problem: Problem, penalty: float | None, fixed: Assignment | None) -> Problem:
    """The problem with these changes. Raises ConfigError unless clusters own all its nodes and may choose some."""
    given: dict[str, Any] = {"conflict_penalty": penalty, "fixed": fixed}
    changes = {name: value for name, value in given.items() if value is not None}
    changed = problem.having(**changes) if changes else problem
    where = f"graph_coloring(problem={changed.name!r:.60})"
    nobodys = [node for node in changed.nodes if changed.owner(node) is None]
    if nobodys:
        raise ConfigError(f"{where}: nobody owns {nobodys[0]!r}; give every node to a cluster in `clusters`")
    idle = [name for name, own in changed.clusters.items() if not own]
    if idle:
        raise ConfigError(f"{where}: cluster {idle[0]!r} has no nodes; remove it")
    if len(changed.fixed) == len(changed.nodes):
        raise ConfigError(f"{where}: every node is fixed; leave one free")
    return changed
