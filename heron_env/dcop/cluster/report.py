"""What a cluster agent's step was: what it had, did and thinks of it, and why every node has its colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Reason = Literal["fixed", "forced", "greedy", "snap", "kept", "best"]


@dataclass(frozen=True)
class Choice:
    """Why a node has its colour: what decided, and what each colour would have cost it there and then."""

    colour: str
    reason: Reason
    penalties: Mapping[str, float]


@dataclass(frozen=True)
class StepReport:
    """One step of a cluster agent."""

    agent: str
    step: int
    before: Mapping[str, str]
    assignments: Mapping[str, str]
    changed: bool
    forced_used: Mapping[str, str]
    snapped: bool
    snap_reason: str
    satisfied: bool
    penalty: float
    """Penalty times visible conflicts; preferences do not enter."""
    conflicts: tuple[tuple[str, str], ...]
    """(own node, own or believed node) of the same colour."""
    net: float
    """The penalty minus preferences: what the agent makes small."""
    unknown_boundary: int
    """Foreign nodes at the boundary whose colour nobody told."""
    nodes: Mapping[str, Choice]
    greedy: Mapping[str, str]
    """What greedy search wanted, beside what was done."""
    told: Mapping[str, str]
    """The beliefs that it acted on."""


@dataclass(frozen=True)
class Option:
    """A counterfactual: what if the recipient's nodes at the boundary had these colours?"""

    configuration: Mapping[str, str]
    penalty: float
    """Of the sender's best response; of its actual colours for the current configuration."""
    agent_score: float
    recipient_score: float
    combined: float
    current: bool


class Past(NamedTuple):
    """What is kept of a step: enough to see whether the agent settles."""

    step: int
    satisfied: bool
    assignments: Mapping[str, str]
    flickers: bool
    """Satisfied as before the last step, and not as after it."""
    returns: bool
    """Coloured as before the last step, and not as after it."""


def remembered(past: Sequence[Past], report: StepReport) -> Past:
    """A step after those before it."""
    now = report.satisfied, report.assignments
    earlier, last = [(one.satisfied, one.assignments) for one in past[-2:]] if len(past) > 1 else (now, now)
    flickers, returns = (then == this != between for then, between, this in zip(earlier, last, now, strict=True))
    return Past(report.step, *now, flickers, returns)
