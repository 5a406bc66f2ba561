"""The plane from above: agents as discs with their velocity, landmarks as stars that shine once covered, contacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron_env.core.world import World
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import GREY, INK
from heron_env.pictures.shapes import (
    BLUE,
    GHOST,
    ORANGE,
    PALE,
    VERMILION,
    Array,
    Labels,
    dots,
    headings,
    known_text,
    polygons,
    segments,
    rounds,
)
from heron_env.worlds.spread.discs import COVERED, TOUCH, Disc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from heron_env.pictures.frames import ObservedWorld

RADIUS = TOUCH / 2.0
SECONDS = 0.2
"""An arrow is the way of so many."""
SHINING, PLAIN = (0.25, 0.15), (0.1, 0.045)
"""Radii of stars: of a covered landmark, whose tips stick out below its agent, and of others."""
TRAIL = 10
"""Frames whose places stay visible."""


class SpreadDrawing:
    """The artists of a plane with these agents."""

    def __init__(self, axes: Axes, names: Sequence[str]) -> None:
        self.axes, self.names, self.reach = axes, names, 1.3
        self.past: list[Array] = []
        self.time = np.inf
        axes.set(aspect="equal", facecolor=PALE, xticks=[], yticks=[])
        axes.spines[:].set_color(GREY)
        self.ways = segments(axes, color=GREY, linewidth=1.0, linestyle=":", zorder=1.0)
        self.trails = segments(axes, color=BLUE, linewidth=2.0, alpha=0.3, zorder=1.5)
        self.landmarks = polygons(axes)
        self.agents = polygons(axes, facecolor=BLUE, zorder=3.0)
        n = len(names)
        self.arrows = axes.quiver(
            np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), angles="xy", scale_units="xy", scale=1.0,
            color=INK, width=0.006, zorder=5.0,
        )  # fmt: skip
        numbers = [name.rpartition("_")[2] for name in names]
        self.numbers = Labels(axes, np.zeros(n), np.zeros(n), numbers, points=9.0, bold=True, colour="white")
        self.contacts = dots(axes, (8, 1, 0), 15.0, VERMILION, zorder=7.0)
        self.ghosts = polygons(
            axes, facecolor="none", edgecolor=GHOST, linewidth=1.8, linestyle=(0, (3, 2)), zorder=5.0
        )
        self.lags = segments(axes, color=GHOST, linewidth=1.2, zorder=4.5)
        self.title, self.known = headings(axes)

    def show(self, world: World, observed: ObservedWorld | None) -> None:
        """Everything at its place."""
        discs, marks = world[Disc], world.Landmarks
        here, there = (np.stack([places.x.ravel(), places.y.ravel()], axis=-1) for places in (discs.Position, marks))
        self._widen(max(np.abs(here).max(), np.abs(there).max()))
        apart = np.hypot(*(there[:, None] - here).transpose(2, 0, 1))
        covered = apart.min(axis=1) < COVERED
        radii = np.where(covered[:, None], SHINING, PLAIN)
        self.landmarks.set_verts(rounds(*there.T, np.tile(radii, 5), points=10))
        self.landmarks.set_facecolor([ORANGE if done else "white" for done in covered])
        self.ways.set_segments(list(np.stack([there, here[apart.argmin(axis=1)]], axis=1)))
        first, second = np.triu_indices(len(here), 1)
        touching = np.hypot(*(here[first] - here[second]).T) < TOUCH
        self.contacts.set_data(*(here[first] + here[second])[touching].T / 2.0)
        contacts = counted(int(touching.sum()), "contact")
        self.title.set_text(f"{covered.sum()} of {len(there)} landmarks covered, {contacts}")
        self._move(here, np.stack([discs.Velocity.x, discs.Velocity.y], axis=-1), world.time)
        self._believe(here, observed)

    def _widen(self, farthest: float) -> None:
        """The plane grows with those who leave it, and stays so."""
        if 1.1 * farthest > self.reach or not self.time < np.inf:
            self.reach = max(self.reach, 1.2 * farthest)
            self.axes.set(xlim=(-1.3 * self.reach, 1.3 * self.reach), ylim=(-self.reach, self.reach))

    def _move(self, here: Array, velocity: Array, time: float) -> None:
        self.past = [*(self.past[-TRAIL:] if time > self.time else []), here]
        self.time = time
        self.trails.set_segments(list(np.stack(self.past, axis=1)))
        self.agents.set_verts(rounds(*here.T, RADIUS))
        speed = np.maximum(np.hypot(*velocity.T), 1e-9)[:, None]
        self.arrows.set_offsets(here + RADIUS * velocity / speed)
        self.arrows.set_UVC(*(SECONDS * velocity).T)
        self.numbers.shapes.set_offsets(here)

    def _believe(self, here: Array, observed: ObservedWorld | None) -> None:
        """Where the observing agent believes itself and the others, tied to where they are."""
        self.known.set_text(known_text(observed))
        if observed is None or observed.agent not in self.names:
            return
        rank, discs = self.names.index(observed.agent), observed.world[Disc]
        own = np.array([discs.Position.x[rank], discs.Position.y[rank]])
        others = discs.Surroundings.others[rank].reshape(-1, 2)[: len(here) - 1]
        believed = np.insert(own + others, rank, own, axis=0)
        if not np.isfinite(believed).all():  # before the first observation
            return
        self.ghosts.set_verts(rounds(*believed.T, RADIUS))
        self.lags.set_segments(list(np.stack([here, believed], axis=1)))
        self.agents.set_edgecolor([GHOST if name == observed.agent else INK for name in self.names])
        self.agents.set_linewidth([3.0 if name == observed.agent else 1.0 for name in self.names])
