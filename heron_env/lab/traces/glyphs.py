"""The marks on a lane: a shape for each kind of thing that happens at an instant."""

from __future__ import annotations

from typing import Final

from heron_env.lab.figure_style import BLUE, INK, PURPLE, VERMILION
from heron_env.lab.traces import svg

LANE: Final = 46.0
"""Height of a lane."""
SMALL, LETTER = 10, 5.6
"""Size of small letters, and roughly the width of one, px."""

MARKS: Final = {
    "AgentTick": "tick: it asks what it sees",
    "ObservationReply": "its observation has come",
    "ActionEffect": "effect: the set-point changes",
    "lost": "a message that leaves here is lost",
}


def shape(kind: str, x: float, y: float, small: bool = False) -> str:
    """The mark of a kind; "" for kinds without one."""
    match kind:
        case "AgentTick":
            height = 6.0 if small else 12.0
            return svg.tag("path", d=f"M{x:.1f} {y - height:.1f}v{2 * height}", stroke=INK, stroke_width="2.5")
        case "ObservationReply" | "ObservationPush":
            return svg.tag("circle", cx=x, cy=y, r=4.0, fill=BLUE)
        case "Command" | "PushedCommand":
            return svg.tag("path", d=svg.triangle(x, y, 5.0), fill=PURPLE)
        case "ActionEffect" | "PushedEffect":
            return svg.tag("path", d=svg.diamond(x, y if small else y + 9.0, 5.0), fill=VERMILION)
        case "Disturbed":
            return svg.tag(
                "path", d=f"M{x:.1f} {y - LANE / 2 + 2.0:.1f}v{LANE - 4.0}", stroke=VERMILION, stroke_width="2"
            )
        case "Simulation":
            return svg.tag("path", d=f"M{x:.1f} {y - 7.0:.1f}v14", stroke=INK, stroke_width="1.2")
        case "lost":
            return svg.tag("path", d=svg.cross(x, y, 4.0), stroke=VERMILION, stroke_width="2")
    return ""


def fitting(text: str, width: float) -> str:
    """As much of it as `width` px have room for in small letters; "" where that would say nothing."""
    most = int(width / LETTER)
    return text if len(text) <= most else f"{text[: most - 3]}..." if most > 7 else ""
