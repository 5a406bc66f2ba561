"""Countries around the central bank: their strength as discs, what they hold as arrows, secret reserves as vaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.world import World
from heron_env.declared.env import DeclaredAgent
from heron_env.pictures.shapes import (
    BLUE,
    GHOST,
    ORANGE,
    VERMILION,
    Array,
    Cells,
    Labels,
    headings,
    known_text,
    polygons,
    rounds,
    stage,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from heron_env.pictures.frames import ObservedWorld
    from heron_env.worlds.economy.engine import EconomyEngine

ACROSS_MAP = 100.0
USUAL = 100.0
"""bn of strength of a disc of medium size."""
ARROW = np.array([[0.0, 0.7, 0.7, 1.0, 0.7, 0.7, 0.0], [0.5, 0.5, 1.0, 0.0, -1.0, -0.5, -0.5]])
"""Corners of an arrow, along and across."""


class EconomyDrawing:
    """The artists of a world with these countries."""

    def __init__(self, axes: Axes, engine: EconomyEngine, names: Sequence[str]) -> None:
        self.engine, n = engine, len(names)
        stage(axes, ACROSS_MAP, 75.0)
        angles = np.pi * (0.75 - 2.0 * np.arange(n) / n)
        towards = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        self.middle = np.array([ACROSS_MAP / 2.0, 37.0])
        self.size = min(1.0, 6.0 / n)
        room = np.array([50.0 - 18.5 * self.size, 34.5 - 9.5 * self.size])
        self.places = self.middle + towards * room / np.abs(towards).max(axis=0)
        x, y = self.places.T
        beside = x + 14.0 * self.size * np.where(towards[:, 0] >= 0.0, 1.0, -1.0)
        self.discs = polygons(axes, facecolor="#BFD9EA")
        self.arrows = polygons(axes, zorder=1.5)
        dashed: dict[str, Any] = {"facecolor": "none", "edgecolor": GHOST, "linewidth": 1.8, "linestyle": (0, (3, 2))}
        self.ghosts = polygons(axes, zorder=3.0, **dashed)
        self.ghost_arrows = polygons(axes, zorder=3.0, **dashed)
        (bank_x, bank_y), scale = self.middle, np.append(np.full(n, self.size), 1.5)
        at = np.append(beside, bank_x), np.append(y, bank_y)
        self.vaults = Cells(axes, *at, 6.5 * scale, 9.0 * scale, across=ACROSS_MAP, colour=ORANGE)
        self.unknown = Labels(axes, *at, points=14.0, bold=True, colour=GHOST)
        roomy = n <= 6
        Labels(axes, beside, y + 6.5, ["secret"] * n * roomy)
        Labels(axes, [*x, bank_x], [*(y + 3.0 * roomy), bank_y + 8.2], [*names, "central bank"])
        self.numbers = Labels(axes, [*x, *x], [*y, *(y - 3.0)], bold=True) if roomy else None
        self.title, self.known = headings(axes)

    def _arrow_at(self, share: float) -> Array:
        """A place on the way of the arrows, from a country (0) to the bank (1), `[n, 2]`."""
        ways = self.middle - self.places
        long = np.hypot(*ways.T)[:, None]
        return np.asarray(self.places + ways * (11.5 * self.size + share * (long - 11.5 * self.size - 9.5)) / long)

    def _arrows(self, position: Array) -> Array:
        """Corners `[n, 7, 2]`: who holds the currency pays into the bank, who owes it is paid; width as the amount."""
        owes = (position < 0.0)[:, None]
        begin, end = self._arrow_at(0.0), self._arrow_at(1.0)
        begin, end = np.where(owes, end, begin), np.where(owes, begin, end)
        way = end - begin
        across = np.stack([-way[:, 1], way[:, 0]], axis=-1) / np.hypot(*way.T)[:, None]
        wide = (0.4 + 5.0 * self.size * np.abs(position))[:, None, None]
        return begin[:, None] + way[:, None] * ARROW[0][:, None] + wide * across[:, None] * ARROW[1][:, None]

    def show(self, world: World, observed: ObservedWorld | None) -> None:
        """The moment."""
        countries, shared = world[DeclaredAgent].Variables, world.Globals
        position, strength = countries.position, countries.economic_strength
        rate, inflation = shared.interest_rate[0], shared.inflation[0]
        bank = shared.central_bank_reserves[0]
        pays = float(self.engine.expected(rate, inflation, countries.secret_reserves.mean(), bank))
        self.title.set_text(f"Interest {rate:.1%}, inflation {inflation:.1%}; holding the currency pays {pays:+.1%}")
        self.discs.set_verts(self._discs(strength))
        self.arrows.set_verts(self._arrows(position))
        self.arrows.set_facecolor([VERMILION if value < 0.0 else BLUE for value in position])
        if self.numbers is not None:
            holdings = [f"{'owes' if value < 0.0 else 'holds'} {abs(value):.0%}" for value in position]
            self.numbers.show([*(f"{value:.0f} bn" for value in strength), *holdings])
        full = self._shares(world)
        self.vaults.show(full, np.zeros_like(full), None if observed is None else self._shares(observed.world))
        self.known.set_text(known_text(observed))
        if observed is not None:
            self._believe(observed.world)

    def _believe(self, known: World) -> None:
        """What one country thinks of all; a question mark where it knows nothing."""
        countries = known[DeclaredAgent].Variables
        self.ghosts.set_verts(self._discs(countries.economic_strength)[np.isfinite(countries.economic_strength)])
        self.ghost_arrows.set_verts(self._arrows(countries.position)[np.isfinite(countries.position)])
        self.unknown.show("?" if np.isnan(share) else "" for share in self._shares(known))

    def _shares(self, world: World) -> Array:
        """How full the vaults are, those of the countries and the bank's: half with what is usual."""
        usual = 2.0 * self.engine.usual_reserves, 2.0 * self.engine.usual_bank_reserves
        theirs, banks = world[DeclaredAgent].Variables.secret_reserves, world.Globals.central_bank_reserves
        return np.minimum(np.append(theirs / usual[0], banks / usual[1]), 1.0)

    def _discs(self, strength: Array) -> Array:
        radius = np.minimum(8.5 * np.sqrt(strength / USUAL), 11.0) * self.size
        return rounds(*self.places.T, radius[:, None])
