"""The picture of an environment, and its part of a report: the tree of agents with ticks and delays, who sees what."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron_env.errors import ConfigError
from heron_env.files.writing import write
from heron_env.lab.figure_style import BLUE, GREY, INK, ORANGE, PALE, PURPLE, to_png, to_svg
from heron_env.lab.output import TextTable
from heron_env.lab.show.description import (
    BY,
    HEADING,
    AgentDescription,
    Description,
    SightLine,
    TreeLine,
    clock_words,
    delays,
    describe_environment,
    message_pairs,
    protocols,
    sight_lines,
    ticks,
    tree_lines,
)
from heron_env.lab.show.document import Picture, Section
from heron_env.observability.drawing import drawing_of
from heron_env.pictures.matrix import LETTER
from heron_env.pictures.palette import picture_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from heron_env.envs.base import HeronEnv
    from heron_env.observability.visibility import VisibilityMatrix
    from heron_env.scheduling.timing import Schedule

INDENT, LINE_HEIGHT, GAP, SMALL_LETTER = 0.28, 0.24, 0.3, 0.063
NARROWEST = 5.0
"""inches."""
MOST_LINES, MOST_ARCS = 28, 24
Cells = list[tuple[str, ...]]


def description_figure(d: Description, matrix: VisibilityMatrix) -> Figure:
    """Tree and matrix, one below the other. Raises ConfigError where matplotlib is missing."""
    with picture_style():
        from matplotlib.figure import Figure

        tree, sights = TreeDrawing(d), drawing_of(matrix.plan, matrix.critic, matrix.tellings)
        wide, tree_width = sights.width + 3.4, max(tree.width + 0.3, NARROWEST)
        width, heights = max(wide, tree_width), (tree.height + 0.75, sights.height + 2.3)
        figure = Figure(figsize=(width, sum(heights)), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=heights)
        top, bottom = parts
        axes = top.subplots()
        tree.draw(axes, width - 0.2)
        axes.set_title("\n".join(textwrap.wrap(f"{d.id}  {d.summary}", int(width / LETTER / 1.25))), loc="left")
        room = max(0.0, width - wide)
        below = bottom.subplots(1, 2 if room > 0.6 else 1, width_ratios=[wide, room] if room > 0.6 else None)
        matrix_axes = below[0] if room > 0.6 else below
        if room > 0.6:
            below[1].axis("off")
        sights.draw(matrix_axes)
        matrix_axes.set_title(f"Who sees what, by {BY[d.seen.by]}", pad=sights.letters)
        return figure


def hierarchy_figure(d: Description) -> Figure:
    """The tree of agents with levels, roles, ticks, delays and protocols. Raises ConfigError without matplotlib."""
    with picture_style():
        from matplotlib.figure import Figure

        tree = TreeDrawing(d)
        width = max(tree.width + 0.3, NARROWEST)
        figure = Figure(figsize=(width, tree.height + 0.2), layout="constrained")
        tree.draw(figure.subplots(), width - 0.2)
        return figure


def save(figure: Figure, path: Path) -> None:
    """Write SVG, or PNG where the name ends so: the same bytes for the same figure. Raises ConfigError."""
    try:
        write(path, to_png(figure) if path.suffix.lower() == ".png" else to_svg(figure))
    except OSError as error:
        raise ConfigError(f"{path}: can't write the picture ({error.strerror}); choose another file") from error


class TreeDrawing:
    """The tree at the left, a table of its agents at the right, arcs between agents that tell each other something.

    Attributes:
        width, height: inches.
    """

    def __init__(self, d: Description) -> None:
        self.clock = clock_words(d)
        self.lines = tree_lines(d.agents, MOST_LINES)
        self.at = {line.agent.id: y for y, line in enumerate(self.lines) if line.agent is not None}
        pairs = message_pairs(d.exchange)
        shown = {pair: both for pair, both in pairs.items() if all(agent in self.at for agent in pair)}
        self.arcs = shown if len(shown) <= MOST_ARCS else {}
        self.not_drawn = len(pairs) - len(self.arcs)
        names = max(INDENT * line.depth + LETTER * 1.15 * len(line.name) for line in self.lines)
        self.lane = names + 0.12
        cells = [("level", "role", "ticks", "delays", "protocols"), *(self._cells(line.agent) for line in self.lines)]
        self.cells: Cells = cells
        self.stops = self._columns(self.lane + (0.8 if self.arcs else 0.2))
        self.width, self.height = (
            max(self.stops[-1], SMALL_LETTER * (len(self.clock) + 40)),
            LINE_HEIGHT * (len(self.lines) + 2.5),
        )

    @staticmethod
    def _cells(agent: AgentDescription | None) -> tuple[str, ...]:
        if agent is None:
            return ("",) * 5
        times = ("", "") if agent.role == "watches" else (ticks(agent), delays(agent) or "none")
        return (str(agent.level), agent.role, *times, protocols(agent))

    def _columns(self, start: float) -> list[float]:
        """Where each column of the table begins, and where the last one ends; empty ones take no room."""
        stops = [start]
        for column in zip(*self.cells, strict=True):
            longest = max(map(len, column[1:]), default=0)
            stops.append(stops[-1] + (LETTER * max(longest, len(column[0])) + GAP if longest else 0.0))
        return stops

    def draw(self, axes: Axes, width: float) -> None:
        """Everything on these axes, which are `width` inches wide."""
        axes.axis("off")
        axes.set_xlim(0.0, max(width, self.width))
        axes.set_ylim(len(self.lines) - 0.4, -2.9)
        for y, line in enumerate(self.lines):
            self._draw_line(axes, y, line)
        for (sender, receiver), both in self.arcs.items():
            self._arc(axes, self.at[sender], self.at[receiver], both)
        for y, row in enumerate(self.cells, start=-1):
            for x, following, text in zip(self.stops, self.stops[1:], row, strict=False):
                if following > x:
                    axes.text(x, y, text, va="center", color=GREY, fontsize=8.5, style="italic" if y < 0 else "normal")
        self._explain(axes)

    def _draw_line(self, axes: Axes, y: int, line: TreeLine) -> None:
        x, colour = INDENT * line.depth, INK if line.agent is not None else GREY
        decides = line.agent is not None and line.agent.role == "decides"
        if line.parent is not None:
            above = self.lines[line.parent].agent
            commanded = above is not None and bool(above.commands)
            corner = x - INDENT * 0.6
            axes.plot(
                [corner, corner, x - 0.04], [line.parent + 0.38, y, y], color=ORANGE if commanded else PALE,
                linewidth=1.6, solid_joinstyle="miter", zorder=2 if commanded else 1,
            )  # fmt: skip
        axes.text(
            x, y, line.name, va="center", color=BLUE if decides else colour, fontweight="bold" if decides else "normal"
        )

    def _arc(self, axes: Axes, start: int, end: int, both: bool) -> None:
        from matplotlib.patches import FancyArrowPatch

        bend = -0.5 if end > start else 0.5
        bend *= min(1.0, 2.2 / abs(end - start))
        axes.add_patch(
            FancyArrowPatch(
                (self.lane, start), (self.lane, end), connectionstyle=f"arc3,rad={bend}",
                arrowstyle="<|-|>" if both else "-|>", mutation_scale=7.0, color=PURPLE, linewidth=1.1,
                shrinkA=1.0, shrinkB=1.0,
            )
        )  # fmt: skip

    def _explain(self, axes: Axes) -> None:
        agents = [line.agent for line in self.lines if line.agent is not None]
        words: list[tuple[str, Any]] = [(self.clock + ".", GREY)]
        if any(agent.commands for agent in agents):
            words.append(("commands", ORANGE))
        if self.arcs:
            words.append(("share state", PURPLE))
        if self.not_drawn:
            pairs = "1 pair" if self.not_drawn == 1 else f"{self.not_drawn} pairs"
            words.append((f"{'and ' if self.arcs else ''}{pairs} of neighbours, not drawn", PURPLE))
        _in_colours(axes, words)


def _in_colours(axes: Axes, words: Sequence[tuple[str, Any]]) -> None:
    """Words one after another, above the tree: the clock, and the key to the colours."""
    x = 0.0
    for text, colour in words:
        axes.text(x, -2.2, text, va="center", color=colour, fontsize=8.5)
        x += SMALL_LETTER * len(text) + 0.2


MOST_SIGHTS = 60
HIERARCHY = "Hierarchy and visibility"


def environment_part(
    env_id: str,
    options: Mapping[str, Any],
    schedule: Callable[[HeronEnv], Schedule] | None = None,
    timing: str = "as the environment has them",
) -> Section:
    """Tree with rates and delays (of `schedule`, which `timing` names), visibility as a picture and as a table."""
    described, matrix = describe_environment(env_id, dict(options), schedule)
    lines = list(sight_lines(described))
    return Section(
        HIERARCHY,
        [
            _hierarchy(described, timing),
            Picture(
                "who_sees_what",
                matrix.plot(title="Who sees what"),
                f"Which quantities each observer sees, by {BY[described.seen.by]}. The last row is the central critic, "
                "which is used in training only; actors do not see these.",
                f"Matrix of observers and quantities. {_sight_words(lines)}",
            ),
            TextTable("Who sees what, as a table", HEADING, lines[:MOST_SIGHTS], words=len(HEADING), folded=True),
        ],
    )


def _hierarchy(d: Description, timing: str) -> Picture:
    deciding = [agent.id for agent in d.agents if agent.role == "decides"]
    names = ", ".join(f"{a.id} below {a.parent}" if a.parent else a.id for a in d.agents[:12])
    counted = f"{len(deciding)} of {len(d.agents)} agents decide"
    return Picture(
        "hierarchy",
        hierarchy_figure(d),
        f"The hierarchy: {counted} (blue); the others command, are commanded or observe. Ticks and delays {timing}.",
        f"Tree of agents, {counted}; {clock_words(d)}. {names}{', and more' if len(d.agents) > 12 else ''}.",
    )


def _sight_words(lines: list[SightLine], most: int = 8) -> str:
    texts = [" ".join(part for part in (f"{x.observers} sees of {x.owners}:", x.what, x.how) if part) for x in lines]
    return "; ".join(texts[:most]) + (
        f"; and {len(texts) - most} more lines in the table" if len(texts) > most else "."
    )
