"""The plane from above: agents as discs with their velocity, landmarks as stars that shine once covered, contacts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heron_env.core.world import World
from heron_env.pictures import shapes
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import GREY, INK, TOLD_COLOUR
from heron_env.worlds.spread.discs import COVERED, TOUCH, Disc

RADIUS = TOUCH / 2.0
SECONDS = 0.2
"""An arrow is the way of so many."""
SHINING, PLAIN = (0.25, 0.15), (0.1, 0.045)
"""Radii of stars: of a covered landmark, whose tips stick out below its agent, and of others."""


class SpreadDrawing:
    """The artists of a plane with these agents."""

    def __init__(self, axes: Any, names: Sequence[str]) -> None:
        self.axes, self.names, self.reach = axes, names, 0.0
        self.shape = shapes.shape_of(axes)
        self.title, self.foot = shapes.stage(axes, 1.0, self.shape)
        axes.set(facecolor=shapes.PALE)
        nowhere = np.zeros((len(names), 2))
        self.ways = shapes.segments(axes, color=GREY, linewidth=1.0, linestyle=":", zorder=1.0)
        self.landmarks = shapes.polygons(axes)
        self.agents = shapes.polygons(axes, facecolor=shapes.BLUE, zorder=3.0)
        style: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.006, "zorder": 5.0}
        self.arrows = axes.quiver(*nowhere.T, *nowhere.T, color=INK, **style)
        numbers = [name.rpartition("_")[2] for name in names]
        self.numbers = shapes.Labels(axes, nowhere, numbers, points=9.0, bold=True, colour="white")
        self.contacts = shapes.dots(axes, (8, 1, 0), 15.0, shapes.VERMILION)
        self.voices = shapes.dots(axes, (3, 0, 180), 9.0, shapes.GREEN)
        self.ghosts = shapes.polygons(axes, facecolor="none", zorder=5.0, **shapes.GHOST)
        self.lags = shapes.segments(axes, color=TOLD_COLOUR, linewidth=1.2, zorder=4.5)

    def show(self, world: World, observed: Any) -> "SpreadDrawing":
        """Everything at its place; dotted from each landmark to the nearest agent; a triangle over who speaks."""
        discs, marks = world[Disc], world.Landmarks
        here, there = np.stack([discs.Position.x, discs.Position.y], -1), np.stack([marks.x[0], marks.y[0]], -1)
        farthest = max(np.abs(here).max(), np.abs(there).max(), 1.05)
        if 1.1 * farthest > self.reach:  # the plane grows with those who leave it
            self.reach = 1.2 * farthest
            x, y = self.reach * max(1.0, 1.0 / self.shape), self.reach * max(1.0, self.shape)
            self.axes.set(xlim=(-x, x), ylim=(-y, y))
        apart = np.hypot(*(there[:, None] - here).transpose(2, 0, 1))
        covered = apart.min(axis=1) < COVERED
        radii = np.where(covered[:, None], SHINING, PLAIN)
        self.landmarks.set_verts(shapes.rounds(there, np.tile(radii, 5), points=10))
        self.landmarks.set_facecolor([shapes.ORANGE if done else "white" for done in covered])
        self.ways.set_segments(np.stack([there, here[apart.argmin(axis=1)]], axis=1))
        self.agents.set_verts(shapes.rounds(here, RADIUS))
        velocity = np.stack([discs.Velocity.x, discs.Velocity.y], axis=-1)
        self.arrows.set_offsets(here + RADIUS * velocity / np.maximum(np.hypot(*velocity.T), 1e-9)[:, None])
        self.arrows.set_UVC(*(SECONDS * velocity).T)
        for layer in self.numbers.layers:
            layer.set_offsets(here)
        first, second = np.triu_indices(len(here), 1)
        touching = np.hypot(*(here[first] - here[second]).T) < TOUCH
        self.contacts.set_data(*(here[first] + here[second])[touching].T / 2.0)
        if "Voice" in vars(discs):
            spoke = (discs.Voice.shared == here).all(axis=1)
            self.voices.set_data(*(here[spoke] + [0.0, 1.6 * RADIUS]).T)
        contacts = counted(int(touching.sum()), "contact")
        self.title.set_text(f"{covered.sum()} of {len(there)} landmarks covered, {contacts}")
        self.foot.set_text(shapes.known_text(observed))
        if observed is not None and observed.agent in self.names:
            self._believe(here, observed.world[Disc], self.names.index(observed.agent))
        return self

    def _believe(self, here: shapes.Array, known: Any, rank: int) -> None:
        """Where the observing agent believes itself and the others, tied to where they are."""
        told = np.stack([known.Position.x, known.Position.y], axis=-1)
        ways = known.Surroundings.others[rank].reshape(-1, 2)[: len(here) - 1]
        believed = np.where(np.isfinite(told), told, np.insert(told[rank] + ways, rank, told[rank], axis=0))
        if "Heard" in vars(known):
            believed = np.insert(known.Heard.places[rank].reshape(-1, 2)[: len(here) - 1], rank, told[rank], axis=0)
        seen = np.isfinite(believed).all(axis=1)
        self.ghosts.set_verts(shapes.rounds(believed[seen], RADIUS))
        self.lags.set_segments(np.stack([here, believed], axis=1)[seen])
        self.agents.set_edgecolor([TOLD_COLOUR if i == rank else INK for i in range(len(here))])
        self.agents.set_linewidth([3.0 if i == rank else 1.0 for i in range(len(here))])
