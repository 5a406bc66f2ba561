"""Films of black boxes: the frames that they draw themselves, messages, and what an agent knows beside what is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.adapters.network.driver import NetworkEpisode, NetworkSetting
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.envs.event.message_log import copies
from heron_env.errors import ConfigError
from heron_env.pictures.footage import Footage, MessageFlight, ObservationTaken
from heron_env.scheduling.messages import ObservationCopy
from heron_env.scheduling.timing import to_seconds

Image = NDArray[np.uint8]
MOST_NUMBERS: Final = 64
"""Observations of more, such as images, are shown by the number of their step alone."""


def frame_of(env: Any) -> Image:
    """What a black box draws of itself now, `[height, width, 3]`. Raises ConfigError where it draws nothing."""
    mode = getattr(env, "render_mode", None)
    try:
        drawn = np.asarray(env.render() if mode == "rgb_array" else None)
        if drawn.dtype != np.uint8 or drawn.ndim != 3 or drawn.shape[2] != 3:
            raise TypeError(f"{drawn.dtype}{list(drawn.shape)} is no uint8 [height, width, 3]")
    except Exception as error:
        raise ConfigError(
            f"{title_of(env)} draws no frames, render_mode={mode!r} ({type(error).__name__}: {error}); make it with "
            "render_mode='rgb_array', install what it draws with, or use `heron trace`, which needs no frames"
        ) from error
    return drawn


def title_of(env: Any) -> str:
    """What a black box is called."""
    named = getattr(getattr(env, "spec", None), "id", "") or (getattr(env, "metadata", None) or {}).get("name")
    return str(named or type(env.unwrapped).__name__)


def footage_of(
    episode: NetworkEpisode, images: Sequence[Image], groups: Mapping[str, list[str]], title: str
) -> Footage:
    """Of an episode that was traced; `images`: of its boundaries."""
    traced: Any = episode
    names, dt, sent = episode.setting.agents, to_seconds(episode.setting.dt_ns), list(copies(traced))
    shown = [{0: [0.0]} for _ in names]
    for message in (copy.message for copy in sent):
        if isinstance(message, ObservationCopy) and not message.part:
            shown[message.receiver][message.number] = [message.number, *_numbers(message.content)]
    widths = [max(map(len, of.values())) for of in shown]
    values = [
        {number: np.array(those + [np.nan] * (width - len(those)), np.float32) for number, those in of.items()}
        for of, width in zip(shown, widths, strict=True)
    ]
    env = _as_world(episode.setting, _layout(names, widths), groups, images)
    columns = dict(zip(names, np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1]), strict=True))
    footage, truth = Footage(env, columns, title=title, hub="environment"), np.zeros(sum(widths))
    for number in range(len(images)):
        for name, of in zip(names, values, strict=True):
            truth[columns[name]] = of.get(number, truth[columns[name]])
        footage.times.append(number * dt)
        footage.truths.append(truth.copy())
    newest = [-1] * len(names)
    for message, arrives, fate, _, _, left in sent:
        seen, came = isinstance(message, ObservationCopy), float("nan") if arrives is None else to_seconds(arrives)
        gone = float("inf") if left is None else to_seconds(left)
        sender, receiver = (-1, message.receiver) if seen else (message.agent, -1)
        footage.flights.append(MessageFlight(sender, receiver, to_seconds(message.sent), came, gone))
        if seen and not message.part and fate == "delivered" and message.number > newest[receiver]:
            newest[receiver] = message.number
            footage.take(names[receiver], ObservationTaken(came, values[receiver][message.number], message.number * dt))
    return footage


def _as_world(setting: NetworkSetting, layout: Layout, groups: Mapping[str, list[str]], images: Sequence[Image]) -> Any:
    """What a film wants to know of an environment."""
    names, agents = setting.agents, [SimpleNamespace(agent_id=name) for name in setting.agents]
    index = {name: rank for rank, name in enumerate(names)}
    tree = Hierarchy(tuple(agents), names, (-1,) * len(names), ((),) * len(names), (1,) * len(names), index)

    def draw_frame(axes: Any, world: Any, observed: Any, drawn: Any) -> Any:
        if drawn is None:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            return axes.imshow(images[0])
        drawn.set_data(image := images[min(world.step, len(images) - 1)])
        drawn.set_extent((-0.5, image.shape[1] - 0.5, image.shape[0] - 0.5, -0.5))
        return drawn

    simulation = SimpleNamespace(model=SimpleNamespace(layout=layout))
    return SimpleNamespace(
        hierarchy=tree, groups=groups, simulation=simulation, draw_frame=draw_frame,
        dt=to_seconds(setting.dt_ns), dt_ns=setting.dt_ns, local_time=lambda time: "",
    )  # fmt: skip


def _numbers(observation: Any) -> list[float]:
    """Those of an observation, without its images and texts."""
    if isinstance(observation, Mapping):
        return [number for part in observation.values() for number in _numbers(part)]
    try:
        flat = np.asarray(observation, np.float64).reshape(-1)
    except (TypeError, ValueError):
        return []
    return flat.tolist() if len(flat) <= MOST_NUMBERS else []


def _layout(agents: Sequence[str], widths: Sequence[int]) -> Layout:
    """So many columns for each agent: the number of the step that is observed, and what is."""
    owners = list[Any]()
    for agent, width in zip(agents, widths, strict=True):
        body: dict[str, Any] = {"__annotations__": {"step": int}, "step": quantity(default=0)}
        if width > 1:
            body["__annotations__"]["value"], body["value"] = np.ndarray, quantity(shape=(width - 1,))
        owners.append((agent, 1, "State", object, (type("Observed", (FeatureProvider,), body),)))
    return Layout([*owners, (GLOBAL, 0, "State", type(None), ())])
