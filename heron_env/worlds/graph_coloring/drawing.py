"""The graph with its conflicts: all clusters in a ring, or one's part with what it was told beside the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.world import World
from heron_env.dcop.problem import Part, Problem
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import GREY, INK
from heron_env.pictures.shapes import (
    ACROSS,
    GHOST,
    PALE,
    Array,
    Labels,
    boxes,
    dots,
    headings,
    known_text,
    polygons,
    rounds,
    segments,
    stage,
)
from heron_env.worlds.graph_coloring.agents import Cluster, Judge, Node, Voice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from heron_env.pictures.frames import ObservedWorld

COLOURS = ("#d55e00", "#00795a", "#0072b2", "#8a4f7d", "#7a6400", "#3b5b92", "#6b6b6b", "#1c1c1c")
"""Of nodes, as on the page of a seat."""
ALARM = "#b3261e"
MIDDLE = np.array([50.0, 38.0])
Places = dict[str, Array]


def around(middle: Array, radii: tuple[float, float], angles: Array) -> Array:
    """Places `[n, 2]` on an ellipse, at angles from the right on."""
    return np.asarray(middle + np.stack([radii[0] * np.cos(angles), radii[1] * np.sin(angles)], axis=-1))


def evenly(n: int, first: float = 0.0, clockwise: float = 1.0) -> Array:
    """n angles around a ring, from the top on."""
    return np.asarray(np.pi / 2.0 - clockwise * 2.0 * np.pi * (first + np.arange(n)) / n)


def clusters_apart(problem: Problem) -> tuple[Places, Places, float]:
    """Middles of the clusters, in a ring; around them their nodes, turned to their neighbours; a cluster's radius."""
    clusters, k = problem.clusters, len(problem.clusters)
    for radius in np.arange(17.0, 1.0, -0.5).tolist():  # the largest at which they do not overlap
        ring = around(MIDDLE, (48.0 - radius, 35.0 - radius) if k > 1 else (0.0, 0.0), evenly(k))
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


def part_around(part: Part) -> Places:
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
    inner = around(MIDDLE, (19.0, 15.0), np.array([*own.values()]))
    return dict(zip([*own, *foreign], [*inner, *around(MIDDLE, (36.0, 29.0), angles)], strict=True))


