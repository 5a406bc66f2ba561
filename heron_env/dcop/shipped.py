"""Problems that come with the package: the study graph G15, and a ring of ten such clusters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from heron_env.dcop.formats import read_problem
from heron_env.dcop.problem import Assignment, Problem
from heron_env.given import is_one_of, mapping

SHIPPED: Final = Path(__file__).parent / "instances"
STUDY: Final = {"h3": "green", "a1": "green", "b4": "green"}
"""Nodes that the study fixes."""


def g15(
    conflict_penalty: float = 10.0,
    fixed: Assignment | str | None = None,
    preferences: Mapping[str, Mapping[str, float]] | None = None,
) -> Problem:
    """The study graph: clusters Human, Agent1 and Agent2 of five nodes, 23 edges, three colours; zero conflicts exist.

    Args:
        conflict_penalty: cost of an edge whose ends are equal.
        fixed: node to the colour that it keeps; "default": h3, a1 and b4 are green.
        preferences: node to colour to what it gains.

    Raises:
        ConfigError: an argument makes no sense.
    """
    if isinstance(fixed, str) and fixed == "default":
        fixed = STUDY
    changes = {"fixed": fixed, "preferences": preferences}
    changed = {name: mapping(value, f"g15({name})") for name, value in changes.items() if value is not None}
    changed = {name: value for name, value in changed.items() if value}
    return read_problem(SHIPPED / "g15.json").having(conflict_penalty=conflict_penalty, **changed)


def ring50() -> Problem:
    """Ten clusters like the study's in a ring with five chords: 50 nodes, 90 edges; zero conflicts exist."""
    return read_problem(SHIPPED / "ring50.json")


def problem_of(given: Problem | str | Path) -> Problem:
    """A problem by itself, by the name of a shipped one ("g15", "ring50"), or by its file. Raises ConfigError."""
    if isinstance(given, Problem):
        return given
    shipped = {"g15": g15, "ring50": ring50}
    return shipped[str(given)]() if is_one_of(given, shipped) else read_problem(given)
