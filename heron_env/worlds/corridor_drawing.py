"""The corridor from above: vehicles that wait and that drive, lamps whose colour and shape say who may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron_env.core.world import World
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import INK
from heron_env.pictures.shapes import (
    BLUE,
    GHOST,
    GREEN,
    ORANGE,
    VERMILION,
    Array,
    Labels,
    boxes,
    dots,
    headings,
    known_text,
    polygons,
    stage,
)
from heron_env.worlds.traffic_corridor import CLEARANCE, SEGMENTS, Corridor, Intersection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from heron_env.pictures.frames import ObservedWorld

BLOCK, ROAD, SIDE, ROW = 10.0, 1.5, 5.1, 8.6
"""From crossing to crossing, across a road, along a side street, from a row of crossings to the next."""
LONG, WIDE, GAP = 0.8, 0.6, 0.98
"""A vehicle, and from its front to the next one's."""
CAR = np.array([[1.0, 0.25, 0.0, 0.0, 0.25, 1.0], [0.5, 0.5, 0.3, -0.3, -0.5, -0.5]])
"""Corners of a vehicle: behind its front and beside its middle, as shares of its length and width."""
ROOM = 8, 5
"""Vehicles that are seen in a queue of the arterial, and of a side street; the number beside it counts all."""


class CorridorDrawing:
    """The artists of a corridor with `n` intersections, from left to right in as few rows as make it large."""

    def __init__(self, axes: Axes, n: int) -> None:
        columns = max(
            range(1, n + 1), key=lambda columns: min(4.0 / (BLOCK * columns + 4.5), 3.0 / (ROW * -(-n // columns)))
        )
        row, column = np.divmod(np.arange(n), columns)
        across, height = BLOCK * columns + 4.5, ROW * (row[-1] + 1)
        self.axes = axes
        stage(axes, across, height)
        self.x, self.y = BLOCK * (column + 1.0), height - ROW * row - 1.9
        x, y, half = self.x, self.y, ROAD / 2.0
        main = boxes(0.0, np.unique(y) - half, across, ROAD)
        polygons(axes, facecolor="#DADADA", edgecolor="none", zorder=1.0).set_verts(
            np.concatenate([main, boxes(x - half, y - SIDE - half, ROAD, SIDE + ROAD + 1.0)])
        )
        self.stop = x - half - 0.3, y - half - 0.3
        polygons(axes, facecolor="white", edgecolor="none", zorder=1.5).set_verts(
            np.concatenate([boxes(x - half - 0.2, y - half, 0.15, ROAD), boxes(x - half, y - half - 0.2, ROAD, 0.15)])
        )
        self.moving = polygons(axes, facecolor=BLUE, edgecolor="white")
        self.waiting = polygons(axes, facecolor=ORANGE)
        self.ghosts = polygons(
            axes, facecolor="none", edgecolor=GHOST, linewidth=1.8, linestyle=(0, (3, 2)), zorder=3.0
        )
        counts = np.stack([[self.stop[0] - 0.9, y + half + 0.6], [x + half + 0.6, self.stop[1] - 0.4]], axis=1)
        self.counts = Labels(axes, *counts.reshape(2, -1), bold=True)
        Labels(axes, x + half + 0.3, y + half + 0.6, [f"crossing {i + 1}" for i in range(n)], middle=False)
        size = 200.0 / across + 5.0
        self.go = dots(axes, ">", size, GREEN, markeredgecolor=INK), dots(axes, "^", size, GREEN, markeredgecolor=INK)
        self.ending = dots(axes, "D", 0.8 * size, ORANGE, markeredgecolor=INK)
        self.halt = dots(axes, "8", size, VERMILION, markeredgecolor=INK)
        self.lamps = np.array([[self.stop[0], y + half + 0.6], [x - half - 0.7, self.stop[1] - 0.4]])
        self.title, self.known = headings(axes)

    def show(self, world: World, observed: ObservedWorld | None) -> None:
        """Vehicles and lamps as they are; dashed: as long as queues are thought to be."""
        signal, traffic = world[Intersection].Signal, world[Intersection].Traffic
        queues = traffic.main, traffic.side
        standing = [self._line(side, queue) for side, queue in enumerate(queues)]
        self.waiting.set_verts(np.concatenate([self._cars(side, fronts) for side, fronts in enumerate(standing)]))
        tails = [
            fronts[-1] - GAP if len(fronts) else stop for fronts, stop in zip(standing[0], self.stop[0], strict=True)
        ]
        self.moving.set_verts(self._cars(0, [*map(platoon, self.x - BLOCK, tails, traffic.approach)]))
        self.counts.show(f"{queue:.0f}" if queue > 0.5 else "" for queue in np.concatenate(queues))
        self._light(signal.phase, signal.elapsed > CLEARANCE)
        speed, waiting = world[Corridor].Progression.speed[0], counted(round(sum(map(sum, queues))), "vehicle")
        self.title.set_text(f"{waiting} in queues, {traffic.approach.sum():.0f} drive; green moves on at {speed:g} m/s")
        self.known.set_text(known_text(observed))
        if observed is not None:
            known = observed.world[Intersection].Traffic
            self.ghosts.set_verts(np.concatenate([self._spans(0, known.main), self._spans(1, known.side)]))

    def _line(self, side: int, queue: Array) -> list[Array]:
        """Fronts of the vehicles at each stop line, as far as there is room for them."""
        seen = np.minimum(np.rint(queue), ROOM[side]).astype(int)
        return [stop - GAP * np.arange(count) for stop, count in zip(self.stop[side], seen, strict=True)]

    def _cars(self, side: int, fronts: list[Array]) -> Array:
        """Corners of vehicles of the arterial (side 0) or the side streets, by their fronts at each crossing."""
        place, front = np.repeat(np.arange(len(fronts)), [*map(len, fronts)]), np.concatenate(fronts)
        along, beside = front[:, None] - LONG * CAR[0], WIDE * CAR[1]
        if side == 0:
            return np.stack([along, self.y[place][:, None] + beside], axis=-1)
        return np.stack([self.x[place][:, None] + beside, along], axis=-1)

    def _spans(self, side: int, queue: Array) -> Array:
        """Corners around queues of which something is known."""
        here, wide = np.isfinite(queue), WIDE + 0.4
        stop, long = self.stop[side][here] + 0.1, np.minimum(queue[here], ROOM[side]) * GAP
        if side == 0:
            return boxes(stop - long, self.y[here] - wide / 2.0, long, wide)
        return boxes(self.x[here] - wide / 2.0, stop - long, wide, long)

    def _light(self, phase: Array, clear: Array) -> None:
        """A phase ends in yellow while the other's green is not open yet."""
        turn = np.stack([phase == 0, phase == 1])
        for go, lamps, mine in zip(self.go, self.lamps, turn, strict=True):
            go.set_data(*lamps[:, mine & clear])
        places = self.lamps.transpose(1, 0, 2)
        self.ending.set_data(*places[:, ~turn & ~clear])
        self.halt.set_data(*places[:, turn != clear])


def platoon(start: float, tail: float, approach: Array) -> Array:
    """Fronts of the vehicles on their way from one crossing to the tail of the next one's queue."""
    passed = np.concatenate([[0.0], approach[::-1].cumsum()])  # from the stop line on
    share = np.interp(np.arange(round(passed[-1])) + 0.5, passed, np.linspace(0.0, 1.0, SEGMENTS + 1))
    return np.asarray(tail - share * (tail - start - ROAD / 2.0 - LONG))
