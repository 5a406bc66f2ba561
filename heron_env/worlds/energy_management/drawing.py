"""The neighbourhood on its day: homes with roofs, loads and batteries, what their transformers carry, sun and moon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron_env.core.world import World
from heron_env.pictures.palette import GREY, INK
from heron_env.pictures.shapes import (
    ACROSS,
    BLUE,
    GHOST,
    ORANGE,
    PALE,
    VERMILION,
    Array,
    Cells,
    Labels,
    boxes,
    dots,
    headings,
    known_text,
    nested,
    polygons,
    segments,
    stage,
)
from heron_env.worlds.energy_management.agents import Battery, TransformerZone
from heron_env.worlds.energy_management.site import Neighbourhood

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from heron_env.pictures.frames import ObservedWorld

ACROSS_SITE, GROUND, HEAD, SKY = 100.0, 3.5, 7.5, 10.0
"""Units: of the picture, below the zones, for a transformer above its homes, above all."""
BEYOND = 1.5
"""A gauge ends at so much of the limit, to either side."""
MOST_LOAD, MOST_PEAK = 6.0, 10.0
"""kW that fill a home's bar; kWp of a roof without a size."""
NOON = 13.0
"""Between solar noon in winter and in summer time."""
NIGHT, DAY = np.array([0.80, 0.84, 0.92]), np.array([0.93, 0.97, 1.0])
DARK, BRIGHT = np.array([0.55, 0.57, 0.60]), np.array([1.0, 0.85, 0.1])


