"""A film of an episode: the world, its messages, and what one agent knows of the world, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.given import is_number, is_one_of
from heron_env.pictures.footage import Footage
from heron_env.pictures.frames import WorldPicture
from heron_env.pictures.panels import NetworkPicture

MOST_FRAMES: Final = 300
"""Of a film without `every`."""
LONGEST: Final = 100_000
"""Frames that a film may have."""


class Frame(NamedTuple):
    """One frame: time, s, a clock on the wall or "", and two pictures uint8 `[height, width, 3]`: world and network."""

    time: float
    clock: str
    world: NDArray[np.uint8]
    network: NDArray[np.uint8]


class Film:
    """Draws its frames when they are asked for; beside the truth stands what `agent` knows.

    Args:
        footage: of the episode.
        agent: one that decides; None: the first.
        start, end: s; None: to the end.
        every: s from frame to frame; None: at most MOST_FRAMES frames.

    Raises ConfigError, UnknownAgent.

    Attributes:
        times: of its frames, s.
    """

    def __init__(
        self, footage: Footage, agent: str | None = None, *, start: float = 0.0, end: float | None = None,
        every: float | None = None,
    ) -> None:  # fmt: skip
        agents = list(footage.columns)
        if agent is not None and not is_one_of(agent, agents):
            near = did_you_mean(agent, agents)
            raise UnknownAgent(f"watch(agent={agent!r:.60}): decides nothing; agents that do are {agents[:12]}.{near}")
        last = footage.times[-1]
        stop = last if end is None else end
        if not (is_number(start) and is_number(stop) and 0.0 <= start <= min(stop, last)):
            raise ConfigError(
                f"watch(start={start!r}, end={end!r}): must lie in the episode, 0 to {last:g} s, in order"
            )
        if every is not None and not (is_number(every) and every > 0.0 and (stop - start) / every <= LONGEST):
            raise ConfigError(f"watch(every={every!r}): must be seconds > 0, for {LONGEST} frames at most")
        self.footage, self.agent = footage, agents[0] if agent is None else agent
        if every is None:
            times = np.array([t for t in footage.times if start <= t <= stop] or [start])
            self.times = times[:: -(-len(times) // MOST_FRAMES)].tolist()
        else:
            self.times = np.arange(start, min(stop, last) + 1e-9, every).tolist()

    def __len__(self) -> int:
        """How many frames."""
        return len(self.times)

    def __iter__(self) -> Iterator[Frame]:
        """The frames, drawn one after another. Raises ConfigError where matplotlib is missing."""
        footage, env = self.footage, self.footage.env
        truth = footage.truths[0].copy()
        world = World(env.simulation.layout, truth)
        picture = WorldPicture(env.draw_frame)
        network = NetworkPicture(footage, self.agent, self.times)
        since = self.times[0]
        for time in self.times:
            truth[:] = footage.truth(time)
            world.time, world.step = time, round(time * 1e9) // env.dt_ns
            observed = footage.known(self.agent, time)
            clock = env.local_time(time)
            yield Frame(time, clock, picture.image(world, observed, clock), network.image(since, time, truth, observed))
            since = time

    def images(self) -> Iterator[NDArray[np.uint8]]:
        """Each frame as one picture, uint8 `[height, width, 3]`: the world, and right of it the network."""
        for frame in self:
            yield np.concatenate([frame.world, frame.network], axis=1)

    def save(self, path: str | Path, *, fps: float = 12.0) -> Path:
        """Write a file: .gif, .mp4 (extra `video`), or .html, a page with a player that loads nothing.

        Args:
            path: where to; its folder is made.
            fps: frames a second at which it plays.

        Raises ConfigError for another ending, or where what writes it is missing; OSError.
        """
        from heron_env.pictures.player import write_film

        return write_film(self, Path(path), fps)

    def _repr_html_(self) -> str:
        """The player, for notebooks."""
        from heron_env.pictures.player import embedded

        return embedded(self)
