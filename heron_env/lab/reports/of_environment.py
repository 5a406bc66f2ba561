"""The part of a report on the environment: who is there, how often and how late, and who sees what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from heron_env.lab.describing.description import Description, describe_environment
from heron_env.lab.describing.description_figure import hierarchy_figure
from heron_env.lab.describing.tree import told_clock
from heron_env.lab.describing.who_sees import BY, HEADING, SeenLine, seen_lines
from heron_env.lab.reports.document import Grid, Part, Picture

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.scheduling.timing import Schedule

MOST_LINES = 60
HIERARCHY = "The hierarchy, and who sees what"


def environment_part(
    env_id: str,
    options: Mapping[str, Any],
    schedule: Callable[[HeronEnv], Schedule] | None = None,
    told: str = "as the environment has them",
) -> Part:
    """Tree with rates and delays (of `schedule`, which `told` names), visibility as a picture and as a table."""
    described, matrix = describe_environment(env_id, dict(options), schedule)
    lines = list(seen_lines(described))
    return Part(
        HIERARCHY,
        [
            _hierarchy(described, told),
            Picture(
                "who_sees_what",
                matrix.plot(title="Who sees what"),
                f"What each observer sees of whom, by {BY[described.seen.by]}. The last row is what a critic may see "
                "while policies are trained; no actor does.",
                f"Matrix of observers and quantities. {_spoken(lines)}",
            ),
            Grid("Who sees what, as a table", HEADING, lines[:MOST_LINES], words=len(HEADING), folded=True),
        ],
    )


def _hierarchy(d: Description, told: str) -> Picture:
    deciding = [agent.id for agent in d.agents if agent.role == "decides"]
    shown = ", ".join(f"{a.id} below {a.parent}" if a.parent else a.id for a in d.agents[:12])
    counted = f"{len(deciding)} of {len(d.agents)} agents decide"
    return Picture(
        "hierarchy",
        hierarchy_figure(d),
        f"The hierarchy: {counted} (blue); the others command, obey or watch. Rates and delays {told}.",
        f"Tree of agents, {counted}; {told_clock(d)}. {shown}{', and more' if len(d.agents) > 12 else ''}.",
    )


def _spoken(lines: list[SeenLine], most: int = 8) -> str:
    told = [" ".join(word for word in (f"{x.observers} sees of {x.owners}:", x.what, x.how) if word) for x in lines]
    return "; ".join(told[:most]) + (f"; and {len(told) - most} more lines in the table" if len(told) > most else ".")