class SiteDrawing:
    """The artists of a neighbourhood."""

    def __init__(self, axes: Axes, homes: Neighbourhood) -> None:
        self.axes = axes
        stage(axes, ACROSS_SITE, 75.0)
        self._draw_sky(axes)
        sizes = [*homes.membership[:, : homes.batteries].sum(axis=1).astype(int)]
        high = 75.0 - SKY - GROUND
        (left, bottom, width, height), x, y, cell = nested(sizes, ACROSS_SITE, high, aspect=1.0, head=HEAD)
        bottom, y = bottom + GROUND, y + GROUND
        polygons(axes, facecolor=PALE, edgecolor=GREY, zorder=0.5).set_verts(boxes(left, bottom, width, height))
        self._draw_homes(axes, homes, x, y, cell)
        self._draw_gauges(axes, left + width / 2.0, bottom + height, 0.94 * width)
        self.title, self.known = headings(axes)

    def _draw_sky(self, axes: Axes) -> None:
        self.sky = polygons(axes, edgecolor="none", zorder=0.5)
        self.sky.set_verts(boxes(0.0, 75.0 - SKY, ACROSS_SITE, SKY))
        self.sun = dots(axes, (12, 1, 0), 20.0, ORANGE, markeredgecolor=INK)
        self.moon = dots(axes, "o", 13.0, "#FFFBE8", markeredgecolor=INK)
        hours = np.arange(3, 24, 3)
        Labels(axes, ACROSS_SITE * hours / 24.0, np.full(len(hours), 76.3 - SKY), [f"{hour}:00" for hour in hours])

    def _draw_homes(self, axes: Axes, homes: Neighbourhood, x: Array, y: Array, cell: float) -> None:
        n, wide, base, top = homes.batteries, 0.8 * cell, y - 0.42 * cell, y + 0.12 * cell
        self.peak = np.where(homes.peak[:n] > 0.0, homes.peak[:n], MOST_PEAK)
        polygons(axes, facecolor="white").set_verts(boxes(x - wide / 2.0, base, wide, top - base))
        self.roofs = polygons(axes)
        eaves = np.stack([x - 0.5 * cell, top, x + 0.5 * cell, top, x, top + 0.3 * cell], axis=-1)
        self.roofs.set_verts(eaves.reshape(-1, 3, 2))
        self.cells = Cells(axes, x - 0.17 * cell, base + 0.25 * cell, 0.3 * cell, 0.42 * cell, across=ACROSS_SITE)
        self.loads = polygons(axes, facecolor=BLUE, zorder=2.1)
        self.bars = x + 0.17 * cell, base + 0.04 * cell, 0.14 * cell, 0.42 * cell
        roomy = ACROSS * cell / ACROSS_SITE > 60.0
        self.powers = (
            Labels(axes, np.r_[x, x + 0.24 * cell], np.r_[top + 0.1 * cell, base + 0.49 * cell]) if roomy else None
        )

    def _draw_gauges(self, axes: Axes, middle: Array, top: Array, width: Array) -> None:
        self.middle, self.level, self.half = middle, top - HEAD + 0.8, width / 2.0
        polygons(axes, facecolor="white").set_verts(boxes(middle - self.half, self.level, width, 2.4))
        self.flows = polygons(axes, zorder=2.1)
        ends = [(middle + side * self.half / BEYOND, self.level) for side in (-1.0, 0.0, 1.0)]
        lines = np.concatenate([np.stack([x, y - 0.5, x, y + 2.9], axis=-1).reshape(-1, 2, 2) for x, y in ends])
        segments(axes, color=INK, linewidth=1.5, zorder=3.0).set_segments(list(lines))
        self.ghosts = segments(axes, color=GHOST, linewidth=2.5, linestyle=(0, (1.5, 0.7)), zorder=4.0)
        self.roomy = ACROSS * width[0] / ACROSS_SITE > 150.0
        self.alarms = dots(axes, (8, 1, 0), 13.0, VERMILION)
        self.words = Labels(axes, middle, self.level + 4.3, bold=True)
        self.names = [f"zone_{zone + 1}" for zone in range(len(middle))]

    def show(self, world: World, observed: ObservedWorld | None) -> None:
        """The moment."""
        clock, tariff = world.Clock, world.Tariff
        hour = np.arctan2(clock.hour_sin[0], clock.hour_cos[0]) * 12.0 / np.pi % 24.0
        self._shine(hour, float(clock.season_cos[0]))
        self.title.set_text(
            f"{int(hour):02d}:{int(hour * 60.0 % 60.0):02d}, {tariff.price[0]:.3f} EUR/kWh, "
            f"{tariff.next_price[0]:.3f} in {tariff.hours_to_change[0]:.1f} h"
        )
        homes, zone = world[Battery], world[TransformerZone].Zone
        known = None if observed is None else observed.world
        believed = None if known is None else known[Battery].Charge.soc
        self.cells.show(homes.Charge.soc, homes.Setpoint.power, believed)
        load, pv = homes.Flow.load, homes.Meter.pv
        sunny = np.clip(pv / self.peak, 0.0, 1.0)[:, None]
        self.roofs.set_facecolor(DARK + np.sqrt(sunny) * (BRIGHT - DARK))
        left, bottom, width, height = self.bars
        self.loads.set_verts(boxes(left, bottom, width, np.minimum(load / MOST_LOAD, 1.0) * height))
        if self.powers is not None:
            self.powers.show(f"{value:.1f} kW" for value in np.r_[pv, load])
        self._load(zone.power, zone.limit, None if known is None else known[TransformerZone].Zone.power)
        self.known.set_text(known_text(observed))

    def _shine(self, hour: float, winter: float) -> None:
        """The sun by day, the moon by night; days last 7.6 h in midwinter and 16.4 h in midsummer."""
        half, since_noon = 6.0 - 2.2 * winter, (hour - NOON + 12.0) % 24.0 - 12.0
        day = abs(since_noon) < half
        up = np.cos(np.pi / 2.0 * (since_noon / half if day else (12.0 - abs(since_noon)) / (12.0 - half)))
        place = [ACROSS_SITE * hour / 24.0], [79.0 - SKY + 3.5 * up]
        for body, visible in ((self.sun, day), (self.moon, not day)):
            body.set_data(*(place if visible else ([], [])))
        self.sky.set_facecolor([NIGHT + 0.5 * (1.0 + (up if day else -up)) * (DAY - NIGHT)])

    def _load(self, power: Array, limit: Array, believed: Array | None) -> None:
        """To the right what a zone draws, to the left what it feeds in, between the marks of the limit."""
        share = np.clip(power / np.maximum(limit, 1e-9), -BEYOND, BEYOND) / BEYOND
        self.flows.set_verts(boxes(self.middle, self.level, self.half * share, 2.4))
        over = np.abs(power) > limit
        self.flows.set_facecolor([VERMILION if much else BLUE for much in over])
        self.alarms.set_data((self.middle + self.half * share)[over], self.level[over] + 1.2)
        ways = ["draws" if value >= 0.0 else "feeds in" for value in power]
        self.words.show(
            f"{name}: {way} {abs(value):.1f} of {most:.1f} kW" if self.roomy else f"{abs(value):.0f}/{most:.0f}"
            for name, way, value, most in zip(self.names, ways, power, limit, strict=True)
        )
        if believed is not None:
            here = np.isfinite(believed)
            place = self.middle + self.half * np.clip(believed / limit, -BEYOND, BEYOND) / BEYOND
            ends = np.stack([place, self.level - 0.8, place, self.level + 3.2], axis=-1).reshape(-1, 2, 2)
            self.ghosts.set_segments(list(ends[here]))
