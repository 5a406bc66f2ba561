"""The neighbourhood on its day: homes with roofs, loads and batteries, what their transformers carry, the sun."""

from typing import Any

import numpy as np

from heron_env.core.world import World
from heron_env.pictures import shapes
from heron_env.pictures.palette import GREY, INK, TOLD_COLOUR
from heron_env.worlds.energy_management.agents import Battery, TransformerZone
from heron_env.worlds.energy_management.site import PEAK, Neighbourhood

BEYOND, MOST_LOAD = 1.5, 6.0
"""A gauge ends at so much of a limit; kW that fill a home's bar."""
DARK, BRIGHT = np.array([0.55, 0.57, 0.60]), np.array([1.0, 0.85, 0.1])
"""Roofs that yield nothing, and all they can."""


class SiteDrawing:
    """The artists of a neighbourhood."""

    def __init__(self, axes: Any, homes: Neighbourhood) -> None:
        self.ground = 100.0 * shapes.shape_of(axes) - 8.0
        self.title, self.foot = shapes.stage(axes, 100.0, self.ground + 8.0)
        self.sun = shapes.dots(axes, (12, 1, 0), 20.0, shapes.ORANGE, INK)
        hours = range(3, 24, 3)
        shapes.Labels(axes, [(hour / 0.24, self.ground + 1.4) for hour in hours], [f"{hour}:00" for hour in hours])
        sizes = [*homes.membership[:, : homes.batteries].sum(axis=1).astype(int)]
        corner, room = np.array([0.0, 3.5]), np.array([100.0, self.ground - 3.5])
        zones, places, cell = shapes.nested(sizes, corner, room, aspect=1.0, head=7.5)
        shapes.polygons(axes, zones, facecolor=shapes.PALE, edgecolor=GREY, zorder=0.5)
        self._draw_homes(axes, homes, places, cell)
        self._draw_gauges(axes, zones)

    def _draw_homes(self, axes: Any, homes: Neighbourhood, places: shapes.Array, cell: float) -> None:
        n, (x, y) = homes.batteries, places.T
        self.peak = np.where(homes.peak[:n] > 0.0, homes.peak[:n], PEAK[1])
        base, top = y - 0.42 * cell, y + 0.12 * cell
        shapes.polygons(axes, shapes.boxes(x - 0.4 * cell, base, 0.8 * cell, top - base), facecolor="white")
        gables = np.stack([x - 0.5 * cell, top, x + 0.5 * cell, top, x, top + 0.3 * cell], axis=-1)
        self.roofs = shapes.polygons(axes, gables.reshape(-1, 3, 2))
        self.cells = shapes.FillingCells(axes, places - (0.17 * cell, 0.17 * cell), 0.3 * cell, 0.42 * cell)
        self.loads = shapes.polygons(axes, facecolor=shapes.BLUE, zorder=2.1)
        self.bars = x + 0.17 * cell, base + 0.04 * cell, 0.14 * cell, 0.42 * cell
        words = np.concatenate(
            [np.stack([x, top + 0.1 * cell], -1), np.stack([x + 0.24 * cell, base + 0.49 * cell], -1)]
        )
        self.powers = shapes.Labels(axes, words[: 2 * n * (shapes.ACROSS * cell > 60.0)])

    def _draw_gauges(self, axes: Any, zones: shapes.Array) -> None:
        left, right = 0.97 * zones[:, 0, 0] + 0.03 * zones[:, 1, 0], 0.03 * zones[:, 0, 0] + 0.97 * zones[:, 1, 0]
        self.middle, self.level, self.half = (left + right) / 2.0, zones[:, 3, 1] - 6.7, (right - left) / 2.0
        shapes.polygons(axes, shapes.boxes(left, self.level, right - left, 2.4), facecolor="white")
        self.flows = shapes.polygons(axes, zorder=2.1)
        for mark in (-1.0, 0.0, 1.0):
            shapes.segments(axes, self._marks(np.full(len(zones), mark)), color=INK, linewidth=1.5, zorder=10.0)
        self.ghosts = shapes.segments(axes, color=TOLD_COLOUR, linewidth=2.5, linestyle=(0, (1.5, 0.7)), zorder=4.0)
        self.alarms = shapes.dots(axes, (8, 1, 0), 13.0, shapes.VERMILION)
        self.words = shapes.Labels(axes, np.stack([self.middle, self.level + 4.3], axis=-1), bold=True)

    def _marks(self, share: shapes.Array) -> shapes.Array:
        """Lines `[zones, 2, 2]` across the gauges at so much of the limits."""
        x = self.middle + self.half * np.clip(share, -BEYOND, BEYOND) / BEYOND
        return np.stack([x, self.level - 0.6, x, self.level + 3.0], axis=-1).reshape(-1, 2, 2)

    def show(self, world: World, observed: Any) -> "SiteDrawing":
        """Gauges: to the right what a zone draws, to the left what it feeds in, between the marks of its limit."""
        clock, tariff, homes, zone = world.Clock, world.Tariff, world[Battery], world[TransformerZone].Zone
        known = None if observed is None else observed.world
        hour = np.arctan2(clock.hour_sin[0], clock.hour_cos[0]) * 12.0 / np.pi % 24.0
        price, later, hours = tariff.price[0], tariff.next_price[0], tariff.hours_to_change[0]
        minute = round(hour * 60.0)
        self.title.set_text(f"{minute // 60:02d}:{minute % 60:02d}, {price:.3f} EUR/kWh, {later:.3f} in {hours:.1f} h")
        self.cells.show(homes.Charge.soc, homes.Setpoint.power, None if known is None else known[Battery].Charge.soc)
        bright = np.sqrt(np.clip(homes.Meter.pv / self.peak, 0.0, 1.0))[:, None]
        self.roofs.set_facecolor(DARK + bright * (BRIGHT - DARK))
        self.sun.set_data([hour / 0.24], [self.ground + 5.0])
        self.sun.set_color(DARK + bright.max() * (BRIGHT - DARK))
        left, bottom, width, height = self.bars
        full = np.minimum(homes.Flow.load / MOST_LOAD, 1.0)
        self.loads.set_verts(shapes.boxes(left, bottom, width, full * height))
        self.powers.show(f"{power:.1f} kW" for power in (*homes.Meter.pv, *homes.Flow.load))
        ends, over = self._marks(zone.power / np.maximum(zone.limit, 1e-9))[:, 0, 0], np.abs(zone.power) > zone.limit
        self.flows.set_verts(shapes.boxes(self.middle, self.level, ends - self.middle, 2.4))
        self.flows.set_facecolor([shapes.VERMILION if too_much else shapes.BLUE for too_much in over])
        self.alarms.set_data(ends[over], self.level[over] + 1.2)
        long = shapes.ACROSS * self.half[0] > 75.0
        self.words.show(
            f"zone_{i + 1}: {'feeds in' if power < 0.0 else 'draws'} {abs(power):.1f} of {limit:.1f} kW"
            if long
            else f"{abs(power):.0f}/{limit:.0f}"
            for i, (power, limit) in enumerate(zip(zone.power, zone.limit, strict=True))
        )
        if known is not None:
            believed = known[TransformerZone].Zone.power / np.maximum(zone.limit, 1e-9)
            self.ghosts.set_segments(self._marks(believed)[np.isfinite(believed)])
        self.foot.set_text(shapes.known_text(observed))
        return self
