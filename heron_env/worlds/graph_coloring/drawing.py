"""The graph with its conflicts: all clusters in a ring, or one's part with what it was told beside the truth."""

from typing import Any

import numpy as np

from heron_env.core.world import World
from heron_env.dcop.problem import Part, Problem
from heron_env.pictures import shapes
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import GREY, INK, TOLD_COLOUR
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


def part_around(part: Part, middle: Array) -> Places:
    """As on the page of a seat: own nodes in the inner ring, foreign ones in the outer, near those they border."""
    own = dict(zip(part.nodes, evenly(len(part.nodes)), strict=True))
    near = {node: np.array([own[mine] for mine, other in part.outer if other == node]) for node in part.owners}
    wanted = {node: np.arctan2(np.sin(angles).sum(), np.cos(angles).sum()) for node, angles in near.items()}
    foreign = sorted(wanted, key=lambda node: wanted[node])
    angles = np.array([wanted[node] for node in foreign])
    for _ in range(60):  # neighbours on the outer ring do not overlap
        between = np.diff(angles, append=angles[:1] + 2.0 * np.pi)
        short = np.maximum(min(0.55, 2.0 * np.pi / max(len(foreign), 1)) - between, 0.0) / 2.0
        angles += np.roll(short, 1) - short
    inner = around(middle, 0.38 * middle, np.array([*own.values()]))
    return dict(zip([*own, *foreign], [*inner, *around(middle, 0.75 * middle, angles)], strict=True))