class GraphDrawing:
    """The artists of a problem, or of the part of it that the observing cluster knows."""

    def __init__(self, axes: Axes, problem: Problem, observed: ObservedWorld | None) -> None:
        self.problem = problem
        self.part = problem.part(observed.agent) if observed and observed.agent in problem.clusters else None
        stage(axes, 100.0, 75.0)
        if self.part is None:
            middles, places, radius = clusters_apart(problem)
            edges, rings, inner = problem.edges, [*problem.clusters.values()], 0.68 * radius
            hulls = polygons(axes, facecolor=PALE, edgecolor=GREY, zorder=0.5)
            hulls.set_verts(rounds(*np.stack([*middles.values()]).T, radius))
        else:
            middles, places = {self.part.cluster: MIDDLE}, part_around(self.part)
            edges, rings, inner = self.part.inner + self.part.outer, [self.part.nodes], 15.0
        self.size = min(3.2, 0.35 * inner, 2.2 * inner / max(map(len, rings)))
        self.place = np.stack([*places.values()])
        rank = {node: i for i, node in enumerate(places)}
        self.edges = np.array([(rank[u], rank[v]) for u, v in edges], dtype=int).reshape(-1, 2)
        self.numbers = np.array([problem.index[node] for node in places])
        segments(axes, color=GREY, linewidth=1.2, zorder=1.0).set_segments(list(self.place[self.edges]))
        self.torn = segments(axes, color=ALARM, linewidth=3.5, linestyle=(0, (2.5, 1)), zorder=1.5)
        self._draw_nodes(axes, [*places])
        self.crosses = dots(axes, "X", 10.0, ALARM)
        x, y = np.stack([*middles.values()]).T
        self.said = Labels(axes, x, y, points=8.5, bold=True)
        self.shown = {name: [*problem.clusters].index(name) for name in middles}
        self.title, self.known = headings(axes)

    def _draw_nodes(self, axes: Axes, names: list[str]) -> None:
        (x, y), size, own = self.place.T, self.size, len(names) if self.part is None else len(self.part.nodes)
        self.nodes = polygons(axes, zorder=3.0)
        squares = boxes(x[own:] - 0.85 * size, y[own:] - 0.85 * size, 1.7 * size, 1.7 * size)
        self.nodes.set_verts([*rounds(x[:own], y[:own], size), *squares])
        fixed = [name in self.problem.fixed for name in names]
        self.nodes.set_linewidth([3.0 if stays else 1.0 for stays in fixed])
        self.letters = Labels(axes, x, y, points=9.0, bold=True, colour="white")
        if size * ACROSS / 100.0 > 10.0:
            Labels(
                axes,
                x,
                y - size - 1.6,
                [f"{name}, fixed" if stays else name for name, stays in zip(names, fixed, strict=True)],
            )
        beside = np.where(x[own:] < MIDDLE[0], -1.0, 1.0) * 2.2 * size
        slots = {node: slot for slot, node in enumerate(self.part.owners if self.part is not None else ())}
        self.slots = np.array([slots[name] for name in names[own:]], dtype=int)
        self.told = np.stack([x[own:] + beside, y[own:]], axis=-1)
        ghost: dict[str, Any] = {"linewidth": 1.5, "linestyle": (0, (3, 2)), "zorder": 3.0}
        self.ghosts = polygons(axes, edgecolor=GHOST, **ghost), polygons(axes, facecolor="white", hatch="////", **ghost)
        self.feared = segments(axes, color=GHOST, linewidth=1.8, linestyle=(0, (3, 2)), zorder=2.0)
        self.beliefs = Labels(axes, *self.told.T, points=9.0, bold=True, colour="white")
        self.ages = Labels(axes, self.told[:, 0], self.told[:, 1] - size - 1.6, colour=GHOST)

    def show(self, world: World, observed: ObservedWorld | None) -> None:
        """Colours as they are, and conflicts; of a part also what it was told, hatched where that is no longer so."""
        colours = world[Judge].Graph.colours[0].astype(int)
        colours[world[Node].Place.number.astype(int)] = world[Node].Colour.value
        drawn, domain = colours[self.numbers], self.problem.domain
        self.nodes.set_facecolor([COLOURS[code % len(COLOURS)] for code in drawn])
        self.letters.show(domain[code][0].upper() for code in drawn)
        torn = self.place[self.edges[drawn[self.edges[:, 0]] == drawn[self.edges[:, 1]]]]
        self.torn.set_segments(list(torn))
        self.crosses.set_data(*torn.mean(axis=1).T)
        said = world[Voice].Said.satisfied
        self.said.show(f"{name} \N{CHECK MARK}" if said[cluster] else name for name, cluster in self.shown.items())
        conflicts = counted(self.problem.conflicts_of(colours), "conflict")
        self.title.set_text(f"{conflicts}; {said.sum():.0f} of {len(said)} clusters are satisfied \N{CHECK MARK}")
        self.known.set_text(known_text(observed))
        if self.part is not None and observed is not None:
            self._believe(observed.world[Cluster].Heard.told[self.shown[self.part.cluster]], drawn, world.time)

    def _believe(self, told: Array, drawn: Array, time: float) -> None:
        """`told`: colours of the foreign nodes, and as of when, by slot; nan, or no colour: nothing yet."""
        domain, own = self.problem.domain, len(drawn) - len(self.slots)
        code, since = told.reshape(-1, 2)[self.slots].T
        heard = code < len(domain)
        code = np.where(heard, code, -1).astype(int)
        stale = heard & (code != drawn[own:])
        half = 0.7 * self.size
        squares = boxes(self.told[:, 0] - half, self.told[:, 1] - half, 2.0 * half, 2.0 * half)
        for ghosts, here in zip(self.ghosts, (~stale, stale), strict=True):
            ghosts.set_verts(squares[here])
        fresh, old = (
            [COLOURS[c % len(COLOURS)] if c >= 0 else "white" for c in code[here]] for here in (~stale, stale)
        )
        self.ghosts[0].set_facecolor(fresh)
        self.ghosts[1].set_edgecolor(old)
        self.beliefs.show(domain[c][0].upper() if c >= 0 else "" for c in code)
        self.beliefs.shapes.set_facecolor([INK if no_longer else "white" for no_longer in stale])
        self.ages.show(f"{time - t:.3g} s" if c >= 0 else "not told" for c, t in zip(code, since, strict=True))
        mine, theirs = self.edges[self.edges[:, 1] >= own].T
        feared = drawn[mine] == code[theirs - own]
        ends = np.stack([self.place[mine], self.told[theirs - own]], axis=1)
        self.feared.set_segments(list(ends[feared]))
