"""Discs that push, slow down and bounce: MPE's dynamics, written as loops over agents for world rules.

Units are MPE's own: masses are 1, agents are discs of radius 0.15.

A step of dt: the force on an agent is its own push plus, from each other agent at distance d, a repulsion of
100 softplus((0.3 - d) / 0.001) 0.001, soft only within a thousandth around contact. The agent first moves on with the
velocity it has, p + v dt; then its velocity becomes 0.75^(dt / 0.1) v + F dt. Landmarks neither move nor collide.

Agents' columns are float64 `[n]`, the landmarks' x and y `[1, n]`; the functions write into them.
"""

import math
from typing import Any

STEP = 0.1
"""MPE's time step, s, to which the damping refers."""
KEPT = 0.75
"""Share of its velocity that an agent keeps over STEP."""
TOUCH = 0.3
"""Two agents closer than this touch."""
REACH = 0.35
"""Farther apart they repel each other with less than 1e-22, which no velocity notices."""
STIFFNESS = 100.0
"""Repulsion per unit of overlap."""
MARGIN = 1e-3
"""How soft the contact is."""
HARD = 40.0
"""From this overlap on, in margins, softplus is the overlap itself, in every bit."""
COVERED = 0.1
"""A landmark with an agent nearer than this is covered."""


def move(discs: Any, dt: float) -> None:
    """Positions and velocities after `dt` seconds, under the agents' pushes and the repulsion of their contacts."""
    position, velocity, force, contact = discs.Position, discs.Velocity, discs.Force, discs.Contact
    kept = KEPT if dt == STEP else KEPT ** (dt / STEP)
    for i in range(len(position.x)):
        position.x[i] += velocity.x[i] * dt
        position.y[i] += velocity.y[i] * dt
        velocity.x[i] = velocity.x[i] * kept + (force.x[i] + contact.x[i]) * dt
        velocity.y[i] = velocity.y[i] * kept + (force.y[i] + contact.y[i]) * dt


def repulsion(distance: float) -> float:
    """Force between two agents, per metre of the way between them; 0 where they are at the very same place."""
    if distance == 0.0:
        return 0.0
    overlap = (TOUCH - distance) / MARGIN
    if overlap > HARD:
        return STIFFNESS * overlap * MARGIN / distance
    soft = max(overlap, 0.0) + math.log1p(math.exp(-abs(overlap)))
    return STIFFNESS * soft * MARGIN / distance


def look(discs: Any, landmarks: Any, team: Any) -> None:
    """What each agent sees around itself, whom it touches, and how near landmarks the team is."""
    look_at_others(discs.Position, discs.Surroundings, discs.Contact)
    x, y, seen = discs.Position.x, discs.Position.y, discs.Surroundings.landmarks
    distance, covered = 0.0, 0.0
    for k in range(len(x)):
        there_x, there_y = landmarks.x[0, k], landmarks.y[0, k]
        nearest = math.inf
        for i in range(len(x)):
            way_x, way_y = there_x - x[i], there_y - y[i]
            seen[i, 2 * k], seen[i, 2 * k + 1] = way_x, way_y
            nearest = min(nearest, way_x * way_x + way_y * way_y)
        nearest = math.sqrt(nearest)
        distance += nearest
        covered += 1.0 if nearest < COVERED else 0.0
    team.distance[0], team.covered[0] = distance, covered


def look_at_others(position: Any, surroundings: Any, contact: Any) -> None:
    """The ways from each agent to the others; where they are close, contacts and repulsion."""
    x, y, seen = position.x, position.y, surroundings.others
    for i in range(len(x)):
        contact.others[i] = contact.x[i] = contact.y[i] = 0.0
    for i in range(len(x)):
        x_i, y_i = x[i], y[i]
        for j in range(i + 1, len(x)):
            x_j, y_j = x[j], y[j]
            way_x, way_y = x_j - x_i, y_j - y_i
            seen[i, 2 * j - 2], seen[i, 2 * j - 1] = way_x, way_y
            seen[j, 2 * i], seen[j, 2 * i + 1] = x_i - x_j, y_i - y_j
            square = way_x * way_x + way_y * way_y
            if square < REACH * REACH:
                distance = math.sqrt(square)
                share = repulsion(distance)
                contact.x[i] -= share * way_x
                contact.y[i] -= share * way_y
                contact.x[j] += share * way_x
                contact.y[j] += share * way_y
                if distance < TOUCH:
                    contact.others[i] += 1.0
                    contact.others[j] += 1.0
