"""A film of an episode: the world, its messages, and what one agent knows of it, frame by frame; and its files."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from functools import cached_property
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.world import World
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.files.writing import write
from heron_env.given import is_number, is_one_of
from heron_env.pictures.footage import Footage
from heron_env.pictures.frames import WorldPicture
from heron_env.pictures.panels import LEGEND, NetworkPicture

MOST_FRAMES: Final = 300
"""Of a film without `every`."""
LONGEST: Final = 100_000
"""Frames that a film may have."""
SAMPLES: Final = 8
"""Frames whose colours make the palette of a .gif."""
POSTER: Final = 1500
"""Milliseconds that the poster of a .gif is shown before the film begins."""
HEIGHT: Final = 720
"""Pixels of the player in a notebook."""


class Frame(NamedTuple):
    """One frame: time, s, a clock on the wall or "", and two pictures uint8 `[height, width, 3]`: world and network."""

    time: float
    clock: str
    world: NDArray[np.uint8]
    network: NDArray[np.uint8]


class Film:
    """Film of an episode: the truth, and what `agent` (None: the first) knows. Frames are drawn on demand.

    `start`, `end`: s; None: to the end. `every`: s from frame to frame; None: at most MOST_FRAMES frames. `times`: of
    its frames, s. `poster`: index of the frame in which knowledge and truth differ most; else it is oldest; else last.
    Raises ConfigError, UnknownAgent.
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

    @cached_property
    def poster(self) -> int:
        truths, known, ages = self.footage.course(self.agent, self.times)
        span = np.maximum(np.ptp(truths, axis=0), 1e-9)
        apart = np.nan_to_num(np.abs(truths - known) / span).sum(axis=1)
        return int(np.lexsort((np.arange(len(ages)), ages, apart.round(6)))[-1])

    def __len__(self) -> int:
        """How many frames."""
        return len(self.times)

    def __iter__(self) -> Iterator[Frame]:
        """The frames, drawn one after another. Raises ConfigError where matplotlib is missing."""
        footage, env = self.footage, self.footage.env
        truth = footage.truths[0].copy()
        world = World(env.simulation.model.layout, truth)
        picture = WorldPicture(env.draw_frame)
        network = NetworkPicture(footage, self.agent, self.times)
        since = self.times[0]
        for time in self.times:
            truth[:] = footage.truth(time)
            world.time, world.step = time, round(time * 1e9) // env.dt_ns
            observed = footage.known(self.agent, time)
            clock = f"{env.local_time(time)}  return {footage.earned_by(time):.4g}".strip()
            yield Frame(time, clock, picture.image(world, observed, clock), network.image(since, time, truth, observed))
            since = time

    def images(self) -> Iterator[NDArray[np.uint8]]:
        """Each frame as one picture, uint8 `[height, width, 3]`: the world, and right of it the network."""
        for frame in self:
            yield np.concatenate([frame.world, frame.network], axis=1)

    def save(self, path: str | Path, *, fps: float = 12.0) -> Path:
        """Write a .gif, .mp4 (extra `video`), or .html (a page with a player); `fps`: frames per second.

        Makes the folder. Raises ConfigError for another ending, or where the writer is missing; OSError.
        """
        path = require_film(Path(path), fps)
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[path.suffix.lower()](self, path, fps)
        return path

    def _repr_html_(self) -> str:
        """The player in a frame of its own, for notebooks."""
        return f'<iframe srcdoc="{escape(page(self))}" style="width:100%;height:{HEIGHT}px;border:0"></iframe>'


def require_film(path: Path, fps: float) -> Path:
    """The path. Raises ConfigError for an ending but .gif, .mp4 and .html, where nothing writes mp4, or for fps."""
    most = 50.0 if path.suffix.lower() == ".gif" else 60.0
    if not (is_number(fps) and 0.0 < fps <= most):
        raise ConfigError(f"save(fps={fps!r}): must be a number of frames a second, above 0 and up to {most:g}")
    if path.suffix.lower() not in WRITERS:
        raise ConfigError(f"{str(path)!r}: the name of a film must end with .gif, .mp4 or .html")
    if path.suffix.lower() == ".mp4":
        _ffmpeg()
    return path


def _write_gif(film: Film, path: Path, fps: float) -> None:
    from PIL import Image

    images = [Image.fromarray(image) for image in film.images()]
    some = np.concatenate([np.asarray(image)[::2, ::2] for image in images[:: -(-len(images) // SAMPLES)]])
    palette = Image.fromarray(some).quantize(192, Image.Quantize.MAXCOVERAGE, kmeans=3)
    legend = ((int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in LEGEND)  # the same in each film
    palette.putpalette([*chain(*legend), *(palette.getpalette() or [])[: 3 * 192]])
    frames = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    content = io.BytesIO()
    pauses = [POSTER, *[round(1000 / fps)] * len(frames)]
    frames[film.poster].save(content, "GIF", save_all=True, append_images=frames, duration=pauses, loop=0, disposal=1)
    write(path, content.getvalue())


def _write_mp4(film: Film, path: Path, fps: float) -> None:
    writer = None
    for image in film.images():
        if writer is None:
            size = image.shape[1], image.shape[0]
            writer = _ffmpeg().write_frames(str(path), size, fps=fps, codec="libx264", quality=7)
            writer.send(None)
        writer.send(np.ascontiguousarray(image))
    assert writer is not None, "a film has a frame"
    writer.close()


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ConfigError("films as .mp4 need imageio-ffmpeg: pip install 'heron_env[video]'") from error
    return imageio_ffmpeg


WRITERS: Final[dict[str, Callable[[Film, Path, float], Any]]] = {
    ".gif": _write_gif, ".mp4": _write_mp4, ".html": lambda film, path, fps: write(path, page(film, fps)),
}  # fmt: skip


def page(film: Film, fps: float = 12.0) -> str:
    """The player as one document: the first frame, and of each frame the pixels that differ from it."""
    images, first, frames = dict[str, int](), list[NDArray[np.uint8]](), []
    for time, clock, *pictures in film:
        first = first or pictures
        changes = [_address(picture, ground) for picture, ground in zip(pictures, first, strict=True)]
        places = [images.setdefault(change, len(images)) for change in changes]
        frames.append([f"{time:.10g} s  {clock}".strip(), *places])
    grounds = [_address(ground) for ground in first]
    data = {"frames": frames, "images": list(images), "grounds": grounds, "fps": fps, "agent": film.agent}
    data["poster"] = film.poster
    document = files("heron_env.pictures").joinpath("player.html").read_text(encoding="utf-8")
    text = json.dumps(data).replace("<", "\\u003c")
    return document.replace("{{title}}", escape(film.footage.title or type(film.footage.env).__name__)).replace(
        "{{data}}", text
    )


def _address(picture: NDArray[np.uint8], ground: NDArray[np.uint8] | None = None) -> str:
    """An image, or what of it differs from `ground`, the rest transparent."""
    from PIL import Image

    if ground is not None:
        differs = np.logical_or.reduce([picture[..., i] != ground[..., i] for i in range(3)])
        for axis, by in ((0, 1), (0, -1), (1, 1), (1, -1)) * 2:  # a margin: edges blur where a browser scales them
            differs = differs | np.roll(differs, by, axis)
        whole = np.zeros((*differs.shape, 4), np.uint8)
        whole[differs, :3], whole[differs, 3] = picture[differs], 255
        picture = whole
    content = io.BytesIO()
    Image.fromarray(picture).save(content, "WEBP", lossless=True, quality=20, method=1)
    return f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode('ascii')}"
