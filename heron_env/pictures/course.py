"""One episode as a picture: what agents earned so far, what they did, and what an environment's own picture shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.pictures.palette import GREY, SERIES, picture_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rewards = Mapping[str, Sequence[tuple[float, float]]]
Actions = Mapping[str, Sequence[tuple[float, NDArray[np.float64]]]]
"""(time in s, value) by agent."""


@dataclass(frozen=True)
class PictureSeries:
    """One quantity over time in the picture of an episode, as the first deciding agent saw it.

    Attributes:
        title, unit: of its panel.
        column: end of the name of an observation's column, "Feature.field"; where nobody sees it there is no panel.
        mean: over all agents of the same parent that see it, instead of the first alone.
        limit: end of the name of the column whose first value must not be exceeded, in either direction; "": none.
        stepwise: is a value valid until the next one?
        label: of its line where it is the same in all runs that are compared, such as a price; "": a line for each run.
        closer: title of a second panel: the two hours in which the runs differ most; "": none.
    """

    title: str
    unit: str
    column: str
    mean: bool = False
    limit: str = ""
    stepwise: bool = False
    label: str = ""
    closer: str = ""


def course_figure(rewards: Rewards, actions: Actions, end_time: float) -> Figure:
    """Returns of the agents so far; below them the actions of those that have any, each until the next, or the end."""
    acting = [agent for agent in rewards if actions.get(agent)]
    with picture_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 2.4 * (1 + bool(acting))), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1 + bool(acting), 1, sharex=True))
        for number, (agent, values) in enumerate(rewards.items()):
            times, earned = np.array(values, dtype=np.float64).reshape(-1, 2).T
            _line(axes[0], np.r_[0.0, times], np.r_[0.0, earned.cumsum()], agent, number)
        axes[0].set_title("Return so far")
        if acting:
            numbers = {agent: number for number, agent in enumerate(rewards)}
            for agent in acting:
                _action_line(axes[1], actions[agent], end_time, agent, numbers[agent])
            wide = any(np.size(vector) > 1 for agent in acting for _, vector in actions[agent][:1])
            axes[1].set_title("Actions as they took effect" + (", the first number of each" if wide else ""))
        axes[0].legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axes[-1].set_xlabel("virtual time, s")
        return figure


def _action_line(axes: Axes, actions: Sequence[tuple[float, Any]], end: float, agent: str, number: int) -> None:
    times = np.array([t for t, _ in actions])
    first = np.array([np.ravel(vector)[0] if np.size(vector) else np.nan for _, vector in actions])
    times, first = np.r_[times, max(end, times[-1])], np.r_[first, first[-1]]
    _line(axes, times, first, agent, number, drawstyle="steps-post")


def _line(axes: Axes, x: Any, y: Any, agent: str, number: int, drawstyle: Any = "default") -> None:
    style = ("-", "--", ":", "-.")[number // len(SERIES) % 4]
    axes.plot(x, y, style, color=SERIES[number % len(SERIES)], linewidth=1.5, label=agent, drawstyle=drawstyle)
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=0.5)
    axes.spines[["top", "right"]].set_visible(False)
