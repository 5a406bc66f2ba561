"""Discs that push, slow down and bounce: MPE's dynamics, for all agents at once.

Points and velocities are float64 `[2, ..., n]`: x and y, any axes over environments, and last the agents or landmarks.
Units are MPE's own: masses are 1, agents are discs of radius 0.15.

A step of dt: the force on an agent is its own push plus, from each other agent at distance d, a repulsion of
100 softplus((0.3 - d) / 0.001) 0.001, soft only within a thousandth around contact. The agent first moves on with the
velocity it has, p + v dt; then its velocity becomes 0.75^(dt / 0.1) v + F dt. Landmarks neither move nor collide.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP = 0.1
"""MPE's time step, s, to which the damping refers."""
KEPT = 0.75
"""Share of its velocity that an agent keeps over STEP."""
TOUCH = 0.3
"""Two agents closer than this touch."""
STIFFNESS = 100.0
"""Repulsion per unit of overlap."""
MARGIN = 1e-3
"""How soft the contact is."""


def ways(points: Floats, to: Floats) -> Floats:
    """From each of `points` `[2, ..., n]` to each point of `to` `[2, ..., m]`: `[2, ..., n, m]`."""
    return np.asarray(to[..., None, :] - points[..., :, None])


def lengths(way: Floats) -> Floats:
    """Distances `[...]` of ways `[2, ...]`."""
    x, y = way
    return np.asarray(np.sqrt(x * x + y * y))


def repulsion(points: Floats) -> Floats:
    """Force on each agent by all others, `[2, ..., n]`. Agents at the very same place don't repel each other."""
    way = ways(points, points)
    distance = lengths(way)
    overlap = np.logaddexp(0.0, (TOUCH - distance) / MARGIN) * MARGIN
    share = STIFFNESS * overlap / np.where(distance > 0.0, distance, 1.0)
    return np.asarray(-(share * way).sum(axis=-1))


def moved(points: Floats, velocity: Floats, force: Floats, dt: float) -> tuple[Floats, Floats]:
    """Points and velocities after `dt` seconds."""
    return points + velocity * dt, velocity * KEPT ** (dt / STEP) + force * dt
