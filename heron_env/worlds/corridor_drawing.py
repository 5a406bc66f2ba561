"""The corridor from above: vehicles that wait and that drive, lamps whose colour and shape say who may go."""

from typing import Any

import numpy as np

from heron_env.core.world import World
from heron_env.pictures import shapes
from heron_env.pictures.notebook import counted
from heron_env.pictures.palette import INK
from heron_env.worlds.traffic_corridor import CLEARANCE, SEGMENTS, Corridor, Intersection

BLOCK, ROAD, ROW = 10.0, 1.5, 8.6
"""From crossing to crossing, across a road, at least from a row of crossings to the next."""
LONG, WIDE, GAP = 0.8, 0.6, 0.98
"""A vehicle, and from its front to the next one's."""
CAR = np.array([[1.0, 0.25, 0.0, 0.0, 0.25, 1.0], [0.5, 0.5, 0.3, -0.3, -0.5, -0.5]])
"""Corners of a vehicle: behind its front and beside its middle, as shares of its length and width."""
Array = shapes.Array


class CorridorDrawing:
    """The artists of a corridor with `n` crossings, from left to right in rows that make it large."""

    def __init__(self, axes: Any, n: int) -> None:
        shape = shapes.shape_of(axes)
        columns = max(range(1, n + 1), key=lambda c: min(1.0 / (BLOCK * c + 5.6), shape / (ROW * -(-n // c))))
        row, column = np.divmod(np.arange(n), columns)
        across, half = BLOCK * columns + 5.6, ROAD / 2.0
        high = max(ROW, across * shape / (row[-1] + 1))
        self.title, self.foot = shapes.stage(axes, across, high * (row[-1] + 1))
        self.room = np.array([[8], [int((high - 3.5) / GAP)]])
        """Vehicles that are seen in a queue of the arterial, and of a side street; the number beside it counts all."""
        self.x = x = BLOCK * (column + 1.0)
        self.y = y = high * (row[-1] + 1 - row) - 1.9
        arterial = shapes.boxes(0.0, y - half, across, ROAD)
        side_streets = shapes.boxes(x - half, y - high + 2.7, ROAD, high - 0.9)
        shapes.polygons(axes, [*arterial, *side_streets], facecolor="#DADADA", edgecolor="none", zorder=1.0)
        self.moving = shapes.polygons(axes, facecolor=shapes.BLUE, edgecolor="white")
        self.waiting = shapes.polygons(axes, facecolor=shapes.ORANGE)
        self.ghosts = shapes.polygons(axes, facecolor="none", zorder=3.0, **shapes.GHOST)
        self.stop = x - half - 0.3, y - half - 0.3
        above, below = np.stack([self.stop[0], y + half + 0.6]), np.stack([x - half - 0.7, self.stop[1] - 0.4])
        self.lamps = np.stack([above, below], axis=1)  # [x and y, side, crossing]
        counts = np.concatenate([above - [[0.9], [0.0]], below - [[-ROAD - 1.3], [0.0]]], axis=1)
        self.counts = shapes.Labels(axes, counts.T, bold=True)
        names = [f"crossing {i + 1}" for i in range(n)]
        shapes.Labels(axes, np.stack([x + half + 0.3, above[1]], axis=-1), names, middle=False)
        size = 200.0 / across + 5.0
        self.go = [shapes.dots(axes, marker, size, shapes.GREEN, INK) for marker in ">^"]
        self.ending = shapes.dots(axes, "D", 0.8 * size, shapes.ORANGE, INK)
        self.halt = shapes.dots(axes, "8", size, shapes.VERMILION, INK)

    def show(self, world: World, observed: Any) -> "CorridorDrawing":
        """Vehicles and lamps as they are; dashed: as long as queues are thought to be."""
        signal, traffic = world[Intersection].Signal, world[Intersection].Traffic
        queues = np.stack([traffic.main, traffic.side])
        seen = np.minimum(np.rint(queues), self.room).astype(int)
        lines = [
            [stop - GAP * np.arange(n) for stop, n in zip(*line, strict=True)]
            for line in zip(self.stop, seen, strict=True)
        ]
        self.waiting.set_verts([*self._cars(0, lines[0]), *self._cars(1, lines[1])])
        platoons = [*map(platoon, self.x - BLOCK, self.stop[0] - GAP * seen[0], traffic.approach)]
        self.moving.set_verts(self._cars(0, platoons))
        self.counts.show(f"{queue:.0f}" if queue > 0.5 else "" for queue in queues.ravel())
        turn, clear = signal.phase == [[0], [1]], signal.elapsed > CLEARANCE
        for side, go in enumerate(self.go):
            go.set_data(*self.lamps[:, side, turn[side] & clear])
        self.ending.set_data(*self.lamps[:, ~turn & ~clear])  # yellow, while the other's green is not open yet
        self.halt.set_data(*self.lamps[:, turn != clear])
        waiting, speed = counted(round(queues.sum()), "vehicle"), world[Corridor].Progression.speed[0]
        self.title.set_text(f"{waiting} in queues, {traffic.approach.sum():.0f} drive; green wave at {speed:g} m/s")
        self.foot.set_text(shapes.known_text(observed))
        if observed is not None:
            known = observed.world[Intersection].Traffic
            self.ghosts.set_verts([*self._span(0, known.main), *self._span(1, known.side)])
        return self

    def _cars(self, side: int, fronts: list[Array]) -> Array:
        """Corners of vehicles of the arterial (side 0) or the side streets, by their fronts at each crossing."""
        place, front = np.repeat(np.arange(len(fronts)), [*map(len, fronts)]), np.concatenate(fronts)
        along, beside = front[:, None] - LONG * CAR[0], (self.x if side else self.y)[place][:, None] + WIDE * CAR[1]
        return np.stack([beside, along] if side else [along, beside], axis=-1)

    def _span(self, side: int, queue: Array) -> Array:
        """Corners around queues of which something is known."""
        here, wide = np.isfinite(queue), WIDE + 0.4
        stop, long = self.stop[side][here] + 0.1, np.minimum(queue[here], self.room[side]) * GAP
        if side == 0:
            return shapes.boxes(stop - long, self.y[here] - wide / 2.0, long, wide)
        return shapes.boxes(self.x[here] - wide / 2.0, stop - long, wide, long)


def platoon(start: float, tail: float, approach: Array) -> Array:
    """Fronts of the vehicles on their way from one crossing to the tail of the next one's queue."""
    passed = np.concatenate([[0.0], approach[::-1].cumsum()])  # from the stop line on
    share = np.interp(np.arange(round(passed[-1])) + 0.5, passed, np.linspace(0.0, 1.0, SEGMENTS + 1))
    return np.asarray(tail - share * (tail - start - ROAD / 2.0 - LONG))
