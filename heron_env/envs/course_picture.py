"""One episode as a picture: what agents earned so far, and what they did, over virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from heron_env.envs.results import EpisodeResult
from heron_env.errors import UnknownAgent, did_you_mean
from heron_env.given import is_one_of, several
from heron_env.observability.palette import GREY, SERIES, picture_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW: Final = 3
"""Agents that act which are drawn unasked, beside the root."""


def course_figure(result: EpisodeResult, agents: Sequence[str] | None = None) -> Figure:
    """See `EpisodeResult.plot`. Raises UnknownAgent for a name that the episode does not have."""
    known = list(result.rewards)
    chosen = list(several(agents, "plot(agents)")) if agents is not None else _first(result)
    for agent in chosen:
        if not is_one_of(agent, result.rewards):
            raise UnknownAgent(f"plot() got {agent!r}; the episode has {known[:12]}.{did_you_mean(agent, known)}")
    acting = [agent for agent in chosen if result.actions.get(agent)]
    with picture_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 2.4 * (1 + bool(acting))), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1 + bool(acting), 1, sharex=True))
        for number, agent in enumerate(chosen):
            times, values = np.array(result.rewards[agent], dtype=np.float64).reshape(-1, 2).T
            _line(axes[0], np.r_[0.0, times], np.r_[0.0, values.cumsum()], agent, number)
        axes[0].set_title("Return so far")
        if acting:
            for agent in acting:
                times = np.array([t for t, _ in result.actions[agent]])
                first = np.array(
                    [np.ravel(vector)[0] if np.size(vector) else np.nan for _, vector in result.actions[agent]]
                )
                held = np.r_[times, max(result.end_time, times[-1])], np.r_[first, first[-1]]
                _line(axes[1], *held, agent, chosen.index(agent), held=True)
            wide = any(np.size(vector) > 1 for agent in acting for _, vector in result.actions[agent][:1])
            axes[1].set_title("Actions as they took effect" + (", the first number of each" if wide else ""))
        axes[0].legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axes[-1].set_xlabel("virtual time, s")
        return figure


def _first(result: EpisodeResult) -> list[str]:
    """The root, and the first agents that acted."""
    acted = [agent for agent, actions in result.actions.items() if actions]
    return list(dict.fromkeys([*list(result.rewards)[:1], *acted[:FEW]]))


def _line(axes: Axes, x: np.ndarray, y: np.ndarray, agent: str, number: int, held: bool = False) -> None:
    style = ("-", "--", ":", "-.")[number // len(SERIES) % 4]
    how = "steps-post" if held else "default"
    axes.plot(x, y, style, color=SERIES[number % len(SERIES)], linewidth=1.5, label=agent, drawstyle=how)
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=0.5)
    axes.spines[["top", "right"]].set_visible(False)
