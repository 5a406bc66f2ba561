"""The plane from above: agents as discs with their velocity and what they say, landmarks behind them, contacts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heron_env.agents.agent import Agent
from heron_env.core.world import World
from heron_env.pictures import shapes
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import INK, TOLD_COLOUR
from heron_env.worlds.particles.env import Plane

SECONDS = 0.2
"""An arrow is the way of so many."""
HARD, SOFT = "#8A8A86", "#DCE8D4"
"""Of landmarks that agents bounce off, and of others."""
COLOURS = (shapes.VERMILION, shapes.BLUE, shapes.GREEN)
"""Of the roles, in the order of the agents."""


class ParticlesDrawing:
    """The artists of a plane with these agents."""

    def __init__(self, axes: Any, agents: Sequence[Agent]) -> None:
        self.axes, self.names, self.reach = axes, [agent.agent_id for agent in agents], 0.0
        self.kinds = [type(agent) for agent in agents]
        self.shape = shapes.shape_of(axes)
        self.title, self.foot = shapes.stage(axes, 1.0, self.shape)
        axes.set(facecolor=shapes.PALE)
        nowhere, roles = np.zeros((len(agents), 2)), [*dict.fromkeys(self.kinds)]
        colours = [COLOURS[roles.index(kind) % len(COLOURS)] for kind in self.kinds]
        self.landmarks = shapes.polygons(axes, linewidth=0.6)
        self.agents = shapes.polygons(axes, facecolor=colours, zorder=3.0)
        style: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.006, "zorder": 5.0}
        self.arrows = axes.quiver(*nowhere.T, *nowhere.T, color=INK, **style)
        self.labels = shapes.Labels(axes, nowhere, self.names, points=7.0)
        self.contacts = shapes.dots(axes, (8, 1, 0), 12.0, shapes.ORANGE)
        self.ghosts = shapes.polygons(axes, facecolor="none", zorder=5.0, **shapes.GHOST)
        self.lags = shapes.segments(axes, color=TOLD_COLOUR, linewidth=1.2, zorder=4.5)

    def show(self, world: World, observed: Any) -> "ParticlesDrawing":
        """Everything at its place."""
        bodies, n = world[Plane].Bodies, len(self.names)
        here, radii = np.stack([bodies.x[0], bodies.y[0]], axis=-1), bodies.size[0]
        if 1.1 * np.abs(here).max() > self.reach:  # the plane grows with those who leave it
            self.reach = 1.2 * max(np.abs(here).max(), 1.05)
            x, y = self.reach * max(1.0, 1.0 / self.shape), self.reach * max(1.0, self.shape)
            self.axes.set(xlim=(-x, x), ylim=(-y, y))
        self.landmarks.set_verts(shapes.rounds(here[n:], radii[n:, None]))
        self.landmarks.set_facecolor([HARD if collides else SOFT for collides in bodies.collides[0, n:]])
        self.agents.set_verts(shapes.rounds(here[:n], radii[:n, None]))
        velocity = np.stack([bodies.vx[0, :n], bodies.vy[0, :n]], axis=-1)
        self.arrows.set_offsets(here[:n])
        self.arrows.set_UVC(*(SECONDS * velocity).T)
        self.labels.show(self._words(bodies.said[0]))
        for layer in self.labels.layers:
            layer.set_offsets(here[:n] + np.stack([0.0 * radii[:n], radii[:n] + 0.05], axis=-1))
        first, second = np.triu_indices(len(here), 1)
        touching = np.hypot(*(here[first] - here[second]).T) < radii[first] + radii[second]
        touching &= (bodies.collides[0, first] * bodies.collides[0, second] > 0.0) & (first < n)
        self.contacts.set_data(*(here[first] + here[second])[touching].T / 2.0)
        self.title.set_text(counted(int(touching.sum()), "contact"))
        self.foot.set_text(shapes.known_text(observed))
        if observed is not None and observed.agent in self.names:
            self._believe(here[:n], radii[:n], observed)
        return self

    def _words(self, said: shapes.Array) -> list[str]:
        """Names, and the number of the word that each one says."""
        rows = said.reshape(len(self.names), -1) if len(said) % len(self.names) == 0 else np.zeros((len(self.names), 1))
        spoken = [f" says {row.argmax()}" if row.any() else "" for row in rows]
        return [name + words for name, words in zip(self.names, spoken, strict=True)]

    def _believe(self, here: shapes.Array, radii: shapes.Array, observed: Any) -> None:
        """Where the observing agent believes the others, tied to where they are."""
        rank = self.names.index(observed.agent)
        believed = self._believed(observed.world, rank, here)
        self.agents.set_edgecolor([TOLD_COLOUR if i == rank else INK for i in range(len(here))])
        self.agents.set_linewidth([3.0 if i == rank else 1.0 for i in range(len(here))])
        if believed is not None:
            seen = np.isfinite(believed).all(axis=1)
            self.ghosts.set_verts(shapes.rounds(believed[seen], radii[seen, None]))
            self.lags.set_segments(np.stack([here, believed], axis=1)[seen])

    def _believed(self, known: World, rank: int, here: shapes.Array) -> shapes.Array | None:
        """Where an agent believes everybody `[agents, 2]`, nan where it knows nothing; None: it sees nobody."""
        kind: Any = self.kinds[rank]
        if "others" in kind.shared:
            places = [known[each].Position for each in dict.fromkeys(self.kinds)]
            return np.concatenate([np.stack([place.x, place.y], axis=-1) for place in places])
        fields, row = vars(known[kind].ParticleView), self.kinds[:rank].count(kind)
        if "others" not in fields:
            return None
        own = fields["position"][row] if "position" in fields else here[rank]
        believed: shapes.Array = np.insert(own + fields["others"][row].reshape(-1, 2), rank, own, axis=0)
        return believed
