"""Countries around the central bank: their strength as discs, what they hold as arrows, secret reserves as vaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.world import World
from heron_env.declared.env import DeclaredAgent
from heron_env.pictures import shapes
from heron_env.pictures.palette import TOLD_COLOUR

if TYPE_CHECKING:
    from heron_env.worlds.economy.engine import EconomyEngine

USUAL = 100.0
"""bn of strength of a disc of medium size."""
ARROW = np.array([[0.0, 0.7, 0.7, 1.0, 0.7, 0.7, 0.0], [0.5, 0.5, 1.0, 0.0, -1.0, -0.5, -0.5]])
"""Corners of an arrow, along and across."""


class EconomyDrawing:
    """The artists of a world with these countries."""

    def __init__(self, axes: Any, engine: EconomyEngine, names: Sequence[str]) -> None:
        self.engine, n = engine, len(names)
        height = 100.0 * shapes.shape_of(axes)
        self.title, self.foot = shapes.stage(axes, 100.0, height)
        self.middle = middle = np.array([50.0, height / 2.0])
        self.size = min(1.0, 6.0 / n)
        angles = np.pi * (0.75 - 2.0 * np.arange(n) / n)
        towards = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        room = middle - (18.5 * self.size, 9.5 * self.size + 3.5)
        self.places = middle + towards * room / np.abs(towards).max(axis=0)
        beside = self.places + np.stack([14.0 * self.size * np.where(towards[:, 0] < 0.0, -1.0, 1.0), np.zeros(n)], -1)
        self.discs = shapes.polygons(axes, facecolor="#BFD9EA")
        self.arrows = shapes.polygons(axes, zorder=1.5)
        self.ghosts = shapes.polygons(axes, facecolor="none", zorder=3.0, **shapes.GHOST)
        vaults, scale = np.concatenate([beside, middle[None]]), np.append(np.full(n, self.size), 1.5)
        self.vaults = shapes.FillingCells(axes, vaults, 6.5 * scale, 9.0 * scale, shapes.ORANGE)
        self.unknown = shapes.Labels(axes, vaults, points=14.0, bold=True, colour=TOLD_COLOUR)
        roomy = n <= 6
        shapes.Labels(axes, [middle - (0.0, -8.4), *(self.places - (0.0, -3.0 * roomy))], ["central bank", *names])
        self.rates = shapes.Labels(axes, [middle - (0.0, 8.8), middle - (0.0, 11.8)])
        shapes.Labels(axes, beside - (0.0, -6.5), ["secret"] * n * roomy)
        self.numbers = shapes.Labels(axes, np.concatenate([self.places, self.places - (0.0, 3.0)])[: 2 * n * roomy])

    def show(self, world: World, observed: Any) -> EconomyDrawing:
        """The moment."""
        countries, shared = world[DeclaredAgent].Variables, world.Globals
        position, strength = countries.position, countries.economic_strength
        rate, inflation, bank = shared.interest_rate[0], shared.inflation[0], shared.central_bank_reserves[0]
        pays = float(self.engine.expected(rate, inflation, countries.secret_reserves.mean(), bank))
        self.title.set_text(f"Holding the currency pays {pays:+.1%}")
        self.rates.show([f"interest {rate:.1%}", f"inflation {inflation:.1%}"])
        self.discs.set_verts(self._discs(strength))
        words = [f"{value:.0f} bn" for value in strength]
        words += [f"{'owes' if value < 0.0 else 'holds'} {abs(value):.0%}" for value in position]
        self.numbers.show(words)
        self.arrows.set_verts(self._arrows(position))
        self.arrows.set_facecolor([shapes.VERMILION if value < 0.0 else shapes.BLUE for value in position])
        full = self._shares(world)
        known = None if observed is None else self._shares(observed.world)
        self.vaults.show(full, np.zeros_like(full), known)
        self.foot.set_text(shapes.known_text(observed))
        if known is not None:
            self.unknown.show("?" if np.isnan(share) else "" for share in known)
            theirs = observed.world[DeclaredAgent].Variables
            ghosts = [*self._discs(theirs.economic_strength), *self._arrows(theirs.position)]
            self.ghosts.set_verts([ghost for ghost in ghosts if np.isfinite(ghost).all()])
        return self

    def _discs(self, strength: shapes.Array) -> shapes.Array:
        radius = np.minimum(8.5 * np.sqrt(strength / USUAL), 11.0) * self.size
        return shapes.rounds(self.places, radius[:, None])

    def _arrows(self, position: shapes.Array) -> shapes.Array:
        """Corners `[n, 7, 2]`: who holds the currency pays into the bank, who owes it is paid; width as the amount."""
        ways = self.middle - self.places
        long = np.hypot(*ways.T)[:, None]
        ends = self.places + ways * 11.5 * self.size / long, self.middle - ways * 13.0 / long
        owes = (position < 0.0)[:, None]
        begin, way = np.where(owes, ends[1], ends[0]), np.where(owes, -1.0, 1.0) * (ends[1] - ends[0])
        across = np.stack([-way[:, 1], way[:, 0]], axis=-1) / np.hypot(*way.T)[:, None]
        wide = (0.4 + 5.0 * self.size * np.abs(position))[:, None, None]
        corners = begin[:, None] + way[:, None] * ARROW[0][:, None] + wide * across[:, None] * ARROW[1][:, None]
        return np.asarray(corners)

    def _shares(self, world: World) -> shapes.Array:
        """How full the vaults are, those of the countries and the bank's: half with what is usual."""
        theirs, banks = world[DeclaredAgent].Variables.secret_reserves, world.Globals.central_bank_reserves
        usual = theirs / self.engine.usual_reserves, banks / self.engine.usual_bank_reserves
        return np.minimum(np.concatenate(usual) / 2.0, 1.0)