class GraphDrawing:
    """The artists of a problem, or of the part of it that the observing cluster knows."""

    def __init__(self, axes: Any, problem: Problem, observed: Any) -> None:
        self.problem = problem
        self.part = problem.part(observed.agent) if observed and observed.agent in problem.clusters else None
        height = 100.0 * shapes.shape_of(axes)
        self.title, self.foot = shapes.stage(axes, 100.0, height)
        middle = np.array([50.0, 0.51 * height])
        if self.part is None:
            middles, places, radius = clusters_apart(problem, middle)
            edges, inner, most = problem.edges, 0.68 * radius, max(map(len, problem.clusters.values()))
            hulls = shapes.rounds([*middles.values()], radius)
            shapes.polygons(axes, hulls, facecolor=shapes.PALE, edgecolor=GREY, zorder=0.5)
        else:
            middles, places = {self.part.cluster: middle}, part_around(self.part, middle)
            edges, inner, most = self.part.inner + self.part.outer, 15.0, len(self.part.nodes)
        self.size = min(3.2, 0.35 * inner, 2.2 * inner / most)
        self.place, rank = np.stack([*places.values()]), {node: i for i, node in enumerate(places)}
        self.edges = np.array([(rank[u], rank[v]) for u, v in edges], dtype=int).reshape(-1, 2)
        self.numbers = np.array([problem.index[node] for node in places])
        shapes.segments(axes, self.place[self.edges], color=GREY, linewidth=1.2, zorder=1.0)
        self.torn = shapes.segments(axes, color=ALARM, linewidth=3.5, linestyle=(0, (2.5, 1)), zorder=1.5)
        self.crosses = shapes.dots(axes, "X", 10.0, ALARM)
        self._draw_nodes(axes, [*places])
        self.said = shapes.Labels(axes, [*middles.values()], points=8.5, bold=True)
        self.shown = {name: [*problem.clusters].index(name) for name in middles}

    def _draw_nodes(self, axes: Any, names: list[str]) -> None:
        size, self.own = self.size, len(names) if self.part is None else len(self.part.nodes)
        foreign = self.place[self.own :]
        squares = shapes.rounds(foreign, 1.2 * size, points=4)
        self.nodes = shapes.polygons(axes, [*shapes.rounds(self.place[: self.own], size), *squares], zorder=3.0)
        fixed = [name in self.problem.fixed for name in names]
        self.nodes.set_linewidth([3.0 if stays else 1.0 for stays in fixed])
        self.letters = shapes.Labels(axes, self.place, points=9.0, bold=True, colour="white")
        if size * shapes.ACROSS > 10.0:
            words = [f"{name}, fixed" if stays else name for name, stays in zip(names, fixed, strict=True)]
            shapes.Labels(axes, self.place - (0.0, size + 1.6), words)
        slots = [*self.part.owners] if self.part is not None else []
        self.slots = [slots.index(name) for name in names[self.own :]]
        self.beside = foreign + np.where(foreign[:, :1] < 50.0, -1.0, 1.0) * (2.4 * size, 0.0)
        dashed = {**shapes.GHOST, "zorder": 3.0}
        self.fresh = shapes.polygons(axes, **dashed)
        self.outdated = shapes.polygons(axes, facecolor="white", hatch="////", **dashed)
        self.feared = shapes.segments(axes, color=TOLD_COLOUR, linewidth=1.8, linestyle=(0, (3, 2)), zorder=2.0)
        self.beliefs = shapes.Labels(axes, self.beside, points=9.0, bold=True, colour="white")
        self.ages = shapes.Labels(axes, self.beside - (0.0, size + 1.6), colour=TOLD_COLOUR)

    def show(self, world: World, observed: Any) -> "GraphDrawing":
        """Colours as they are, and conflicts; of a part also what it was told, hatched where that is no longer so."""
        colours = world[Judge].Graph.colours[0].astype(int)
        colours[world[Node].Place.number.astype(int)] = world[Node].Colour.value
        drawn = colours[self.numbers]
        self.nodes.set_facecolor([COLOURS[code % len(COLOURS)] for code in drawn])
        self.letters.show(self.problem.domain[code][0].upper() for code in drawn)
        torn = self.place[self.edges[drawn[self.edges[:, 0]] == drawn[self.edges[:, 1]]]]
        self.torn.set_segments(torn)
        self.crosses.set_data(*torn.mean(axis=1).T)
        said = world[Voice].Said.satisfied
        self.said.show(f"{name} \N{CHECK MARK}" if said[cluster] else name for name, cluster in self.shown.items())
        conflicts = counted(self.problem.conflicts_of(colours), "conflict")
        self.title.set_text(f"{conflicts}; {said.sum():.0f} of {len(said)} clusters are satisfied \N{CHECK MARK}")
        self.foot.set_text(shapes.known_text(observed))
        if self.part is not None and observed is not None:
            self._believe(observed.world[Cluster].Heard.told[self.shown[self.part.cluster]], drawn, world.time)
        return self

    def _believe(self, told: Array, drawn: Array, time: float) -> None:
        """`told`: colours of the foreign nodes, and as of when, by slot; nan, or no colour: nothing yet."""
        code, since = told.reshape(-1, 2)[self.slots].T
        code = np.where(code < len(self.problem.domain), code, -1).astype(int)
        old = (code >= 0) & (code != drawn[self.own :])
        squares = shapes.rounds(self.beside, self.size, points=4)
        colours = np.array([*COLOURS, "white"])[np.where(code >= 0, code % len(COLOURS), -1)]
        self.fresh.set_verts(squares[~old])
        self.fresh.set_facecolor(colours[~old])
        self.outdated.set_verts(squares[old])
        self.outdated.set_edgecolor(colours[old])
        self.beliefs.show(self.problem.domain[c][0].upper() if c >= 0 else "" for c in code)
        self.beliefs.shapes.set_facecolor([INK if no_longer else "white" for no_longer in old])
        self.ages.show(f"{time - t:.3g} s" if c >= 0 else "not told" for c, t in zip(code, since, strict=True))
        mine, theirs = self.edges[self.edges[:, 1] >= self.own].T
        feared = drawn[mine] == code[theirs - self.own]
        self.feared.set_segments(np.stack([self.place[mine], self.beside[theirs - self.own]], axis=1)[feared])
