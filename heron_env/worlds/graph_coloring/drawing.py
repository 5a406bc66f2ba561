"""The graph with its conflicts, clusters in a ring; frames show what the observing one was told of its neighbours."""

from typing import Any

import numpy as np

from heron_env.core.world import World
from heron_env.dcop.problem import Problem
from heron_env.pictures import shapes
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import GREY, TOLD_COLOUR
from heron_env.worlds.graph_coloring.agents import Cluster, Judge, Node, Voice

Array = shapes.Array
COLOURS = ("#d55e00", "#00795a", "#0072b2", "#8a4f7d", "#7a6400", "#3b5b92", "#6b6b6b", "#1c1c1c")
"""Of nodes, as on the page of a seat."""
ALARM = "#b3261e"
Places = dict[str, Array]


def around(middle: Array, radii: Any, angles: Array) -> Array:
    """Places `[n, 2]` on an ellipse, at angles from the right on."""
    return np.asarray(middle + np.stack([radii[0] * np.cos(angles), radii[1] * np.sin(angles)], axis=-1))


def evenly(n: int, first: float = 0.0, clockwise: float = 1.0) -> Array:
    """n angles around a ring, from the top on."""
    return np.asarray(np.pi / 2.0 - clockwise * 2.0 * np.pi * (first + np.arange(n)) / n)


def clusters_apart(problem: Problem, middle: Array) -> tuple[Places, Places, float]:
    """Middles of the clusters, in a ring; around them their nodes, turned to their neighbours; a cluster's radius."""
    clusters, k = problem.clusters, len(problem.clusters)
    for radius in np.arange(17.0, 1.0, -0.5).tolist():  # the largest at which they do not overlap
        ring = around(middle, middle - 2.0 - radius if k > 1 else np.zeros(2), evenly(k))
        if k == 1 or np.hypot(*(ring - np.roll(ring, 1, axis=0)).T).min() > 2.0 * radius:
            break
    middles = dict(zip(clusters, ring, strict=True))
    places: Places = {}
    for name, own in clusters.items():
        part = problem.part(name)
        outer = [(own.index(node), middles[part.owners[foreign]]) for node, foreign in part.outer]
        turns = [evenly(len(own), first, way) for first in range(len(own)) for way in (1.0, -1.0)]
        rings = [around(middles[name], (0.68 * radius,) * 2, turn) for turn in turns]
        nearest = min(rings, key=lambda ring: sum(np.hypot(*(ring[i] - other)) for i, other in outer))
        places |= zip(own, nearest, strict=True)
    return middles, places, radius


class GraphDrawing:
    """The artists of a problem, and of the beliefs of the observing cluster."""

    def __init__(self, axes: Any, problem: Problem, observed: Any) -> None:
        self.problem = problem
        height = 100.0 * shapes.shape_of(axes)
        self.title, self.foot = shapes.stage(axes, 100.0, height)
        middles, places, radius = clusters_apart(problem, np.array([50.0, 0.51 * height]))
        self.size = min(3.2, 0.24 * radius, 1.5 * radius / max(map(len, problem.clusters.values())))
        self.place, rank = np.stack([*places.values()]), {node: i for i, node in enumerate(places)}
        self.edges = np.array([(rank[u], rank[v]) for u, v in problem.edges], dtype=int).reshape(-1, 2)
        self.numbers = np.array([problem.index[node] for node in places])
        hulls = shapes.rounds([*middles.values()], radius)
        shapes.polygons(axes, hulls, facecolor=shapes.PALE, edgecolor=GREY, zorder=0.5)
        shapes.segments(axes, self.place[self.edges], color=GREY, linewidth=1.2, zorder=1.0)
        self.torn = shapes.segments(axes, color=ALARM, linewidth=3.5, linestyle=(0, (2.5, 1)), zorder=1.5)
        self.crosses = shapes.dots(axes, "X", 10.0, ALARM)
        fixed = [node in problem.fixed for node in places]
        widths = [3.0 if stays else 1.0 for stays in fixed]
        self.nodes = shapes.polygons(axes, shapes.rounds(self.place, self.size), zorder=3.0, linewidth=widths)
        self.letters = shapes.Labels(axes, self.place, points=9.0, bold=True, colour="white")
        if self.size * shapes.ACROSS > 10.0:
            words = [f"{node}, fixed" if stays else node for node, stays in zip(places, fixed, strict=True)]
            shapes.Labels(axes, self.place - (0.0, self.size + 1.6), words)
        self.said = shapes.Labels(axes, [*middles.values()], points=8.5, bold=True)
        self.observer, self.foreign = None, np.zeros(0, dtype=int)
        if observed is not None and observed.agent in problem.clusters:
            self.observer = [*problem.clusters].index(observed.agent)
            self.foreign = np.array([rank[node] for node in problem.part(observed.agent).owners], dtype=int)
        theirs = self.place[self.foreign]
        self.beliefs = shapes.polygons(
            axes, shapes.rounds(theirs, 1.9 * self.size, points=4), zorder=2.5, **shapes.GHOST
        )
        self.ages = shapes.Labels(axes, theirs - (0.0, -1.4 * self.size - 1.7), colour=TOLD_COLOUR)

    def show(self, world: World, observed: Any) -> "GraphDrawing":
        """Colours as they are, and conflicts; and what the observing cluster was told of its neighbours."""
        colours = world[Judge].Graph.colours[0].astype(int)
        colours[world[Node].Place.number.astype(int)] = world[Node].Colour.value
        drawn = colours[self.numbers]
        self.nodes.set_facecolor([COLOURS[code % len(COLOURS)] for code in drawn])
        self.letters.show(self.problem.domain[code][0].upper() for code in drawn)
        torn = self.place[self.edges[drawn[self.edges[:, 0]] == drawn[self.edges[:, 1]]]]
        self.torn.set_segments(torn)
        self.crosses.set_data(*torn.mean(axis=1).T)
        said = world[Voice].Said.satisfied
        names = zip(self.problem.clusters, said, strict=True)
        self.said.show(f"{name} \N{CHECK MARK}" if content else name for name, content in names)
        conflicts = counted(self.problem.conflicts_of(colours), "conflict")
        self.title.set_text(f"{conflicts}; {said.sum():.0f} of {len(said)} clusters are satisfied \N{CHECK MARK}")
        self.foot.set_text(shapes.known_text(observed))
        if self.observer is not None and observed is not None:
            self._believe(observed.world[Cluster].Heard.told[self.observer], world.time)
        return self

    def _believe(self, told: Array, time: float) -> None:
        """`told`: colours of the foreign nodes, and as of when; nan, or no colour: nothing yet."""
        domain = self.problem.domain
        code, since = told.reshape(-1, 2)[: len(self.foreign)].T
        code = np.where(code < len(domain), code, -1).astype(int)
        self.beliefs.set_facecolor([COLOURS[c % len(COLOURS)] if c >= 0 else "white" for c in code])
        ages = zip(code, time - since, strict=True)
        self.ages.show(f"{domain[c][0].upper()}, {age:.3g} s" if c >= 0 else "not told" for c, age in ages)
